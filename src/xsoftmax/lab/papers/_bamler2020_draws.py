"""The page of bamler2020: what is drawn, what a draw costs, and what is trained on top of the tree."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit

from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.lab.papers._bamler2020_names import (
    BASELINES,
    FREQUENCY,
    MEASURES,
    NCE,
    PROPOSED,
    UNIFORM,
    compared,
    final,
    times,
    told,
)
from xsoftmax.lab.papers._bamler2020_theory import MOST_ROWS, gain_over, interval
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, paired
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import judge_level, judge_orders, not_tested
from xsoftmax.model import Model

# Of the mean over all draws of a row: evenly spaced test rows.
SEEN_ROWS = 300
# "Logarithmic": time grows as a power of the number of classes. The power of a linear cost is 1, that of a logarithm
# is about 0.1 between tens and hundreds of thousands of classes; the rest is for weights that no cache holds.
LOGARITHMIC, BETTER_THAN_LINEAR = 0.25, 0.5
# Fewer classes than so many times the others do not tell a logarithm from a line.
FACTOR = 4
ON_ROWS = "comparisons on the same test rows"


def draws(results: Results, page: Page) -> None:
    """Tell how hard drawn classes are, what steps cost, and what training adds to the tree."""
    page.section(
        "The tree: what it draws, at what cost, and what training adds to it",
        "By eq. 4, a drawn class moves its scores in proportion to σ(ξ), which vanishes for classes that are easily "
        f"told from the label. The table has the mean of σ(ξ) over all draws, for up to {SEEN_ROWS} test rows and "
        "the weights at the end of training, and the time of a step, which is of one training row: six rows of "
        "weights, the label's and five drawn ones, and for the tree its draws.",
    )
    names = compared(results)
    found = {key: _slopes(results, key) for key in names}
    page.table(
        [
            "data set",
            "classes",
            *(f"σ(ξ), {label}" for label in _LABELS.values()),
            "a step, adversarial (µs)",
            "a step, uniform (µs)",
        ],
        [[name, f"{_classes(results, key):,}", *_cells(results, key, found[key])] for key, name in names.items()],
    )
    _claim_harder(page, names, found)
    _claim_logarithmic(results, page, names)
    _claim_corrects(results, page, names)
    _claim_wasteful(results, page, names)


_LABELS = {PROPOSED: "adversarial", UNIFORM: BASELINES[UNIFORM], FREQUENCY: BASELINES[FREQUENCY]}


def _slopes(results: Results, dataset: str) -> dict[str, list[np.ndarray]]:
    return {method: slopes(results, dataset, method) for method in _LABELS if results.has(dataset, method)}


def _cells(results: Results, dataset: str, found: dict[str, list[np.ndarray]]) -> list[str]:
    means = {method: Estimate.of(float(rows.mean()) for rows in seeds) for method, seeds in found.items()}
    cells = [f"{means[method].mean:.2g}" if method in means else "–" for method in _LABELS]
    for method in (PROPOSED, UNIFORM):
        there = results.has(dataset, method)
        cells.append(number(1e6 * middle(step_seconds(results, dataset, method)), digits=2) if there else "–")
    return cells


def slopes(results: Results, dataset: str, method: str) -> list[np.ndarray]:
    """Give the mean of σ(score) over draws for each test row, by seed; scores are those that were trained."""
    with results.data(dataset) as data:
        test = data.split("test")
    rows = test.X[:: -(-len(test.y) // SEEN_ROWS)]
    return [slope_of(model, rows) for model in results.models(dataset, method)]


def slope_of(model: Model, X: np.ndarray) -> np.ndarray:
    """Give the mean of σ(score) over what a model's proposal draws for each row, float64; uniform without one."""
    found = np.zeros(X.shape[0])

    def add(block: ScoreBlock) -> None:
        n_rows, n_classes = block.scores.shape
        rows, first = slice(block.first_row, block.first_row + n_rows), block.first_class
        log_q = None
        if model.correction is not None:
            log_q = model.correction.log_q(X[rows], first, first + n_classes)
        q = 1 / model.n_classes if log_q is None else np.exp(log_q, dtype=np.float64)
        found[rows] += (q * expit(block.scores)).sum(axis=1)

    model.without_correction().visit_scores(X, add)
    return found


