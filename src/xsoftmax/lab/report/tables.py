"""Tables over fits: one row per fit, one row per recorded epoch, one row per method."""

import html
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from xsoftmax.evaluation import metrics
from xsoftmax.training.folders import DIVERGED, Fit

KEYS = ["dataset", "method", "seed"]
LOSS = "regularized_log_loss"
MEGABYTE = 1e6
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Ranking</title>
<style>
body {{ font: 15px sans-serif; margin: 1em; background: #fff; color: #222 }}
table {{ border-collapse: collapse }}
th, td {{ padding: .3em .7em; border-bottom: 1px solid #ccc; text-align: right }}
td {{ white-space: nowrap }}
th {{ vertical-align: bottom }}
th:nth-child(2), td:nth-child(2), th:last-child, td:last-child {{ text-align: left }}
</style></head>
<body>
{}
</body>
</html>
"""


def summary(fits: Sequence[Fit]) -> pd.DataFrame:
    """Make one row per fit, the data sets in order and the best method of each first.

    The ``rank`` of a method in its data set is by what ``ranking`` ranks by, the mean over the seeds; a method with a
    seed that diverged is ranked behind all that have none, and one with no value has no rank.
    """
    table = pd.DataFrame([_row(fit) for fit in fits]).astype({"diverged_at_step": "Int64"})
    ranks = ranking(table)[["dataset", "method", "rank"]]
    table = table.merge(ranks, on=["dataset", "method"])
    table.insert(2, "rank", table.pop("rank"))
    return table.sort_values(["dataset", "rank", "method", "seed"], na_position="last", ignore_index=True)


def curves(fits: Sequence[Fit], reference: str | None = None) -> pd.DataFrame:
    """Stack the histories of all fits: one row per fit and recorded epoch.

    With a ``reference``, a method, there is a column ``gap``: by how much the log-loss with the L2 penalty, on the
    fixed sample of training rows, is above the least one that the reference has recorded on the same data set.
    """
    stacked = [fit.history.assign(dataset=fit.dataset, method=fit.method, seed=fit.seed) for fit in fits]
    table = pd.concat(stacked, ignore_index=True)
    if reference is not None and LOSS in table:
        best = table[table.method == reference].groupby("dataset")[LOSS].min()
        table["gap"] = table[LOSS] - table.dataset.map(best)
    return table[KEYS + [name for name in table if name not in KEYS]]


def ranking(table: pd.DataFrame) -> pd.DataFrame:
    """Make one row per data set and method, ranked: mean and spread over the seeds.

    The rank is by the test rows' value of the metric that has chosen the weights of all fits of a data set, on
    validation rows; where they differ, it is by the log-likelihood. Where some seeds diverged, the numbers are those
    of the others.

    Parameters
    ----------
    table : DataFrame
        What `summary` returns, or what is read from ``summary.csv``.

    Returns
    -------
    DataFrame
        ``dataset, rank, method, seeds, diverged`` (counts) and, for each number, its mean under its own name
        and its sample standard deviation under ``<name>_sd`` (empty with fewer than two values).
    """
    numbers = [name for name, _, _ in shown(table)]
    table = table.astype(dict.fromkeys(numbers, float)).assign(diverged=table.status == DIVERGED)
    some_ended_well = ~table.groupby(["dataset", "method"]).diverged.transform("all")
    table.loc[table.diverged & some_ended_well, numbers] = math.nan
    groups = table.groupby(["dataset", "method"])
    counts = groups.agg(seeds=("seed", "size"), diverged=("diverged", "sum"), status=("status", _joined))
    ranked = counts.join(_mean_and_spread(groups[numbers])).reset_index()
    judges = {name: judge_of(rows) for name, rows in table.groupby("dataset")}
    ranked["judged"] = [_judged(row, judges[row["dataset"]]) for _, row in ranked.iterrows()]
    order, rising = ["dataset", "diverged", "judged", "method"], [True, True, False, True]
    ranked = ranked.sort_values(order, ascending=rising, na_position="last", ignore_index=True)
    places = ranked.groupby("dataset").cumcount() + 1
    ranked.insert(1, "rank", places.where(ranked.pop("judged").notna()).astype("Int64"))
    return ranked


def judge_of(rows: pd.DataFrame) -> metrics.Metric:
    """Give the metric that has chosen the weights of all fits of a data set, or else the log-likelihood."""
    kept = set(rows.kept_by.dropna()) if "kept_by" in rows else set()
    own = kept.pop().partition("_")[2] if len(kept) == 1 else ""
    found = metrics.known().get(own)
    usable = found is not None and _of_test(found) in rows and rows[_of_test(found)].notna().any()
    return found if found is not None and usable and found.shown else metrics.known()[metrics.JUDGE]


def _judged(row: pd.Series, judge: metrics.Metric) -> float:
    """Give a value that is higher for better test rows."""
    return judge.sign * float(row[_of_test(judge)])


def _of_test(metric: metrics.Metric) -> str:
    """Name a metric's column of test rows."""
    return f"test_{metric.column}"


def _mean_and_spread(groups: DataFrameGroupBy) -> pd.DataFrame:
    """Means under the numbers' own names, sample standard deviations under ``<name>_sd``."""
    return groups.mean().join(groups.std(ddof=1).add_suffix("_sd"))


def training_objectives(table: pd.DataFrame) -> pd.DataFrame:
    """Make one row per data set and method: what it minimised, under its own name, where it ended.

    Parameters
    ----------
    table : DataFrame
        What `summary` returns, or what is read from ``summary.csv``.

    Returns
    -------
    DataFrame
        ``dataset, method, objective_name`` and, of the fits that did not diverge, mean and standard deviation
        of ``training_objective`` and ``train_log_likelihood``; in the order of the name, the lowest first.
    """
    numbers = ["training_objective", "train_log_likelihood"]
    table = table.astype(dict.fromkeys(numbers, float)).fillna({"objective_name": "–"})
    table.loc[table.status == DIVERGED, numbers] = math.nan
    groups = table.groupby(["dataset", "method", "objective_name"])[numbers]
    found = _mean_and_spread(groups).reset_index()
    order = ["dataset", "objective_name", "training_objective", "method"]
    return found.sort_values(order, na_position="last", ignore_index=True)


def markdown_table(table: pd.DataFrame) -> str:
    """Write the ranking as Markdown, one table per data set, for a README.

    Parameters
    ----------
    table : DataFrame
        What `summary` returns, or what is read from ``summary.csv``.
    """
    groups = ranking(table).groupby("dataset", sort=True)
    return "\n".join(_markdown(name, without_empty(group)) for name, group in groups)


def html_page(table: pd.DataFrame) -> str:
    """Write the ranking as a page of HTML that stands alone, one table per data set.

    Parameters
    ----------
    table : DataFrame
        What `summary` returns, or what is read from ``summary.csv``.
    """
    groups = ranking(table).groupby("dataset", sort=True)
    return PAGE.format("\n".join(_html(name, without_empty(group)) for name, group in groups))


def number(mean: float, spread: float = math.nan, digits: int | None = None) -> str:
    """Write a mean with its standard deviation, if there is one; a dash where there is no value.

    Without a number of ``digits`` after the point, it is what gives the mean three significant ones.
    """
    if pd.isna(mean):
        return "–"
    if digits is None:
        digits = 2 if mean == 0 else min(4, max(0, 2 - math.floor(math.log10(abs(mean)))))
    text = f"{mean:,.{digits}f}".replace("-", "−")
    return text if pd.isna(spread) else f"{text} ± {spread:,.{digits}f}"


def cells(row: Any) -> list[str]:
    """Write a row of `ranking` for people: the columns of `headings`."""
    place = "–" if pd.isna(row["rank"]) else str(row["rank"])
    return [place, row["method"], *(cell(row, *column) for column in shown(row)), ended(row)]


def cell(row: Any, name: str, _: str, digits: int | None) -> str:
    """Write one column that is shown, of a fit or of the mean of some."""
    spread = row.get(f"{name}_sd", math.nan)
    counted = name == "kept_epoch" and pd.isna(spread) and float(row[name]).is_integer()  # a look may be within one
    return number(row[name], spread, 0 if counted else digits)


def ended(row: Any) -> str:
    """Say how the fits of a method ended."""
    if row["seeds"] > 1 and 0 < row["diverged"] < row["seeds"]:
        return f"{row['diverged']} of {row['seeds']} diverged"
    return row["status"]


# The first heading says for all metrics that they are of test rows.
MEASURED: tuple[tuple[str, str, int | None], ...] = tuple(
    (f"test_{column}", f"test {metric.heading}" if column == metrics.JUDGE else metric.heading, metric.digits)
    for column, metric in metrics.known().items()
    if metric.shown
)
SHOWN: tuple[tuple[str, str, int | None], ...] = (
    ("kept_epoch", "kept at epoch", None),
    ("seconds", "training (s)", None),
    ("seconds_per_epoch", "s / epoch", None),
    ("peak_memory_mb", "peak memory (MB)", 0),
)
WEIGHT_DISTANCE = ("weight_distance", "distance to the reference", 3)


def shown(table: Any) -> tuple[tuple[str, str, int | None], ...]:
    """Columns shown of a table or of one of its rows: name, heading, digits; older tables may lack some metrics."""
    measured = [column for column in MEASURED if column[0] in table]
    return (*measured, *SHOWN, *([WEIGHT_DISTANCE] if WEIGHT_DISTANCE[0] in table else []))


def without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out metrics that are of one label per row, or of several, where no fit has a value of them."""
    kinds = set(metrics.KINDS)
    some = [f"test_{column}" for column, metric in metrics.known().items() if kinds & set(metric.needs)]
    return table.drop(columns=[column for column in some if column in table and table[column].isna().all()])


def headings(table: Any) -> list[str]:
    """Head the columns of ``cells``."""
    return ["", "method", *(heading for _, heading, _ in shown(table)), "status"]


def _row(fit: Fit) -> dict[str, Any]:
    status = fit.status
    peak = status.get("peak_memory_bytes")
    axes = status.get("parameters", {})
    kept = status.get("kept") or {}
    row = {
        "dataset": fit.dataset,
        "method": fit.method,
        "seed": fit.seed,
        "status": status["status"],
        "diverged_at_step": status.get("step") if fit.diverged else None,
        "epochs": status.get("epoch"),
        "kept_epoch": kept.get("epoch"),
        "kept_by": kept.get("by"),
        "steps": status.get("step"),
        "seconds": status.get("seconds"),
        "setup_seconds": status.get("setup_seconds"),
        "seconds_per_epoch": status.get("seconds_per_epoch"),
        "peak_memory_mb": None if peak is None else round(peak / MEGABYTE, 1),
        "threads": status.get("threads"),
        "n_parameters": status.get("n_parameters"),
    }
    for split in ("test", "validation"):
        measured = dict.fromkeys(metrics.columns()) | fit.metrics.get(split, {})
        row |= {f"{split}_{name}": value for name, value in measured.items() if name != "n_samples"}
    row |= {axis: axes.get(axis, {}).get("name") for axis in ("objective", "proposal", "optimizer")}
    row |= {"objective_name": status.get("objective_name"), "training_objective": _last(fit, "objective")}
    row["train_log_likelihood"] = _last(fit, "train_log_likelihood")
    row |= {name: value for name, value in status.get("data", {}).items() if not isinstance(value, dict)}
    row |= {key: value for key, value in fit.metrics.items() if key == WEIGHT_DISTANCE[0]}
    return row | {"message": status.get("message")}


def _last(fit: Fit, column: str) -> float:
    """Give the last record of a measure on the fixed sample of training rows; NaN where there is none."""
    return float(fit.history[column].iloc[-1]) if column in fit.history and len(fit.history) else math.nan


def _joined(statuses: pd.Series) -> str:
    return ", ".join(sorted(set(statuses)))


def _markdown(dataset: Any, ranked: pd.DataFrame) -> str:
    rows = [cells(row) for _, row in ranked.iterrows()]
    lines = [
        f"**{_escaped(str(dataset))}**",
        "",
        _line(headings(ranked)),
        _line(["--:", "---", *["--:"] * len(shown(ranked)), "---"]),
    ]
    return "\n".join([*lines, *(_line(row) for row in rows), ""])


def _html(dataset: Any, ranked: pd.DataFrame) -> str:
    rows = [headings(ranked), *(cells(row) for _, row in ranked.iterrows())]
    lines = ["".join(f"<td>{html.escape(text)}</td>" for text in texts) for texts in rows]
    heading, *others = [f"<tr>{line}</tr>" for line in lines]
    body = "\n".join([heading.replace("td>", "th>"), *others])
    return f"<h2>{html.escape(str(dataset))}</h2>\n<table>\n{body}\n</table>"


def _line(texts: list[str]) -> str:
    return "| " + " | ".join(map(_escaped, texts)) + " |"


def _escaped(text: str) -> str:
    """Write a text so that it is neither HTML nor the end of a cell."""
    return html.escape(text, quote=False).replace("|", "\\|")
