"""What a step takes, timed, and the learning rate, tuned: in short trials on the data themselves."""

import math
from typing import Any

from xsoftmax.advice.trial import Ground, Trial
from xsoftmax.methods import Method, build_method, merged

RATE_FACTORS = (0.3, 1.0, 3.0)
# Where all rates end worse than a guess, smaller ones by this factor, a few times.
DOWN, TIMES_DOWN = 0.1, 4
# Of an epoch, the least that a trial must see for its verdict to be better than what other data sets say.
LEAST_EPOCHS = 0.5


def timed(ground: Ground, seconds: float) -> dict[str, float]:
    """Take steps for about so many seconds, two steps at least, and say what a sample takes.

    Returns
    -------
    dict
        ``seconds_per_sample``, the first half left out, which touches memory for the first time; and ``seconds``
        that all steps took, and the proposal's fit.
    """
    trial, size = Trial(ground, ground.method.optimizer.learning_rate), ground.method.minibatch_size
    trial.advance(size)
    at_most = size * max(1, int(seconds / 16 / max(trial.seconds, 1e-6)))
    while trial.finite and trial.seconds < seconds / 2:
        trial.advance(at_most)
    samples, spent = trial.samples, trial.seconds
    while trial.finite and (trial.samples == samples or trial.seconds < seconds):
        trial.advance(at_most)
    if not trial.finite:
        samples, spent = 0, 0.0
    return {
        "seconds_per_sample": (trial.seconds - spent) / max(1, trial.samples - samples),
        "seconds": ground.proposal.seconds + trial.seconds,
    }


def tune_rate(ground: Ground, n_samples: int, seconds: float = math.inf) -> list[dict[str, Any]]:
    """Train at a few rates around the method's; say what each came to.

    Without validation rows, or with samples for less than a step or half an epoch, nothing is tried.

    Parameters
    ----------
    ground : Ground
    n_samples : int
        Samples of each trial.
    seconds : float
        The first trial ends after so many, and the others with as many samples as it had.

    Returns
    -------
    list of dict
        ``rate``, ``seconds`` of its steps, and ``log_likelihood`` of validation rows (nats), None if it diverged.
    """
    found: list[dict[str, Any]] = []
    size, too_short = ground.method.minibatch_size, n_samples < LEAST_EPOCHS * ground.train.n_samples
    n_samples = n_samples // size * size
    if not ground.validation.n_samples or not n_samples or too_short:
        return found
    begin = ground.method.optimizer.learning_rate
    for factor in RATE_FACTORS:
        outcome, used = _outcome(ground, factor * begin, n_samples, seconds)
        if outcome["log_likelihood"] is not None:
            n_samples, seconds = used, math.inf
        found.append(outcome)
    rate, guess = RATE_FACTORS[0] * begin, -math.log(ground.data.n_classes)
    for _ in range(TIMES_DOWN):
        if any((outcome["log_likelihood"] or -math.inf) > guess for outcome in found):
            break
        rate *= DOWN
        found.append(_outcome(ground, rate, n_samples, seconds)[0])
    return found


def _outcome(ground: Ground, rate: float, n_samples: int, seconds: float) -> tuple[dict[str, Any], int]:
    """What one rate came to, and the samples that it used."""
    trial = Trial(ground, rate)
    while trial.finite and trial.samples < n_samples and trial.seconds < seconds:
        trial.advance(n_samples - trial.samples)
    return {"rate": rate, "seconds": trial.seconds, "log_likelihood": trial.log_likelihood()}, trial.samples


def at_rate(method: Method, rate: float) -> Method:
    """Build the same method at another learning rate."""
    settings = merged(method.settings, {"optimizer": {"learning_rate": rate}})
    return build_method(method.name, settings | {"source": method.source})
