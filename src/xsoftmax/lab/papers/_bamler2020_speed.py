"""The page of bamler2020: how much sooner the proposed method is where its baselines end, and what its tree takes."""

import math
from dataclasses import dataclass

from xsoftmax.lab.papers._bamler2020_names import BASELINES, PROPOSED, baselines, compared, seconds, times, told
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results, first_at, middle
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested, together

# A baseline is taken to have converged where its test accuracy is first within a hundredth of its own best: where it
# is best is up to noise.
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
        Seconds until then; NaN if the proposed method is not there by every seed.
    log_ratio : Estimate
        Decimal logarithm of the quotient, of each seed's own curves; where the proposed method is never there, of the
        largest that it may be.
    log_most : Estimate
        The same of what could be seen at most, if the proposed method were there once its tree is fitted.
    is_never : bool
        Whether the proposed method is there by no seed.
    """

    level: float
    theirs: float
    here: float
    log_ratio: Estimate
    log_most: Estimate
    is_never: bool

    def is_faster(self, ratio: float) -> bool | None:
        """Tell whether the quotient is above a number; None if that is too close to tell."""
        return False if self.is_never else above(self.log_ratio, Estimate.exact(math.log10(ratio)))

    def told(self) -> str:
        """Write the quotient, in words where it is a bound."""
        return f"{'below ' * math.isnan(self.here)}{times(10**self.log_ratio.mean)}"

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
    log_ratio, log_most = (Estimate.of(each[part] for each in found) for part in (3, 4))
    return Race(level, theirs, here, log_ratio, log_most, all(math.isnan(each[2]) for each in found))


def speed(results: Results, page: Page) -> None:
    """Compare the times at which baselines converge with those at which the proposed method is there."""
    page.section(
        "Time to the accuracy of the baselines",
        f"A baseline is taken to have converged where its accuracy on up to 1,000 test rows is first {CONVERGED:.0%} "
        "of its own best; one that still rises when its time ends would reach more, later. The table says when that "
        "is, and when the proposed method is as accurate, its tree's fit included. "
        "Times are interpolated between evaluations, and ratios are geometric means over seeds. A dash: the "
        "proposed method is not there in the given time, by one seed at least, and the ratio is below the one that "
        "is told; if it is there by no seed, it counts as slower than that baseline. A time before the first look, "
        "after 30 s on the data set of Amazon-670K's size and a quarter or half of a second elsewhere, is "
        "interpolated from the start or from the end of the tree's fit, and is rough. The last column is what could "
        "be seen at most, since the fit of the tree comes first.",
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
    ratios = {f"{name}, {label}": each.told() for (name, label), each in races.items()}
    by_data: dict[str, list[Race]] = {}
    for (name, _), each in races.items():
        by_data.setdefault(name, []).append(each)
    page.claim(
        "The proposed method converges faster than all baselines (the next claim is by how much)",
        told(ratios),
        judge_orders([together(each.is_faster(1) for each in some) for some in by_data.values()], "data sets"),
        "on each data set against all its baselines at once; where a baseline converges in less time than the tree's "
        "fit takes, the proposed method cannot be faster; when one has converged is ours to say",
    )
    _order_of_magnitude(page, races)
    _fit_of_the_tree(results, page)


def _order_of_magnitude(page: Page, races: dict[tuple[str, str], Race]) -> None:
    says = (
        "The proposed method converges orders of magnitude faster: the training time is shorter by at least one, "
        f"{FASTER} times, relative to all baselines"
    )
    telling = {f"{name}, {label}": each for (name, label), each in races.items() if each.tells}
    # of which nothing is known, so that "all baselines" cannot be reproduced without them
    nowhere = sorted({label for _, label in races} - {label for (_, label), each in races.items() if each.tells})
    silent = {f"{name}, {label}": each for (name, label), each in races.items() if not each.tells}
    bounds = told({name: f"at most {10**each.log_most.mean:.2g}" for name, each in silent.items()})
    untold = f"could not be seen where the baseline converges before {FASTER} times the fit of the tree: {bounds}"
    if not telling:
        page.claim(says, untold if silent else "–", not_tested("no baseline takes ten times as long as the tree"))
        return
    page.claim(
        says,
        told({name: each.told() for name, each in telling.items()}) + (f"; {untold}" if silent else ""),
        judge_orders(
            [each.is_faster(FASTER) for each in telling.values()] + [None] * len(nowhere),
            f"ratios above {FASTER}"
            + (f" (counted as too close, as no data set could show it: {', '.join(nowhere)})" if nowhere else ""),
        ),
        "the paper trains for hours; here it is seconds or minutes, on data sets most of which are smaller; the "
        "abstract says several baselines, section 5 all",
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
        "The fit of the auxiliary model is a subleading overhead, by which methods with a tree start slightly later: "
        f"at most {SMALL_SHARE:.0%} of training",
        told({name: f"{share.mean:.1%} of the budget" for name, share in shares.items()}),
        judge_orders(
            [above(Estimate.exact(SMALL_SHARE), share) for share in shares.values()], "shares below the level"
        ),
        "the level is ours; budgets here are seconds or minutes, the paper's are hours; the table has what a tree "
        "costs in epochs",
    )
    page.claim(
        "At a node of the tree, Newton ascent converges quickly to machine precision, without a learning rate",
        "–",
        not_tested("fits do not record the steps of Newton's method"),
    )
