"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.1 and figure 1."""

from collections.abc import Iterable, Mapping
from typing import Any

from xsoftmax.lab.papers._yen2018_methods import (
    KIND_TEXTS,
    LOSS_TEXTS,
    MARGIN,
    MOVED,
    SAMPLED,
    SECONDS,
    SOFTMAX,
    TIED_RATES,
    common_end,
    curves,
    judge_least,
    kinds,
    rates,
    times_as_fast,
    told,
    trained,
    values_at,
)
from xsoftmax.lab.papers._yen2018_searches import searches
from xsoftmax.lab.papers._yen2018_sparsity import sparsity
from xsoftmax.lab.papers._yen2018_theory import theory
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested

TRAIN, TEST = "train_accuracy", "test_accuracy"
# Of data sets named so what the paper says of all of its methods is judged; of others, what it says of searches.
STAND_IN = "faces"
# Levels, of which the paper says no more than words. Times as fast as the softmax: of the margin, which is spared the
# moves, half of a step's products, "faster"; of drawn classes, "much faster". Each with what is so in shape.
FASTER, FASTER_IN_SHAPE = 1.5, 1.1
MUCH_FASTER, MUCH_FASTER_IN_SHAPE = 10.0, 2.0


UNTESTED = (
    (
        "Approximation of the gradient by searches often sacrifices accuracy for efficiency",
        "searches are compared with Margin on the page of several labels only",
    ),
    (
        "Losses and gradients are dominated by positive labels and the highest negative ones; of the cross-entropy "
        "slopes fall exponentially with the score",
        "it is arithmetic; how concentrated slopes are is judged",
    ),
    (
        "A decomposed retrieval is off by at most B tau_1 times the loss's Lipschitz constant",
        "the error of a search is checked for whole scores only",
    ),
    ("Smoothing by mu in [1, 5] and a threshold tau_2 of 0.001 work well", "no others were tried"),
    ("Decomposition costs far fewer operations than all scores", "operations are not counted, see times"),
    ("Retrieving the highest Q is more efficient than retrieving by a threshold", "searches here have one form"),
    (
        "Where about as many rows of W are updated as classes are retrieved, a larger minibatch keeps the method "
        "effective, as what is re-indexed is bounded by K, and the cost of the index becomes insignificant",
        "minibatches are of 10",
    ),
    (
        "A query retrieves the root of K classes at least, so that its speedup is bounded by that root",
        "it is arithmetic, and what a query scores is told with times",
    ),
    (
        "Exact search takes time exponential in the dimension, and hashing depends on it implicitly",
        "searches here are in clusters, as the paper's",
    ),
    ("The smoothed margin and its gradient follow from the largest few scores", "it is arithmetic"),
    ("Scores are projected onto the simplex in O(K log K)", "it is arithmetic"),
    ("Rounds of messages and tau_2 suffice for a gap of epsilon", "one round and one tau_2 were tried"),
    (
        "Search is unnecessary in the early stage, where one can begin with sampling",
        "searches here begin at once",
    ),
)


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's multiclass experiment beside ours."""
    page.text(
        "This page has the multiclass experiment, section 5.1, and what sections 1 to 4 say; [several "
        "labels](yen2018-labels.md), section 5.2, and [vectors of words](yen2018-words.md), section 5.3, have pages "
        "of their own. The paper has words, and hardly any numbers: all levels below (1.5, 10, 2, 0.9, 0.01, 0.1, "
        "100 and the rest) are ours and were chosen before the run, when results of earlier ones were known, whose "
        "rates fell between chunks of rows only; ten alone, as one order of magnitude, is in its words."
    )
    for dataset in results.datasets:
        if dataset.startswith(STAND_IN):
            _stand_in(results, page, dataset, numbers["table_1"])
            _figure_1(results, page, dataset)
            _time(results, page, dataset)
            _epochs(results, page, dataset)
            _costs(results, page, dataset)
            sparsity(results, page, dataset, numbers["negligible"], numbers["settings"]["classes_per_draw"])
    searches(results, page, numbers["table_1"]["n_classes"])
    theory(page)
    _rates(results, page)
    _corrected(page)
    page.claim(
        "Neither Softmax nor Margin finishes an epoch in a day, and Margin's progress is much better until then",
        "–",
        not_tested("the data, of 672,000 classes, are not to be had, and ours end an epoch in seconds"),
        "what Margin gains before an epoch ends is in the figure's last panel",
    )
    for says, why in UNTESTED:
        page.claim(says, "nothing was compared", not_tested(why))
    page.claim(
        "All methods are run for more than one day, and their curves are close to convergence on a linear scale",
        "–",
        not_tested("ours are run for seconds"),
        "from Figure 1's caption",
    )


