"""The page of bamler2020: the bias and its removal (Theorem 1), and the signal-to-noise ratio (Theorem 2)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.signal_to_noise import IDEAL, SignalToNoise, pairs_of, signal_to_noise
from xsoftmax.lab.papers._bamler2020_names import (
    BASELINES,
    FREE,
    FREQUENCY,
    MEASURES,
    PROPOSED,
    UNIFORM,
    compared,
    told,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Difference, Estimate, above, paired
from xsoftmax.lab.reproduction.page import MEANWHILE, Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_level, judge_orders, not_tested
from xsoftmax.model import Model
from xsoftmax.proposals import TrainingSet, build_proposal

# "Learn identical scores", but for what samples and short training leave: in nats of a training row's log-likelihood.
IDENTICAL, ALMOST = 0.01, 0.05
# Of a comparison of a model with a part of it: evenly spaced test rows, since some data sets have 200,000 classes.
MOST_ROWS = 1000
N_DRAWS = 2_000_000  # simulated gradients of a proposal
DRAWN = {PROPOSED: "tree", UNIFORM: "uniform", FREQUENCY: "frequency"}
REMOVED = "Any bias due to non-uniform sampling can be removed at test time"
ONLY_UNIFORM = "Without correction only uniform draws approximate the softmax (eq. 3)"
BIASED = (PROPOSED, FREQUENCY)  # whose log p_n depends on the class


def unbiased(results: Results, page: Page) -> None:
    """Compare corrected scores with the best possible ones, and with those that are not corrected."""
    page.section(
        "Theorem 1: the bias, and its removal",
        "Scores of negative sampling lack log p_n, which is added at prediction. On a generated data set with few "
        "distinct rows, a linear model can give each row any scores, and the best possible log-likelihood of "
        "training rows is that of the frequencies of their labels.",
    )
    _claim_identical(results, page)
    page.claim(
        "Many models are flexible enough that eq. 5 holds approximately in practice",
        "–",
        not_tested(
            "it takes the optima of softmax and negative sampling for models that are not arbitrarily flexible; what "
            "short training leaves between them is under Appendix A.2"
        ),
    )
    _claim_removed(results, page)


def distances(results: Results, method: str) -> dict[str, list[float]]:
    """Tell how far training rows' log-likelihood is below the best possible, with correction and without, by seed."""
    with results.data(FREE) as data:
        train, n_classes = data.split("train"), data.n_classes
    pairs = pairs_of(train.X, train.y, n_classes)
    best = pairs.log_p[np.searchsorted(pairs.codes, pairs.group * n_classes + train.y)].mean()
    found: dict[str, list[float]] = {"corrected": [], "not corrected": []}
    for model in results.models(FREE, method):
        for name, each in (("corrected", model), ("not corrected", model.without_correction())):
            found[name].append(best - float(score_rows(each, train.X, train.y).log_likelihood.mean()))
    return found


def _claim_identical(results: Results, page: Page) -> None:
    says = (
        "(Theorem 1) In the nonparametric limit, scores with log p_n added are those of the softmax but for a "
        "constant of each row, whatever the noise distribution"
    )
    methods = [method for method in DRAWN if results.has(FREE, method)]
    if not methods:
        for each in (says, REMOVED, ONLY_UNIFORM):
            page.claim(each, "–", not_tested("there is no fit of rows that a linear model can give any scores"))
        return
    found = {method: distances(results, method) for method in methods}
    headings = ["draws", *(f"nats below the best possible, {name}" for name in found[methods[0]])]
    page.table(
        headings,
        [
            [DRAWN[method], *(ours(Estimate.of(values), 4) for values in each.values())]
            for method, each in found.items()
        ],
    )
    _claim_in_the_limit(page, found)
    worst = Estimate.of(max(seeds) for seeds in zip(*(each["corrected"] for each in found.values()), strict=False))
    page.claim(
        says,
        f"{ours(worst, 4)} nats below the best possible log-likelihood, the worst of {len(methods)} distributions",
        judge_level(
            worst, at_most=IDENTICAL, near=ALMOST, of="the distance to the best log-likelihood, in nats", digits=4
        ),
    )


