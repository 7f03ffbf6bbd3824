"""A race: short fits of methods of which nothing is predicted, on the data themselves, judged by validation rows."""

import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from xsoftmax.advice.clock import Clock
from xsoftmax.advice.on_device import base_of
from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.advice.trial import Trial, TrialContext
from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.text import duration
from xsoftmax.methods import Method, build_method, merged

CONTENDERS = Path(__file__).with_name("contenders.yaml")
# Of a budget, all that a choice with a race may take.
RACE_SHARE = 0.3
# Of a trial, where it is judged: the best of these verdicts counts, as a fit keeps its best weights.
EVALUATIONS = (0.25, 0.5, 1.0)
# Of an epoch, what a trial must have seen for its verdict to count.
LEAST_EPOCHS = 0.5
# Bytes of weights that are held whole although most are zero: they are quicker to reach.
MOST_DENSE = 2**25
# Of the methods that trained, one in so many trains again, for so many times the epochs; so many of them at least.
KEPT, LONGER, FINALISTS = 3, 4, 2
# How many times what the last look gained a trial may gain yet: looks are at twice the epochs of those before.
HOPE = 2.0
# A trial of which an epoch would take so many times its share of the time is given up.
TOO_SLOW = 3.0
# Of the time, what is kept for the rounds after the first.
LATER = 0.4
# Nats by which the same steps differ at two places.
ROUNDING = 1e-4
FEW = 64  # samples that tell how long an epoch takes


def contenders(statistics: DatasetStatistics, among: Sequence[str] | None) -> dict[str, Mapping[str, Any]]:
    """Give the settings of methods that may be ahead on such rows, sparse or dense.

    Parameters
    ----------
    statistics : DatasetStatistics
    among : sequence of str or None
        Leave out all others.
    """
    dense = 4 * statistics.n_classes * statistics.n_features <= MOST_DENSE
    known = read_yaml(CONTENDERS)["sparse" if statistics.sparse else "dense"]
    names = [name for name in known if among is None or name in among]
    if statistics.sparse and dense:  # a sum over all classes costs little: before shortlists, which cost more to find
        names.sort(key=lambda name: known[name]["proposal"]["name"] != "all")
    return {name: merged(known[name], {"weights": "dense"}) if dense else known[name] for name in names}


def contender_names() -> list[str]:
    """Name all contenders."""
    return [name for methods in read_yaml(CONTENDERS).values() for name in methods]


