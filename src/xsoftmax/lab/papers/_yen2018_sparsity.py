"""How sparse gradients are in Yen et al. 2018: classes on which a loss has a slope, and what the largest hold."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from xsoftmax.evaluation.moved_classes import moved_classes, shares_of_highest
from xsoftmax.lab.papers._yen2018_methods import (
    KIND_TEXTS,
    LOSS_TEXTS,
    MARGIN,
    METHODS,
    MOVED,
    SOFTMAX,
    judge_least,
    told,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_level, not_tested
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


class Counted(NamedTuple):
    """Of a method: classes with a slope before training and at the end, rows of W moved, what the highest hold."""

    start: float
    end: Estimate
    moved: Estimate
    held: Estimate
    n_classes: int


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
        f"what the highest K/{per_draw} classes hold of the sizes of all these slopes, of rows that have any.",
    )
    page.table(
        ["method", "before training", "at the end", f"held by K/{per_draw} classes"],
        [
            [METHODS[f"{loss}-{kind}"], number(each.start, digits=0), ours(each.end, digits=1), ours(each.held)]
            for (loss, kind), each in found.items()
        ],
    )
    _claims(page, {place: each for place, each in found.items() if place[1] in MOVED}, per_draw)


def _counted(
    results: Results, dataset: str, negligible: float, per_draw: int
) -> Iterator[tuple[tuple[str, str], Counted]]:
    with results.data(dataset) as data:
        train = data.split("train")
        X, y = np.asarray(train.X[:COUNTED]), np.asarray(train.y[:COUNTED])
    losses = {SOFTMAX: (Softmax(), negligible), MARGIN: (MaxMargin(), 0.0)}
    for (loss, (objective, least)), kind in product(losses.items(), KIND_TEXTS):
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
                n,
            ),
        )


def _claims(page: Page, found: Mapping[tuple[str, str], Counted], per_draw: int) -> None:
    margins = {KIND_TEXTS[kind]: each for (loss, kind), each in found.items() if loss == MARGIN}
    held = {
        f"{LOSS_TEXTS[loss]}, {KIND_TEXTS[kind]},": each.held for (loss, kind), each in found.items() if each.held.n
    }
    if held:
        page.claim(
            "The gradient typically is concentrated on a relatively small number of classes",
            f"share of the slopes that the highest K/{per_draw} classes hold: "
            + told({text: ours(each) for text, each in held.items()}),
            judge_least(held.values(), "shares", CONCENTRATED, HALF),
            "with t in epochs and from larger rates; the true class is left out, which has half of all",
        )
    if margins:
        shares = {kind: each.end.times(1 / each.n_classes) for kind, each in margins.items()}
        page.claim(
            "The smoothed margin's gradient is very sparse",
            "share of classes at the end: " + told({kind: ours(each, digits=4) for kind, each in shares.items()}),
            judge_level(
                max(shares.values(), key=lambda each: each.mean),
                at_most=VERY_SPARSE,
                near=SPARSE,
                of=f"the greatest of {len(shares)} shares",
                digits=4,
            ),
            "with t in epochs and from larger rates",
        )
        parts = {kind: each.moved.times(per_draw / each.n_classes) for kind, each in margins.items()}
        page.claim(
            "The number of rows of W that a gradient of the margin updates is much smaller than K, and than the "
            "number of classes retrieved for a query",
            f"classes moved by a row, its own counted, as a share of K/{per_draw}: "
            + told({kind: ours(each, digits=2) for kind, each in parts.items()}),
            judge_level(
                max(parts.values(), key=lambda each: each.mean),
                at_most=MUCH_SMALLER,
                near=HALF,
                of=f"the greatest of {len(parts)} shares",
                digits=2,
            ),
            f"with t in epochs and from larger rates; K/{per_draw} is what the paper's experiment retrieves; as "
            f"shares of K these are a {per_draw}th of them. Where training rows are fitted, none has a slope",
        )
    page.claim(
        "Of a randomly initialised model gradients are evenly distributed over the classes in early iterates",
        "–",
        not_tested("weights begin at 0 here, where slopes are even by arithmetic"),
    )