def _claim_in_the_limit(page: Page, found: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Judge on rows with any scores what the correction does, and which draws need none."""
    of = {method: {name: Estimate.of(seeds) for name, seeds in each.items()} for method, each in found.items()}
    biased = {method: each for method, each in of.items() if method in BIASED}
    page.claim(
        REMOVED,
        told(
            {
                DRAWN[method]: f"{ours(each['corrected'], 4)} nats below the best possible, without correction "
                f"{ours(each['not corrected'], 4)}"
                for method, each in biased.items()
            }
        )
        or "–",
        judge_orders([above(each["not corrected"], each["corrected"]) for each in biased.values()], "distributions"),
        "in the nonparametric limit, to which the paper confines it; that what is left is next to nothing is the "
        f"claim of Theorem 1; {MEANWHILE}",
    )
    near = Estimate.exact(IDENTICAL)
    orders = [
        above(near, each["not corrected"]) if method == UNIFORM else above(each["not corrected"], near)
        for method, each in of.items()
    ]
    page.claim(
        ONLY_UNIFORM,
        told({DRAWN[method]: f"{ours(each['not corrected'], 4)} nats below" for method, each in of.items()}),
        judge_orders(orders, f"distances beside {IDENTICAL:g} nats"),
        f"uniform draws have to be nearer than that to the best possible log-likelihood, others farther; {MEANWHILE}",
    )


def gain_over(results: Results, dataset: str, method: str, part: Callable[[Model], Model]) -> dict[str, Difference]:
    """Subtract what a part of each model reaches from what the whole reaches, of the same test rows."""
    with results.data(dataset) as data:
        test = data.split("test")
    every = -(-len(test.y) // MOST_ROWS)
    models = list(results.models(dataset, method))
    if not models:
        return {}
    found = [
        [score_rows(each, test.X[::every], test.y[::every]) for each in of]
        for of in (models, [part(model) for model in models])
    ]
    return {
        "log_likelihood": paired(*([rows.log_likelihood for rows in each] for each in found)),
        "accuracy": paired(*([(rows.rank == 0).astype(float) for rows in each] for each in found)),
    }


def _claim_removed(results: Results, page: Page) -> None:
    rows: list[list[str]] = []
    differences: dict[str, list[Difference]] = {method: [] for method in BIASED}
    for key, name in compared(results).items():
        for method in BIASED:
            if results.has(key, method) and (gains := gain_over(results, key, method, Model.without_correction)):
                label = "adversarial" if method == PROPOSED else BASELINES[method]
                rows.append([f"{name}, {label}", *(interval(gains[measure]) for measure in MEASURES)])
                differences[method] += [gains[measure] for measure in MEASURES]
    if rows:
        page.text(
            f"On the other data sets, what adding log p_n gains on up to {MOST_ROWS:,} test rows, with half of the "
            "95 % interval:"
        )
        page.table(["", *MEASURES.values()], rows)
    for method, says, why in (
        (
            PROPOSED,
            "The bias of sampling from the auxiliary model cannot be ignored: scores with log p_n added predict "
            "better",
            "",
        ),
        (
            FREQUENCY,
            "On ordinary data, too, scores with log p_n added predict better after draws by frequency",
            "by eq. 5 the bias is removed in the nonparametric limit alone; log p_n is not in the regulariser of "
            "these draws",
        ),
    ):
        gains_of = differences[method]
        page.claim(
            says,
            f"{sum(each.mean > 0 for each in gains_of)} of {len(gains_of)} log-likelihoods and accuracies are higher "
            "in the mean with the correction",
            judge_orders([each.is_above for each in gains_of], "comparisons on the same test rows"),
            why,
            ours=method == FREQUENCY,
        )
    page.claim(
        "The bias is cheaply removed at test time",
        "–",
        not_tested("the time of predictions with and without log p_n is not measured"),
    )
    page.claim(
        "Sampled softmax is biased even for uniform draws",
        "–",
        not_tested("the experiment has no fit of it"),
    )


def interval(difference: Difference) -> str:
    """Write a difference with half of its 95 % interval."""
    return number(difference.mean, difference.half_width, 3)


def signal(results: Results, page: Page, n_classes_there: int) -> None:
    """Compute and measure the signal-to-noise ratio of eq. 12; the paper's largest data set has so many classes."""
    page.section("Theorem 2: the signal-to-noise ratio")
    says = (
        "(Theorem 2) In the nonparametric limit, the signal-to-noise ratio of eq. 12 is maximal if the noise "
        "distribution is that of the data"
    )
    more = (
        "Sampling from an auxiliary model can improve the signal-to-noise ratio: it is higher than with noise that "
        "ignores the features"
    )
    if FREE not in results.datasets:
        for each in (says, more):
            page.claim(each, "–", not_tested("it takes rows that are seen often, and none of the data sets has them"))
        return
    found = ratios(results)
    n_classes = found[IDEAL].n_classes
    page.text(
        f"As a share of the highest possible one, of {found[IDEAL].n_draws:,} simulated gradients at the optimum of "
        f"the data set with few distinct rows. By eq. 15 no distribution is below (C − 1)/C for C classes, here "
        f"{1 - 1 / n_classes:.3f}. With the paper's C = {n_classes_there:,} all are between "
        f"{1 - 1 / n_classes_there:.6f} and 1: the theorem "
        "says which distribution is best, and this ratio, in which the noise of all C scores of a row adds up, "
        "hardly depends on it where classes are many.",
    )
    rows = [
        [
            name,
            number(each.relative, digits=5),
            number(each.measured, each.measured_error, 5),
            number(each.variance, digits=4),
        ]
        for name, each in found.items()
    ]
    page.table(
        ["noise distribution", "computed (eq. 16)", "measured", "variance of a row's gradient, in units of N²"], rows
    )
    of = {name: Estimate(each.measured, each.measured_error, each.n_draws) for name, each in found.items()}
    shown = told({name: number(each.mean, each.error, 5) for name, each in of.items()})
    others = [name for name in of if name != IDEAL]
    page.claim(
        says,
        shown,
        judge_orders([above(of[IDEAL], of[name]) for name in others], "noise distributions"),
        f"judged by what was measured; computed, the tree has {number(found['tree'].relative, digits=5)} of the "
        f"ideal's, and the ideal is ahead of {sum(found[IDEAL].relative > found[n].relative for n in others)} of "
        f"{len(others)}",
    )
    page.claim(
        more,
        shown,
        judge_orders([above(of["tree"], of[name]) for name in others if name != "tree"], "noise distributions"),
    )
    page.claim(
        "(Abstract) Adversarial sampling minimizes the gradient variance (section 1: in the limit where the "
        "auxiliary model is the distribution of the data)",
        told({name: number(each.variance, digits=4) for name, each in found.items()}),
        not_tested(
            "each distribution has an optimum of its own, and gradients that teach less vary less there, so that by "
            "the variance alone it is the other way round; the ratio of Theorem 2 is judged"
        ),
    )


def ratios(results: Results) -> dict[str, SignalToNoise]:
    """Compute and measure the ratios of the ideal distribution and of those that methods draw from."""
    with results.data(FREE) as data:
        train, n_classes = data.split("train"), data.n_classes
    tree: dict[str, Any] = {"name": "tree"}
    if results.has(FREE, PROPOSED):
        tree = results.of(FREE, PROPOSED)[0].status["parameters"]["proposal"]
    members = {name: build_proposal("the page", {"name": name}) for name in ("uniform", "frequency")}
    members["tree"] = build_proposal("the page", tree)
    found = signal_to_noise(TrainingSet(train.X, train.y, n_classes), members, N_DRAWS)
    return {each.proposal: each for each in found}