def _stand_in(results: Results, page: Page, dataset: str, paper: Mapping[str, float]) -> None:
    page.section(
        "Table 1: the data",
        "MegaFace's challenge 2 can no longer be downloaded, and the embeddings were never published; "
        "`config/datasets/megaface.yaml` takes one's own. Here are generated rows in its shape: clouds around the "
        "leaves of a random tree, of unit length, so that each class has a few others that it is mistaken for. "
        "Accuracies are therefore not the paper's, which prints no numbers of them; orders and factors are judged.",
    )
    found = next(fit.status["data"] for fit in results.fits if fit.dataset == dataset)
    words = {"n_train": "training rows", "n_classes": "classes", "n_features": "features"}
    rows = [[text, number(paper[key], digits=0), number(found[key], digits=0)] for key, text in words.items()]
    per_class = [number(of["n_train"] / of["n_classes"], digits=1) for of in (paper, found)]
    page.table(["", "MegaFace", dataset], [*rows, ["rows per class", *per_class]])


def _figure_1(results: Results, page: Page, dataset: str) -> None:
    page.section(
        "Figure 1: accuracy against time and epochs",
        "SGD in minibatches of 10 from weights of 0, equal seconds for all. Training accuracy is that of 5,000 rows "
        "at most. Sampled-Softmax draws K/100 classes for each row, as searches retrieve them, which is our reading "
        "of a batch's query of that size, and corrects their scores by the probability of being drawn, of which the "
        "paper says nothing; nor does it say whether rows of a minibatch share draws, as ours do not. The paper's "
        "caption calls its first two panels the same; the middle one, by that of Figure 2, is of training rows.",
        "The paper divides the initial rate by 1 + t, t counting iterations: after a hundred minibatches, of its "
        "470,000 in an epoch, a step has a hundredth of its first length. Where its weights begin is not said, ours "
        "begin at 0; there is a bias per class, which the paper does not mention. Each method is therefore trained "
        "in two more ways, with t counting epochs, and from larger rates, too. What the paper says of accuracy is "
        "judged in all of these. Where t counts iterations the rate is the paper's, to a twentieth.",
    )
    curves(results, page, dataset, "accuracy", "accuracy")


def _time(results: Results, page: Page, dataset: str) -> None:
    known = trained(results, dataset)
    found = {
        (method, column): results.estimate(dataset, method, f"end.{column}")
        for method in known
        for column in (TEST, TRAIN)
    }
    epochs = {method: middle(results.values(dataset, method, "fit.epoch")) for method in known}
    seconds = [fit.status["seconds"] for name in known for fit in results.of(dataset, name)]
    page.text(
        f"After equal times, {min(seconds):.1f} s, and up to {max(seconds) - min(seconds):.1f} s more for the chunk "
        "of rows that had begun:"
    )
    page.table(
        ["method", "epochs", "test accuracy", "training accuracy"],
        [
            [text, number(epochs[method], digits=1), *(ours(found[method, column]) for column in (TEST, TRAIN))]
            for method, text in known.items()
        ],
    )
    tried = kinds(results, dataset, SOFTMAX, MARGIN)
    if tried:
        accuracy = {name: found[name, TEST] for name in known}
        page.claim(
            "In equal time Softmax progresses much slower than Margin",
            "test accuracy of Softmax and Margin: " + _both(accuracy, tried, SOFTMAX, MARGIN),
            judge_orders(
                {
                    kind: results.difference(dataset, f"{MARGIN}-{kind}", f"{SOFTMAX}-{kind}", "accuracy").is_above
                    for kind in tried
                },
                "ways to choose rates, test rows compared in pairs",
            ),
            "how much slower is not judged, as the paper prints no numbers; a lead of Margin at the paper's rates "
            f"need not last at larger ones ({TIED_RATES}): a softmax of K equal scores gives each class a slope of "
            "1/K, and has some until scores are more than log K apart, where a margin has none once they are 1 apart",
        )


def _both(values: Mapping[str, Estimate], tried: Iterable[str], *losses: str) -> str:
    """Tell the values of some losses, for each way to choose rates."""
    return told({KIND_TEXTS[kind]: ", ".join(ours(values[f"{loss}-{kind}"]) for loss in losses) for kind in tried})


