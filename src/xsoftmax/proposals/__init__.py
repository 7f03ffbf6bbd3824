"""Which classes to look at for an example, and with what log-probability; one file each.

A file holds its parameters, a NamedTuple described by ``proposal`` and named ``MEMBER``, whose ``fit`` gives a
``Proposal``; and the NamedTuple that the kernels see, with its compiled ``draw`` and ``log_probability``. One that
draws has the parameter ``n_sampled``, how many classes it draws for a step; of a proposal that is made of others, the
outer one's counts, and the others' is not looked at.

A proposal owns its whole life: what it is fitted with and to (``fit``), how it comes into a file and back (``save``,
``restore``), how it follows the weights (``Adaptive``), what memory and work it takes (``memory``, ``fit_work``), and
the log-probabilities of what it draws (``log_q``). No other module knows which proposals there are.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import h5py
import numpy as np

from xsoftmax.data.training_set import Size, TrainingSet
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.parameters import as_type_of, named, with_parameters

__all__ = ["Proposal", "Size", "TrainingSet", "proposal"]
FOLDER = "xsoftmax.proposals"


def proposal(
    *,
    draws: bool,
    distribution: bool = True,
    adaptive: bool = False,
    by_row: bool = False,
    finds: bool = False,
    beforehand: bool = False,
    indexes: bool = False,
    on_device: bool = False,
    cost: str = "",
) -> Callable[[Any], Any]:
    """Describe a proposal: a decorator for its NamedTuple of parameters.

    Parameters
    ----------
    draws : bool
        Whether it leaves classes out.
    distribution : bool
        Whether draws are independent, from one distribution, of which objectives may take a mean.
    adaptive : bool
        Whether it follows the weights as they move: the fitted one is ``Adaptive``.
    by_row : bool
        Whether its distribution differs from row to row.
    finds : bool
        Whether it looks for some classes, those that score highest, so that what a step sees stands for no sum.
    beforehand : bool
        Whether its fit takes so long that fits of a model share one: the verb ``proposal`` fits it into a file. If
        the fitted one has ``fit_summary(data)``, a mapping of names to numbers, or lists of them, the file keeps
        these.
    indexes : bool
        Whether it keeps an index of the classes by their weights, one row each: lists by feature have none.
    on_device : bool
        Whether its fit looks at ``TrainingSet.engine``, a device to be fitted on.
    cost : str
        What a draw costs, in words; parameters stand in braces, K for the number of classes.
    """

    def describe(member: Any) -> Any:
        member.draws, member.distribution, member.adaptive = draws, distribution, adaptive
        member.by_row, member.finds, member.cost = by_row, finds, cost
        member.beforehand, member.indexes, member.on_device = beforehand, indexes, on_device
        for name, default in (("memory", _no_memory), ("fit_work", _one_pass)):
            if not hasattr(member, name):
                setattr(member, name, default)
        return member

    return describe


def _no_memory(member: Any, size: Size) -> dict[str, int]:
    """Estimate the bytes that it holds beside what is drawn, by purpose, its parts left out."""
    return {}


def _one_pass(member: Any, n_samples: int, n_classes: int) -> float:
    """Count the work of its fit, in a unit of its own: how it grows with samples and classes."""
    return float(n_samples)


def parts_of(member: Any) -> list[Any]:
    """List the proposals that one is made of, itself first."""
    inner = [part for value in member if hasattr(value, "draws") for part in parts_of(value)]
    return [member, *inner]


def parts_beforehand(member: Any) -> list[Any]:
    """List the parts of a proposal, itself perhaps, that are fitted before training."""
    if member.beforehand:
        return [member]
    return [part for value in member if hasattr(value, "draws") for part in parts_beforehand(value)]


def memory_of(member: Any, size: Size) -> dict[str, int]:
    """Estimate the bytes that a proposal and its parts hold beside what is drawn, by purpose."""
    found: dict[str, int] = {}
    for part in parts_of(member):
        for purpose, n_bytes in part.memory(size).items():
            found[purpose] = found.get(purpose, 0) + n_bytes
    return found


def build_proposal(where: str, settings: Any, key: str = "proposal") -> Any:
    """Build a proposal, that is its parameters, from its settings as they stand in a config.

    A part of another is written like a proposal, but without ``n_sampled``.

    Raises
    ------
    InputError
        If the name, a parameter or a value is wrong; the message begins with ``where``.
    """
    chosen = named(where, key, settings)
    member = registry.load(FOLDER, chosen["name"]).MEMBER
    return with_parameters(f"{where}: {key} {chosen['name']}", member, chosen, _build_part)


def _build_part(where: str, key: str, settings: Any) -> Any:
    if isinstance(settings, Mapping) and "n_sampled" in settings:
        n_sampled = as_type_of(f"{where}: {key}: n_sampled", 1, settings["n_sampled"])
        raise InputError(
            f"{where}: its {key} has n_sampled {n_sampled}; leave it out there, and set n_sampled of the "
            "whole proposal, which counts"
        )
    return build_proposal(where, settings, key)


def settings_of(member: Any) -> dict[str, Any]:
    """Write out a proposal as a part of a config has it: its name and parameters, but not how many it draws."""
    parameters = {key: value for key, value in member._asdict().items() if key != "n_sampled"}
    filled = {key: settings_of(value) if hasattr(value, "draws") else value for key, value in parameters.items()}
    return {"name": registry.name_of(member), **filled}


def key_of(member: Any) -> str:
    """Tell proposals apart that are fitted differently."""
    return json.dumps(settings_of(member), sort_keys=True)


def fitted(member: Any, data: TrainingSet) -> "Proposal":
    """Fit a proposal, or take what was fitted with its parameters before."""
    found = data.beforehand.get(key_of(member)) if member.beforehand else None
    return found or member.fit(data)


class Proposal(Protocol):
    """A fitted proposal."""

    @property
    def name(self) -> str:
        """Of its file, with hyphens."""

    @property
    def seconds(self) -> float:
        """What the fit took."""

    def kernel(self, X: Any) -> NamedTuple:
        """What the training loop draws from, for the rows of ``X``."""

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray | None:
        """Log-probabilities of classes ``start`` to ``stop``, shape (n or 1, stop - start); None: all the same."""

    def inclusion(self, n_sampled: int) -> np.ndarray | None:
        """Probability with which each class is among the draws of a row of another class; None: rows differ."""

    def save(self, group: h5py.Group) -> None:
        """Write what ``restore`` of the same file needs to give ``log_q`` again."""


class Adaptive:
    """What a fitted proposal that follows the weights inherits.

    ``refresh(weights)`` is called before every ``refresh_steps`` steps of an epoch, while nobody writes to them; a
    draw sees the weights as they are by then. So what the proposal is derives from the weights: a checkpoint holds
    nothing of it, and no prediction is corrected by it. One that keeps nothing of the weights needs neither of the
    two. One that keeps what weights alone do not tell has it in ``arrays``, which a checkpoint writes into when it
    resumes. If that is all that ``refresh`` makes, it says ``kept``. Others are refreshed before each call of a
    solver, too, as a fit may go on from there: one whose rate is set anew within ``refresh_steps`` calls it more
    often.
    """

    refresh_steps: int = 2**15
    kept: bool = False

    def refresh(self, weights: Any) -> None:
        """Look at the weights, in a layout of ``xsoftmax.kernels.layout``: by default not at all."""

    def look_at(self, encode: Callable[[np.ndarray], np.ndarray]) -> None:
        """Take rows anew that it keeps, before a refresh, where they go through a table that moves: by default none.

        ``encode`` gives rows behind the table, float32 of shape (n, dimension), for numbers of samples.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of it beside the weights, views: by default nothing."""
        return {}

    def restored(self) -> None:
        """Follow what was written into ``arrays``."""

    def inclusion(self, n_sampled: int) -> None:
        """Rows differ."""
        return None

    def log_q(self, X: Any, start: int, stop: int) -> None:
        """Nothing to correct by."""
        return None

    def save(self, group: h5py.Group) -> None:
        """Nothing to keep."""
