"""The searches for classes of Yen et al. 2018, section 5.1, beside the exact and the sampled methods."""

from collections.abc import Sequence

from xsoftmax.lab.papers._yen2018_methods import (
    DECOMPOSED,
    EPOCHS,
    KIND_TEXTS,
    LOSS_TEXTS,
    MARGIN,
    METHODS,
    MIPS,
    SAMPLED,
    SECONDS,
    TIED_RATES,
    curves,
    judge_least,
    kinds,
    most_times_sooner,
    quotient,
    sooner,
    times_as_fast,
    told,
    trained,
    values_at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested

TEST, FOUND, RECALL = "test_accuracy", "gradient_found", "search_recall"
# Times as fast as the exact margin: an order of magnitude, and what is counted as one in shape.
ORDER, IN_SHAPE = 10.0, 2.0
# "Orders of magnitude" faster: two; and one in shape.
ORDERS = 100.0
# "By a large margin": half as much again; and what is so in shape, more.
LARGE_MARGIN, MORE = 1.5, 1.03
Place = tuple[str, str]  # a data set, and a way to choose rates


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
        "messages, the highest K/100 of them. A class that was not retrieved is missing, where the paper scores it "
        "as 0: it would be pushed though nobody looked at it. Classes that Decomp-MIPS takes are scored as a whole. "
        "Clusters and K/100 are the paper's, though its rule of no more clusters than classes to retrieve (section "
        "4) holds from 10,000 classes on only. Fits end with the chunk of rows that had begun after equal seconds. "
        "Classes that moved are indexed anew every 40 minibatches, and "
        "clusters are found anew while the recall of 32 training rows is below 0.9; how often the paper's are it "
        "does not say. Recall is that of the highest other class, the share found that of all slopes' sizes, both "
        "of 100 training rows; a dash: does not search. Nothing has converged on data sets where methods make less "
        "than an epoch or two, whose seconds of an epoch are of its part. With very many classes accuracies shown "
        "are of 2,000 test rows, and orders of all. No error is told where seeds agree, or one only has a value.",
    )
    _sizes(results, page, list(known))
    for dataset, names in known.items():
        page.text(f"### {dataset}")
        _table(results, page, dataset, names)
        if f"accuracy-{dataset}" not in page.figures:
            curves(results, page, dataset, "accuracy", "accuracy")
    _claims(results, page, n_classes_there)


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


def _claims(results: Results, page: Page, n_classes_there: int) -> None:
    def places(*losses: str) -> list[Place]:
        return [(dataset, kind) for dataset in results.datasets for kind in kinds(results, dataset, *losses)]

    def values(some: Sequence[Place], measure: str, *losses: str) -> str:
        """Tell a measure of losses at places."""
        return told(
            {
                f"{dataset}, {KIND_TEXTS[kind]},": ", ".join(
                    ours(results.estimate(dataset, f"{loss}-{kind}", f"end.{measure}")) for loss in losses
                )
                for dataset, kind in some
            }
        )

    def leads(some: Sequence[Place], first: str, second: str) -> list[bool | None]:
        """Tell where the accuracy of test rows, compared in pairs, is that of the first."""
        return [
            results.difference(dataset, f"{first}-{kind}", f"{second}-{kind}", "accuracy").is_above
            for dataset, kind in some
        ]

    ratios = {
        (dataset, loss): times_as_fast(results, dataset, f"{loss}-{EPOCHS}", f"{MARGIN}-{EPOCHS}")
        for loss in (MIPS, DECOMPOSED)
        for dataset, kind in places(MARGIN, MIPS, DECOMPOSED)
        if kind == EPOCHS
    }
    if ratios:
        page.claim(
            "MIPS and Decomp-MIPS speed up iterations of the margin by one to two orders of magnitude",
            f"{KIND_TEXTS[EPOCHS]}, times as fast as Margin: "
            + told(
                {f"{dataset}, {LOSS_TEXTS[loss]}": ours(each, digits=2) for (dataset, loss), each in ratios.items()}
            ),
            judge_least(ratios.values(), "factors", ORDER, IN_SHAPE),
            "with 100 clusters and K/100 classes a query scores 100 + K/100 rows, times fewer than K: "
            + told({dataset: f"{times_fewer(_n_classes(results, dataset)):.0f}" for dataset, _ in ratios})
            + f"; the paper {times_fewer(n_classes_there):.0f}; seconds include indexing",
        )
    both = places(MIPS, DECOMPOSED)
    if both:
        ahead = leads(both, DECOMPOSED, MIPS)
        growths = {f"{dataset}, {KIND_TEXTS[kind]},": _growth(results, dataset, kind) for dataset, kind in both}
        page.claim(
            "MIPS converges at an accuracy much lower than Decomp-MIPS, which improves searches consistently",
            f"test accuracy of MIPS and Decomp-MIPS in equal time: {values(both, TEST, MIPS, DECOMPOSED)}",
            judge_orders(ahead, "data sets and ways to choose rates, test rows in pairs"),
            "one search in all columns against eight, each in an eighth of them; how much lower is not judged, as "
            "the paper prints no numbers; nothing has converged where methods make less than an epoch, see the "
            "tables; searches and outputs differ from Algorithms 1 and 2, see the last section",
        )
        page.claim(
            "The gap between them gets bigger when running for more iterations",
            "lead of Decomp-MIPS in test accuracy at the end, less that at half of the time: "
            + told({place: ours(growth) for place, growth in growths.items()}),
            judge_orders(
                [
                    above(growth, Estimate.exact(0)) if leads_there else leads_there
                    for growth, leads_there in zip(growths.values(), ahead, strict=True)
                ],
                "data sets and ways to choose rates",
            ),
            "by how much the lead grew, seed by seed; where Decomp-MIPS is behind at the end, there is no such gap, "
            "and where it is too close to tell who is ahead, so is the gap",
        )
        page.claim(
            "Decomposition significantly improves the accuracy of the search-based approximation of the gradient; "
            "one step of messages suffices to improve performance",
            f"share of slopes found by MIPS and Decomp-MIPS: {values(both, FOUND, MIPS, DECOMPOSED)}; recall: "
            f"{values(both, RECALL, MIPS, DECOMPOSED)}",
            judge_orders(
                [
                    above(*(results.estimate(data, f"{loss}-{kind}", f"end.{FOUND}") for loss in (DECOMPOSED, MIPS)))
                    for data, kind in both
                ],
                "data sets and ways to choose rates",
            ),
            "read here as the share of slopes, since the accuracy of models is in the claim above; each of 100 "
            "training rows at the end, and each at its own weights; classes found are scored as a whole, so that "
            "messages only choose them; significantly is by the interval",
        )
    drawn = places(SAMPLED, MIPS, DECOMPOSED)
    if drawn:
        page.claim(
            "Sampled-Softmax makes slower overall progress than the MIPS-based approaches",
            f"test accuracy of Sampled-Softmax, MIPS and Decomp-MIPS in equal time: "
            f"{values(drawn, TEST, SAMPLED, MIPS, DECOMPOSED)}",
            judge_orders(
                [lead for loss in (MIPS, DECOMPOSED) for lead in leads(drawn, loss, SAMPLED)],
                "pairs of a search, a data set and a way to choose rates, test rows in pairs",
            ),
            f"how much slower is not judged; {TIED_RATES}",
        )
        _beside_sampling(results, page, drawn)
    page.claim(
        "The cost of re-indexing is much smaller than that of queries and updates",
        "–",
        not_tested("it is part of the seconds of searches, which are not taken apart"),
    )


