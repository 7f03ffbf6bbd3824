"""The ways to choose rates in which claims of Yen et al. 2018 are judged, and what each of them says alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from xsoftmax.lab.papers._yen2018_methods import (
    BEST,
    EPOCHS,
    KIND_TEXTS,
    LOSSES,
    PAPER,
    WAYS,
    best_by_validation,
)
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Finding, judge_orders

# The paper's rates, t counting iterations or epochs.
OF_THE_PAPER = (PAPER, EPOCHS)
# Of pages that judge in these ways.
HOW = (
    "The paper takes for each method the rate that does best. What it says of accuracy is judged in three ways: at "
    "the paper's rates with t in iterations, at the paper's rates with t in epochs, and at the *best rates*, which "
    "are for each method, with t in epochs, the paper's or larger ones, whichever validation rows prefer, which need "
    "not be the best on test rows. A comparison in which all methods keep the paper's rates would be that of t in "
    "epochs again, and is not counted twice. Of rates that a search could not tell apart the lowest is taken. Beside "
    "a verdict stands what each way says alone."
)
T = TypeVar("T")
Orders = Sequence[tuple[str, bool | None]]  # each with its way
Values = Sequence[tuple[str, Estimate]]


def with_best(results: Results) -> Results:
    """Add to each loss the fits whose rates validation rows prefer, as one more method: ``<loss>-best``."""
    added = [
        replace(fit, status=fit.status | {"method": f"{loss}-{BEST}"})
        for dataset in results.datasets
        for loss in LOSSES
        if (kind := best_by_validation(results, dataset, loss))
        for fit in results.of(dataset, f"{loss}-{kind}")
    ]
    return replace(results, fits=[*results.fits, *added])


def tally(orders: Orders) -> str:
    """Count, for each way to choose rates, what is as claimed, too close and reversed."""
    parts = []
    for way, found in _by_way(orders).items():
        counts = ", ".join(str(found.count(each)) for each in (True, None, False))
        parts.append(f"{KIND_TEXTS[way]} {counts}")
    return f"as claimed, too close and reversed, by way: {'; '.join(parts)}" if parts else "nothing was compared"


def alone(orders: Orders) -> str:
    """Say what the verdict would be at the paper's rates alone."""
    found = [order for way, order in orders if way in OF_THE_PAPER]
    return f"at the paper's rates alone the verdict would be *{judge_orders(found).verdict}*"


def each_way(values: Values, judge: Callable[[Iterable[Estimate]], Finding]) -> str:
    """Say what the verdict of each way alone would be, and of both ways with the paper's rates."""
    if not values:
        return "no way can tell"
    parts = [f"{KIND_TEXTS[way]} *{judge(found).verdict}*" for way, found in _by_way(values).items()]
    papers = judge(value for way, value in values if way in OF_THE_PAPER).verdict
    return f"by one way alone the verdict would be: {'; '.join(parts)}; at the paper's rates alone: *{papers}*"


def lasting(orders: Mapping[str, bool | None], who: str) -> str:
    """Say whether a lead at the paper's rates lasts at the best ones."""
    words = {True: "ahead", None: "too close to tell", False: "behind"}
    told = ", ".join(f"{words[order]} with {KIND_TEXTS[way]}" for way, order in orders.items())
    if BEST not in orders or True not in [orders.get(way) for way in OF_THE_PAPER]:
        return f"{who} is {told}"
    ends = {True: "lasts", None: "is too close to tell", False: "turns round"}[orders[BEST]]
    return f"{who} is {told}: its lead at the paper's rates {ends} at the best ones"


def _by_way(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    every = list(pairs)
    found = {way: [value for its, value in every if its == way] for way in WAYS}
    return {way: values for way, values in found.items() if values}
