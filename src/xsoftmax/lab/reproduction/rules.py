"""The rules by which claims are judged: each gives a verdict, what it looked at, and what would have changed it.

A page's verdicts come from these rules and from nothing else, and rules do not look at who is claimed to be ahead.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate

# A number is the paper's if it differs by no more, relatively, or by no more than two standard errors.
TOLERANCE = 0.03


class Verdict(StrEnum):
    """How far a claim holds here."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    CLOSE = "too close to tell"
    NOT = "not reproduced"
    OPEN = "not tested here"


@dataclass(frozen=True)
class Finding:
    """What a rule says of a claim.

    Attributes
    ----------
    verdict : Verdict
    rule : str
        The rule, in words.
    n : str
        How much it rests on.
    otherwise : str
        Which outcome would have changed the verdict.
    """

    verdict: Verdict
    rule: str
    n: str
    otherwise: str


NO_RULE = "no rule: there is nothing to judge"
ORDERS = (
    "an order counts where the 95 % interval of the difference leaves out 0; reproduced if all are as claimed, in "
    "shape if more than half are, not reproduced if at least half are reversed, and otherwise too close to tell"
)
NUMBERS = (
    f"a number agrees within {TOLERANCE:.0%}, two standard errors of ours, or the paper's rounding; reproduced if "
    "all agree, in shape if more than half do"
)


def judge_orders(orders: Mapping[str, bool | None] | Collection[bool | None], of: str = "comparisons") -> Finding:
    """Judge several orders: as claimed (True), the other way round (False), or too close to tell (None)."""
    found = list(orders.values() if isinstance(orders, Mapping) else orders)
    n, held, reversed_ = len(found), found.count(True), found.count(False)
    if not n:
        return not_tested("nothing was compared", ORDERS)
    close = n - held - reversed_
    majority, half = n // 2 + 1, -(-n // 2)
    if held == n:
        verdict, otherwise = Verdict.REPRODUCED, "less if any of them were too close or reversed"
    elif reversed_ >= half:
        verdict, otherwise = Verdict.NOT, f"better if {reversed_ - half + 1} fewer were reversed"
    elif held >= majority:
        verdict, otherwise = (
            Verdict.IN_SHAPE,
            f"reproduced if {n - held} more held, less if {held - majority + 1} fewer",
        )
    else:
        verdict = Verdict.CLOSE
        better = "in shape" if majority < n else "reproduced"
        otherwise = (
            f"{better} if {majority - held} more held, not reproduced if {half - reversed_} more were reversed"
        )
    told = f"{n} {of if n > 1 else _singular(of)}: {held} as claimed, {close} too close, {reversed_} reversed"
    return Finding(verdict, ORDERS, told, otherwise)


def _singular(of: str) -> str:
    """Take the s off what comes first: a word, or data sets."""
    return re.sub(r"^(data set|\w+?)s\b", r"\1", of)


def together(orders: Iterable[bool | None]) -> bool | None:
    """Make one order of several that have to hold together, as that of the best to each of the others.

    It is as claimed if all are, reversed if one is, and else, or of none, too close to tell.
    """
    found = list(orders)
    if False in found:
        return False
    return None if None in found or not found else True


def judge_numbers(agree: Collection[bool], rule: str = NUMBERS) -> Finding:
    """Judge several numbers, of each of which it is known whether it agrees with the paper's; see ``agrees``."""
    found = list(agree)
    n, hits = len(found), sum(found)
    if not n:
        return not_tested("there is no number to compare", rule)
    majority = n // 2 + 1
    if hits == n:
        verdict, otherwise = Verdict.REPRODUCED, "less if any of them did not agree"
    elif hits >= majority:
        verdict, otherwise = (
            Verdict.IN_SHAPE,
            f"reproduced if {n - hits} more agreed, not reproduced if {hits - majority + 1} fewer did",
        )
    else:
        better = "in shape" if majority < n else "reproduced"
        verdict, otherwise = Verdict.NOT, f"{better} if {majority - hits} more agreed"
    return Finding(verdict, rule, f"{hits} of {n} numbers agree", otherwise)


def judge_level(
    value: Estimate,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    near: float | None = None,
    of: str = "the value",
    digits: int = 3,
) -> Finding:
    """Judge a value by a level stated beforehand, and perhaps by a second one that is enough for its shape.

    Parameters
    ----------
    value : Estimate
        An exact one has an error of 0; see ``Estimate.exact``. Without a known error nothing can be said.
    at_least, at_most : float
        Either: the level that the value is to reach, or not to pass.
    near : float, optional
        The level for "in shape".
    of : str
        What the value is.
    digits : int
        Digits of the numbers that are told.
    """
    if (at_least is None) == (at_most is None):
        raise ValueError("give either at_least or at_most")
    above = at_least is not None
    limit = at_least if at_least is not None else at_most
    assert limit is not None
    words = "at least" if above else "at most"
    rule = f"reproduced if {of} is {words} {limit:g}"
    rule += f", in shape if {words} {near:g}" if near is not None else ""
    if not math.isfinite(value.mean):
        return not_tested("there is no value", rule)
    if not math.isfinite(value.half_width):
        return not_tested("of one fit the error is not known", rule)
    if value.half_width > 0:
        rule += ", too close if such a level is inside the 95 % interval"

    def reaches(level: float) -> bool | None:
        if abs(value.mean - level) < value.half_width:
            return None
        return value.mean >= level if above else value.mean <= level

    verdict = {True: Verdict.REPRODUCED, False: Verdict.NOT, None: Verdict.CLOSE}[reaches(limit)]
    if verdict is Verdict.NOT and near is not None:
        verdict = {True: Verdict.IN_SHAPE, False: Verdict.NOT, None: Verdict.CLOSE}[reaches(near)]
    interval = f" ± {number(value.half_width, digits=digits)} (95 %)" if value.half_width > 0 else ""
    told = f"{of}: {number(value.mean, digits=digits)}{interval}, n = {value.n}"
    return Finding(verdict, rule, told, _crossing(verdict, limit, near, above))


def _crossing(verdict: Verdict, limit: float, near: float | None, above: bool) -> str:
    over, under = ("at least", "below") if above else ("at most", "above")
    if verdict == Verdict.REPRODUCED:
        return f"less if it were {under} {limit:g}"
    if verdict == Verdict.IN_SHAPE:
        return f"reproduced if it were {over} {limit:g}, not reproduced if {under} {near:g}"
    if verdict == Verdict.CLOSE:
        return "a narrower interval on either side of the level"
    return f"reproduced if it were {over} {limit:g}" if near is None else f"in shape if it were {over} {near:g}"


def not_tested(why: str, rule: str = NO_RULE) -> Finding:
    """Say that a claim could not be tested, and why."""
    return Finding(Verdict.OPEN, rule, f"0: {why}", "any result of such a run")


def agrees(paper: float, estimate: Estimate, tolerance: float = TOLERANCE, decimals: int | None = None) -> bool:
    """Tell whether the paper's number is ours, within the tolerance, two standard errors, or how it is rounded.

    ``decimals`` are those that the paper prints, where few are.
    """
    rounding = 0.0 if decimals is None else 0.5 * 10.0**-decimals
    return abs(estimate.mean - paper) <= max(tolerance * abs(paper), estimate.margin, rounding)
