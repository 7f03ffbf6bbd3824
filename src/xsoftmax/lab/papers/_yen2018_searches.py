"""The searches for classes of Yen et al. 2018, section 5.1, beside the exact and the sampled methods."""

from collections.abc import Mapping

from xsoftmax.lab.papers._yen2018_methods import DECOMPOSED, MARGIN, MIPS, SAMPLED, SECONDS, at_least
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page, above, ours, verdict_of_orders
from xsoftmax.lab.reproduction.results import Results, middle

TEST = "end.test_accuracy"
# Times as fast as the exact margin: an order of magnitude, and what is counted as one in shape.
FULL, IN_SHAPE = 10.0, 2.0


def searches(results: Results, page: Page, dataset: str, names: Mapping[str, str]) -> None:
    """Tell how much the searches find, how fast they are, and what they learn in equal time."""
    found = [name for name in names if name.startswith(("mips-", "decomposed-")) and results.has(dataset, name)]
    if not found:
        return
    page.section(
        f"The searches for classes, on {dataset}",
        "MIPS looks at K/100 classes in the nearest of 100 clusters of the weights, Decomp-MIPS at as many in each "
        "of 8 blocks of columns, and takes those that have a slope in some block (one round of messages). A class "
        "that was not retrieved is missing, where the paper scores it as 0: it would be pushed though nobody looked "
        "at it. Classes that Decomp-MIPS takes are scored as a whole. Recall is that of the highest other class, the "
        "share found that of all slopes' sizes, of 100 training rows at the end.",
    )
    rows = []
    for name in found:
        times = number(_seconds(results, dataset, name))
        shares = [ours(results.estimate(dataset, name, f"end.{key}")) for key in ("search_recall", "gradient_found")]
        rows.append([names[name], times, ours(results.estimate(dataset, name, TEST)), *shares])
    page.table(["method", "seconds per epoch", "test accuracy", "recall", "share of slopes found"], rows)
    if {MIPS, DECOMPOSED} <= set(found):
        _claims(results, page, dataset)


def _claims(results: Results, page: Page, dataset: str) -> None:
    place = f" (on {dataset})"
    accuracy = {
        name: results.estimate(dataset, name, TEST)
        for name in (MARGIN, SAMPLED, MIPS, DECOMPOSED)
        if results.has(dataset, name)
    }
    if MARGIN in accuracy:
        ratios = [
            _seconds(results, dataset, MARGIN) / _seconds(results, dataset, name) for name in (MIPS, DECOMPOSED)
        ]
        page.claim(
            "MIPS and Decomp-MIPS speed up iterations of the margin by one to two orders of magnitude" + place,
            f"{number(ratios[0], digits=2)} and {number(ratios[1], digits=2)} times as fast as Margin",
            at_least(min(ratios), FULL, IN_SHAPE),
            f"counted as such from {FULL:g} times on, in shape from {IN_SHAPE:g}; the paper has 672,000 classes",
        )
    page.claim(
        "MIPS converges at a much lower accuracy than Decomp-MIPS" + place,
        f"test accuracy {ours(accuracy[MIPS])} against {ours(accuracy[DECOMPOSED])} in equal time",
        verdict_of_orders([above(accuracy[DECOMPOSED], accuracy[MIPS])]),
        "one search in all columns against eight, each in an eighth of them",
    )
    if SAMPLED in accuracy:
        page.claim(
            "Sampled-Softmax is slower overall than searches for classes" + place,
            f"test accuracy {ours(accuracy[SAMPLED])} against {ours(accuracy[MIPS])} (MIPS) and "
            f"{ours(accuracy[DECOMPOSED])} (Decomp-MIPS) in equal time",
            verdict_of_orders(above(accuracy[name], accuracy[SAMPLED]) for name in (MIPS, DECOMPOSED)),
            "all at the best of the paper's initial rates",
        )


def _seconds(results: Results, dataset: str, method: str) -> float:
    return middle(results.values(dataset, method, SECONDS))
