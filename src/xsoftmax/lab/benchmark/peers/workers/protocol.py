"""What all workers share: the data as exported, the clock, the measure, and the file they leave.

A worker is a script that runs in the environment of its peer, one process per run, and imports nothing of xsoftmax:
numpy, scipy, its peer, and this module, which lies beside it. The rules of the clock are the same for all:

- loading the data and turning them into the peer's own form are not counted;
- compiling, and the first call of everything that compiles, are not counted but written down;
- evaluation is not counted. A peer that can't be looked at on the way is trained anew, for longer and longer.

A look measures validation rows, and in a final run test rows beside them: the validation rows say which look counts.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from protocol_measure import Measure, add, values_of
from protocol_memory import forget_peak, give_back, memory
from scipy.sparse import csr_matrix

# The next look comes after as long as the last one took, but within these shares of the time trained so far.
LEAST_WAIT, MOST_WAIT = 0.15, 0.5
FIRST_EVALUATIONS = {"validation": 10, "test": 300}  # the first look comes after this part of the budget
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SCORES_AT_A_TIME = 2**23
RUNS_LEFT = 2.0  # a longer run is begun if the budget holds this many times the last one


@dataclass(frozen=True)
class Data:
    """One exported data set.

    Attributes
    ----------
    folder : Path
        With ``meta.json`` and arrays such as ``train_y.npy``; text forms that a worker needs are kept there too.
    """

    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Name, storage (``dense`` or ``csr``), n_features, n_classes."""
        return json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))

    @property
    def n_classes(self) -> int:
        """Classes, all with training rows."""
        return self.meta["n_classes"]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.meta["n_features"]

    @property
    def is_dense(self) -> bool:
        """Whether X is an ndarray; otherwise it is a csr_matrix."""
        return self.meta["storage"] == "dense"

    def classes(self, split: str) -> np.ndarray:
        """Classes of a split, int32 of shape (n_samples,)."""
        return self._array(f"{split}_y")

    def features(self, split: str) -> Any:
        """Rows of a split, float32: C-ordered ndarray or csr_matrix with sorted int32 indices."""
        if self.is_dense:
            return self._array(f"{split}_X")
        parts = [self._array(f"{split}_{name}") for name in ("data", "indices", "indptr")]
        return csr_matrix(tuple(parts), shape=(len(parts[2]) - 1, self.n_features))

    def n_samples(self, split: str) -> int:
        """Rows of a split."""
        return np.load(self.folder / f"{split}_y.npy", mmap_mode="r").shape[0]

    def text(self, split: str, kind: str, lines: Callable[[Any, np.ndarray], Iterator[str]]) -> Path:
        """Path of a split as text of some kind; written at the first call, one line per row from ``lines(X, y)``."""
        path = self.folder / f"{split}.{kind}"
        if not path.exists():
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            with aside.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines(self.features(split), self.classes(split)))
            aside.replace(path)
        return path

    def _array(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy")


@dataclass
class Record:
    """The clock, the curve and the file of one run."""

    job: dict[str, Any]
    data: Data
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._training_from: float | None = None
        self._imported_bytes = memory("VmRSS")
        self._loaded_bytes = self._imported_bytes
        self._next = self.job["seconds"] / FIRST_EVALUATIONS[self.job["split"]]
        self._since = 0.0

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings of this run."""
        return self.job["settings"]

    @cached_property
    def clock(self) -> Callable[[], float]:
        """Seconds on the wall, or those that the process computes: they bear other work on the machine."""
        return CLOCKS[self.job.get("clock", "wall")]

    @cached_property
    def rows(self) -> dict[str, tuple[Any, np.ndarray]]:
        """Rows and classes that are looked at, by split: validation rows, and in a final run test rows."""
        splits = dict.fromkeys(("validation", self.job["split"]))
        return {split: (self.data.features(split), self.data.classes(split)) for split in splits}

    def loaded(self) -> None:
        """Say that the data are loaded, before the peer's own form of them is made."""
        _ = self.rows
        self._loaded_bytes = memory("VmRSS")

    @contextmanager
    def warm_up(self) -> Iterator[None]:
        """Measure what is written down but not counted: compiling and first calls, and what they leave in memory."""
        start, before = self.clock(), memory("VmRSS")
        yield
        seconds = self.clock() - start
        give_back()
        more = max(0, memory("VmRSS") - before)
        for name, value in (("warm_up_seconds", seconds), ("warm_up_bytes", more)):
            self.notes[name] = self.notes.get(name, 0) + value

    @contextmanager
    def training(self) -> Iterator[None]:
        """Count what is done within."""
        forget_peak()
        if self._training_from is None:
            self._training_from = time.monotonic()
        cpu, self._since = time.process_time(), self.clock()
        yield
        self.seconds += self.clock() - self._since
        self.cpu_seconds += time.process_time() - cpu
        self.peak_bytes = max(self.peak_bytes, memory("VmHWM"))

    @contextmanager
    def training_anew(self) -> Iterator[None]:
        """As ``training``, from nothing: the clock starts at zero."""
        self.seconds = self.cpu_seconds = 0.0
        with self.training():
            yield

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within ``training``: leave the memory of what is done here out. The clock goes on."""
        self.peak_bytes = max(self.peak_bytes, memory("VmHWM"))
        yield
        give_back()
        forget_peak()

    def due(self) -> bool:
        """Within ``training``: whether it is time for a look, or the budget is spent."""
        spent = self.seconds + self.clock() - self._since
        return spent >= min(self._next, self.job["seconds"])

    def goes_on(self) -> bool:
        """Whether budget is left to go on from here; one look there always is."""
        left = self.job["seconds"] - self.seconds
        return not self.curve or (left > 0 and not self._out_of_time(left))

    def allows(self, factor: float = RUNS_LEFT) -> bool:
        """Whether the budget allows a run from nothing that takes ``factor`` times as long as the last one."""
        return factor * self.seconds <= self.job["seconds"] and not self._out_of_time(factor * self.seconds)

    def evaluate(self, epochs: float, scores: Callable[[Any], np.ndarray], kind: str = "scores") -> None:
        """Add a point to the curve.

        Parameters
        ----------
        epochs : float
            Passes over the training rows, or iterations where the peer has no passes.
        scores : function
            From a block of rows to an array (n_rows, n_classes).
        kind : str
            What the array holds: ``scores`` (log-softmax of them is taken), ``log_probabilities`` (taken as they
            are), or ``ranks`` (they only order the classes: no log-likelihood).
        """
        step = max(1, SCORES_AT_A_TIME // self.data.n_classes)

        def measured(X: Any, y: np.ndarray) -> Measure:
            measure = Measure(None if kind == "ranks" else 0.0)
            for first in range(0, len(y), step):
                add(measure, np.asarray(scores(X[first : first + step])), y[first : first + step], kind)
            return measure

        self._append(epochs, measured)

    def look_at_rows(
        self, epochs: float | None, rows: Callable[[Any, np.ndarray], tuple[np.ndarray | None, Any]]
    ) -> None:
        """As ``evaluate``, from a function of all rows of a split: log-probabilities of true classes, top classes."""

        def measured(X: Any, y: np.ndarray) -> Measure:
            log_probabilities, top = rows(X, y)
            total = None if log_probabilities is None else float(np.sum(log_probabilities, dtype=np.float64))
            return Measure(total, int(np.sum(np.asarray(top) == y)), len(y))

        self._append(epochs, measured)

    def write(self, status: str, message: str = "") -> None:
        """Leave the file, aside and renamed."""
        content = {
            **{key: self.job[key] for key in ("dataset", "entrant", "peer", "split", "settings", "seed", "threads")},
            "budget_seconds": self.job["seconds"],
            "status": status,
            "message": message,
            "curve": sorted(self.curve, key=lambda point: point["seconds"]),
            "peak_bytes": self.peak_bytes or None,
            "imported_bytes": self._imported_bytes,
            "loaded_bytes": self._loaded_bytes,
            "clock": self.job.get("clock", "wall"),
            "wall_seconds": time.monotonic() - self._started,
            "load_average": os.getloadavg()[0],
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("numpy", "scipy", *self.job["packages"])},
            **self.notes,
        }
        path = Path(self.job["output"])
        aside = path.with_name(f".{path.name}.aside")
        aside.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
        aside.replace(path)

    def _append(self, epochs: float | None, measured: Callable[[Any, np.ndarray], Measure]) -> None:
        """Add what a function measures on the rows of each split; names of validation rows' values say so."""
        start = self.clock()
        point = {"epochs": epochs, "seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        for split, rows in self.rows.items():
            point |= values_of(measured(*rows), "" if split == self.job["split"] else f"{split}_")
        took = self.clock() - start
        self.curve.append(point)
        self._next = self.seconds + float(np.clip(took, LEAST_WAIT * self.seconds, MOST_WAIT * self.seconds))
        self.write("running")

    def _out_of_time(self, needed: float) -> bool:
        """Whether looks and reruns have used up what a run may take beside its training; the start does not count."""
        started = time.monotonic() if self._training_from is None else self._training_from
        return time.monotonic() - started + needed > self.job["wall_seconds"]


def work(train: Callable[[Record], None]) -> None:
    """Run a worker: read the job that the command line names, train, and leave the file whatever happens."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    record = Record(job, Data(Path(job["data"])))
    try:
        train(record)
    except Exception as error:
        record.write("failed", f"{type(error).__name__}: {error}".strip()[:500])
        raise
    record.write("finished")
