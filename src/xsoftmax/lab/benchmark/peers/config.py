"""What is to be run: data sets, entrants, grids and budgets, from config/peers.yaml and an experiment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.peers.runs import Limits, limits
from xsoftmax.methods import merged

OURS = "xsoftmax"


@dataclass(frozen=True)
class Entrant:
    """Who is run: a peer with a loss or solver, or one of our methods.

    Attributes
    ----------
    name : str
        Such as ``pytorch-full-softmax``; ours begin with ``xsoftmax-``.
    worker : str
        A script of ``workers``, without ``run_``.
    environment : str or None
        Name of a file in envs/peers; None: the environment that runs this.
    packages : tuple of str
        Whose versions are recorded; the first is the peer's own.
    settings : dict
    grid : dict of str to list of dict
        For ``dense`` and ``sparse`` rows: settings to try.
    needs : str
        ``words``: only rows that come from words, whose values it does not see; or empty.
    """

    name: str
    worker: str
    environment: str | None
    packages: tuple[str, ...]
    settings: dict[str, Any]
    grid: dict[str, list[dict[str, Any]]]
    needs: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is a method of this package."""
        return self.worker == OURS

    def choices(self, storage: str) -> list[dict[str, Any]]:
        """All settings to try on rows of a storage, ``dense`` or ``csr``."""
        return [merged(self.settings, change) for change in self.grid["dense" if storage == "dense" else "sparse"]]

    def why_not(self, storage: str) -> str:
        """Why it can't take rows of a storage; empty if it can."""
        if self.needs == "words" and storage == "dense":
            return "takes bags of words only, no real-valued features"
        return ""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes
    ----------
    datasets : list of str
    seconds : float
        Of training, in a final run.
    less : dict of str to float
        Where fewer seconds do: by data set.
    pilot_share : float
        Of these, for one pilot.
    rows : dict of str to int
        Most rows of ``validation`` and ``test`` that are looked at.
    patience : dict of str to float
        ``factor``, ``grace`` and ``start``: how long a run may take beside its training.
    memory_share : float
        Of the machine's memory, for one run.
    entrants : list of Entrant
    methods : Path
        The file of our methods.
    targets : dict
        What ours are to reach, as config/peers.yaml says; empty: nothing. Kept with the results, for the report.
    """

    datasets: list[str]
    seconds: float
    less: dict[str, float]
    pilot_share: float
    rows: dict[str, int]
    patience: dict[str, float]
    memory_share: float
    entrants: list[Entrant]
    methods: Path
    targets: dict[str, Any] = field(default_factory=dict)

    def seconds_on(self, dataset: str) -> float:
        """Seconds of training in a final run on a data set."""
        return min(self.seconds, self.less.get(dataset, self.seconds))

    def limits(self, n_threads: int, seconds: float) -> Limits:
        """Limits of a run of so many seconds of training."""
        wall = self.patience["factor"] * seconds + self.patience["grace"]
        return limits(n_threads, wall, self.patience["start"], self.memory_share)


def read_benchmark(
    experiment: Path, peers: Path, methods: Path, datasets: list[str] | None = None, entrants: list[str] | None = None
) -> Benchmark:
    """Read what to run: all that the files name, or of it only some data sets, and entrants that begin so.

    Raises
    ------
    InputError
        If a key is missing, a method has no grid, or nothing is called so.
    """
    asked, content = read_yaml(experiment), read_yaml(peers)
    try:
        everybody = [_peer(name, entry) for name, entry in content["entrants"].items()]
        everybody += [_ours(name, content["ours"], peers) for name in asked["methods"]]
        names = _only([entrant.name for entrant in everybody], entrants, "entrant", str.startswith)
        return Benchmark(
            datasets=_only(asked["datasets"], datasets, "data set", str.__eq__),
            seconds=asked["budget"]["seconds"],
            **{key: content[key] for key in ("less", "pilot_share", "rows", "patience", "memory_share")},
            entrants=[entrant for entrant in everybody if entrant.name in names],
            methods=methods,
            targets=content.get("targets", {}),
        )
    except KeyError as error:
        raise InputError(f"{peers}, {experiment}: no key {error}; add it") from None


def _only(names: list[str], words: list[str] | None, kind: str, fits: Callable[[str, str], bool]) -> list[str]:
    """Names that fit one of some words; all without words."""
    for word in words or []:
        if not any(fits(name, word) for name in names):
            raise InputError(f"no {kind} {word!r}; known: {', '.join(names)}")
    return [name for name in names if words is None or any(fits(name, word) for word in words)]


def _peer(name: str, entry: dict[str, Any]) -> Entrant:
    return Entrant(
        name=name,
        worker=entry["worker"],
        environment=entry["environment"],
        packages=tuple(entry["packages"]),
        settings=entry.get("settings", {}),
        grid=_by_storage(entry["grid"]),
        needs=entry.get("needs", ""),
    )


def _ours(method: str, entry: dict[str, Any], file: Path) -> Entrant:
    """One of our methods; its grid gives rates, or whole changes under ``set``."""
    if method not in entry["grid"]:
        raise InputError(f"{file}: ours.grid: nothing for method {method!r}; add rates to try")
    grid = _by_storage(entry["grid"][method])
    changes = {storage: [{"set": _rate(change)} for change in choices] for storage, choices in grid.items()}
    return Entrant(f"{OURS}-{method}", OURS, None, tuple(entry["packages"]), {"method": method}, changes)


def _rate(change: dict[str, Any]) -> dict[str, Any]:
    if "learning_rate" not in change:
        return change
    rest = {key: value for key, value in change.items() if key != "learning_rate"}
    return merged(rest, {"optimizer": {"learning_rate": change["learning_rate"]}})


def _by_storage(grid: Any) -> dict[str, list[dict[str, Any]]]:
    return grid if isinstance(grid, dict) else {"dense": grid, "sparse": grid}
