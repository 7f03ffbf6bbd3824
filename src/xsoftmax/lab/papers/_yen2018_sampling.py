"""How far ahead of sampling the searches of Yen et al. 2018 are, in accuracy and in time."""

from collections.abc import Iterable, Mapping, Sequence

from xsoftmax.lab.papers._yen2018_methods import (
    BEST,
    DECOMPOSED,
    MIPS,
    SAMPLED,
    best_by_validation,
    is_tied,
    judge_least,
    most_times_sooner,
    sooner,
    tells_no_time,
    told,
)
from xsoftmax.lab.papers._yen2018_search_claims import TEST, Place, leads, measured, named, places
from xsoftmax.lab.papers._yen2018_ways import Orders, alone, each_way, tally
from xsoftmax.lab.reproduction.estimates import Estimate, quotient
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Finding, judge_orders

# "Orders of magnitude" faster: two; and one in shape.
ORDERS, ONE_ORDER = 100.0, 10.0
# "By a large margin": half as much again; and what is so in shape, more.
LARGE_MARGIN, MORE = 1.5, 1.03
Pairs = Mapping[Place, tuple[str, str, str]]  # a data set, and two methods


def beside_sampling(results: Results, page: Page) -> None:
    """Judge who is ahead, and of Decomp-MIPS by how much, in accuracy and in time."""
    some = places(results, SAMPLED, MIPS, DECOMPOSED)
    if not some:
        return
    _overall(results, page, some)
    pairs = {place: (place[0], f"{DECOMPOSED}-{place[1]}", f"{SAMPLED}-{place[1]}") for place in some}
    _by_a_large_margin(results, page, pairs)
    _orders_of_magnitude(results, page, pairs)


def _overall(results: Results, page: Page, some: Sequence[Place]) -> None:
    orders: Orders = [order for loss in (MIPS, DECOMPOSED) for order in leads(results, some, loss, SAMPLED)]
    page.claim(
        "Sampled-Softmax makes slower overall progress than the MIPS-based approaches",
        "test accuracy of Sampled-Softmax, MIPS and Decomp-MIPS in equal time: "
        f"{measured(results, some, TEST, SAMPLED, MIPS, DECOMPOSED)}; {tally(orders)}",
        judge_orders(
            [order for _, order in orders],
            "pairs of a search, a data set and a way to choose rates, test rows in pairs",
        ),
        f"how much slower is not judged; {_of_ties(results, some, orders)}{alone(orders)}",
    )


def _of_ties(results: Results, some: Sequence[Place], orders: Orders) -> str:
    """Count what is as claimed where several rates of Sampled-Softmax were equal on validation rows."""
    tied = {(search.dataset, search.method) for search in results.searches if is_tied(search)}
    kinds = {
        (dataset, way): best_by_validation(results, dataset, SAMPLED) if way == BEST else way for dataset, way in some
    }
    of_each = [(place, order) for (place, (_, order)) in zip([*some, *some], orders, strict=True) if order]
    n = sum((dataset, f"{SAMPLED}-{kinds[dataset, way]}") in tied for (dataset, way), _ in of_each)
    if not n:
        return ""
    return (
        f"{n} of the {len(of_each)} as claimed are where several rates of Sampled-Softmax came to the same in "
        "trials, of which the lowest was taken; "
    )


def _by_a_large_margin(results: Results, page: Page, pairs: Pairs) -> None:
    def judge(values: Iterable[Estimate]) -> Finding:
        return judge_least(values, "quotients", LARGE_MARGIN, MORE)

    values = {
        place: [results.values(dataset, name, f"end.{TEST}") for name in names]
        for place, (dataset, *names) in pairs.items()
    }
    none = [place for place, (_, sampled) in values.items() if 0 in sampled]
    ends = {place: quotient(*each) for place, each in values.items() if place not in none}
    left_out = f"; left out where it is right in no row of a seed: {'; '.join(map(named, none))}" if none else ""
    page.claim(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        "test accuracy of Decomp-MIPS over that of Sampled-Softmax in equal time: "
        + told({f"{named(place)},": ours(each, digits=2) for place, each in ends.items()}),
        judge(ends.values()),
        f"seed by seed{left_out}; {each_way([(way, each) for (_, way), each in ends.items()], judge)}",
    )


def _orders_of_magnitude(results: Results, page: Page, pairs: Pairs) -> None:
    def judge(values: Iterable[Estimate]) -> Finding:
        return judge_least(values, "factors", ORDERS, ONE_ORDER)

    telling = {place: pair for place, pair in pairs.items() if most_times_sooner(results, *pair) >= ORDERS}
    at_once = [place for place, pair in telling.items() if tells_no_time(results, *pair, TEST)]
    factors = {place: sooner(results, *pair, TEST) for place, pair in telling.items() if place not in at_once}
    left_out = (
        f"; left out where with some seed both are there at their first looks: {'; '.join(map(named, at_once))}"
        if at_once
        else ""
    )
    late = {
        named(place): f"({ours(sooner(results, *pair, TEST), digits=2)})"
        for place, pair in pairs.items()
        if place not in telling
    }
    left_out += f"; left out, as their looks cannot tell that, and what they tell: {told(late)}" if late else ""
    page.claim(
        "It is orders of magnitude faster than other strategies of gradient approximation such as sampling",
        "times as soon as Sampled-Softmax at the test accuracy that both reach: "
        + (told({f"{named(place)},": ours(each, digits=2) for place, each in factors.items()}) or "–"),
        judge(factors.values()),
        "of Decomp-MIPS; the lower of both last accuracies, and no time before the first look counts, so that only "
        f"fits are compared whose looks can tell a factor of {ORDERS:g}{left_out}; "
        f"{each_way([(way, each) for (_, way), each in factors.items()], judge)}",
    )
