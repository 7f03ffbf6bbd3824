"""Who trains a method; one file each.

A file holds a class named ``MEMBER`` that is a ``Solver``. Which methods are its kind, and which of these it refuses,
with the reason, is its own to say; the first question that is asked of a method's parts is thus whether anybody can
train them together.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from xsoftmax.data.dataset import Dataset
from xsoftmax.gpu import device
from xsoftmax.gpu.device import NUMBA, OF_TORCH, SINGLE
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import modules_below
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals import Proposal, Size, TrainingSet
from xsoftmax.solvers._rules import first_broken, named, rules_of_devices, rules_of_label_sets

FOLDER = "xsoftmax.solvers"
MODULES = modules_below(FOLDER)
# In the place of a solver's name: the fastest that takes the method.
ANY = "any"
# Bytes that a core moves in a second, and products that it adds up: what estimates of seconds count in.
BYTES_A_SECOND, PRODUCTS_A_SECOND = 1e10, 2e10


class Solver(Protocol):
    """Moves its weights by chunks of an epoch.

    Attributes
    ----------
    devices : tuple of {"numba", "cpu", "cuda"}
        Where it trains: by compiled code, or by PyTorch on one of its devices.
    streams : bool
        Whether training rows may stay in their file: it reads those of a chunk only.
    encodes : bool
        Whether the methods that it trains have an encoder, or none; a class that does not say so has none.
    chunk : int
        Samples per call of ``advance``: part of a fit's identity.
    auxiliary : ndarray of shape (n_labels, n_auxiliary), float64
        What the objective keeps per label of a sample.
    """

    devices: ClassVar[tuple[str, ...]]
    streams: ClassVar[bool]
    chunk: int
    auxiliary: np.ndarray

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        """Take a method that it does not refuse, with the objective and the proposal as fitted to the data."""

    @staticmethod
    def takes(method: Any) -> bool:
        """Tell whether a method is of the kind that it trains, such as those that draw classes."""

    @staticmethod
    def refuses(method: Any) -> str:
        """Say why it cannot train a method of its kind, naming both partners and what to take; or nothing."""

    @staticmethod
    def copies(method: Any) -> float:
        """Count the float32 arrays of the weights' size that it holds, its conversions counted."""

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """Estimate the bytes that it holds beside weights and accumulators, by purpose."""

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """Estimate the seconds of an epoch by one thread: for ranking solvers, not methods."""

    @property
    def converged(self) -> bool:
        """Whether going on would change nothing."""

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """Use ``samples``, from position ``first`` of ``epoch``; fewer are used only if scores are not finite.

        Of no samples, it compiles what it needs and changes nothing: that is off the clock.
        """

    def weights(self) -> np.ndarray:
        """Weights with one class per row, float32 of shape (n_classes, n_features + 1); perhaps a view."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Everything that changes, for a checkpoint; views, which the next step may change."""

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Go on from what ``arrays`` gave, of this solver or another one of the same fit.

        Parameters
        ----------
        arrays : mapping of str to array
            In memory, or still in their file: ``dtype`` and ``shape`` are known, and ``[...]`` reads. Their shapes
            may be others than those of ``arrays()`` now, which a solver whose arrays grow may take; such a one asks
            ``check_free`` for the memory.

        Raises
        ------
        ContentError
            If they do not fit; nothing has been changed by then. ``copy_arrays`` is all that arrays of fixed shapes
            need.
        InputError
            If there is too little memory.
        """


def names() -> list[str]:
    """Name all solvers."""
    return registry.names(FOLDER)


def check_method(method: Any) -> None:
    """Make sure that some solver trains a method on its device, wherever there is such a one.

    Raises
    ------
    InputError
        If not; says what does not combine, and what to take instead.
    """
    _willing(method)


def check_label_sets(method: Any) -> None:
    """Make sure that a method trains on rows that have several labels.

    Raises
    ------
    InputError
        If not; says why, and what to take instead.
    """
    if reason := first_broken(rules_of_label_sets(method, place_of(method))):
        raise InputError(f"method {method.name}: rows have several labels, and {reason}")


def check_precision(method: Any, data: Dataset) -> None:
    """Make sure that a method's precision is there for the rows it trains on.

    Raises
    ------
    InputError
        If not; says why, and what to take instead.
    """
    if method.precision != SINGLE and (data.sparse or data.multilabel):
        rows = "are sparse" if data.sparse else "have several labels"
        raise InputError(
            f"method {method.name}: precision is {method.precision}, and rows of {data.name} {rows}, which train in "
            f"{SINGLE} only; leave precision out, or take dense rows with one label each"
        )


def check_weights(method: Any, data: Dataset) -> None:
    """Make sure that a method trains on rows that count differently.

    Raises
    ------
    InputError
        If not, or if rows have weights that are not trained on: metrics count all rows alike.
    """
    if method.optimizer.needs == "full_gradient":
        optimizer = method.settings["optimizer"]["name"]
        raise InputError(
            f"method {method.name}: rows of {data.name} have weights, by which they are visited more often or less, "
            f"and {optimizer} visits each once; take optimizer sgd or adagrad"
        )
    if others := sorted(data.weighted - {"train"}):
        raise InputError(
            f"{data.name}: {' and '.join(others)} rows have weights, and metrics count rows alike; leave those out"
        )


def place_of(method: Any) -> str:
    """Name where a method trains on this machine: by compiled code, "numba", or on PyTorch's "cpu" or "cuda".

    Of ``device: auto`` a card, if there is one and a solver there takes the method, otherwise compiled code.

    Raises
    ------
    InputError
        If no solver trains it there.
    """
    place = device.place_of(method.device)
    if method.device == "auto":
        willing = _willing(method)
        return next(there for there in (place, NUMBA, *OF_TORCH) if _on(willing, there))
    return place


def solver_of(method: Any, size: Size | None = None) -> type[Solver]:
    """Choose who trains a method: the one that it names, or of those that take it the fastest on data of this size.

    Raises
    ------
    InputError
        If none does, or the method's device is not there.
    """
    willing, place = _willing(method), place_of(method)
    device.require(method.name, place)
    here = _on(willing, place)
    if len(here) == 1 or size is None:
        return willing[here[0]]
    return willing[min(here, key=lambda name: willing[name].seconds(method, size))]


def _on(willing: Mapping[str, type[Solver]], place: str) -> list[str]:
    return [name for name, solver in willing.items() if place in solver.devices]


def make_solver(
    method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool | None = None
) -> Solver:
    """Make the solver of a method; ``objective`` and ``proposal`` are those fitted to the data."""
    n_samples, n_features = data.X.shape
    n_entries = (data.X.size if isinstance(data.X, np.ndarray) else data.X.nnz) / max(1, n_samples)
    chosen = solver_of(method, Size(n_samples, data.n_classes, n_features, n_entries))
    return chosen(method, objective, proposal, data, pool or ThreadPool())


def initial_auxiliary(method: Any, data: TrainingSet) -> np.ndarray:
    """What the objective keeps per label, before the first step: float64 of shape (n_labels, n_auxiliary)."""
    n_labels = len(data.all_labels)
    if not method.objective.n_auxiliary:
        return np.zeros((n_labels, 0))
    return method.objective.initial_auxiliary(n_labels, data.n_classes if data.start is None else data.start.n_alike)


def _parts(method: Any) -> str:
    return ", ".join(named(method))


def _is_for(solver: type[Solver], method: Any) -> bool:
    """Whether a method, with its encoder or without, is of a solver's kind."""
    return getattr(solver, "encodes", False) == (method.encoder is not None) and solver.takes(method)


