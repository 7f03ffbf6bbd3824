"""Learning curves of each candidate on prepared data sets, for learning rates around its own."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from xsoftmax.advice.statistics import statistics_of
from xsoftmax.advice.trial import Trial, TrialContext
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import build_method
from xsoftmax.training.fit import training_rows

SPARSE_FACTORS, DENSE_FACTORS = (0.15, 0.5, 1.5, 4.0), (0.03, 0.1, 0.3)  # of the candidate's learning rate
EVALUATIONS, GROWTH = 11, 2.0
EPOCHS = 50  # are enough: small data sets do not take all the time


def check(path: Path) -> None:
    """Make sure that a data set can be learned from.

    Raises
    ------
    InputError
        If it has no validation rows.
    """
    with open_prepared(path) as data:
        if not data.n_samples("validation") or not data.n_samples("train"):
            raise InputError(f"{path} has no validation rows or none to train on; prepare it with a split")


def run(path: Path, candidates: Mapping[str, Mapping[str, Any]], seconds: float) -> Iterator[dict[str, Any]]:
    """Train every candidate at every rate for so many seconds or ``EPOCHS``; validation rows say how good it is."""
    with open_prepared(path) as data:
        statistics = statistics_of(data)
        for name, settings in candidates.items():
            method = build_method(name, settings)
            train, sampler = training_rows(data, method, 0, False)
            context = TrialContext(data, train, sampler, method, 0, ThreadPool(1))
            for factor in SPARSE_FACTORS if statistics.sparse else DENSE_FACTORS:
                rate = factor * method.optimizer.learning_rate
                points = _points(context, rate, seconds)
                print(f"{data.name}, {name}, rate {rate:g}: {_last(points)}", flush=True)
                known = {"dataset": data.name, "facts": statistics._asdict(), "method": name, "rate": rate}
                yield known | {"setup_seconds": context.proposal.seconds, "points": points}


def _points(context: TrialContext, rate: float, seconds: float) -> list[list[float | None]]:
    """Epochs, seconds, and validation log-likelihood (None if it diverged) along the way."""
    trial = Trial(context, rate)
    points: list[list[float | None]] = []
    for evaluation in (seconds * GROWTH ** (k - EVALUATIONS + 1) for k in range(EVALUATIONS)):
        if trial.seconds >= evaluation:
            continue
        while trial.finite and trial.seconds < evaluation and trial.samples < EPOCHS * context.train.n_samples:
            trial.advance(2**11)
        points.append([trial.samples / context.train.n_samples, trial.seconds, trial.log_likelihood()])
        if not trial.finite or trial.samples >= EPOCHS * context.train.n_samples:
            break
    return points


def _last(points: list[list[float | None]]) -> str:
    epochs, seconds, value = points[-1]
    return f"{'diverged' if value is None else f'{value:.4f} nats'} after {epochs:.2f} epochs, {seconds:.1f} s"
