"""What holds of every metric, found by its file; and the values of ours, against slow formulas."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import naive
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.metrics import JUDGE, Metric, RowScores
from xsoftmax.evaluation.reliability import BINS
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError

K = 12
METRICS = metrics.known()
NAIVE = {
    "log_likelihood": lambda rows: sum(rows.log_likelihood) / len(rows.rank),
    "accuracy": lambda rows: naive.top_k_accuracy(1, rows.rank),
    **{f"top_{k}_accuracy": lambda rows, k=k: naive.top_k_accuracy(k, rows.rank) for k in (3, 5)},
    "expected_calibration_error": lambda rows: naive.bins_of_confidence(rows.confidence, rows.rank == 0, BINS)[1],
}


N_LABELS = 5  # of each row: the most of which all can be among the first 5


def scored(s, y):
    """All that may be known of rows, from their scores of all classes: of one label each, or of five."""
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    ranks = np.array([naive.rank(row, k) for row, k in zip(s, y, strict=True)], int)
    with np.errstate(divide="ignore"):
        likelihoods = np.log(p[np.arange(len(y)), y])
    of_class, counts = np.argsort(-s, axis=1, kind="stable").argsort(axis=1), np.bincount(y, minlength=K) + 1
    classes = np.sort((y[:, None] + np.arange(N_LABELS)) % K, axis=1)
    labels = LabelSets(N_LABELS * np.arange(len(y) + 1), classes.ravel().astype(np.int32))
    label_ranks = np.take_along_axis(of_class, classes, axis=1).ravel()
    known = {"class_counts": counts, "n_train": int(counts.sum()), "propensity": (0.55, 1.5)}
    return RowScores(
        likelihoods, ranks, p.max(axis=1, initial=0), y, label_sets=labels, label_ranks=label_ranks, **known
    )


def some_rows(seed=0, n_samples=101):
    rng = np.random.default_rng(seed)
    return scored(2 * rng.standard_normal((n_samples, K)), rng.integers(K, size=n_samples))


def perfect():
    y = np.arange(60) % K
    near = (np.arange(K) - y[:, None]) % K  # a row's labels are its class and the next four
    return scored(np.where(near < N_LABELS, 1e4 - 1e2 * near, 0.0), y)


def of_kind(rows, column):
    """The rows as rows with one label each, if the metric is of such."""
    return replace(rows, label_sets=None) if "one_label" in METRICS[column].needs else rows


@pytest.mark.parametrize("column", METRICS)
def test_values_lie_in_their_range_and_nothing_beats_perfect_predictions(column):
    metric = METRICS[column]
    best = metric.of(of_kind(perfect(), column))
    assert best == pytest.approx(metric.greatest if metric.higher_is_better else metric.least, abs=1e-12)
    for seed in range(20):
        value = metric.of(of_kind(some_rows(seed, 1 + 7 * seed), column))
        assert type(value) is float
        if np.isnan(value):  # a single row may have no label of a third of all
            assert column.partition("_")[0] in ("head", "torso", "tail")
            continue
        assert metric.least <= value <= metric.greatest
        assert metric.sign * value <= metric.sign * best


@pytest.mark.parametrize("column", METRICS)
def test_without_rows_there_is_no_value(column):
    assert np.isnan(METRICS[column].of(of_kind(some_rows(n_samples=0), column)))


@pytest.mark.parametrize("column", METRICS)
def test_a_metric_looks_at_what_it_needs_and_nothing_else(column):
    rows, needs = of_kind(some_rows(), column), set(METRICS[column].needs)
    needed = RowScores(**{name: getattr(rows, name) if name in needs else None for name in metrics.NEEDS})
    assert METRICS[column].measure(needed) == METRICS[column].of(rows)


@pytest.mark.parametrize("column", METRICS)
def test_a_column_has_a_name_that_files_and_people_read(column):
    assert column == METRICS[column].column
    assert column.isidentifier()
    assert column.islower()
    assert metrics.title_of(f"validation_{column}") == f"validation {METRICS[column].title}"


@pytest.mark.parametrize("column", NAIVE)
def test_values_are_those_of_slow_formulas(column):
    for seed in range(5):
        rows = of_kind(some_rows(seed), column)
        assert METRICS[column].of(rows) == pytest.approx(NAIVE[column](rows), rel=1e-12)


def test_accuracies_of_a_few_ranks():
    rows = RowScores(np.zeros(7), np.array([0, 1, 2, 3, 4, 5, 0]), np.ones(7))
    found = metrics.measure(rows, "fit")
    columns = ("accuracy", "top_3_accuracy", "top_5_accuracy")
    assert [found[name] for name in columns] == pytest.approx([2 / 7, 4 / 7, 6 / 7])
    assert np.isnan(found["p_at_3"])  # with one label per row it would be a third of the top-3 accuracy


def test_the_judge_is_the_first_and_no_old_name_is_gone():
    assert metrics.columns()[0] == metrics.columns("fit")[0] == JUDGE
    assert {"log_likelihood", "accuracy", "p_at_1", "p_at_3", "p_at_5"} <= set(metrics.columns("fit"))
    assert {"top_3_accuracy", "ndcg_at_5", "psp_at_5", "recall_at_5"} <= set(metrics.columns("fit"))
    assert set(metrics.columns()) - set(metrics.columns("fit")) >= {"expected_calibration_error"}


def weighted(needs, **others):
    return Metric("weighted", "weighted", needs, lambda rows: rows.class_counts.sum(), 0, 1, **others)


@pytest.mark.parametrize("need", ["classes", "class_counts", "label_sets"])
def test_what_is_not_known_of_rows_is_named_with_who_needs_it(need, monkeypatch):
    few, metric = RowScores(np.zeros(2), np.zeros(2, int), np.ones(2)), weighted(["rank", need])
    with pytest.raises(InputError, match=f"metric weighted needs {need}: .*; take another metric"):
        metric.of(few)
    monkeypatch.setattr(metrics, "known", lambda: METRICS | {"weighted": metric})
    found = metrics.measure(few, "fit")
    assert np.isnan(found["weighted"])
    assert {name: value for name, value in found.items() if not np.isnan(value)} == {
        "log_likelihood": 0, "accuracy": 1, "top_3_accuracy": 1, "top_5_accuracy": 1
    }  # fmt: skip


def test_what_no_fit_measures_is_no_judge():
    with pytest.raises(InputError, match="calibration_error is measured by `evaluate` alone; take one of log_like"):
        metrics.judge_of_split("validation_expected_calibration_error")
    with pytest.raises(InputError, match=r"unknown metric 'acuracy'; known: .*did you mean 'accuracy'"):
        metrics.judge_of("acuracy")
    for column in ("accuracy", "objective", "final_accuracy"):
        with pytest.raises(InputError, match=f"unknown column '{column}'; known: validation_log_likelihood, "):
            metrics.judge_of_split(column)
    assert {"validation_accuracy", "train_log_likelihood", "validation_psp_at_3", "objective"} <= set(
        metrics.judging_columns()
    )
    assert not {column for column in metrics.judging_columns() if column.startswith("test")}


def test_what_data_have_no_value_of_is_said_with_the_reason():
    assert metrics.why_empty("p_at_3") == " (p_at_3 needs label_ranks: rows have one label each)"
    assert metrics.why_empty("top_3_accuracy") == " (top_3_accuracy needs one_label: rows have several labels)"
    assert metrics.why_empty("accuracy") == ""


def test_a_metric_that_cannot_be_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"metric weighted needs 'ranks'; known: .*did you mean 'rank'"):
        weighted(["ranks"])
    with pytest.raises(InputError, match="metric weighted: at is 'never'; set it to fit or end"):
        weighted(["rank"], at="never")
    metrics.known.cache_clear()
    monkeypatch.setattr(registry, "names", lambda package: ["accuracy", "accuracy"])
    with pytest.raises(InputError, match="two metrics have the column accuracy; rename that of accuracy"):
        metrics.known()


def test_columns_and_directions_are_read_without_numba():
    program = (
        "import sys; from xsoftmax.evaluation import metrics; metrics.known();"
        "print(*{'numba', 'scipy', 'pandas', 'h5py'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "\n"
