"""The page of bamler2020: how much sooner the proposed method is where its baselines end, and what its tree takes."""

import math
from dataclasses import dataclass

from xsoftmax.lab.papers._bamler2020_names import BASELINES, PROPOSED, baselines, compared, seconds, told
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results, first_at, middle
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested

# A baseline has converged where its test accuracy is first within a hundredth of its own best: where it is best is up
# to noise.
CONVERGED = 0.99
# "An order of magnitude".
FASTER = 10
# "Slightly shifted": the fit of the tree is at most this share of training.
SMALL_SHARE = 0.1


@dataclass(frozen=True)
class Race:
    """How soon the proposed method is where a baseline has converged.

    Attributes
    ----------
    level : float
        Accuracy at which the baseline has converged: the mean over seeds, as of all that follows.
    theirs, here : float
        Seconds until then; NaN if the proposed method is never there.
    log_ratio : Estimate
        Decimal logarithm of the quotient, of each seed's own curves; where the proposed method is never there, of the
        largest that it may be.
    log_most : Estimate
        The same of what could be seen at most, if the proposed method were there once its tree is fitted.
    """

    level: float
    theirs: float
    here: float
    log_ratio: Estimate
    log_most: Estimate

    @property
    def tells(self) -> bool:
        """Whether an order of magnitude could be seen."""
        return self.log_most.mean >= math.log10(FASTER)


def race(results: Results, dataset: str, baseline: str) -> Race | None:
    """Compare the curves of each seed; None where there are none, or the baseline has learned nothing."""
    proposed = {fit.seed: fit for fit in results.of(dataset, PROPOSED) if not fit.diverged}
    found = []
    for fit in results.of(dataset, baseline):
        if fit.diverged or fit.seed not in proposed:
            continue
        mine = proposed[fit.seed]
        level = CONVERGED * float(fit.history["test_accuracy"].max())
        theirs = first_at(fit.history, "test_accuracy", level)
        here = first_at(mine.history, "test_accuracy", level)
        if level > 0 and theirs > 0:
            setup, end = float(mine.status["setup_seconds"]), float(mine.history["seconds"].iloc[-1])
            found.append((level, theirs, here, math.log10(theirs / (end if math.isnan(here) else here)),
                          math.log10(theirs / setup)))  # fmt: skip
    if not found:
        return None
    level, theirs, here = (math.fsum(each[part] for each in found) / len(found) for part in range(3))
    return Race(level, theirs, here, *(Estimate.of(each[part] for each in found) for part in (3, 4)))


def speed(results: Results, page: Page) -> None:
    """Compare the times at which baselines converge with those at which the proposed method is there."""
    page.section(
        "Time to the accuracy of the baselines",
        f"A baseline has converged where its accuracy on up to 1,000 test rows is first {CONVERGED:.0%} of its own "
        "best. The table says when that is, and when the proposed method is as accurate, its tree's fit included. "
        "Times are interpolated between evaluations, and ratios are geometric means over seeds. A dash: the "
        "proposed method is not there in the given time, by one seed at least, and the ratio is below the one that "
        "is told. The last column is what could be seen at most, since the fit of the tree comes first.",
    )
    races = {
        (name, BASELINES[method]): found
        for key, name in compared(results).items()
        for method in baselines(results, key)
        if (found := race(results, key, method)) is not None
    }
    rows = [
        [
            f"{name}, {label}",
            *(number(value, digits=3) for value in (each.level, each.theirs, each.here)),
            *(number(10**log.mean, digits=2) for log in (each.log_ratio, each.log_most)),
        ]
        for (name, label), each in races.items()
    ]
    page.table(["", "accuracy", "reached after (s)", "adversarial (s)", "times faster", "at most"], rows)
    ratios = {f"{name}, {label}": f"{10**each.log_ratio.mean:.2g} times" for (name, label), each in races.items()}
    page.claim(
        "The proposed method converges faster than all baselines",
        told(ratios),
        judge_orders([above(each.log_ratio, Estimate.exact(0)) for each in races.values()], "ratios above 1"),
        "a baseline that has converged after a few epochs has done so before a tree is fitted",
    )
    _order_of_magnitude(page, races)
    _fit_of_the_tree(results, page)


def _order_of_magnitude(page: Page, races: dict[tuple[str, str], Race]) -> None:
    says = (
        f"The training time is shorter by at least an order of magnitude, {FASTER} times, relative to all baselines"
    )
    telling = {f"{name}, {label}": each for (name, label), each in races.items() if each.tells}
    silent = {f"{name}, {label}": each for (name, label), each in races.items() if not each.tells}
    bounds = told({name: f"at most {10**each.log_most.mean:.2g}" for name, each in silent.items()})
    untold = f"could not be seen where the baseline converges before {FASTER} times the fit of the tree: {bounds}"
    if not telling:
        page.claim(says, untold if silent else "–", not_tested("no baseline takes ten times as long as the tree"))
        return
    page.claim(
        says,
        told({name: f"{10**each.log_ratio.mean:.2g} times" for name, each in telling.items()})
        + (f"; {untold}" if silent else ""),
        judge_orders(
            [above(each.log_ratio, Estimate.exact(math.log10(FASTER))) for each in telling.values()],
            f"ratios above {FASTER}",
        ),
        "these data sets have fewer rows than the paper's, and most of them fewer classes",
    )


def _fit_of_the_tree(results: Results, page: Page) -> None:
    page.section("The fit of the tree", "Seconds before the first step, part of every budget.")
    rows, shares = [], {}
    for key, name in compared(results).items():
        setup = middle(results.values(key, PROPOSED, "fit.setup_seconds"))
        epoch = middle(results.values(key, PROPOSED, "fit.seconds_per_epoch"))
        whole = seconds(results, key, PROPOSED)
        of_seeds = (results.values(key, PROPOSED, f"fit.{part}") for part in ("setup_seconds", "seconds"))
        shares[name] = Estimate.of(a / b if a is not None and b else None for a, b in zip(*of_seeds, strict=True))
        rows.append([name, *(number(value, digits=3) for value in (setup, epoch, setup / epoch, whole))])
    page.table(["data set", "tree (s)", "an epoch (s)", "epochs that it costs", "budget (s)"], rows)
    page.claim(
        f"Methods with a tree start slightly later: its fit is at most {SMALL_SHARE:.0%} of training",
        told({name: f"{share.mean:.1%} of the budget" for name, share in shares.items()}),
        judge_orders(
            [above(Estimate.exact(SMALL_SHARE), share) for share in shares.values()], "shares below the level"
        ),
        "budgets here are seconds or minutes, the paper's are hours, and a tree costs as much as a few epochs",
    )