def _epochs(results: Results, page: Page, dataset: str) -> None:
    known = trained(results, dataset)
    common = common_end(results, dataset, known, "epoch")
    found = {method: Estimate.of(values_at(results, dataset, method, TRAIN, "epoch", common)) for method in known}
    page.text(f"After equal passes over the rows, {common:.2g}, between evaluations by linear interpolation:")
    page.table(["method", "training accuracy"], [[text, ours(found[method])] for method, text in known.items()])
    tried = kinds(results, dataset, SOFTMAX, MARGIN)
    if tried:
        page.claim(
            "Within an unfinished epoch Margin's progress is much better than Softmax's (judged here per epoch)",
            f"training accuracy of Softmax and Margin after {common:.2g} epochs: "
            + _both(found, tried, SOFTMAX, MARGIN),
            judge_orders(
                {kind: above(found[f"{MARGIN}-{kind}"], found[f"{SOFTMAX}-{kind}"]) for kind in tried},
                "ways to choose rates",
            ),
            "the paper's have not ended an epoch, and it presumes that Margin's focus on confusing identities is the "
            f"reason; what larger rates do to Softmax is in the claim above; {TIED_RATES}",
        )
    others = {
        kind: [loss for loss in LOSS_TEXTS if loss != SAMPLED and kind in kinds(results, dataset, SAMPLED, loss)]
        for kind in KIND_TEXTS
    }
    pairs = [(f"{loss}-{kind}", f"{SAMPLED}-{kind}") for kind, losses in others.items() for loss in losses]
    if pairs:
        texts = {
            KIND_TEXTS[kind]: f"{ours(found[f'{SAMPLED}-{kind}'])} against "
            + ", ".join(f"{number(found[f'{loss}-{kind}'].mean, digits=3)} ({LOSS_TEXTS[loss]})" for loss in losses)
            for kind, losses in others.items()
            if losses
        }
        page.claim(
            "Sampled-Softmax's progress per iteration is small",
            f"training accuracy after {common:.2g} epochs: {told(texts)}",
            judge_orders(
                [above(found[other], found[sampled]) for other, sampled in pairs],
                "pairs of another method and a way to choose rates",
            ),
            f"small is smaller than that of each other method, after as many rows; {TIED_RATES}",
        )


def _costs(results: Results, page: Page, dataset: str) -> None:
    known = trained(results, dataset)
    page.section(
        "Time per epoch",
        "Medians over seeds, of one thread (the paper's ten). What a class without a slope is spared is the move of "
        "its weights, half of a step's products; its score has to be known in any case, and the projection costs a "
        "few looks at all scores.",
    )
    rows = [[known[name], number(middle(results.values(dataset, name, SECONDS)))] for name in known]
    page.table(["method", "seconds per epoch"], rows)
    for loss, says, level, near, why in (
        (
            MARGIN,
            "Margin's updates are faster than Softmax's, since its gradient is sparse",
            FASTER,
            FASTER_IN_SHAPE,
            "both score all classes, half of Softmax's products, so that 2 is the most that a sparse gradient can "
            "save here; the backward pass, which the paper calls much faster, is not timed alone; "
            "seconds per epoch of both are in the table",
        ),
        (
            SAMPLED,
            "Sampled-Softmax has much faster iterates",
            MUCH_FASTER,
            MUCH_FASTER_IN_SHAPE,
            "the paper does not say than which, here than Softmax's; one class in 100 is scored",
        ),
    ):
        ratios = {
            KIND_TEXTS[kind]: times_as_fast(results, dataset, f"{loss}-{kind}", f"{SOFTMAX}-{kind}")
            for kind in kinds(results, dataset, SOFTMAX, loss)
            if kind in MOVED
        }
        if ratios:
            page.claim(
                says,
                "times as fast as Softmax: " + told({text: ours(each, digits=2) for text, each in ratios.items()}),
                judge_least(ratios.values(), "factors", level, near),
                f"by seconds per epoch, with t in epochs and from larger rates; {why}",
            )


def _rates(results: Results, page: Page) -> None:
    longest = max((trial.status["seconds"] for search in results.searches for trial in search.trials), default=0.0)
    page.section(
        "Initial rates and cooling",
        "The paper takes the best of three initial rates. So do methods here, once with t counting iterations, and "
        "once with t counting epochs; larger rates, with t counting epochs, were tried apart from these. One seed, a "
        f"quarter of the time, and what the chunk of rows that had begun then took, up to {longest:.0f} s in all; "
        "the rate of the best last accuracy on validation rows is taken, and of equal ones the lowest.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        rates(results, page, dataset, "validation accuracy")


def _corrected(page: Page) -> None:
    page.section(
        "What differs from the paper's text",
        "The margin in eqs. 3 and 7 is printed with its sign reversed; ours is the loss that eqs. 10 and 11 belong "
        "to. Theorem 1 prints D for the number of classes. The number of steps that is to suffice after Theorem 2 is "
        "printed with a factor of 1/4, where the bound gives 4. Algorithm 1 scores classes that it did not retrieve "
        "as 0: unless the retrieved ones are clearly above 0, as early in training they are not, the margin then "
        "spreads its slopes over all that it did not retrieve. Ours leaves those out of the projection. It retrieves "
        "the highest scores, as section 4 does, not those far from 0 on either side, and shows the loss whole scores "
        "of the classes found, where Algorithm 2 takes the mean of the gradients of eight blocks.",
    )
