"""What an evaluation along a fit measures of rows with several labels."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.data.dataset import ArrayDataset, Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model
from xsoftmax.training.callbacks.judge import Judge
from xsoftmax.training.epoch_sampler import ShuffledSampler
from xsoftmax.training.evaluator import Evaluator

K = 7
METHOD = SimpleNamespace(l2=0.0, calibration="none", proposal=SimpleNamespace(finds=False), positives="mean")
OBJECTIVE = SimpleNamespace(sums_exponentials=True)


def split_of(n, seed, sparse, several):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)).astype(np.float32)
    y = rng.integers(K, size=n).astype(np.int32)
    pairs = np.tile(np.arange(n), 3), np.concatenate([y, *rng.integers(0, K, (2, n))])
    return Split(csr_array(X) if sparse else X, y, None, LabelSets.of_pairs(*pairs, n) if several else None)


def evaluated(sparse, several, propensity=None):
    """The row of a history of a model of random weights, the data, and the model."""
    sizes = {"train": 90, "validation": 30, "test": 40}
    splits = {name: split_of(n, seed, sparse, several) for seed, (name, n) in enumerate(sizes.items())}
    data = ArrayDataset("some", splits, np.arange(K))
    if propensity:
        data.propensity = propensity
    W = np.random.default_rng(9).standard_normal((K, 5)).astype(np.float32)
    model = Model.of_rows(W, data.class_names, 4)
    evaluator = Evaluator(data, splits["train"], OBJECTIVE, None, METHOD, ThreadPool())
    return evaluator.evaluate(model, np.zeros(0)), data, model


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("propensity", [None, (0.5, 0.4)])
def test_all_labels_of_all_splits_count(sparse, propensity):
    row, data, model = evaluated(sparse, True, propensity)
    for name in ("validation", "test"):
        split = data.split(name)
        scores = score_rows(model, split.X, split.y, label_sets=split.label_sets)
        starts, ranks = split.label_sets.starts, scores.label_ranks
        hits = [(ranks[a:b] < 3).sum() / 3 for a, b in pairwise(starts)]
        assert row[f"{name}_p_at_3"] == pytest.approx(np.mean(hits))
        assert row[f"{name}_log_likelihood"] == pytest.approx(scores.log_likelihood.mean(), rel=1e-6)
        a, b = propensity or (0.55, 1.5)
        weight = 1 + (np.log(90) - 1) * (b + 1) ** a * (data.class_counts + b) ** -a
        got = weight[split.label_sets.classes][ranks < 1].sum()
        most = sum(weight[split.label_sets.of_rows(np.array([i])).classes].max() for i in range(split.n_samples))
        assert row[f"{name}_psp_at_1"] == pytest.approx(got / most)
    assert np.isfinite(row["train_recall_at_5"])
    assert row["objective"] == pytest.approx(-row["train_log_likelihood"])
    assert not np.isnan(list(row.values())).any()
    without = {"top_3_accuracy", "top_5_accuracy"}
    assert {name.partition("_")[2] for name in row if name.startswith("train_")} == {
        *metrics.columns("fit")
    } - without


@pytest.mark.parametrize(
    ("several", "column", "why"),
    [
        (False, "validation_psp_at_3", "psp_at_3 needs label_sets: rows have one label each"),
        (True, "validation_top_3_accuracy", "top_3_accuracy needs one_label: rows have several labels"),
    ],
)
def test_what_data_have_no_value_of_cannot_judge_and_what_they_have_can(several, column, why):
    row, _, _ = evaluated(False, several)
    fit = SimpleNamespace(state=SimpleNamespace(status="running", best=-np.inf, best_epoch=0.0, without_gain=0))
    with pytest.raises(InputError, match=f"{column} is nan, which cannot judge weights .{why}.; take another --by"):
        Judge(column).evaluated(fit, row)
    other = "validation_top_3_accuracy" if "psp" in column else "validation_psp_at_3"
    Judge(other).evaluated(fit, row | {"epoch": 1.0})
    assert fit.state.best == row[other]


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_filtered_is_no_hit_along_a_fit_either(sparse):
    plain, data, model = evaluated(sparse, True)
    split, everything = data.split("test"), LabelSets(7 * np.arange(41), np.tile(np.arange(K, dtype=np.int32), 40))
    data._splits["test"] = replace(split, filtered=everything)
    evaluator = Evaluator(data, data.split("train"), OBJECTIVE, None, METHOD, ThreadPool())
    row = evaluator.evaluate(model, np.zeros(0))
    assert row["test_recall_at_5"] == row["test_accuracy"] == 0
    assert row["validation_recall_at_5"] == plain["validation_recall_at_5"] > 0
    assert row["test_log_likelihood"] == plain["test_log_likelihood"]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("epoch", [0, 1])
def test_training_rows_that_are_looked_at_are_not_those_that_come_first(seed, epoch):
    """Before an epoch ends, weights know rows that have come better than others."""
    n, n_searched = 5000, 100
    splits = {name: split_of(n, 0, False, False) for name in ("train", "validation", "test")}
    searching = SimpleNamespace(**{**vars(METHOD), "proposal": SimpleNamespace(finds=True)})
    evaluator = Evaluator(
        ArrayDataset("some", splits, np.arange(K)), splits["train"], OBJECTIVE, None, searching, ThreadPool()
    )
    first = ShuffledSampler(n, seed).samples(epoch, 0, n_searched)
    assert len(evaluator.searched) == n_searched
    assert np.intersect1d(first, evaluator.searched).size < n_searched / 10  # 2 of 100 are expected
