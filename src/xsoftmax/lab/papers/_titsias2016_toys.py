"""Titsias 2016 without real data: figures 1 and 2, and what all of its figures share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax

from xsoftmax.lab.report.appearance import BLUE, GREEN, VERMILION
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.drawings import Borders, Series, bars, plane
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page, Verdict, above, ours, verdict_of_orders
from xsoftmax.lab.reproduction.results import Estimate, Results
from xsoftmax.model import Model

VALUES, CLOUDS, MANY = "ten-values", "five-gaussians", "zipf-1m"
SOFT, OVE, BOUCHARD, SGD = "softmax-lbfgs", "one-vs-each-batch", "bouchard", "one-vs-each-sgd"
SCALED = "one-vs-each-scaled"
METHODS = {SOFT: "SOFT", BOUCHARD: "BOUCHARD", OVE: "OVE", SGD: "OVE-SGD"}
COLORS = {SOFT: BLUE, OVE: VERMILION, BOUCHARD: GREEN, SGD: VERMILION}  # the paper's
EXACT = 1e-3  # of a probability
EXACT_RATIO = 0.01
NEAR = 0.1


def bounds_of(results: Results, dataset: str) -> list[Line]:
    """Lines of the bounds over epochs, in the paper's colours; a bound that is estimated from draws is dashed."""
    lines = lines_of(results, dataset, METHODS, "objective", of_y=lambda loss: -loss, from_evaluation=1)
    return [replace(line, style=_style(line.method)) for line in lines if line.method]


def _style(method: str) -> dict[str, str]:
    return {"color": COLORS[method], "linestyle": "--" if method == SGD else "-", "marker": ""}


def share_of_way(results: Results, dataset: str) -> float:
    """Tell how much of the way from no weights to OVE's bound the stochastic steps have come; 1 is all of it."""
    start = Estimate.of(-float(fit.history["objective"].iloc[0]) for fit in results.of(dataset, SGD)).mean
    reached, best = results.bound(dataset, SGD).mean, results.bound(dataset, OVE).mean
    return (reached - start) / (best - start)


def approach(results: Results, datasets: Sequence[str]) -> Verdict:
    """Judge whether OVE-SGD comes to OVE's bound: 95 % of the way at least, and beyond BOUCHARD's maximum."""
    farthest = max((abs(1 - share_of_way(results, key)) for key in datasets), default=float("nan"))
    beyond = all(above(results.bound(key, SGD), results.bound(key, BOUCHARD)) for key in datasets)
    return Verdict.REPRODUCED if farthest <= 0.05 and beyond else Verdict.IN_SHAPE if farthest <= 0.2 else Verdict.NOT


def figure_1(results: Results, page: Page) -> None:
    """Draw estimated probabilities, borders between classes and bounds, and judge what the paper says of them."""
    panels = [*_probabilities(results, page), *_clouds(results, page)]
    if panels:
        page.section(
            "Figure 1: ten probabilities, five clouds",
            "200 draws of ten values without features, and 200 points of five classes in the plane; the paper's own "
            "numbers are not known, ours are generated. Scores in the plane are linear without a bias, and nothing "
            "is penalised. OVE-SGD takes ten rows and one other class of each a step. L-BFGS stays where it has "
            "converged.",
        )
        page.figure(
            "toys", figure_of(panels), "Probabilities; borders between classes; bounds of the sum of 200 rows"
        )


def _probabilities(results: Results, page: Page) -> list[Panel]:
    methods = [method for method in (SOFT, OVE, BOUCHARD) if results.has(VALUES, method)]
    if VALUES not in results.prepared or not {OVE, BOUCHARD} <= set(methods):
        return []
    with results.data(VALUES) as data:
        shares = data.class_counts / data.class_counts.sum()
    p = {method: _mean_probability(results, VALUES, method) for method in methods}
    page.claim(
        "Without features OVE gives the exact probabilities (Proposition 2, Figure 1a)",
        f"at most {np.abs(p[OVE] - shares).max():.1e} from the shares",
        Verdict.REPRODUCED if np.abs(p[OVE] - shares).max() < EXACT else Verdict.NOT,
    )
    ratios = (p[BOUCHARD] / shares)[np.argsort(shares)]
    page.claim(
        "Bouchard's bound overestimates large probabilities and underestimates small ones",
        f"{ratios[-1]:.2f} times the largest share, {ratios[0]:.2f} times the smallest",
        verdict_of_orders([bool(ratios[-1] > 1 + EXACT_RATIO), bool(ratios[0] < 1 - EXACT_RATIO)]),
    )
    series = [Series("share of the draws", "#c8c8c8", shares)]
    series += [Series(METHODS[method], COLORS[method], p[method]) for method in methods]
    groups = [str(k + 1) for k in range(len(shares))]
    return [Panel("(a)", [], "value", "probability", also=bars(groups, series))]


