"""What is measured of rows whose classes are known; one file each.

A file holds ``MEMBERS``, its metrics, one for each column. Evaluations of a fit, the verb ``evaluate``, tables,
reports, tracking, early stopping and searches find them here. Files import nothing heavy: the Snakefile reads them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.fingerprint import modules_below

# The column that judges weights and trials if no other is named; it is the first one in tables.
JUDGE = "log_likelihood"
# The column of what a method minimises, its penalty included: no metric of rows, but it may choose a trial.
OBJECTIVE = "objective"
# What stands before a metric's column in files of several splits.
SPLITS = ("train", "validation", "test")
WHEN = ("fit", "end")
# What may be unknown of rows, and why.
UNKNOWN = {
    "log_likelihood": "the scores of all classes are not given",
    "confidence": "the scores of all classes are not given",
    "classes": "the class of each row is not given",
    "class_counts": "the training rows of each class are not given, as a prepared data set does",
    "label_sets": "rows have one label each",
    "label_ranks": "rows have one label each",
    "n_train": "the number of training rows is not given, as a prepared data set does",
    "propensity": "the constants of propensities are not given, as a prepared data set does",
    "one_label": "rows have several labels",
}
# Needs that tell data of several labels per row from others.
KINDS = ("label_sets", "label_ranks", "one_label")
# What depends on metrics depends on these, too: they are loaded by name.
MODULES = modules_below(__name__)


@dataclass(frozen=True)
class RowScores:
    """What is known of rows once all their scores were seen: a metric names those that it needs.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_samples,), float64, or None
        log p(y | x), in nats; with several labels its mean over them.
    rank : ndarray of shape (n_samples,), int64
        Classes that score no lower than the true one: 0 is a hit. Ties, and NaN, count against the model. With
        several labels it is the lowest of theirs.
    confidence : ndarray of shape (n_samples,), float64, or None
        Probability of the class that scores highest; NaN where it was not asked for.
    classes : ndarray of shape (n_samples,), int32, or None
        The true class of each row.
    class_counts : ndarray of shape (n_classes,), int64, or None
        Training rows of each class.
    label_sets : LabelSets or None
        All labels of each row, where rows have several.
    label_ranks : ndarray of shape (n_labels,), int64, or None
        Classes that come before each label of ``label_sets``, other labels of the row among them: below k, the label
        is one of the row's k best. Ties with other classes, and NaN, count against the model.
    n_train : int or None
        Number of training rows.
    propensity : tuple of float and float, or None
        A and B of Jain et al. 2016.
    """

    log_likelihood: Any
    rank: np.ndarray
    confidence: Any
    classes: Any = None
    class_counts: Any = None
    label_sets: Any = None
    label_ranks: Any = None
    n_train: Any = None
    propensity: Any = None

    @property
    def one_label(self) -> bool | None:
        """True where rows have one label each; None where they may have several."""
        return True if self.label_sets is None else None


NEEDS = tuple(field.name for field in fields(RowScores))


@dataclass(frozen=True)
class Metric:
    """One column, and how it is measured.

    Attributes
    ----------
    column : str
        Its name in files, behind the name of a split: the ``accuracy`` of ``validation_accuracy``.
    title : str
        Its name in tables.
    needs : sequence of str
        The fields of ``RowScores`` that it takes; ``one_label`` if it is one of rows with one label each.
    measure : callable
        Gives the value of a ``RowScores`` of one row or more.
    least, greatest : float
        Between which its values lie.
    higher_is_better : bool
        Otherwise lower is.
    unit : str
    digits : int
        Behind the point, in tables.
    at : {"fit", "end"}
        Whether every evaluation of a fit can afford it (``history.csv``), or `evaluate` alone (``metrics.json``).
    shown : bool
        Whether tables have it.
    """

    column: str
    title: str
    needs: Sequence[str]
    measure: Callable[[RowScores], float]
    least: float
    greatest: float
    higher_is_better: bool = True
    unit: str = ""
    digits: int = 3
    at: str = "fit"
    shown: bool = True

    def __post_init__(self) -> None:
        for need in self.needs:
            if need not in (*NEEDS, "one_label"):
                raise InputError(f"metric {self.column} needs {need!r}; {suggestion(need, NEEDS)}")
        if self.at not in WHEN:
            raise InputError(f"metric {self.column}: at is {self.at!r}; set it to {' or '.join(WHEN)}")

    @property
    def sign(self) -> int:
        """What makes a higher value the better one when values are multiplied by it."""
        return 1 if self.higher_is_better else -1

    @property
    def heading(self) -> str:
        """The title, with the unit if there is one."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def lacks(self, rows: RowScores) -> list[str]:
        """Name what it needs and these rows do not have."""
        return [need for need in self.needs if getattr(rows, need) is None]

    def suits(self, rows: RowScores) -> bool:
        """Tell whether it is one of rows with so many labels each: one, or several."""
        return not set(self.lacks(rows)) & set(KINDS)

    def of(self, rows: RowScores) -> float:
        """Measure rows; NaN if there are none.

        Raises
        ------
        InputError
            If it needs what is not known of them.
        """
        for need in self.lacks(rows):
            raise InputError(f"metric {self.column} needs {need}: {UNKNOWN[need]}; take another metric")
        return float(self.measure(rows)) if rows.rank.size else float("nan")


