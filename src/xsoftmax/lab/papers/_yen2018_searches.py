"""The searches for classes of Yen et al. 2018, section 5.1, beside the exact and the sampled methods."""

from collections.abc import Sequence

from xsoftmax.lab.papers._yen2018_methods import DECOMPOSED, METHODS, MIPS, SECONDS, curves, trained
from xsoftmax.lab.papers._yen2018_sampling import beside_sampling
from xsoftmax.lab.papers._yen2018_search_claims import FOUND, RECALL, TEST, search_claims
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle


def searches(results: Results, page: Page, n_classes_there: int) -> None:
    """Tell how much searches find, how fast they are, what they learn in equal time; so many classes in the paper."""
    known = {dataset: list(trained(results, dataset)) for dataset in results.datasets}
    known = {
        dataset: names
        for dataset, names in known.items()
        if any(name.startswith((MIPS, DECOMPOSED)) for name in names)
    }
    if not known:
        return
    page.section(
        "The searches for classes",
        "MIPS looks at K/100 classes in the nearest of 100 clusters of the weights, Decomp-MIPS at as many in each "
        "of 8 blocks of columns, and takes those with a slope above 0.001 in some block after one round of "
        "messages, the highest K/100 of them, where Algorithm 2 takes all. Blocks are an eighth of the features "
        "each, the paper's of 16. A class that was not retrieved is missing, where the paper scores it "
        "as 0: it would be pushed though nobody looked at it. Classes that Decomp-MIPS takes are scored as a whole. "
        "Clusters and K/100 are the paper's, though its rule of no more clusters than classes to retrieve (section "
        "4) holds from 10,000 classes on only. Fits end with the chunk of rows that had begun after equal seconds. "
        "Classes that moved are indexed anew every 40 minibatches, and "
        "clusters are found anew while the recall of 32 training rows is below 0.9; how often the paper's are it "
        "does not say. Recall is that of the highest other class, the share found that of all slopes' sizes, both "
        "of 100 training rows; a dash stands where a method does not search. Nothing has converged on data sets "
        "where methods make less than an epoch or two; where they make less than one, seconds per epoch are "
        "extrapolated from the part that they made. With very many classes accuracies shown are of 2,000 test rows, "
        "and orders of all. A mean has no ± where all seeds agree, or where only one of them has a value.",
    )
    _sizes(results, page, list(known))
    for dataset, names in known.items():
        page.text(f"### {dataset}")
        _table(results, page, dataset, names)
        if f"accuracy-{dataset}" not in page.figures:
            curves(results, page, dataset, "accuracy", "accuracy")
    search_claims(results, page, n_classes_there)
    beside_sampling(results, page)


def _sizes(results: Results, page: Page, datasets: Sequence[str]) -> None:
    of = {fit.dataset: fit.status["data"] for fit in results.fits}
    rows = [
        [name, *(number(of[name][key], digits=0) for key in ("n_train", "n_classes", "n_features"))]
        for name in datasets
        if "n_classes" in of[name]
    ]
    page.table(["data set", "training rows", "classes", "features"], rows)


def _table(results: Results, page: Page, dataset: str, names: Sequence[str]) -> None:
    rows = []
    for name in names:
        epochs = number(middle(results.values(dataset, name, "fit.epoch")), digits=2)
        times = number(middle(results.values(dataset, name, SECONDS)))
        searched = (RECALL, FOUND) if name.startswith((MIPS, DECOMPOSED)) else ()
        shares = [ours(results.estimate(dataset, name, f"end.{key}")) for key in (TEST, *searched)]
        rows.append([METHODS[name], epochs, times, *shares, *["–"] * (3 - len(shares))])
    page.table(["method", "epochs", "seconds per epoch", "test accuracy", "recall", "share of slopes found"], rows)
