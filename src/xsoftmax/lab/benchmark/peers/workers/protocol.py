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
from protocol_data import Data
from protocol_measure import Measure, add, values_of
from protocol_memory import forget_peak, give_back, memory
from protocol_ranking import inverse_propensities, ranking_values

# The next look comes after as long as the last one took, but within these shares of the time trained so far.
LEAST_WAIT, MOST_WAIT = 0.15, 0.5
FIRST_EVALUATIONS = {"validation": 10, "test": 300}  # the first look comes after this part of the budget
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SCORES_AT_A_TIME = 2**23
RUNS_LEFT = 2.0  # a longer run is begun if the budget holds this many times the last one


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
    def rows(self) -> dict[str, tuple[Any, Any]]:
        """Rows and their truth that are looked at, by split: validation rows, and in a final run test rows."""
        splits = dict.fromkeys(("validation", self.job["split"]))
        return {split: (self.data.features(split), self.data.truth(split)) for split in splits}

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

        def measured(X: Any, y: np.ndarray) -> dict[str, Any]:
            measure = Measure(None if kind == "ranks" else 0.0)
            for first in range(0, len(y), step):
                add(measure, np.asarray(scores(X[first : first + step])), y[first : first + step], kind)
            return values_of(measure)

        self._append(epochs, measured)

    def look_at_rows(
        self, epochs: float | None, rows: Callable[[Any, np.ndarray], tuple[np.ndarray | None, Any]]
    ) -> None:
        """As ``evaluate``, from a function of all rows of a split: log-probabilities of true classes, top classes."""

        def measured(X: Any, y: np.ndarray) -> dict[str, Any]:
            log_probabilities, top = rows(X, y)
            total = None if log_probabilities is None else float(np.sum(log_probabilities, dtype=np.float64))
            return values_of(Measure(total, int(np.sum(np.asarray(top) == y)), len(y)))

        self._append(epochs, measured)

    def look_at_top(self, epochs: float | None, top: Callable[[Any], tuple[np.ndarray, np.ndarray]]) -> None:
        """As ``evaluate``, from the classes that rank first, and keep these beside the record, ``<record>.npz``.

        Parameters
        ----------
        epochs : float or None
        top : function
            From rows to their five best classes, (n_rows, 5), -1 where there are less, and the scores of these.
            Where rows have several labels, P@k and PSP@k are measured, else hits.
        """
        kept = []

        def measured(X: Any, truth: Any) -> dict[str, Any]:
            kept.append(top(X))
            classes = kept[-1][0]
            if not self.data.is_multilabel:
                return values_of(Measure(None, int(np.sum(classes[:, 0] == truth)), len(truth)))
            values = ranking_values(classes, truth, self.inverse_propensities)
            return {"log_likelihood": None, "accuracy": values["p_at_1"], **values}

        self._append(epochs, measured)
        found = zip(self.rows, kept, strict=True)
        arrays: dict[str, Any] = {
            f"{split}_{name}": pair[i] for split, pair in found for i, name in enumerate(("classes", "scores"))
        }
        np.savez_compressed(Path(self.job["output"]).with_suffix(".npz"), **arrays)

    @cached_property
    def inverse_propensities(self) -> np.ndarray:
        """Weights of PSP@k, from training rows; of shape (n_classes,)."""
        labels = self.data.labels("train")
        return inverse_propensities(np.bincount(labels.indices, minlength=self.data.n_classes), labels.shape[0])

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

    def _append(self, epochs: float | None, measured: Callable[[Any, Any], dict[str, Any]]) -> None:
        """Add what a function measures on the rows of each split; names of validation rows' values say so."""
        start = self.clock()
        point = {"epochs": epochs, "seconds": self.seconds, "cpu_seconds": self.cpu_seconds}
        for split, rows in self.rows.items():
            prefix = "" if split == self.job["split"] else f"{split}_"
            point |= {f"{prefix}{name}": value for name, value in measured(*rows).items()}
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
