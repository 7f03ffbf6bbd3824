"""Ruiz et al. 2018: figure 2, the bounds along the way and where they end."""

from collections.abc import Mapping

from xsoftmax.lab.papers._ruiz2018_names import (
    AR,
    BIBTEX,
    DATASETS,
    EXACT,
    LOGISTIC,
    METHODS,
    MNIST,
    OMNIGLOT,
    OVE,
    PROBIT,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.figures import Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_level, judge_orders

BOUNDS = (OVE, AR, PROBIT, LOGISTIC)
# A bound that is "close" to another, or "nearly achieves" a log-likelihood, is off by so small a share of what the
# exact softmax gains over equal scores. The paper has these words and no number; on MNIST, one of its data sets with
# a "significantly tighter" bound, bounds were a twentieth apart in this measure in an earlier run of ours.
CLOSE, ROUGHLY_CLOSE = 0.02, 0.05


def figure_2(results: Results, page: Page) -> None:
    page.section(
        "Figure 2: bounds along the way",
        "The bounds, each at its own method's weights, are over epochs here and over seconds in the paper, which "
        "smooths them over 100 iterations: our seconds are not comparable, see above. In the authors' program they "
        "are estimates from each minibatch and its drawn classes; here all classes count, for up to 5,000 training "
        "rows. A bound is the lower bound on the log-likelihood that a method maximises. It counts as close to "
        f"another, or to a log-likelihood, within {CLOSE:.0%} of the exact softmax's training log-likelihood minus "
        f"that of a uniform guess{_in_nats(results)}, and in shape within {ROUGHLY_CLOSE:.0%}: levels of ours, the "
        "paper has the words only. Of “significantly tighter” only the order is judged.",
    )
    there = {key: name for key, name in DATASETS.items() if results.has(key, AR)}
    panels = []
    for key, name in there.items():
        methods = {method: label for method, label in METHODS.items() if method in (EXACT, OVE, AR)}
        lines = lines_of(results, key, methods, "objective", of_y=lambda loss: -loss, from_evaluation=1)
        panels.append(Panel(name, lines, "epochs", "bound (nats per row)", x_scale="log"))
    caption = "Bounds on up to 5,000 training rows, means and ranges over seeds; exact softmax: the log-likelihood"
    page.figure("bounds", figure_of(panels), caption)
    bounds = {key: (results.bound(key, AR), results.bound(key, OVE)) for key in there}
    told = {key: f"{there[key]} {ours(first)} against {ours(second)}" for key, (first, second) in bounds.items()}
    page.claim(
        "Softmax A&R provides a significantly tighter bound than OVE on most data sets: here MNIST and Omniglot",
        "; ".join(told[key] for key in (MNIST, OMNIGLOT) if key in told),
        judge_orders([above(*bounds[key]) for key in (MNIST, OMNIGLOT) if key in bounds]),
    )
    if BIBTEX in there:
        gap = _share_of_gain(results, BIBTEX, AR, OVE)
        apart = Estimate(abs(gap.mean), gap.error, gap.n)
        page.claim(
            "On Bibtex the bound of softmax A&R is close to OVE's",
            told[BIBTEX],
            judge_level(
                apart, at_most=CLOSE, near=ROUGHLY_CLOSE, of="their distance by the exact softmax's gain", digits=4
            ),
            _which_is_tighter(above(*bounds[BIBTEX])),
        )
    _near_the_optimum(results, page)
    _rigorous(results, page, there)


def _near_the_optimum(results: Results, page: Page) -> None:
    gaps = {key: _share_of_gain(results, key, EXACT, AR) for key in DATASETS if results.has(key, EXACT)}
    if gaps:
        page.claim(
            "On MNIST and Bibtex the bound of softmax A&R nearly achieves the exact softmax's marginal likelihood",
            "; ".join(
                f"{DATASETS[key]} {ours(results.bound(key, AR))} against {ours(results.bound(key, EXACT))}"
                for key in gaps
            ),
            judge_level(
                max(gaps.values(), key=lambda gap: gap.mean),
                at_most=CLOSE,
                near=ROUGHLY_CLOSE,
                of="the larger distance by the exact softmax's gain",
                digits=4,
            ),
            still_rising(results),
        )


def _which_is_tighter(above_ove: bool | None) -> str:
    if above_ove is None:
        return "which of the two is the tighter cannot be told here"
    return f"{METHODS[AR] if above_ove else METHODS[OVE]}'s is the tighter here"


def still_rising(results: Results) -> str:
    """Tell where the exact softmax's training log-likelihood still rose over the last two evaluations."""
    told = []
    for key in (each for each in DATASETS if results.has(each, EXACT)):
        curve = results.curve(key, EXACT)
        if len(curve) > 1 and curve["objective"].iloc[-1] < curve["objective"].iloc[-2]:
            ends = zip(curve["objective"].tolist()[-2:], curve["epoch"].tolist()[-2:], strict=True)
            before, last = (f"{number(-loss, digits=4)} at epoch {epoch:.0f}" for loss, epoch in ends)
            told.append(f"on {DATASETS[key]} from {before} to {last}")
    if not told:
        return ""
    return f"the exact softmax's training log-likelihood still rose, {', '.join(told)}: at its optimum it is higher"


def _share_of_gain(results: Results, dataset: str, first: str, second: str) -> Estimate:
    """Give by how much one objective's value is above another's, in units of the gain of the exact softmax."""
    gain = _gain(results, dataset)
    pairs = zip(*(results.values(dataset, method, "end.objective") for method in (first, second)), strict=True)
    return Estimate.of(None if a is None or b is None else (b - a) / gain for a, b in pairs)


def _gain(results: Results, dataset: str) -> float:
    """Give by how much the exact softmax's training log-likelihood is above that of equal scores."""
    losses = results.curve(dataset, EXACT)["objective"]
    return float(losses.iloc[0] - losses.iloc[-1])


def _in_nats(results: Results) -> str:
    found = [
        f"{number(CLOSE * _gain(results, key), digits=2)} nats on {name}"
        for key, name in DATASETS.items()
        if results.has(key, EXACT)
    ]
    return f" ({', '.join(found)})" if found else ""


def _rigorous(results: Results, page: Page, there: Mapping[str, str]) -> None:
    orders, least = [], {}
    for key, name in there.items():
        for method in (each for each in BOUNDS if results.has(key, each)):
            bounds = results.values(key, method, "end.objective")
            exact = results.values(key, method, "end.train_log_likelihood")
            pairs = zip(bounds, exact, strict=True)
            gap = Estimate.of(None if a is None or b is None else b + a for a, b in pairs)
            orders.append(above(gap, Estimate.exact(0)))
            least[f"{name} {METHODS[method]}"] = gap.mean
    if least:
        where = min(least, key=lambda name: least[name])
        page.claim(
            "A&R and OVE are rigorous lower bounds on the marginal likelihood of the data",
            f"least distance: {where}, {number(least[where], digits=4)} nats per training row",
            judge_orders(orders, of="models"),
            "the paper derives it of A&R and says it of OVE: only an error of the code could say otherwise",
        )