def _claim_harder(page: Page, names: dict[str, str], found: dict[str, dict[str, list[np.ndarray]]]) -> None:
    orders, ratios = [], {}
    for key, name in names.items():
        for method in (UNIFORM, FREQUENCY):
            if found[key].get(method) and found[key][PROPOSED]:
                orders.append(paired(found[key][PROPOSED], found[key][method]).is_above)
                here, other = (np.mean(found[key][each]) for each in (PROPOSED, method))
                ratios[f"{name}, {BASELINES[method]}"] = times(here / other) if other else "theirs is 0"
    page.claim(
        "(As argued) the gradient signal is poor since negative samples that ignore the features are too easy to "
        "distinguish from positive ones; those of the auxiliary model are harder",
        told(ratios) or "–",
        judge_orders(orders, "comparisons of σ(ξ) on the same test rows"),
        "draws may be the label itself, as Theorem 1 has it, which raises the tree's share",
    )


def _classes(results: Results, dataset: str) -> int:
    return int(results.of(dataset, PROPOSED)[0].status["data"]["n_classes"])


def step_seconds(results: Results, dataset: str, method: str) -> list[float | None]:
    """Give the seconds of a step of each seed's fit, without the fit of the tree."""
    n_train = results.of(dataset, method)[0].status["data"]["n_train"]
    values = results.values(dataset, method, "fit.seconds_per_epoch")
    return [value / n_train if value else None for value in values]


def _claim_logarithmic(results: Results, page: Page, names: dict[str, str]) -> None:
    says = (
        "Negative samples come at a cost only logarithmic in the number of classes, so that gradient steps stay cheap"
    )
    widths = {key: results.of(key, PROPOSED)[0].status["data"]["n_features"] for key in names}
    keys = sorted((key for key in names if widths[key] == max(widths.values())), key=lambda k: _classes(results, k))
    if not keys or _classes(results, keys[-1]) < FACTOR * _classes(results, keys[0]):
        page.claim(
            says, "–", not_tested(f"no data set has {FACTOR} times another's classes and equally many features")
        )
        return
    few, many = keys[0], keys[-1]
    more = _classes(results, many) / _classes(results, few)
    pairs = zip(*(step_seconds(results, key, PROPOSED) for key in (few, many)), strict=False)
    power = Estimate.of(math.log(b / a) / math.log(more) if a and b else None for a, b in pairs)
    page.claim(
        says,
        f"{names[many]} against {names[few]}: with {more:.3g} times the classes a step takes {more**power.mean:.2f} "
        "times as long",
        judge_level(
            power,
            at_most=LOGARITHMIC,
            near=BETTER_THAN_LINEAR,
            of="the power by which the time of a step grows with the classes",
        ),
        "the level is ours; of whole steps, most of which are products with weights; more weights are also slower to "
        "fetch",
    )


def tree_alone(model: Model) -> Model:
    """Leave out the weights, so that scores are the tree's log-probabilities."""
    return replace(model, W=None, b=None, calibration=None)


def _claim_corrects(results: Results, page: Page, names: dict[str, str]) -> None:
    gains = {name: gain_over(results, key, PROPOSED, tree_alone) for key, name in names.items()}
    gains = {name: gain for name, gain in gains.items() if gain}
    page.text(
        f"What the trained model gains over its tree alone on up to {MOST_ROWS:,} test rows, with half of the 95 % "
        "interval:"
    )
    page.table(
        ["", *MEASURES.values()],
        [[name, *(interval(gain[measure]) for measure in MEASURES)] for name, gain in gains.items()],
    )
    page.claim(
        "The model trained on top of the tree is more expressive, and corrects for the tree's structural bias",
        told(
            {name: f"{interval(gain['accuracy'])} (95 %) more accurate than the tree" for name, gain in gains.items()}
        )
        or "–",
        judge_orders([gain[measure].is_above for gain in gains.values() for measure in MEASURES], ON_ROWS),
        "part of the gain may come from features that the tree does not see; it sees only a few components",
    )


def _claim_wasteful(results: Results, page: Page, names: dict[str, str]) -> None:
    keys = [key for key in names if results.has(key, NCE)]
    accuracies = {key: [final(results, key, method, "accuracy") for method in (PROPOSED, NCE)] for key in keys}
    page.claim(
        "NCE has to re-learn what the base distribution captures, which is potentially wasteful: the proposed "
        "method, which draws from the same tree, is likelier and more accurate",
        told({names[key]: f"accuracy {ours(here)}, NCE {ours(other)}" for key, (here, other) in accuracies.items()})
        or "–",
        judge_orders(
            [results.difference(key, PROPOSED, NCE, measure).is_above for key in keys for measure in MEASURES],
            ON_ROWS,
        ),
        "what is re-learned and the correction at prediction are not told apart",
    )
    page.claim(
        "A hierarchical classifier can impede performance if its structure does not reflect any semantic structure",
        "–",
        not_tested("data sets with a tree of classes and without differ in more than that"),
    )
    page.claim(
        "Reducing the dimension of the auxiliary model's features only affects the quality of negative samples",
        "–",
        not_tested("no other k was tried"),
    )
