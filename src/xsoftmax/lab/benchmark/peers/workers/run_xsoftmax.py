"""Ours: ``xsoftmax.training.fit`` with a method of config/methods.yaml, in the environment of this package.

Training and evaluation are those that users get. The last test log-likelihood is measured once more by the
protocol's own arithmetic, and a run whose two values differ has failed.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from protocol import FIRST_LOOKS, Record, work

from xsoftmax.advice.choice import choice_for
from xsoftmax.data.store import open_prepared
from xsoftmax.methods import AUTO, build_method, merged, read_methods
from xsoftmax.model import Model
from xsoftmax.scores import ScoreBlock
from xsoftmax.training.fit import FitResult, fit
from xsoftmax.training.plan import Plan

GROWTH = 1.4  # of the time between looks
TOLERANCE = 2e-4  # float32 scores, summed in another order


def train(record: Record) -> None:
    """Settings: ``method``, and changes of it under ``set``; auto chooses by itself, its pilot on the clock."""
    job, settings = record.job, record.settings
    plan = Plan(seconds=job["seconds"], at=_looks(job["seconds"], FIRST_LOOKS[job["split"]]), threads=job["threads"])
    with open_prepared(Path(job["data"]) / "data.h5") as data:
        record.loaded()
        proposal = None
        if settings["method"] == AUTO:
            choice = choice_for(data, job["seed"], plan)
            method, plan, proposal = choice.method, choice.planned(plan), choice.proposal
            record.notes["choice"] = choice.as_json()
        else:
            entry = read_methods(Path(job["methods"]))[settings["method"]]
            method = build_method(settings["method"], merged(entry, settings.get("set", {})))
        with record.warm_up():
            fit(data, method, job["seed"], replace(plan, epochs=0, seconds=None, at=()))
        with record.training():
            result = fit(data, method, job["seed"], plan, proposal)
    _take(record, result)


def _looks(budget: float, first: int) -> tuple[float, ...]:
    looks, at = [], budget / first
    while at < budget:
        looks.append(at)
        at *= GROWTH
    return (*looks, budget)


def _take(record: Record, result: FitResult) -> None:
    split = record.job["split"]
    record.notes["memory_includes_evaluation"] = True
    for row in result.state.history:
        likelihood = row.get(f"{split}_log_likelihood", np.nan)
        record.curve.append(
            {
                "epochs": row["epoch"],
                "seconds": row["seconds"],
                "cpu_seconds": None,
                "log_likelihood": float(likelihood) if np.isfinite(likelihood) else None,
                "accuracy": float(row[f"{split}_accuracy"]) if np.isfinite(likelihood) else 0.0,
            }
        )
    if result.state.status == "diverged" or result.model is None:
        record.notes["diverged"] = result.state.message
        return
    _check(record, result.model)


def _check(record: Record, model: Model) -> None:
    """Measure the final model by the protocol's arithmetic."""
    ours, n_classes = record.curve[-1]["log_likelihood"], record.data.n_classes

    def scores(block: Any) -> np.ndarray:
        found = np.empty((block.shape[0], n_classes), np.float32)

        def keep(part: ScoreBlock) -> None:
            rows, classes = part.scores.shape
            found[part.first_row :, part.first_class :][:rows, :classes] = part.scores

        model.visit_scores(block, keep)
        return found

    points = list(record.curve)
    record.look(points[-1]["epochs"], scores)
    theirs = record.curve[-1]["log_likelihood"]
    record.curve[:] = points
    record.notes["log_likelihood_checked"] = theirs
    if model.link == "softmax" and not abs(ours - theirs) <= TOLERANCE * max(1.0, abs(theirs)):
        raise ArithmeticError(f"{json.dumps(record.settings)}: log-likelihood {ours}, checked {theirs}")


if __name__ == "__main__":
    work(train)