def _may_train(solver: type[Solver], method: Any) -> bool:
    """Whether a solver is for a method's device, for auto any, and for its precision, which compiled code lacks."""
    able = method.precision == SINGLE or NUMBA not in solver.devices
    return able and (method.device == "auto" or method.device in solver.devices)


def _willing(method: Any) -> dict[str, type[Solver]]:
    """Find those that train a method, by name."""
    if reason := first_broken(rules_of_devices(method)):
        raise InputError(f"method {method.name}: {reason}")
    known: dict[str, type[Solver]] = {name: registry.load(FOLDER, name).MEMBER for name in names()}
    there = {name: solver for name, solver in known.items() if _may_train(solver, method)}
    takers = [name for name, solver in there.items() if _is_for(solver, method)]
    if not takers:
        more = ", weights: sparse" * (method.weights == "sparse") + ", an encoder" * (method.encoder is not None)
        raise InputError(
            f"method {method.name}: device is {method.device}, where no solver trains {_parts(method)}{more}; "
            "leave device out"
        )
    able = [name for name in takers if method.solver in (ANY, name)]
    if not able:
        on = "" if method.device == NUMBA else f" on device {method.device}"
        raise InputError(
            f"method {method.name}: solver {method.solver} does not train {_parts(method)}{on}; "
            f"take solver {' or '.join(takers)}, or leave it out"
        )
    reasons = {name: known[name].refuses(method) for name in able}
    if all(reasons.values()):
        raise InputError(f"method {method.name}: {next(iter(reasons.values()))}")
    return {name: known[name] for name, reason in reasons.items() if not reason}
