"""The catalogue of methods: what each is made of, what it is unbiased for, and what it costs, read off the code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import AXES, Method, build_method
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import solver_of
from xsoftmax.starts import Start

HEADINGS = {
    "name": "method",
    "objective": "objective",
    "proposal": "proposal",
    "optimizer": "optimizer",
    "unbiased_for": "unbiased for",
    "rows": "rows per sample",
    "memory": "extra memory",
    "source": "from",
}
WIDTHS = {"name": 27, "unbiased_for": 24, "memory": 20, "source": 30}  # of the columns of a terminal that are wrapped
# A problem on which arrays are measured; a power of two, as trees are padded to one.
N_SAMPLES, N_CLASSES, N_FEATURES = 2048, 1024, 32


class Memory(NamedTuple):
    """What a fit holds beside data and weights: copies of the weights, bytes per sample, bytes per class.

    ``per_entry``, if only weights that are not zero are held, counts the numbers of each, the weight among them.
    """

    weights: float
    per_sample: int
    per_class: int
    per_entry: int = 0

    def __str__(self) -> str:
        parts = [f"{self.per_entry} numbers per weight that is not zero"] * bool(self.per_entry)
        parts += [f"{self.weights:g} x weights"] * bool(self.weights)
        parts += [f"{self.per_sample} B per sample"] * bool(self.per_sample)
        parts += [f"{self.per_class} B per class"] * bool(self.per_class)
        return ", ".join(parts) or "none"


@dataclass(frozen=True)
class Entry:
    """One method of the catalogue.

    Attributes
    ----------
    name : str
    source : str
        Paper, and section or equation.
    objective, proposal, optimizer : str
        Names of the members.
    unbiased_for : str
        What its mean stochastic gradient is the gradient of: "softmax", the name of a bound or loss, or "nothing".
    rows : int or None
        Most classes whose weights a step reads per sample, the true one included; None: all.
    draw : str
        What drawing one of them costs; empty where none is drawn.
    memory : Memory
    settings : dict
        As in the file of methods, defaults filled in.
    """

    name: str
    source: str
    objective: str
    proposal: str
    optimizer: str
    unbiased_for: str
    rows: int | None
    draw: str
    memory: Memory
    settings: dict[str, Any]

    @property
    def cells(self) -> dict[str, str]:
        """Texts of the columns of ``HEADINGS``."""
        values = {key: str(getattr(self, key)) for key in HEADINGS}
        return values | {"rows": "all" if self.rows is None else str(self.rows)}


class Member(NamedTuple):
    """One member of an axis: its name, and the first line of its file's documentation."""

    axis: str
    name: str
    summary: str


def catalogue(methods: Mapping[str, Mapping[str, Any]]) -> list[Entry]:
    """Describe methods, given as ``read_methods`` gives them, in their order.

    Raises
    ------
    InputError
        If one can't be built.
    """
    return [entry(build_method(name, settings)) for name, settings in methods.items()]


def entry(method: Method) -> Entry:
    """Describe one method."""
    held = _held(method.objective, method.proposal)
    return Entry(
        name=method.name,
        source=method.source,
        **{axis: method.settings[axis]["name"] for axis in AXES},
        unbiased_for=_unbiased_for(method),
        rows=_rows(method, held.n_exact),
        draw=method.proposal.cost.format(**method.proposal._asdict()) if method.proposal.draws else "",
        memory=Memory(
            0 if method.weights == "sparse" else solver_of(method).copies(method) - 1 + held.weights,
            8 * method.objective.n_auxiliary + held.per_sample,
            held.per_class + _l2_bytes(method),
            _per_entry(method),
        ),
        settings=method.settings,
    )


def members() -> list[Member]:
    """List the members of all axes."""
    found = []
    for axis, package in AXES.items():
        for name in registry.names(package):
            documentation = import_module(f"{package}.{name.replace('-', '_')}").__doc__ or ""
            found.append(Member(axis, name, documentation.strip().split("\n\n")[0].replace("\n", " ")))
    return found


