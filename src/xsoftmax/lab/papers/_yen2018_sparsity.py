"""How sparse gradients are in Yen et al. 2018: classes on which a loss has a slope, and what the largest hold."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from xsoftmax.evaluation.moved_classes import moved_classes, shares_of_highest
from xsoftmax.lab.papers._yen2018_methods import (
    KIND_TEXTS,
    KINDS,
    LOSS_TEXTS,
    MARGIN,
    METHODS,
    SOFTMAX,
    judge_least,
    told,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Finding, judge_level, not_tested
from xsoftmax.objectives.max_margin import MaxMargin
from xsoftmax.objectives.softmax import Softmax

# Rows whose slopes are counted.
COUNTED = 1000
# Levels, of which the paper says no more than words. Shares of the classes that a "very sparse" gradient moves at
# most, and a sparse one.
VERY_SPARSE, SPARSE = 0.01, 0.1
# "Concentrated": what the highest K/100 classes hold of the slopes; and what is so in shape, half.
CONCENTRATED, HALF = 0.9, 0.5
# "Much smaller": a tenth; and what is so in shape, half.
MUCH_SMALLER = 0.1
# Of early iterates the paper itself says that slopes are spread over all classes. A model is early as long as it is
# right in fewer training rows than this share.
EARLY = 0.1


class Counted(NamedTuple):
    """Of a method: classes with a slope before training and at the end, rows of W moved, what the highest hold.

    And the accuracy of training rows at the end, and how many classes there are.
    """

    start: float
    end: Estimate
    moved: Estimate
    held: Estimate
    accuracy: Estimate
    n_classes: int

    @property
    def is_early(self) -> bool:
        """Tell whether training has hardly begun."""
        return not self.accuracy.mean >= EARLY


Place = tuple[str, str]  # a loss, and rates


def sparsity(results: Results, page: Page, dataset: str, negligible: float, per_draw: int) -> None:
    """Count the classes with a slope, with weights of 0 and at the end; judge what the paper says of them."""
    if dataset not in results.prepared:
        return
    found = dict(_counted(results, dataset, negligible, per_draw))
    page.section(
        "Sections 1, 2 and 4: how sparse gradients are",
        f"Of {COUNTED:,} training rows at most, the mean number of classes beside the true one on which the loss "
        f"has a slope: any slope of the smoothed margin, a bi-simplex projection; one above {negligible:g}, which "
        "is the paper's threshold for margins, of the softmax. With weights of 0 all classes are tied: the margin "
        f"pushes all of them, the softmax each by 1/K, which is below {negligible:g} and counts as 0. Beside it "
        f"what the highest K/{per_draw} classes hold of the sizes of all slopes, small ones too: the mean over rows "
        "that have any, each with the same weight, however small its slopes are.",
    )
    page.table(
        ["method", "before training", "at the end", f"held by K/{per_draw} classes"],
        [
            [METHODS[f"{loss}-{kind}"], number(each.start, digits=0), ours(each.end, digits=1), ours(each.held)]
            for (loss, kind), each in found.items()
        ],
    )
    _claims(page, found, per_draw)


def _counted(results: Results, dataset: str, negligible: float, per_draw: int) -> Iterator[tuple[Place, Counted]]:
    with results.data(dataset) as data:
        train = data.split("train")
        X, y = np.asarray(train.X[:COUNTED]), np.asarray(train.y[:COUNTED])
    losses = {SOFTMAX: (Softmax(), negligible), MARGIN: (MaxMargin(), 0.0)}
    for (loss, (objective, least)), kind in product(losses.items(), KINDS):
        name = f"{loss}-{kind}"
        models = list(results.models(dataset, name)) if results.has(dataset, name) else []
        if not models:
            continue
        n = models[0].n_classes
        blank = replace(models[0], W=np.zeros_like(models[0].W), b=None)
        ends = [moved_classes(model, objective, X, y, least) for model in models]
        held = [shares_of_highest(model, objective, X, y, -(-n // per_draw)) for model in models]
        yield (
            (loss, kind),
            Counted(
                float(moved_classes(blank, objective, X, y, least).mean()),
                Estimate.of(float(each.mean()) for each in ends),
                Estimate.of(float((each + (each > 0)).mean()) for each in ends),
                Estimate.of(float(np.mean(each[~np.isnan(each)])) for each in held if not np.isnan(each).all()),
                results.estimate(dataset, name, "end.train_accuracy"),
                n,
            ),
        )


def _claims(page: Page, found: Mapping[Place, Counted], per_draw: int) -> None:
    held = {place: each.held for place, each in found.items() if each.held.n}
    if held:
        _claim(
            page,
            found,
            "The gradient typically is concentrated on a relatively small number of classes",
            f"share of the slopes that the highest K/{per_draw} classes hold: ",
            held,
            lambda values: judge_least(values, "shares", CONCENTRATED, HALF),
            "the true class is left out, which has half of all; a row that has any slope counts as much as any "
            "other, so that of a softmax that fits its rows what is left is judged, which hangs on the rate that was "
            "chosen",
        )
    margins = {place: each for place, each in found.items() if place[0] == MARGIN}
    if margins:
        _of_margins(page, found, margins, per_draw)
    page.claim(
        "Of a randomly initialised model gradients are evenly distributed over the classes in early iterates",
        "–",
        not_tested("weights begin at 0 here, where slopes are even by arithmetic"),
    )


def _of_margins(page: Page, found: Mapping[Place, Counted], margins: Mapping[Place, Counted], per_draw: int) -> None:
    _claim(
        page,
        found,
        "The smoothed margin's gradient is very sparse",
        "share of classes at the end: ",
        {place: each.end.times(1 / each.n_classes) for place, each in margins.items()},
        lambda values: _judge_greatest(values, VERY_SPARSE, SPARSE, 4),
        "",
    )
    n = next(iter(margins.values())).n_classes
    moved = "classes moved by a row, its own counted, as a share of "
    _claim(
        page,
        found,
        "The number of rows of W that a gradient of the margin updates is much smaller than K",
        f"{moved}K: ",
        {place: each.moved.times(1 / n) for place, each in margins.items()},
        lambda values: _judge_greatest(values, MUCH_SMALLER, HALF, 4),
        "where training rows are fitted, none has a slope",
    )
    _claim(
        page,
        found,
        "It is much smaller than Q, the number of classes retrieved for a query, too",
        f"{moved}Q = K/{per_draw}: ",
        {place: each.moved.times(per_draw / n) for place, each in margins.items()},
        lambda values: _judge_greatest(values, MUCH_SMALLER, HALF, 2),
        f"K/{per_draw} is what the paper's experiment retrieves{_too_few(n, per_draw)}",
    )


def _too_few(n_classes: int, per_draw: int) -> str:
    """Say where so few classes are retrieved that it breaks the paper's own rule."""
    retrieved, root = n_classes / per_draw, math.sqrt(n_classes)
    if retrieved >= root:
        return ""
    return (
        f"; of {n_classes:,} classes these are {retrieved:.0f}, fewer than the root of K, {root:.0f}, which breaks "
        "the paper's own rule that Q be the root of K at least (section 4)"
    )


