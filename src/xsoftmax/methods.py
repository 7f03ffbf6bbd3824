"""A method is a point in the product of the three axes, written in a config: see ``config/methods.yaml``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from xsoftmax import registry
from xsoftmax.errors import InputError
from xsoftmax.schedules import Schedule, schedule_type

AXES = {
    "objective": "xsoftmax.objectives",
    "proposal": "xsoftmax.proposals",
    "optimizer": "xsoftmax.optimizers",
}
_KEYS = {*AXES, "schedule", "bias", "source"}


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
    bias : bool
        Whether the model has one bias per class.
    settings : dict
        All of this as it was written, defaults filled in.
    source : str
        Where it comes from.
    """

    name: str
    objective: Any
    proposal: Any
    optimizer: Any
    schedule: Schedule
    bias: bool
    settings: dict[str, Any]
    source: str = ""

    @property
    def modules(self) -> list[str]:
        """Modules of the three members, for ``fingerprint``."""
        return component_modules(self.settings)


def read_methods(path: Path) -> dict[str, dict[str, Any]]:
    """Read a file of methods: their settings by name.

    Raises
    ------
    InputError
        If the file is missing or is not a mapping of names to mappings.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; --methods names a YAML file of methods")
    try:
        methods = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {error}") from error
    if not isinstance(methods, dict) or not all(isinstance(m, dict) for m in methods.values()):
        raise InputError(f"{path}: expected a mapping from method names to settings")
    return methods


def build_method(name: str, settings: Mapping[str, Any]) -> Method:
    """Build a method from its settings and check that its parts fit together.

    Raises
    ------
    InputError
        If a key, a member or a parameter is unknown, a value has the wrong type, or two parts do not combine.
    """
    if unknown := set(settings) - _KEYS:
        raise InputError(f"method {name}: unknown key {sorted(unknown)[0]!r}; known: {', '.join(sorted(_KEYS))}")
    parts = {axis: _member(name, axis, settings) for axis in AXES}
    schedule = _schedule(name, settings.get("schedule", {"name": "constant"}))
    bias = settings.get("bias", True)
    if not isinstance(bias, bool):
        raise InputError(f"method {name}: bias is {bias!r}; set it to true or false")
    filled = {axis: {"name": settings[axis]["name"], **part._asdict()} for axis, part in parts.items()}
    filled["schedule"] = {"name": type(schedule).__name__.lower(), **schedule._asdict()}
    method = Method(
        name,
        **parts,
        schedule=schedule,
        bias=bias,
        settings={**filled, "bias": bias},
        source=str(settings.get("source", "")),
    )
    _check_fit(method)
    return method


def component_modules(settings: Mapping[str, Any]) -> list[str]:
    """Name the modules of a method's three members, for ``fingerprint``, without importing them."""
    return [f"{package}.{settings[axis]['name'].replace('-', '_')}" for axis, package in AXES.items()]


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


def _member(method: str, axis: str, settings: Mapping[str, Any]) -> Any:
    chosen = _named(method, axis, settings.get(axis))
    member = registry.load(AXES[axis], chosen["name"]).MEMBER
    return _with_parameters(f"method {method}: {axis} {chosen['name']}", member, chosen)


def _schedule(method: str, settings: Any) -> Schedule:
    chosen = _named(method, "schedule", settings)
    return _with_parameters(f"method {method}: schedule {chosen['name']}", schedule_type(chosen["name"]), chosen)


def _named(method: str, key: str, chosen: Any) -> Mapping[str, Any]:
    if not isinstance(chosen, Mapping) or not isinstance(chosen.get("name"), str):
        raise InputError(f"method {method}: {key} is {chosen!r}; write it as {key}: {{name: ...}}")
    return chosen


def _with_parameters(where: str, member: Any, chosen: Mapping[str, Any]) -> Any:
    """Instance of a NamedTuple type with the parameters given, each of its default's type.

    A type that cannot take every value says so in a method ``problem``: what is wrong, or nothing.
    """
    given = {key: value for key, value in chosen.items() if key != "name"}
    defaults = member._field_defaults
    for key, value in given.items():
        if key not in defaults:
            raise InputError(f"{where}: unknown parameter {key!r}; known: {', '.join(defaults) or 'none'}")
        given[key] = _as_type_of(f"{where}: {key}", defaults[key], value)
    built = member(**given)
    if problem := getattr(built, "problem", str)():
        raise InputError(f"{where}: {problem}")
    return built


def _as_type_of(where: str, default: Any, value: Any) -> Any:
    """Check a parameter against its default; all parameters are flags, counts from 1, or numbers from 0."""
    kind = type(default)
    if kind is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"{where} is {value!r}; set it to true or false")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (kind is int and not float(value).is_integer()):
        raise InputError(f"{where} is {value!r}; set it to {'a whole number' if kind is int else 'a number'}")
    lowest = 1 if kind is int else 0
    if not lowest <= value < math.inf:
        raise InputError(f"{where} is {value!r}; set it to {lowest} or more")
    return kind(value)


def _check_fit(method: Method) -> None:
    """Raise InputError, naming both partners and what is missing, if the parts do not combine."""
    objective, proposal, optimizer = (f"{axis} {method.settings[axis]['name']}" for axis in AXES)
    draws, full_gradient = method.proposal.draws, method.optimizer.layout is None
    ridge, n_sampled = (getattr(method.objective, name, 0) for name in ("ridge", "n_sampled"))
    missing = method.optimizer.needs.replace("_", " ")
    rules = [
        (
            method.objective.needs_all_classes and draws,
            f"{objective} needs every class, {proposal} leaves some out; take proposal all, or objective double-sum",
        ),
        (
            not method.objective.excludes_true and not draws,
            f"{objective} is a mean over drawn classes, {proposal} draws none; take uniform, frequency or tree",
        ),
        (
            not method.optimizer.takes_blocks and not draws,
            f"{optimizer} takes single steps, {proposal} gives minibatches; take sgd, adagrad or lbfgs",
        ),
        (full_gradient and draws, f"{optimizer} needs the full gradient, {proposal} draws a few; take proposal all"),
        (
            method.optimizer.needs not in method.objective.offers,
            f"{optimizer} needs {missing}, {objective} has only {', '.join(method.objective.offers)}; "
            "take optimizer sgd or adagrad",
        ),
        (
            full_gradient and method.objective.n_states,
            f"{objective} keeps variables per sample, which {optimizer} does not move; take objective softmax",
        ),
        (
            method.optimizer.needs == "proximal" and n_sampled != 1,
            f"{objective} has n_sampled {n_sampled}, {optimizer} solves for one; set n_sampled: 1",
        ),
        (
            ridge and not full_gradient,
            f"{objective} has ridge {ridge}, which {optimizer} does not apply; take optimizer lbfgs, or ridge: 0",
        ),
    ]
    for broken, message in rules:
        if broken:
            raise InputError(f"method {method.name}: {message}")
