"""Choose by a race of methods on the data themselves: those that are said to be good, and those measured to be."""

import math
from collections.abc import Mapping
from typing import Any

from xsoftmax.advice.chosen import Choice
from xsoftmax.advice.clock import Clock
from xsoftmax.advice.contexts import context_of, improved, that_fit, why_too_large
from xsoftmax.advice.model import CostModel
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.pilot import RATE_FACTORS, at_rate
from xsoftmax.advice.race import RACE_SHARE, built, method_of, race, told, winner
from xsoftmax.advice.ranking import PILOT_SHARE, Budget, rank
from xsoftmax.advice.statistics import DatasetStatistics, statistics_of
from xsoftmax.advice.trial import known_proposal
from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import AUTO, Method, build_method
from xsoftmax.training.plan import Plan

# Epochs of a trial, at most, where a budget in seconds would allow more.
MOST_EPOCHS = 16


def choose_by_race(
    data: Dataset,
    seed: int,
    plan: Plan,
    options: AutoOptions,
    model: CostModel,
    others: Mapping[str, Mapping[str, Any]],
) -> Choice:
    """Let contenders race with what was measured to be best elsewhere, at a few rates."""
    clock, statistics = Clock(), statistics_of(data)
    known = [] if options.among == () else _guesses(data, plan, options, model, statistics)
    methods = [*(method for method in built(others) if not why_too_large(method, data, plan)), *known]
    least, most = 1.0, float(MOST_EPOCHS)
    if plan.epochs is None:
        clock.limit = RACE_SHARE * plan.budget
    else:
        least, most = max(1.0, PILOT_SHARE * plan.epochs / len(RATE_FACTORS)), float(plan.epochs)
    fitted: dict[str, Any] = {}
    trials = race(methods, lambda method: context_of(data, method, seed, plan), least, most, clock, fitted)
    best = winner(trials, 0.0 if plan.epochs is not None else plan.budget - clock.spent)
    if best:
        chosen, sentence = method_of(methods, best), told(trials, statistics, best)
    else:
        chosen = next((method for method in methods if method.name in others), methods[0])
        sentence = f"{chosen.name}: a guess for {statistics}, as no method had seen enough of them when time was up"
    source = f"{chosen.name}, chosen for these data: {chosen.source}"
    method = build_method(AUTO, {**chosen.settings, "source": source})
    proposal = known_proposal(chosen, fitted)
    took = clock.spent
    pace = best["pace"] if best else 0.0
    return Choice(method, chosen.name, sentence, trials, {}, plan.budget, took, RACE_SHARE, pace, proposal)


def _guesses(
    data: Dataset, plan: Plan, options: AutoOptions, model: CostModel, statistics: DatasetStatistics
) -> list[Method]:
    """Give what is predicted to be best of the measured candidates, at the rates of a pilot; none if none fits."""
    try:
        ranking = rank(model, statistics, Budget(plan.seconds, plan.epochs), plan.threads, options.among)
        best = that_fit(ranking, model, data, plan)[0]
    except InputError:
        if options.among is not None:
            raise
        return []
    factors = sorted(RATE_FACTORS, key=lambda factor: abs(math.log(factor)))
    method = improved(model.method(best.method), data, plan)
    return [at_rate(method, factor * best.rate) for factor in factors]