def _judge_greatest(values: Iterable[Estimate], at_most: float, near: float, digits: int) -> Finding:
    found = list(values)
    if not found:
        return not_tested("nothing was compared")
    greatest = max(found, key=lambda each: each.mean)
    return judge_level(greatest, at_most=at_most, near=near, of=f"the greatest of {len(found)} shares", digits=digits)


def _claim(
    page: Page,
    found: Mapping[Place, Counted],
    says: str,
    what: str,
    values: Mapping[Place, Estimate],
    judge: Callable[[Iterable[Estimate]], Finding],
    why: str,
) -> None:
    """Judge what is not of early iterates, and say what is, and what the verdict would be with it."""
    later = {place: each for place, each in values.items() if not found[place].is_early}
    early = {place: each for place, each in values.items() if place not in later}
    rule = (
        f"models right in fewer than {EARLY:.0%} of training rows count as early iterates; the paper excepts the "
        "first ones of a random model"
    )
    left_out = told(
        {_named(place): f"{ours(each)} (right in {found[place].accuracy.mean:.1%})" for place, each in early.items()}
    )
    if early:
        rule += f"; left out: {left_out}; with these the verdict would be *{judge(values.values()).verdict}*"
    here = told({_named(place): ours(each, digits=4) for place, each in later.items()})
    page.claim(says, f"{what}{here or '–'}", judge(later.values()), f"{why}; {rule}" if why else rule)


def _named(place: Place) -> str:
    loss, kind = place
    return f"{LOSS_TEXTS[loss]}, {KIND_TEXTS[kind]},"
