"""A method is a point in the product of the three axes, written in a config: see ``config/methods.yaml``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from xsoftmax import solvers
from xsoftmax.gpu.device import BYTES_PER_WEIGHT, DEVICES, NUMBA, SINGLE
from xsoftmax.internal import registry
from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.parameters import as_type_of, named, with_parameters
from xsoftmax.internal.shipped import methods_file
from xsoftmax.optimizers._schedules import Schedule, schedule_type
from xsoftmax.proposals import build_proposal, settings_of
from xsoftmax.solvers._encoder import Encoder, build_encoder

AXES = {
    "objective": "xsoftmax.objectives",
    "proposal": "xsoftmax.proposals",
    "optimizer": "xsoftmax.optimizers",
}
TREE, TREE_ON_DEVICES = f"{AXES['proposal']}.tree", "xsoftmax.gpu.tree_engine"
STARTS = "xsoftmax.starts"
# In the place of a method's name: whatever the advice chooses for the data.
AUTO = "auto"
# Keys of earlier versions, and what they are now.
RENAMED = {"ridge": "l2"}
AVERAGES = ("none", "all", "half")
WEIGHTS = ("dense", "sparse")
POSITIVES = ("mean", "sum")
BIAS_STARTS = ("zero", "minus-log-q")
CALIBRATIONS = ("none", "temperature", "temperature-and-frequency")
# Of how many rows have a feature, in the length of steps along it.
MOST_POWER = 4
# Settings that are one value: what it may be, and what it is if nothing is said.
_PLAIN: dict[str, tuple[Any, Any]] = {
    "l2": (0.0, 0.0),
    "decay": (0.0, 0.0),
    "average": (AVERAGES, "none"),
    "weights": (WEIGHTS, "dense"),
    "frequency_power": (0.0, 0.0),
    "prune": (0.0, 0.0),
    "positives": (POSITIVES, "mean"),
    "bias": (True, True),
    "bias_start": (BIAS_STARTS, "zero"),
    "calibration": (CALIBRATIONS, "none"),
    "device": (DEVICES, NUMBA),
}
# The same of those that are named in a fit's settings only where they differ.
_RARE: dict[str, tuple[Any, Any]] = {"precision": (tuple(BYTES_PER_WEIGHT), SINGLE), "deterministic": (True, True)}
_KEYS = {*AXES, *_PLAIN, *_RARE, "schedule", "batch", "start", "solver", "source", "encoder"}


class Batch(NamedTuple):
    """Samples per step of a method that draws classes; the step is along their mean gradient.

    ``shared``: whether all of a batch look at the same drawn classes; those of an implicit step always do.
    """

    size: int = 1
    shared: bool = False


@dataclass(frozen=True)
class Method:
    """One objective, one proposal, one optimizer, with their parameters.

    Attributes
    ----------
    name : str
    objective, proposal, optimizer : NamedTuple
        Parameters, of the type that ``MEMBER`` names in the file of that name.
    schedule : Schedule
        Of the learning rate.
    batch : Batch
    l2 : float
        Weight of half the squared norm of the weights, biases left out, beside the sum of all samples' losses.
    decay : float
        As ``l2``, apart from the gradient: weights but biases shrink by the learning rate times this over the
        number of samples, per sample, whatever the optimizer makes of gradients (decoupled weight decay).
    average : {"none", "all", "half"}
        Whether models, and looks at the fit, take the average of the weights over all steps, or over the later
        epochs, half of them at most; training itself goes on with the last weights (Polyak and Juditsky 1992).
    weights : {"dense", "sparse"}
        Whether all weights are held, or those that are not zero.
    frequency_power : float
        Of sparse rows, steps along a feature are as long as the number of rows that have it, to this power, on
        average as long as with 0: above 0 frequent features learn more, below 0 rare ones.
    prune : float
        Of the weights of the model that are not zero, the share that is dropped once training has ended, the smallest
        ones: 0.5 drops the smaller half, and the model is sparse; 0 drops none. Calibration comes afterwards.
    positives : {"mean", "sum"}
        Whether the loss of a row with several labels is the mean of the losses of its labels, so that all rows count
        alike, or their sum, so that all labels do; an objective that is a loss of all labels together has its own.
    start : NamedTuple
        Where weights begin, biases left out: a member of ``xsoftmax.starts``.
    bias : bool
        Whether the model has one bias per class.
    bias_start : {"zero", "minus-log-q"}
        Where biases begin: at 0, or at minus the mean log-probability that the proposal gives to the class on its
        own training rows (Bamler and Mandt's published code).
    calibration : {"none", "temperature", "temperature-and-frequency"}
        Whether models, and looks at the fit, have the temperature under which validation rows are likeliest, and an
        offset by the logarithm of how many training rows a class has, unless classes have about as many by design.
    device : {"numba", "cpu", "cuda", "auto"}
        Where it is to be trained: by compiled code, or by PyTorch on the processors or a card; auto: on a card where
        there is one and a solver there takes the method, otherwise by compiled code. With cuda a cluster gives the
        job a GPU.
    solver : str
        Who is to train it, by name; ``any``: the fastest that takes it.
    settings : dict
        All of this as it was written, defaults filled in.
    source : str
        Where it comes from.
    encoder : Encoder or None
        A table in front of the linear layer; None: classes see the rows themselves.
    precision : str
        Of weights and products on a device of PyTorch, a key of ``BYTES_PER_WEIGHT``; in ``settings`` unless float32.
    deterministic : bool
        Whether a device of PyTorch gives the same bits each time; in ``settings`` unless it does.
    """

    name: str
    objective: Any
    proposal: Any
    optimizer: Any
    schedule: Schedule
    batch: Batch
    l2: float
    decay: float
    average: str
    weights: str
    frequency_power: float
    prune: float
    positives: str
    start: Any
    bias: bool
    bias_start: str
    calibration: str
    device: str
    solver: str
    settings: dict[str, Any]
    source: str = ""
    encoder: Encoder | None = None
    precision: str = SINGLE
    deterministic: bool = True

    @property
    def modules(self) -> list[str]:
        """Modules of the members, for ``fingerprint``."""
        return component_modules(self.settings)

    @property
    def shrinkage(self) -> float:
        """What weights lose in an epoch, per unit of the learning rate: by an L2 penalty or by decay, never both."""
        return self.l2 or self.decay

    @property
    def n_sampled(self) -> int:
        """Classes that the proposal draws for a step; 0 if it looks at all."""
        return self.proposal.n_sampled if self.proposal.draws else 0

    @property
    def minibatch_size(self) -> int:
        """Samples of one step."""
        return self.batch.size if self.proposal.draws else self.proposal.batch_size


def read_methods(path: str | Path) -> dict[str, dict[str, Any]]:
    """Read a file of methods, such as ``config/methods.yaml``: their settings by name, for ``build_method``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to dict

    Raises
    ------
    InputError
        If the file is missing or is not a mapping of names to mappings.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file; --methods names a YAML file of methods")
    methods = read_yaml(path)
    if not isinstance(methods, dict) or not all(isinstance(m, dict) for m in methods.values()):
        raise InputError(f"{path}: expected a mapping from method names to settings")
    return methods


def known_methods(own: str | Path | None = None) -> dict[str, dict[str, Any]]:
    """Read the methods that are shipped, and lay those of a file of one's own over them, if there is one.

    Its methods come last; one that has the name of a shipped method takes its place, whole.

    Raises
    ------
    InputError
        See ``read_methods``.
    """
    shipped = read_methods(methods_file())
    if own is None:
        return shipped
    laid_over = read_methods(own)
    return {name: each for name, each in shipped.items() if name not in laid_over} | laid_over


def untried_by_auto(own: str | Path | None) -> str:
    """Say that methods of a file of one's own are not among those of ``auto``; nothing if it adds and changes none.

    Raises
    ------
    InputError
        See ``read_methods``.
    """
    if own is None:
        return ""
    shipped, laid_over = (
        {name: {key: value for key, value in each.items() if key != "source"} for name, each in methods.items()}
        for methods in (read_methods(methods_file()), read_methods(own))
    )
    others = [name for name, each in laid_over.items() if shipped.get(name) != each]
    return f"{AUTO} chooses among shipped methods; {', '.join(others)} of {own}: name one to try it" if others else ""


def build_method(name: str, settings: Mapping[str, Any]) -> Method:
    """Build a method from its settings and check that its parts fit together.

    Parameters
    ----------
    name : str
        What messages, tables and models call it.
    settings : mapping
        ``objective``, ``proposal`` and ``optimizer``, each a mapping with a ``name`` and parameters, and what else
        ``Method`` has; defaults are filled in.

    Raises
    ------
    InputError
        If a key, a member or a parameter is unknown, a value has the wrong type, or two parts do not combine.
    """
    if moved := renamed(settings):
        raise InputError(f"method {name}: {moved}")
    if unknown := set(settings) - _KEYS:
        key = sorted(map(str, unknown))[0]
        raise InputError(f"method {name}: unknown key {key!r}; {suggestion(key, sorted(_KEYS))}")
    where = f"method {name}"
    _refuse_n_sampled(where, settings)
    parts = {axis: _member(where, axis, settings.get(axis)) for axis in AXES}
    schedule = _schedule(name, settings.get("schedule", {"name": "constant"}))
    others = {
        "batch": _batch(where, settings.get("batch", {})),
        **_plain(where, settings, _PLAIN),
        "start": _start(where, settings.get("start", {"name": "zero"})),
        **_plain(where, settings, {"solver": ((solvers.ANY, *solvers.names()), solvers.ANY)}),
    }
    filled = {axis: _filled(part) for axis, part in parts.items()}
    filled["schedule"] = {"name": type(schedule).__name__.lower(), **schedule._asdict()}
    filled |= others | {"batch": others["batch"]._asdict(), "start": _filled(others["start"])}
    encoder = build_encoder(where, settings.get("encoder"))
    if encoder is not None:
        filled["encoder"] = encoder._asdict()
    rare = _plain(where, settings, _RARE)
    filled |= {key: value for key, value in rare.items() if value != _RARE[key][1]}
    last = {"source": str(settings.get("source", "")), "encoder": encoder, **rare}
    method = Method(name, **parts, schedule=schedule, **others, settings=filled, **last)
    if method.frequency_power > MOST_POWER:
        raise InputError(
            f"method {name}: frequency_power is {method.frequency_power:g}; set it to {MOST_POWER} or less, "
            "such as 0.5"
        )
    if method.prune >= 1:
        raise InputError(
            f"method {name}: prune is {method.prune:g}, the share of the weights that is dropped; set it below 1"
        )
    if method.calibration != "none" and method.objective.link != "softmax":
        link = f"objective {filled['objective']['name']} has those of another model ({method.objective.link})"
        raise InputError(
            f"method {name}: calibration is {method.calibration}, which is for the probabilities of a softmax; "
            f"{link}; leave calibration out"
        )
    solvers.check_method(method)
    return method


def _plain(where: str, settings: Mapping[str, Any], known: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Check settings that are one value each."""
    return {
        key: as_type_of(f"{where}: {key}", kind, settings.get(key, default)) for key, (kind, default) in known.items()
    }


def renamed(settings: Mapping[str, Any]) -> str:
    """Say which key of settings has another name now, and what to write; empty if none has."""
    return next(
        (f"{old} is {new} now; write {new}: {settings[old]}" for old, new in RENAMED.items() if old in settings), ""
    )


def n_sampled_moved(settings: Mapping[str, Any]) -> str:
    """Write the parts of settings that have the objective's old parameter ``n_sampled``, it being the proposal's now.

    Returns
    -------
    str
        As it may stand in a config: "objective: {name: ...}, proposal: {name: ..., n_sampled: ...}"; empty if the
        objective has no such parameter.
    """
    objective, proposal = (settings.get(axis) or {} for axis in ("objective", "proposal"))
    if not isinstance(objective, Mapping) or not isinstance(proposal, Mapping) or "n_sampled" not in objective:
        return ""
    kept = {key: value for key, value in objective.items() if key != "n_sampled"}
    parts = {"objective": kept, "proposal": {**proposal, "n_sampled": objective["n_sampled"]}}
    return ", ".join(f"{axis}: {_in_one_line(part)}" for axis, part in parts.items() if part)


def _in_one_line(part: dict[str, Any]) -> str:
    return yaml.safe_dump(part, default_flow_style=True, sort_keys=False, width=math.inf).strip()


def _refuse_n_sampled(where: str, settings: Mapping[str, Any]) -> None:
    """Refuse an objective with ``n_sampled``, once all else about it and its proposal is right."""
    objective, proposal = (named(where, axis, settings.get(axis)) for axis in ("objective", "proposal"))
    if "n_sampled" not in objective:
        return
    kept = {key: value for key, value in objective.items() if key != "n_sampled"}
    _member(where, "objective", kept)
    if not _member(where, "proposal", proposal).draws:
        raise InputError(
            f"{where}: n_sampled is a parameter of proposals that draw, and proposal {proposal['name']} draws none; "
            f"write objective: {_in_one_line(kept)}"
        )
    _member(where, "proposal", {**proposal, "n_sampled": objective["n_sampled"]})
    raise InputError(f"{where}: n_sampled is a parameter of the proposal now; write {n_sampled_moved(settings)}")


def component_modules(settings: Mapping[str, Any]) -> list[str]:
    """Name the modules of a method's members and of the solvers, for ``fingerprint``, without importing them.

    Of ``auto``, whose settings have all that it chooses ``among``, by name: those of any of these, and the advice.
    """
    if "among" in settings:
        chosen = [module for each in settings["among"].values() for module in component_modules(each)]
        return ["xsoftmax.advice.choice", *sorted(set(chosen))]
    found = [name for axis, package in AXES.items() for name in registry.modules_of(package, settings[axis])]
    start = settings.get("start", "zero")
    found.append(f"{STARTS}.{registry.stem(start if isinstance(start, str) else start['name'])}")
    if settings.get("device", NUMBA) != NUMBA and TREE in found:
        found.append(TREE_ON_DEVICES)  # which fits load by name: an edit of it is none of other methods'
    return [*found, *solvers.MODULES]


def members(settings: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Find the settings of all members of this name, at any depth."""
    inner = [found for value in settings.values() if isinstance(value, Mapping) for found in members(value, name)]
    return [settings, *inner] if settings.get("name") == name else inner


def _filled(part: Any) -> dict[str, Any]:
    """Settings of a member, its name and defaults written out."""
    values = {key: settings_of(value) if hasattr(value, "draws") else value for key, value in part._asdict().items()}
    return {"name": registry.name_of(part), **values}


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some values replaced, at any depth; a part that gets another ``name`` is replaced whole."""
    result = dict(settings)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            same = value.get("name", old.get("name")) == old.get("name")
            value = merged(old, value) if same else value
        result[key] = value
    return result


def _member(where: str, axis: str, settings: Any) -> Any:
    if axis == "proposal":
        return build_proposal(where, settings)
    chosen = named(where, axis, settings)
    member = registry.load(AXES[axis], chosen["name"]).MEMBER
    return with_parameters(f"{where}: {axis} {chosen['name']}", member, chosen)


def _schedule(method: str, settings: Any) -> Schedule:
    chosen = named(f"method {method}", "schedule", settings)
    return with_parameters(f"method {method}: schedule {chosen['name']}", schedule_type(chosen["name"]), chosen)


def _start(where: str, settings: Any) -> Any:
    """Where weights begin; a name alone stands for its defaults."""
    chosen = named(where, "start", {"name": settings} if isinstance(settings, str) else settings)
    member = registry.load(STARTS, chosen["name"]).MEMBER
    return with_parameters(f"{where}: start {chosen['name']}", member, chosen)


def _batch(where: str, settings: Any) -> Batch:
    if not isinstance(settings, Mapping):
        raise InputError(f"{where}: batch is {settings!r}; write it as batch: {{size: ...}}")
    return with_parameters(f"{where}: batch", Batch, settings)
