"""What a step takes, timed, and the learning rate, tuned: in short trials on the data themselves."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xsoftmax.advice.clock import Clock
from xsoftmax.advice.trial import Trial, TrialContext
from xsoftmax.methods import Method, build_method, merged

RATE_FACTORS = (0.3, 1.0, 3.0)
# Where all rates end worse than a guess, smaller ones by this factor, a few times.
DOWN, TIMES_DOWN = 0.1, 4
# Of an epoch, the least that a trial must see for its verdict to be better than what other data sets say.
LEAST_EPOCHS = 0.5
SAFE = 0.6  # of the time that is left, what trials are planned for: not all are as fast as the first
TOO_LITTLE, TIME_IS_UP = "a trial would see too little of the data", "time was up"


class Pilot(NamedTuple):
    """What trials came to.

    Attributes
    ----------
    trials : list of dict
        ``rate``, ``seconds`` of its steps, and ``log_likelihood`` of validation rows (nats), None if it diverged or
        was cut short.
    short : str
        Why they say nothing; empty if they do.
    """

    trials: list[dict[str, Any]]
    short: str = ""


def timed(context: TrialContext, seconds: float, clock: Clock) -> dict[str, float] | None:
    """Take steps for about so many seconds and say what a sample takes; None if setting up took all there is.

    Returns
    -------
    dict
        ``seconds_per_sample``, the first half left out, which touches memory for the first time, unless there is
        time for no more; and ``seconds`` that all steps took, and the proposal's fit.
    """
    trial, size = Trial(context, context.method.optimizer.learning_rate), context.method.minibatch_size
    if clock.left <= 0:
        return None
    trial.advance(size)
    at_most = size * max(1, int(seconds / 16 / max(trial.seconds, 1e-6)))
    while trial.finite and trial.seconds < seconds / 2:
        trial.advance(at_most)
    samples, spent = trial.samples, trial.seconds
    while trial.finite and clock.left > 0 and (trial.samples == samples or trial.seconds < seconds):
        trial.advance(at_most)
    if not trial.finite or trial.samples == samples:
        samples, spent = 0, 0.0
    return {
        "seconds_per_sample": (trial.seconds - spent) / max(1, trial.samples - samples),
        "seconds": context.proposal.seconds + trial.seconds,
    }


def tune_rate(context: TrialContext, n_samples: int, clock: Clock) -> Pilot:
    """Train at a few rates around the method's, so many samples at most each; say what each came to.

    Nothing is tried without validation rows, or with samples or time for less than a step or half an epoch. Of the
    time on the clock, the first trial ends after its share, and the others have as many samples as it had; what would
    not be done in time is not begun.
    """
    size, least = context.method.minibatch_size, LEAST_EPOCHS * context.train.n_samples
    if not context.validation.n_samples:
        return Pilot([], "there are no validation rows")
    if n_samples < max(size, least):
        return Pilot([], TOO_LITTLE)
    n_samples = n_samples // size * size
    begin, guess = context.method.optimizer.learning_rate, -math.log(context.data.n_classes)
    scoring = Trial(context, begin).scoring_seconds() if math.isfinite(clock.limit) else 0.0
    seconds = SAFE * clock.left / len(RATE_FACTORS) - scoring
    if seconds <= 0:
        return Pilot([], "setting up and scoring rows leave it no time")
    found: list[dict[str, Any]] = []
    least = min(least, n_samples)
    for rate in _rates(begin, guess, found):
        short = TIME_IS_UP if len(found) < len(RATE_FACTORS) else ""
        if clock.left <= scoring:
            return Pilot(found, short)
        trial = _trained(Trial(context, rate), n_samples, min(seconds, clock.left - scoring), clock)
        cut = trial.finite and trial.samples < least
        found.append(
            {"rate": rate, "seconds": trial.seconds, "log_likelihood": None if cut else trial.log_likelihood()}
        )
        if cut:
            return Pilot(found, short)
        if trial.finite:
            n_samples, least, seconds = trial.samples, trial.samples, math.inf
    return Pilot(found)


def _rates(begin: float, guess: float, found: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Give the rates to try, smaller ones while all that were ``found`` are worse than a guess."""
    yield from (factor * begin for factor in RATE_FACTORS)
    rate = RATE_FACTORS[0] * begin
    for _ in range(TIMES_DOWN):
        known = [each["log_likelihood"] for each in found if each["log_likelihood"] is not None]
        if max(known, default=-math.inf) > guess:
            return
        rate *= DOWN
        yield rate


def _trained(trial: Trial, n_samples: int, seconds: float, clock: Clock) -> Trial:
    """Take steps for so many samples or about so many seconds; of the latter, a minibatch first, to see its pace."""
    began = clock.spent
    while trial.finite and trial.samples < n_samples and (passed := clock.spent - began) < seconds:
        at_most = n_samples - trial.samples
        if math.isfinite(seconds):
            least = trial.minibatch_size
            at_most = min(at_most, max(least, int(trial.samples / passed * (seconds - passed)) if passed else least))
        trial.advance(at_most)
    return trial


def at_rate(method: Method, rate: float) -> Method:
    """Build the same method at another learning rate."""
    settings = merged(method.settings, {"optimizer": {"learning_rate": rate}})
    return build_method(method.name, settings | {"source": method.source})
