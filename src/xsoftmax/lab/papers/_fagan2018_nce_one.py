"""NCE(1,1) of Fagan and Iyengar 2018, with one row and one class a step, beside NCE with 100 and 5."""

from collections.abc import Sequence

from xsoftmax.lab.papers._fagan2018_losses import TWICE, least_seconds, loss, named
from xsoftmax.lab.papers._fagan2018_names import IDENTICAL, NCE, NCE_ONE, STAND_IN, at
from xsoftmax.lab.papers._fagan2018_rates import cell, shown, tried
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import agrees, judge_numbers, judge_orders


def claims_of_nce_one(results: Results, page: Page) -> None:
    """Compare the log-losses of both at every rate that both have, and their seconds."""
    one, many = tried(results, NCE_ONE), tried(results, NCE)
    shared = [rate for rate in one if rate in many]
    if not shared:
        return
    twice = [[loss(results, STAND_IN, at(method, rate), TWICE) for method in (NCE_ONE, NCE)] for rate in shared]
    page.claim(
        "NCE with one row and one class a step and NCE with 100 and 5 perform near identically",
        "; ".join(f"at {shown(rate)} {cell(one[rate])} and {cell(many[rate])}" for rate in shared),
        judge_numbers(
            [agrees(many[rate].mean, one[rate], IDENTICAL) for rate in shared],
            f"two log-losses agree within {IDENTICAL:.0%} or two standard errors; reproduced if they do at all "
            "rates, in shape at more than half",
        ),
        f"{named(STAND_IN)} in place of Eurlex, {len(shared)} of seven rates, and normalised once; normalised "
        "twice, as in the paper, where such losses hardly differ, they are "
        + "; ".join(f"{number(one.mean)} and {number(many.mean)}" for one, many in twice)
        + f", of which {sum(agrees(many.mean, one, IDENTICAL) for one, many in twice)} agree by the same rule",
    )
    first, second = (_seconds(results, method, shared) for method in (NCE_ONE, NCE))
    page.claim(
        "NCE with one row and one class a step is slower than with 100 and 5",
        f"microseconds of a row: {number(1e6 * first.mean, digits=2)} and {number(1e6 * second.mean, digits=2)}",
        judge_orders([above(first, second)]),
        f"of each fit its fastest part, a mean over {len(shared)} rates, on which the work does not depend; here a "
        "step is compiled code either way, and a row meets one drawn class with the first and five with the second, "
        "whereas the authors' baselines are TensorFlow programs, in which a step has a price of its own",
    )


def _seconds(results: Results, method: str, rates: Sequence[float]) -> Estimate:
    """Give the seconds of a row, for each seed a mean over rates."""
    times = [map(least_seconds, results.of(STAND_IN, at(method, rate))) for rate in rates]
    return Estimate.of(sum(of_seed) / len(of_seed) for of_seed in zip(*times, strict=False))
