"""Say which method won on a data set, by how much, and how sure that is over seeds.

Validation rows choose the winner and the second, by the mean over seeds of the metric that has chosen the weights.
Test rows only tell what the two come to. The standard error of a mean over n seeds is s / sqrt(n), s being the sample
standard deviation; that of the difference of two means is the root of the sum of their squares.
"""

import math
from typing import NamedTuple

import pandas as pd

from xsoftmax.evaluation.metrics import Metric, title_of
from xsoftmax.lab.report.tables import judge_of, number
from xsoftmax.training.folders import DIVERGED

MOST_DIGITS = 6  # after the point
CHANCE = 2  # a margin of fewer standard errors may be one


class Entrant(NamedTuple):
    """What a method comes to on a data set: the judging metric's mean on test rows, over seeds.

    Attributes
    ----------
    method : str
    value : float
    error : float
        Standard error of ``value``; NaN with fewer than two seeds.
    n_seeds : int
    """

    method: str
    value: float
    error: float
    n_seeds: int


class Verdict(NamedTuple):
    """Who won, and what there is to say of it.

    Attributes
    ----------
    method : str
    seed : int
        Of the winner's seeds, the one with the best rows of ``split``.
    sentence : str
        Who won, by how much, with which uncertainty.
    kept : str
        Which epochs' weights the winner kept; empty where that is not known.
    """

    method: str
    seed: int
    sentence: str
    kept: str


def verdict(rows: pd.DataFrame) -> Verdict | None:
    """Judge the fits of one data set; None if none ended well with a value.

    Parameters
    ----------
    rows : DataFrame
        The data set's rows of what `xsoftmax.lab.report.tables.summary` returns.
    """
    judge = judge_of(rows)
    known = [split for split in ("validation", "test") if _values(rows, split, judge).notna().any()]
    if not known:
        return None
    split = known[0]
    rows = rows.assign(judged=judge.sign * _values(rows, split, judge), test=_values(rows, "test", judge))
    order = _order(rows)
    entrants = [_entrant(method, rows) for method in order[:2]]
    own = rows[(rows.method == order[0]) & (rows.status != DIVERGED)]
    seed = int(own.sort_values(["judged", "seed"], ascending=[False, True]).seed.iloc[0])
    return Verdict(order[0], seed, _sentence(entrants, judge, split), _kept(own))


def _values(rows: pd.DataFrame, split: str, judge: Metric) -> pd.Series:
    """Take the judging metric of a split, of the fits that did not diverge."""
    column = f"{split}_{judge.column}"
    values = rows[column].astype(float) if column in rows else pd.Series(math.nan, rows.index)
    return values.where(rows.status != DIVERGED)


def _order(rows: pd.DataFrame) -> list[str]:
    """Order the methods that have a value: those without a diverged seed first, then by the mean over seeds."""
    groups = rows.assign(broken=rows.status == DIVERGED).groupby("method")
    means = groups.agg(broken=("broken", "any"), judged=("judged", "mean")).dropna(subset="judged").reset_index()
    ordered = means.sort_values(["broken", "judged", "method"], ascending=[True, False, True])
    return [str(method) for method in ordered.method]


def _entrant(method: str, rows: pd.DataFrame) -> Entrant:
    values = rows[rows.method == method].test.dropna()
    n = len(values)
    return Entrant(method, values.mean(), values.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan, n)


def _sentence(entrants: list[Entrant], judge: Metric, split: str) -> str:
    first = entrants[0]
    unit = f" {judge.unit}" if judge.unit else ""
    by = "By validation rows, " if split == "validation" else "There are no validation rows; by test rows, "
    said = f"{by}{first.method} wins: test {judge.title} {_written(first, judge)}{unit}"
    if len(entrants) == 1:
        return f"{said}. No other method has a value to compare. {_uncertainty(first.error, [first])}".strip()
    second = entrants[1]
    margin = judge.sign * (first.value - second.value)
    error = math.hypot(first.error, second.error)
    return (
        f"{said}, {_lead(margin, error, judge)} {second.method} ({_written(second, judge)}). "
        f"{_uncertainty(error, entrants)} {_chance(margin, error)}"
    ).strip()


def _written(entrant: Entrant, judge: Metric) -> str:
    return number(entrant.value, entrant.error, _digits(judge, entrant.error))


def _digits(judge: Metric, error: float, margin: float = math.nan) -> int:
    """Give the digits after the point that show one digit of an error, and two of a margin."""
    needed = [
        first - math.floor(math.log10(abs(value))) for first, value in ((0, error), (1, margin)) if abs(value) > 0
    ]
    return min(MOST_DIGITS, max([judge.digits, *needed]))


def _lead(margin: float, error: float, judge: Metric) -> str:
    """Write by how much the winner is ahead on test rows."""
    if margin == 0 or math.isnan(margin):
        return "level with" if margin == 0 else "ahead of"
    return f"{number(abs(margin), error, _digits(judge, error, margin))} {'ahead of' if margin > 0 else 'behind'}"


def _uncertainty(error: float, entrants: list[Entrant]) -> str:
    counts = sorted({entrant.n_seeds for entrant in entrants})
    if math.isnan(error):
        return "With one seed there is no measure of uncertainty."
    return f"± is the standard error over {' and '.join(map(str, counts))} seeds: it says nothing of other test rows."


def _chance(margin: float, error: float) -> str:
    if math.isnan(error) or math.isnan(margin):
        return ""
    if abs(margin) < CHANCE * error:
        return f"The difference is less than {CHANCE} standard errors: the order may be chance."
    return ""


def _kept(rows: pd.DataFrame) -> str:
    """Say which epochs' weights the fits of the winner have, seed by seed."""
    known = rows.dropna(subset="kept_epoch") if "kept_epoch" in rows else rows[:0]
    if known.empty:
        return ""
    kept = [f"{epoch:g}" for epoch in known.kept_epoch.astype(float)]
    trained = ", ".join(sorted({f"{epochs:g}" for epochs in known.epochs.astype(float)}, key=float))
    by = sorted(set(known.kept_by.dropna())) if "kept_by" in known else []
    why = "the last" if by == ["last"] else f"by {title_of(by[0])}" if len(by) == 1 else ""
    which = f"epoch {kept[0]}" if len(set(kept)) == 1 else f"epochs {', '.join(kept)}, a seed each,"
    every = " with every seed" if len(kept) > 1 == len(set(kept)) else ""
    return f"The weights kept are those of {which} of {trained}{every}{f' ({why})' if why else ''}."