@cache
def known() -> dict[str, Metric]:
    """Give all metrics by their columns: ``JUDGE`` first, the others in the order of their files.

    Raises
    ------
    InputError
        If two have one column.
    """
    found: dict[str, Metric] = {}
    for name in registry.names(__name__):
        for metric in registry.load(__name__, name).MEMBERS:
            if metric.column in found:
                raise InputError(f"two metrics have the column {metric.column}; rename that of {name}")
            found[metric.column] = metric
    return {JUDGE: found[JUDGE], **found}


def columns(at: str = "end") -> list[str]:
    """Name the columns that every evaluation of a fit has (``at="fit"``), or all of them."""
    return [column for column, metric in known().items() if at in ("end", metric.at)]


def needs(at: str, one_label: bool = False) -> set[str]:
    """Name all that the metrics of ``columns`` need, without those of several labels if rows have one each."""
    chosen = [known()[column].needs for column in columns(at)]
    return {need for of_metric in chosen for need in of_metric if not (one_label and "label_sets" in of_metric)}


def measure(rows: RowScores, at: str) -> dict[str, float]:
    """Measure rows, by column; NaN where there are no rows, or a metric needs what is not known of them."""
    found = {column: known()[column] for column in columns(at)}
    return {column: np.nan if metric.lacks(rows) else metric.of(rows) for column, metric in found.items()}


def judge_of(column: str) -> Metric:
    """Give the metric that is to judge the weights of a fit.

    Raises
    ------
    InputError
        If there is none of this column, or a fit does not measure it.
    """
    if column not in known():
        raise InputError(f"unknown metric {column!r}; {suggestion(column, columns('fit'))}")
    metric = known()[column]
    if metric.at != "fit":
        raise InputError(f"metric {column} is measured by `evaluate` alone; take one of {', '.join(columns('fit'))}")
    return metric


def why_empty(column: str) -> str:
    """Say, in brackets, which data have no value of a metric: those of the other kind of labels; else nothing."""
    needs = known()[column].needs if column in known() else ()
    return next((f" ({column} needs {need}: {UNKNOWN[need]})" for need in KINDS if need in needs), "")


def judging_columns() -> list[str]:
    """Name the columns of ``history.csv`` that may choose a trial: those of test rows may not."""
    return [*(f"{split}_{column}" for split in ("validation", "train") for column in columns("fit")), OBJECTIVE]


def sign_of(column: str) -> int:
    """Give what makes more the better of a column that may choose a trial: see ``judging_columns``."""
    return -1 if column == OBJECTIVE else judge_of_split(column).sign


def judge_of_split(column: str) -> Metric:
    """Give the metric of a column such as ``validation_accuracy``; it is refused as by ``judge_of``."""
    split, _, own = column.partition("_")
    if split not in SPLITS or own not in known():
        raise InputError(f"unknown column {column!r}; {suggestion(column, judging_columns())}")
    return judge_of(own)


def title_of(column: str) -> str:
    """Name a column such as ``validation_accuracy`` for people: "validation accuracy"."""
    split, _, own = column.partition("_")
    return f"{split} {known()[own].title}" if own in known() else column.replace("_", " ")