def race(
    methods: Sequence[Method],
    enter: Callable[[Method], AbstractContextManager[TrialContext]],
    epochs: float,
    most: float,
    clock: Clock,
    known: dict[str, Any],
) -> list[dict[str, Any]]:
    """Train all methods for an epoch or so, then those that are ahead again, fewer and fewer, for ever longer.

    Successive halving (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016): one epoch does not tell which is
    ahead in the end. It is over when the next round would be longer than the time that is left, or none that is
    ahead was still gaining. What has begun sees its first epoch if any time is left.

    Parameters
    ----------
    methods : sequence of Method
        Of which no two share name and rate.
    enter : callable
        Give what trials of a method need.
    epochs, most : float
        Of each trial of the first round, ``LONGER`` times as many in each that follows; and so many at most.
    clock : Clock
    known : dict
        Where weights begin and what proposals fitted, by settings: filled, too.

    Returns
    -------
    list of dict
        ``name``, ``rate``, ``epochs``, ``seconds`` of steps and of what came before them, those of an epoch
        (``pace``), the best ``log_likelihood`` of validation rows (nats), None if the method diverged, was too slow
        or saw too little of the data, what it ``gained`` by its last look, and whether it was still ``gaining``.
        First those of the first round.
    """
    found = _round(methods, enter, epochs, clock, known, LATER * clock.limit if math.isfinite(clock.limit) else 0.0)
    n_runners, n_first = len(methods), len(found)
    while epochs * LONGER <= most:
        epochs *= LONGER
        n_runners = max(FINALISTS, n_runners // KEPT)
        leaders = in_turn(ranked(found))
        times = list(accumulate(epochs * each["pace"] for each in leaders))
        more = bisect(times, clock.left / KEPT) if math.isfinite(clock.left) else 0
        n_runners = min(max(n_runners, more), bisect(times, clock.left))
        again = [each for each in leaders[:n_runners] if each["gaining"]]
        alone = len(leaders) < 2 or (n_runners < 2 and len(found) == n_first)  # that tells not who is ahead
        if alone or not again:
            break
        found += _round([method_of(methods, each) for each in again], enter, epochs, clock, known)
    return found


def ranked(outcomes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Give the best outcome of each method and rate of which something is known, the best first.

    Of two that are as good, the later one, which saw more; of the same method at two places, the faster one.
    """
    best: dict[tuple[str, float], Mapping[str, Any]] = {}
    for each in sorted((each for each in reversed(outcomes) if each["log_likelihood"] is not None), key=_behind):
        best.setdefault((each["name"], each["rate"]), each)
    leaders = list(best.values())
    for k in range(len(leaders) - 1):
        one, other = leaders[k : k + 2]
        if _are_twins(one, other) and other["pace"] < one["pace"]:
            leaders[k : k + 2] = other, one
    return leaders


def in_turn(leaders: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Take in turn the one that is ahead, and the one that would be if it gained as much again, twice.

    Who begins at class means is ahead at first; what another gained between two looks tells whether it may overtake.
    """
    hopeful = sorted(leaders, key=_hope, reverse=True)
    both = chain.from_iterable(zip(leaders, hopeful, strict=True))
    return list({(each["name"], each["rate"]): each for each in both}.values())


def method_of(methods: Sequence[Method], outcome: Mapping[str, Any]) -> Method:
    """Find the method of an outcome."""
    name, rate = outcome["name"], outcome["rate"]
    return next(each for each in methods if (each.name, each.optimizer.learning_rate) == (name, rate))


def _are_twins(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two outcomes are of one method at two places: as good but for rounding."""
    same = base_of(one["name"]) == base_of(other["name"]) and one["rate"] == other["rate"]
    return same and abs(one["log_likelihood"] - other["log_likelihood"]) < ROUNDING


def _hope(outcome: Mapping[str, Any]) -> float:
    return float(outcome["log_likelihood"] + HOPE * outcome["gained"])


def _behind(outcome: Mapping[str, Any]) -> float:
    return -float(outcome["log_likelihood"])


def _round(
    methods: Sequence[Method],
    enter: Callable[[Method], AbstractContextManager[TrialContext]],
    epochs: float,
    clock: Clock,
    known: dict[str, Any],
    kept: float = 0.0,
) -> list[dict[str, Any]]:
    """Train one method after the other; each has its share of the time that is left.

    So much of it is kept for a later round, but not where that would leave only one of which something is known.
    """
    found: list[dict[str, Any]] = []
    for i, method in enumerate(methods):
        left = clock.left - kept * (len(ranked(found)) != 1)
        if left <= 0:
            break
        began, seconds = clock.spent, left / (len(methods) - i)
        with enter(method) as context:
            clock.excuse(clock.spent - began)  # of reading rows
            found.append(_run(replace(context, known=known), epochs, seconds, clock))
    return found


def _run(context: TrialContext, epochs: float, seconds: float, clock: Clock) -> dict[str, Any]:
    """Train one method, and judge it on the way."""
    n, slow = context.train.n_samples, TOO_SLOW * seconds
    if clock.setup > seconds and not context.prepared:
        return _outcome(context)
    trial, setup = _begun(context, clock)
    began, values = clock.spent, dict[int, float]()
    for first in (FEW, 8 * FEW, 64 * FEW):
        if trial.samples == 0 or slow < trial.pace * n < 10 * slow:  # the first steps are slower than others
            trial.advance(max(first, trial.minibatch_size))
    for share in EVALUATIONS if trial.pace * n <= slow else ():
        end = share * epochs * n
        while trial.finite and trial.samples < end and _goes_on(trial, n, clock, began + share * seconds):
            trial.advance(int(min(end - trial.samples + 1, n / 4 + 1)))
        value = trial.log_likelihood() if trial.samples >= LEAST_EPOCHS * n else None
        if value is not None:
            values[trial.samples] = value
    judged = list(values.values())
    best = max(judged, default=None) if trial.finite else None
    return _outcome(context) | {
        "epochs": trial.samples / n,
        "seconds": trial.seconds + setup,
        "pace": trial.pace * n,
        "log_likelihood": best,
        "gained": max(0.0, judged[-1] - judged[-2]) if len(judged) > 1 else 0.0,
        "gaining": epochs <= 1 or best in judged[-1:],  # an epoch is too short to say that it is not
    }


def _outcome(context: TrialContext) -> dict[str, Any]:
    """Give what is known of a method that was not begun, as its setup would take more than its share of the time."""
    known = {"name": context.method.name, "rate": context.method.optimizer.learning_rate}
    return (
        known
        | dict.fromkeys(("epochs", "seconds", "pace", "gained"), 0.0)
        | {"log_likelihood": None, "gaining": False}
    )


def _goes_on(trial: Trial, n: int, clock: Clock, until: float) -> bool:
    """Tell whether a trial has time: until its own is over, or an epoch is, if there is any left for all."""
    return clock.spent < until or (trial.samples < n and clock.left > 0)


def _begun(context: TrialContext, clock: Clock) -> tuple[Trial, float]:
    """Begin a trial; give it, and the seconds of what it needs, compiling and reading left out, and off the clock."""
    began, n_known = clock.spent, len(context.known)
    trial = Trial(context, context.method.optimizer.learning_rate)
    trial.log_likelihood(1)
    fresh = len(context.known) > n_known
    setup = context.proposal.seconds + context.beginning.seconds if fresh else 0.0
    clock.excuse(max(0.0, clock.spent - began - setup))
    clock.setup = max(clock.setup, setup)
    return trial, setup


def winner(outcomes: Sequence[Mapping[str, Any]], seconds: float = 0.0) -> Mapping[str, Any] | None:
    """Give the outcome with the best log-likelihood; None if none is known.

    If there was time for one round only, and in ``seconds`` they could all train ``LONGER`` times as long as in that,
    the one that would be ahead if it gained twice what its last look gained: who begins at class means is ahead at
    first, but not always at last.
    """
    leaders = ranked(outcomes)
    one_round = max((each["epochs"] for each in leaders), default=LONGER) < LONGER / 2
    if one_round and all(LONGER * each["epochs"] * each["pace"] <= seconds for each in leaders):
        return max(leaders, key=_hope)
    return next(iter(leaders), None)


def told(
    outcomes: Sequence[Mapping[str, Any]], statistics: DatasetStatistics, chosen: Mapping[str, Any] | None = None
) -> str:
    """Say in a sentence which method was ahead, of which, and by how much; of each the best outcome.

    Or that another one is ``chosen``, and why.
    """
    leaders = ranked(outcomes)
    best = chosen or leaders[0]
    why = "ahead" if best is leaders[0] else "would be ahead if it went on gaining as it did"
    behind = ", ".join(f"{_titled(each)} {each['log_likelihood']:.4f}" for each in leaders if each is not best)
    longest = duration(max(outcome["seconds"] for outcome in outcomes))
    others = "behind it were" if best is leaders[0] else "others had"
    return (
        f"{best['name']}: {why} in a race on {statistics}, {longest} for each at most, with "
        f"{best['log_likelihood']:.4f} nats on validation rows" + (f"; {others} {behind}" if behind else "")
    )


def _titled(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['name']} at rate {outcome['rate']:.2g}"


def built(settings: Mapping[str, Mapping[str, Any]]) -> list[Method]:
    """Build the methods, by their names."""
    return [build_method(name, each) for name, each in settings.items()]