def _clouds(results: Results, page: Page) -> list[Panel]:
    if not (results.has(CLOUDS, OVE) and results.has(CLOUDS, BOUCHARD)):
        return []
    n = 200
    panels = []
    if CLOUDS in results.prepared:
        with results.data(CLOUDS) as data:
            train = data.split("train")
        n, X = train.n_samples, train.X if isinstance(train.X, np.ndarray) else train.X.toarray()
        drawn = [method for method in (SOFT, OVE, BOUCHARD) if results.has(CLOUDS, method)]
        borders = [Borders(METHODS[m], COLORS[m], next(results.models(CLOUDS, m))) for m in drawn]
        panels.append(Panel("(b)", [], "first feature", "second feature", also=plane(X, train.y, borders)))
    bounds = bounds_of(results, CLOUDS)
    last = max((line.x[-1] for line in bounds), default=0.0)
    lines = [replace(x, x=np.append(x.x, last), y=n * np.append(x.y, x.y[-1]), low=None, high=None) for x in bounds]
    panels.append(Panel("(c)", lines, "epoch", "bound (nats)", x_scale="log"))
    found = {method: results.bound(CLOUDS, method) for method in METHODS if results.has(CLOUDS, method)}
    page.claim(
        "In the plane OVE's bound is tighter than Bouchard's (Figure 1c)",
        "; ".join(f"{METHODS[method]} {number(n * value.mean, digits=4)}" for method, value in found.items()),
        verdict_of_orders([above(found[OVE], found[BOUCHARD])]),
    )
    if SGD in found:
        share = share_of_way(results, CLOUDS)
        page.claim("OVE-SGD comes to OVE's bound (Figure 1c)", f"{share:.1%} of the way", approach(results, [CLOUDS]))
    norms = [results.estimate(CLOUDS, method, "weight_distance") for method in (OVE, BOUCHARD)]
    page.claim(
        "In the plane OVE's weights are remarkably close to exact softmax's",
        f"norm {ours(norms[0])}; Bouchard's {ours(norms[1])}",
        Verdict.REPRODUCED if norms[0].mean < NEAR else verdict_of_near(norms[0], norms[1]),
    )
    return panels


def verdict_of_near(first: Estimate, second: Estimate) -> Verdict:
    """Judge a distance that is not small, but may be less than half of another one."""
    return Verdict.IN_SHAPE if first.mean < second.mean / 2 else Verdict.NOT


def figure_2(results: Results, page: Page) -> None:
    """Show the probabilities of ten thousand classes, and the error on the way to them."""
    if not results.has(MANY, SGD):
        return
    start = float(results.of(MANY, SGD)[0].history["frequency_error"].iloc[0])
    end = results.estimate(MANY, SGD, "end.frequency_error")
    steps = results.values(MANY, SGD, "fit.step")[0] or 0
    page.section(
        "Figure 2: ten thousand probabilities",
        "A million draws of ten thousand values, of which not all occur; only biases are learnt, and the error is "
        f"the sum of absolute differences from the shares. After {steps // 100:,} steps of 100 rows and 10 other "
        "classes of each. The paper's rate, 0.5/b, times 0.9 an epoch, is taken to be along sums over rows and drawn "
        "classes; along sums that are scaled to all K classes, the second line, it is (K - 1)/10 times as large.",
    )
    labels = {SGD: "0.5/b, sums as drawn", SCALED: "0.5/b, sums scaled to all classes"}
    panels = [Panel("(c)", lines_of(results, MANY, labels, "frequency_error"), "epoch", "error", y_scale="log")]
    if MANY in results.prepared:
        panels = [_sorted(results), *panels]
    page.figure("many", figure_of(panels, columns=2), "(a, b) Probabilities, sorted by the shares; (c) the error")
    page.claim(
        "Doubly stochastic steps come close to the optimum's probabilities (Figure 2c)",
        f"the error falls from {start:.3f} to {ours(end)}",
        _fallen(end.mean / start),
    )
    if results.has(MANY, SCALED):
        scaled = results.estimate(MANY, SCALED, "end.frequency_error")
        page.claim(
            "(ours) The rate 0.5/b of section 4.1 is along sums that are not scaled to all classes",
            f"scaled: {ours(scaled)}; not scaled: {ours(end)}",
            verdict_of_orders([above(scaled, end)]),
            "the paper does not say; only one of them converges as its Figure 2c does",
        )


def _fallen(share: float) -> Verdict:
    return Verdict.REPRODUCED if share < NEAR else Verdict.IN_SHAPE if share < 0.5 else Verdict.NOT


def _sorted(results: Results) -> Panel:
    with results.data(MANY) as data:
        shares = data.class_counts / data.class_counts.sum()
    order, places = np.argsort(shares), np.arange(len(shares))
    found = _mean_probability(results, MANY, SGD)[order]
    points: dict[str, Any] = {"marker": ".", "markersize": 2, "linestyle": "", "markevery": 1, "markeredgewidth": 0}
    points |= {"color": VERMILION}
    lines = [
        Line("estimated", places, found, style=points),
        Line("shares: exact", places, shares[order], style={"marker": "", "color": BLUE}),
    ]
    return Panel("(a, b)", lines, "value", "probability")


def _mean_probability(results: Results, dataset: str, method: str) -> np.ndarray:
    return np.mean([_probability(model) for model in results.models(dataset, method)], axis=0)


def _probability(model: Model) -> np.ndarray:
    return softmax(np.asarray(model.b, np.float64))
