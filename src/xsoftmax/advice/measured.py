"""Choose by what was measured elsewhere: the first of a ranking that memory holds, its rate from a pilot."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xsoftmax.advice.chosen import Choice
from xsoftmax.advice.clock import Clock
from xsoftmax.advice.contexts import context_of, improved, that_fit
from xsoftmax.advice.model import CostModel
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.pilot import (
    LEAST_EPOCHS,
    RATE_FACTORS,
    TIME_IS_UP,
    TOO_LITTLE,
    Pilot,
    at_rate,
    timed,
    tune_rate,
)
from xsoftmax.advice.ranking import LEAST_TIMED, PILOT_SHARE, TIMED, TIMING_SHARE, Budget, Prediction, explain, rank
from xsoftmax.advice.statistics import DatasetStatistics, statistics_of
from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.text import duration
from xsoftmax.methods import AUTO, Method, build_method
from xsoftmax.proposals import Proposal
from xsoftmax.training.plan import Plan


def choose_measured(data: Dataset, seed: int, plan: Plan, options: AutoOptions, model: CostModel) -> Choice:
    """Choose among measured candidates: the first by prediction, some timed here, its rate from a pilot."""
    clock, statistics = Clock(), statistics_of(data)
    budget = Budget(seconds=plan.seconds, epochs=plan.epochs) if options.gap is None else Budget(gap=options.gap)
    ranking = that_fit(rank(model, statistics, budget, plan.threads, options.among), model, data, plan)
    if plan.epochs is None:
        clock.limit = PILOT_SHARE * _shortened(plan, options, ranking[0]).budget
    times = _times(data, seed, _shortened(plan, options, ranking[0]), model, ranking, clock)
    per_sample = {name: time["seconds_per_sample"] for name, time in times.items()}
    if times:
        names = [prediction.method for prediction in ranking]
        ranking = rank(model, statistics, budget, plan.threads, names, per_sample)
    best = ranking[0]
    plan = _shortened(plan, options, best)
    if plan.epochs is None:
        clock.limit = PILOT_SHARE * plan.budget
    settings = model.candidates[best.method]
    source = f"{best.method}, chosen for these data: {settings.get('source', '')}"
    method = improved(at_rate(build_method(AUTO, {**settings, "source": source}), best.rate), data, plan)
    pilot, proposal = _pilot(data, method, seed, plan, statistics, best, clock)
    method, word = _verdict(method, pilot)
    sentence = f"{explain(model, statistics, budget, ranking, per_sample)}; {word}"
    took, pace = clock.spent, best.seconds_per_epoch
    return Choice(method, best.method, sentence, pilot.trials, times, plan.budget, took, pace=pace, proposal=proposal)


def _verdict(method: Method, pilot: Pilot) -> tuple[Method, str]:
    """Give the method at the rate that a pilot found, and say what that is worth."""
    known = [trial for trial in pilot.trials if trial["log_likelihood"] is not None]
    if pilot.short or not pilot.trials:
        return method, f"its rate, {method.optimizer.learning_rate:.2g}, is a guess, without a pilot: {pilot.short}"
    if not known:
        method = at_rate(method, min(trial["rate"] for trial in pilot.trials))
        return method, "in a pilot all rates diverged, of which this is the smallest"
    best = max(known, key=lambda trial: trial["log_likelihood"])
    method, value = at_rate(method, best["rate"]), f"{best['log_likelihood']:.4f} nats"
    return method, f"a pilot on validation rows chose the rate {best['rate']:.2g}, where it came to {value}"


def _shortened(plan: Plan, options: AutoOptions, best: Prediction) -> Plan:
    """Plan no more than it should take to come to the gap that was asked for."""
    if options.gap is None or not math.isfinite(best.seconds):
        return plan
    if plan.epochs is None:
        return replace(plan, seconds=min(plan.budget, best.seconds / (1 - PILOT_SHARE)))
    epochs = math.ceil((best.seconds - best.setup_seconds) / max(best.seconds_per_epoch, 1e-12))
    return replace(plan, epochs=min(plan.epochs, epochs))


def _times(
    data: Dataset, seed: int, plan: Plan, model: CostModel, ranking: Sequence[Prediction], clock: Clock
) -> dict[str, dict[str, float]]:
    """Time the first few candidates, unless it takes long to set them up. A budget of epochs does not ask for it.

    Nor are they timed where only the first few steps would be seen, which are slow. Another is begun if it would be
    done within half of what is on the clock; the rest is the pilot's.
    """
    found: dict[str, dict[str, float]] = {}
    share = TIMING_SHARE * plan.budget
    if plan.epochs is not None or len(ranking) < 2 or share < LEAST_TIMED:
        return found
    for prediction in ranking[:TIMED]:
        if prediction.setup_seconds > share or clock.spent + clock.setup + share > clock.limit / 2:
            continue
        began = clock.spent
        method = improved(at_rate(model.method(prediction.method), prediction.rate), data, plan)
        with context_of(data, method, seed, plan) as context:
            time = timed(context, share, clock)
        clock.setup = max(clock.setup, clock.spent - began - (time["seconds"] if time else 0.0))
        if time:
            found[prediction.method] = time
    return found


def _pilot(
    data: Dataset,
    method: Method,
    seed: int,
    plan: Plan,
    statistics: DatasetStatistics,
    predicted: Prediction,
    clock: Clock,
) -> tuple[Pilot, Proposal | None]:
    """Try a few rates; together these take their share of the budget, whatever was predicted."""
    if plan.epochs is None:
        setup = predicted.setup_seconds + clock.setup
        epochs = max(0.0, clock.left - setup) / max(predicted.seconds_per_epoch, 1e-12)
        if clock.left <= setup:
            word = f"setting it up would take about {duration(setup)}" if clock.left > 0 else TIME_IS_UP
            return Pilot([], word), None
    else:
        epochs = PILOT_SHARE * plan.epochs
    n_samples = int(epochs / len(RATE_FACTORS) * statistics.n_samples)
    if n_samples < LEAST_EPOCHS * plan.n_training(statistics.n_samples):
        return Pilot([], TOO_LITTLE), None
    with context_of(data, method, seed, plan) as context:
        pilot = tune_rate(context, n_samples, clock)
        return pilot, vars(context).get("proposal")  # if it came to that