def as_json(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Give entries as plain values: ``rows`` is null where a step reads all classes."""
    return [asdict(found) | {"memory": found.memory._asdict()} for found in entries]


def markdown_table(entries: Iterable[Entry], link: Callable[[str], str] | None = None) -> str:
    """Write entries as a Markdown table; ``link`` gives the address of a method's page."""
    lines = [_line(HEADINGS.values()), _line("--:" if key == "rows" else "---" for key in HEADINGS)]
    for found in entries:
        cells = found.cells
        name = f"[{found.name}]({link(found.name)})" if link else found.name
        lines.append(_line((cells | {"name": name}).values()))
    return "\n".join(lines) + "\n"


def axes_markdown() -> str:
    """Write the axes with the question each answers and the names of its members, as a Markdown table."""
    lines = [_line(["axis", "question", "members"]), _line(["---"] * 3)]
    for axis, package in AXES.items():
        question = (import_module(package).__doc__ or "").split(";")[0]
        names = ", ".join(f"`{name}`" for name in registry.names(package))
        lines.append(_line([axis, f"{question}?" if not question.endswith("?") else question, names]))
    return "\n".join(lines) + "\n"


def members_markdown() -> str:
    """Write the members of all axes as a Markdown table."""
    lines = [_line(["axis", "member", "what it is"]), _line(["---"] * 3)]
    lines += [_line([found.axis, f"`{found.name}`", found.summary]) for found in members()]
    return "\n".join(lines) + "\n"


def one_of(entries: Sequence[Entry], name: str) -> Entry:
    """Find the entry of a method.

    Raises
    ------
    InputError
        If there is none; the message lists those there are.
    """
    for found in entries:
        if found.name == name:
            return found
    raise InputError(f"unknown method {name!r}; known: {', '.join(found.name for found in entries)}")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _unbiased_for(method: Method) -> str:
    """Name what the mean gradient is that of, and under what conditions."""
    objective = method.objective
    target = objective.target if method.proposal.draws else objective.target_of_all
    if method.proposal.finds:
        return "the loss of the classes that score highest"
    if target == "nothing":
        return ", ".join(filter(None, ["nothing", objective.qualifier]))
    name = "softmax" if target == "softmax" else objective.title
    joint = "jointly with a variable per sample" if name == "softmax" and objective.n_auxiliary else ""
    return ", ".join(filter(None, [name, objective.qualifier or joint, method.optimizer.qualifier]))


def _per_entry(method: Method) -> int:
    """Count the numbers of a weight that is not zero: itself, its place, what is accumulated or averaged."""
    return 2 + method.optimizer.accumulates + (method.average != "none") if method.weights == "sparse" else 0


def _rows(method: Method, n_exact: int) -> int | None:
    """Most classes that are scored for one sample; of an implicit step on a batch all its labels are."""
    if not method.proposal.draws:
        return None
    n_labels = solver_of(method).labels_of_a_step(method)  # type: ignore[attr-defined]
    n_scored = max(method.n_sampled, getattr(method.proposal, "shortlist", 0))
    return int(n_labels + n_scored + n_exact)


def _l2_bytes(method: Method) -> int:
    """Bytes per class of what an L2 penalty is weighted by: how often steps touch the class."""

    def size(n_classes: int) -> int:
        data = _problem(n_classes=n_classes)
        solver = solver_of(method)
        proposal = method.proposal.fit(data)
        return _nbytes(solver.weighed_by(method, proposal, proposal.kernel(data.X), data), data.X)  # type: ignore[attr-defined]

    return (size(2 * N_CLASSES) - size(N_CLASSES)) // N_CLASSES if method.proposal.draws else 0


class _Held(NamedTuple):
    """What the fitted objective and proposal hold, and the classes that every step looks at."""

    weights: int
    per_sample: int
    per_class: int
    n_exact: int


# NamedTuples of different types may be equal: the types have to be looked at.
@lru_cache(maxsize=None, typed=True)
def _held(objective: Any, proposal: Any) -> _Held:
    """Measure it on problems of which one is twice as large in one way; what grows with features is in weights."""

    def size(n_samples: int = N_SAMPLES, n_classes: int = N_CLASSES, n_features: int = N_FEATURES) -> int:
        data = _problem(n_samples, n_classes, n_features)
        return _nbytes(objective.fit(data), data.X) + _nbytes(proposal.fit(data).kernel(data.X), data.X)

    held, wide = size(), size(n_features=2 * N_FEATURES)
    per_class = (size(n_classes=2 * N_CLASSES) - held) / N_CLASSES
    per_wide_class = (size(n_classes=2 * N_CLASSES, n_features=2 * N_FEATURES) - wide) / N_CLASSES
    per_feature = (per_wide_class - per_class) / N_FEATURES
    return _Held(
        round(per_feature / 4),
        round((size(n_samples=2 * N_SAMPLES) - held) / N_SAMPLES),
        round(per_class - per_feature * N_FEATURES),
        getattr(proposal.fit(_problem()).kernel(_problem().X), "exact_classes", np.empty(0)).size,
    )


def _nbytes(parts: Any, X: np.ndarray) -> int:
    """Bytes of the arrays in nested tuples, views of the rows not counted."""
    if isinstance(parts, tuple):
        return sum(_nbytes(part, X) for part in parts)
    return parts.nbytes if isinstance(parts, np.ndarray) and not np.may_share_memory(parts, X) else 0


@cache
def _problem(n_samples: int = N_SAMPLES, n_classes: int = N_CLASSES, n_features: int = N_FEATURES) -> TrainingSet:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)).astype(np.float32)
    start = Start(rng.standard_normal((n_classes, n_features)).astype(np.float32), float(n_classes))
    return TrainingSet(X, (np.arange(n_samples) % n_classes).astype(np.int32), n_classes, start=start)
