"""Ours: ``xsoftmax.training.fit`` with a method of config/methods.yaml, in the environment of this package.

Training and evaluation are those that users get. The log-likelihoods of the model that is kept are measured once more
by the protocol's own arithmetic, and a run whose values differ has failed.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numba.core.event import Listener, install_listener
from protocol import FIRST_EVALUATIONS, Record, work
from protocol_ranking import MEASURES, top_of_scores

from xsoftmax.advice.choice import Choice, choice_for
from xsoftmax.data.dataset import Dataset
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.methods import AUTO, build_method, merged, read_methods
from xsoftmax.model import Model
from xsoftmax.training.evaluator import Evaluator
from xsoftmax.training.fit import FitResult, fit
from xsoftmax.training.plan import Plan, ever_rarer

GROWTH = 1.4  # of the time between evaluations
TOLERANCE = 2e-4  # float32 scores, summed in another order
SWAPPED = 2e-3  # of P@k, where scores are so close that the order of summing decides


def train(record: Record) -> None:
    """Settings: ``method``, and changes of it under ``set``; auto chooses by itself, which the clock counts."""
    job, settings = record.job, record.settings
    plan = Plan(
        seconds=job["seconds"],
        at=ever_rarer(job["seconds"] / FIRST_EVALUATIONS[job["split"]], job["seconds"], GROWTH),
        threads=job["threads"],
    )
    data = _data(record)
    record.loaded()
    proposal = None
    if settings["method"] == AUTO:
        choice, plan = _chosen(record, data, plan)
        method, proposal = choice.method, choice.proposal
    else:
        entry = read_methods(Path(job["methods"]))[settings["method"]]
        method = build_method(settings["method"], merged(entry, settings.get("set", {})))
    with record.warm_up():
        fit(data, method, job["seed"], replace(plan, epochs=0, seconds=None, at=()))
    with record.training(), _evaluations_apart(record):
        result = fit(data, method, job["seed"], plan, proposal)
    _take(record, result)


def _data(record: Record) -> Dataset:
    """All rows in memory, as peers have them."""
    rows = {split: (record.data.features(split), record.data.truth(split)) for split in ("train", *record.rows)}
    classes = range(record.data.n_classes)
    return Dataset.from_arrays(*rows.pop("train"), classes=classes, name=record.job["dataset"], **rows)


def _on_the_clock(train: Callable[[Record], None]) -> Callable[[Record], None]:
    """Let all that this package times run by the benchmark's clock, budgets and choices included."""

    def timed(record: Record) -> None:
        with patch.object(time, "perf_counter", record.clock):
            train(record)

    return timed


class Compiling(Listener):
    """Seconds of compiling, by a clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds, self._clock, self._depth, self._begin = 0.0, clock, 0, 0.0

    def on_start(self, event: Any) -> None:
        """Begin, unless within the compiling of a caller."""
        if not self._depth:
            self._begin = self._clock()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Add what it took."""
        self._depth -= 1
        if not self._depth:
            self.seconds += self._clock() - self._begin


def _chosen(record: Record, data: Dataset, plan: Plan) -> tuple[Choice, Plan]:
    """Let auto choose, and plan the fit: all of that is on the clock, scoring too, but compiling is not.

    The third time counts: where compiling takes the time of the first, it tries less, and most is compiled by then.
    """
    with record.warm_up():
        for _ in range(2):
            choice_for(data, record.job["seed"], plan)
    compiling = Compiling(record.clock)
    with record.training(), install_listener("numba:compile", compiling):
        choice = choice_for(data, record.job["seed"], plan)
    record.notes["choice"] = choice.as_json() | {"compiled_in": compiling.seconds}
    spent = max(choice.seconds, choice.took - compiling.seconds)
    evaluations = tuple(sorted({*plan.at, *choice.evaluations(spent)}))
    return choice, replace(choice.planned(plan), spent=spent, at=evaluations)


@contextmanager
def _evaluations_apart(record: Record) -> Iterator[None]:
    """Keep the memory of evaluation apart: peers are looked at outside their training, too."""
    measure = Evaluator.evaluate

    def evaluate(self: Evaluator, *arguments: Any) -> dict[str, float]:
        with record.apart():
            return measure(self, *arguments)

    with patch.object(Evaluator, "evaluate", evaluate):
        yield


def _take(record: Record, result: FitResult) -> None:
    split = record.job["split"]
    measures = MEASURES if record.data.is_multilabel else ()
    for row in result.state.history:
        point = {"epochs": row["epoch"], "seconds": row["seconds"], "cpu_seconds": None}
        for each in dict.fromkeys(("validation", split)):
            prefix, likelihood = "" if each == split else f"{each}_", row.get(f"{each}_log_likelihood", np.nan)
            finite = bool(np.isfinite(likelihood))
            point[f"{prefix}log_likelihood"] = float(likelihood) if finite else None
            hits = f"{each}_{'p_at_1' if measures else 'accuracy'}"
            point[f"{prefix}accuracy"] = float(row[hits]) if finite else 0.0
            point |= {f"{prefix}{name}": float(row[f"{each}_{name}"]) if finite else 0.0 for name in measures}
        record.curve.append(point)
    if result.state.status == "diverged" or result.model is None:
        record.notes["diverged"] = result.state.message
        return
    _check(record, result.model, result.kept["epoch"])


def _check(record: Record, model: Model, epoch: float) -> None:
    """Measure the model that was kept, as it was at an epoch, by the protocol's arithmetic."""
    kept = next(point for point in record.curve if point["epochs"] == epoch)
    points = list(record.curve)
    if record.data.is_multilabel:
        record.look_at_top(epoch, lambda X: top_of_scores(_scores(model, X)))
        names, tolerance = MEASURES, SWAPPED
    else:
        record.evaluate(epoch, lambda X: _scores(model, X))
        names, tolerance = ("log_likelihood",) if model.link == "softmax" else (), TOLERANCE
    checked = record.curve[-1]
    record.curve[:] = points
    record.notes["checked"] = {name: checked[name] for name in names}
    for name in [f"{prefix}{name}" for prefix in ("", "validation_") for name in names]:
        ours, theirs = kept.get(name), checked.get(name)
        if name in kept and not abs(ours - theirs) <= tolerance * max(1.0, abs(theirs)):
            raise ArithmeticError(f"{json.dumps(record.settings)}: {name} {ours}, checked {theirs}")


def _scores(model: Model, block: Any) -> np.ndarray:
    """Scores of all classes, float32 of shape (n_rows, n_classes)."""
    found = np.empty((block.shape[0], len(model.W)), np.float32)

    def keep(part: ScoreBlock) -> None:
        rows, classes = part.scores.shape
        found[part.first_row :, part.first_class :][:rows, :classes] = part.scores

    model.visit_scores(block, keep)
    return found


if __name__ == "__main__":
    work(_on_the_clock(train))