def _beside_sampling(results: Results, page: Page, some: Sequence[Place]) -> None:
    """Judge by how much Decomp-MIPS is ahead of sampling, in accuracy and in time."""
    pairs = {
        f"{dataset}, {KIND_TEXTS[kind]},": (dataset, f"{DECOMPOSED}-{kind}", f"{SAMPLED}-{kind}")
        for dataset, kind in some
    }
    values = {
        place: [results.values(dataset, name, f"end.{TEST}") for name in names]
        for place, (dataset, *names) in pairs.items()
    }
    none = [place for place, (_, sampled) in values.items() if 0 in sampled]
    ends = {place: quotient(*each) for place, each in values.items() if place not in none}
    left_out = f"; left out where it is right in no row of a seed: {' '.join(none).removesuffix(',')}" if none else ""
    page.claim(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        "test accuracy of Decomp-MIPS over that of Sampled-Softmax in equal time: "
        + told({place: ours(each, digits=2) for place, each in ends.items()}),
        judge_least(ends.values(), "quotients", LARGE_MARGIN, MORE),
        f"seed by seed{left_out}; {TIED_RATES}",
    )
    telling = {place: pair for place, pair in pairs.items() if most_times_sooner(results, *pair) >= ORDERS}
    factors = {place: sooner(results, *pair, TEST) for place, pair in telling.items()}
    page.claim(
        "It is orders of magnitude faster than other strategies of gradient approximation such as sampling",
        "times as soon as Sampled-Softmax at the test accuracy that both reach: "
        + (told({place: ours(each, digits=2) for place, each in factors.items()}) or "–"),
        judge_least(factors.values(), "factors", ORDERS, ORDER),
        "of Decomp-MIPS; the lower of both last accuracies, and no time before the first look counts, so that only "
        f"fits are compared whose looks can tell a factor of {ORDERS:g}",
    )


def times_fewer(n_classes: int) -> float:
    """Tell how many times fewer rows of W a query scores than there are: of 100 clusters, and K/100 classes."""
    return n_classes / (100 + n_classes / 100)


def _n_classes(results: Results, dataset: str) -> int:
    return int(results.of(dataset, f"{MIPS}-{EPOCHS}")[0].status.get("data", {}).get("n_classes", 0))


def _growth(results: Results, dataset: str, kind: str) -> Estimate:
    """Estimate by how much the lead of decomposed search grows in the second half of its time."""
    found = {}
    for loss in (MIPS, DECOMPOSED):
        name = f"{loss}-{kind}"
        last = results.values(dataset, name, f"end.{TEST}")
        half = [None if fit.diverged else fit.history["seconds"].iloc[-1] / 2 for fit in results.of(dataset, name)]
        ends = min((each for each in half if each is not None), default=0.0)
        middles = values_at(results, dataset, name, TEST, "seconds", ends)
        found[loss] = [None if a is None or b is None else a - b for a, b in zip(last, middles, strict=True)]
    pairs = zip(found[DECOMPOSED], found[MIPS], strict=True)
    return Estimate.of(None if a is None or b is None else a - b for a, b in pairs)
