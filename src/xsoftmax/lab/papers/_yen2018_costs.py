"""Times of epochs in Yen et al. 2018's multiclass experiment."""

from xsoftmax.lab.papers._yen2018_methods import (
    KIND_TEXTS,
    KINDS,
    MARGIN,
    PAPER,
    SAMPLED,
    SECONDS,
    SOFTMAX,
    judge_least,
    kinds,
    times_as_fast,
    told,
    trained,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import not_tested

# "Much faster": ten times; and what is so in shape, twice.
MUCH_FASTER, MUCH_FASTER_IN_SHAPE = 10.0, 2.0


def costs(results: Results, page: Page, dataset: str) -> None:
    """Tell the seconds of epochs, and judge what the paper says of them."""
    known = trained(results, dataset)
    page.section(
        "Time per epoch",
        "Medians over seeds, of one thread (the paper's ten). A class without a slope is spared the move of its "
        "weights; its score has to be known in any case, and Margin projects all scores, which Softmax does not. "
        + _beyond(results, dataset),
    )
    rows = [[known[name], number(middle(results.values(dataset, name, SECONDS)))] for name in known]
    page.table(["method", "seconds per epoch"], rows)
    for loss, judge in ((MARGIN, _faster), (SAMPLED, _much_faster)):
        ratios = {
            KIND_TEXTS[kind]: times_as_fast(results, dataset, f"{loss}-{kind}", f"{SOFTMAX}-{kind}")
            for kind in kinds(results, dataset, SOFTMAX, loss)
            if kind != PAPER
        }
        if ratios:
            judge(page, ratios)


def _beyond(results: Results, dataset: str) -> str:
    """Tell what the projection costs beyond what sparse moves save, in seconds of an epoch."""
    seconds = {
        kind: [middle(results.values(dataset, f"{loss}-{kind}", SECONDS)) for loss in (MARGIN, SOFTMAX)]
        for kind in KINDS
        if all(results.has(dataset, f"{loss}-{kind}") for loss in (MARGIN, SOFTMAX))
    }
    if not seconds:
        return ""
    beyond = {KIND_TEXTS[kind]: number(margin - softmax, digits=2) for kind, (margin, softmax) in seconds.items()}
    return (
        "What the projection costs, less what the sparse moves save, is an epoch of Margin less one of Softmax, in "
        f"seconds: {told(beyond)}."
    )


def _faster(page: Page, ratios: dict[str, Estimate]) -> None:
    page.claim(
        "Margin's updates are faster than Softmax's, since its gradient is sparse",
        f"{_told(ratios)}, by seconds per epoch",
        not_tested(
            "the backward pass, of which the paper says so, is not timed alone; seconds per epoch have the "
            "projection of scores, too"
        ),
    )


def _much_faster(page: Page, ratios: dict[str, Estimate]) -> None:
    page.claim(
        "Sampled-Softmax has much faster iterates",
        _told(ratios),
        judge_least(ratios.values(), "factors", MUCH_FASTER, MUCH_FASTER_IN_SHAPE),
        "by seconds per epoch, with t in epochs and at the best rates; the paper does not say than which, here than "
        "Softmax's; one class in 100 is scored",
    )


def _told(ratios: dict[str, Estimate]) -> str:
    return "times as fast as Softmax: " + told({text: ours(each, digits=2) for text, each in ratios.items()})
