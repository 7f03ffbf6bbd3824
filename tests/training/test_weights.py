"""Rows that count differently: visited as often as their weights say, by every method alike."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from training.interruptions import KillAfter, KilledError
from training.problems import method
from xsoftmax.data.dataset import ArrayDataset, Dataset, Split
from xsoftmax.internal.errors import InputError
from xsoftmax.training.epoch_sampler import ShuffledSampler, resampled
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

K, D, N = 4, 6, 120
SGD = {"name": "sgd", "learning_rate": 0.5}


def rows(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, N)
    return (rng.normal(0, 1, (N, D)) + np.eye(K, D)[y]).astype(np.float32), y, rng.integers(0, 4, N)


def test_rows_come_as_often_as_their_weights_say():
    weight, rng = np.array([0, 1, 0.25, 7, 3.6, 0.15], np.float32), np.random.default_rng(0)
    expected = 6 * weight / weight.sum()
    counts = np.array([np.bincount(resampled(weight, rng), minlength=6) for _ in range(4000)])
    assert (counts.sum(axis=1) == 6).all()
    assert (np.floor(expected) <= counts).all()
    assert (counts <= np.ceil(expected)).all()
    error = counts.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(counts.mean(axis=0) - expected) <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("weight", [np.ones(5), np.full(5, 0.1), np.array([2, 0, 1, 1, 1])])
def test_whole_numbers_of_visits_are_exact(weight):
    for epoch in range(50):
        order = ShuffledSampler(5, 3, weight.astype(np.float32)).samples(epoch, 0, 5)
        assert np.bincount(order, minlength=5).tolist() == (weight * 5 / weight.sum()).round().astype(int).tolist()


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("objective", "proposal"), [("softmax", {"name": "all", "batch_size": 8}), ("one-vs-each", "uniform")]
)
def test_a_fit_ends_where_one_of_repeated_rows_ends(objective, proposal, storage):
    """By decreasing steps, with an L2 penalty: both come to the optimum of the same weighted loss."""
    X, y, weight = rows()
    schedule, l2 = {"name": "power", "scale": 2000, "exponent": 1.0}, 1.0
    plan, chosen = Plan(epochs=300), method(objective, proposal, SGD, schedule=schedule, decay=l2, average="half")
    again = np.repeat(np.arange(N), weight)
    weighted = Dataset.from_arrays(storage(X), y, sample_weight=weight)
    repeated = Dataset.from_arrays(storage(X[again]), y[again])
    plain = Dataset.from_arrays(storage(X), y)
    found, wanted, other = (fit(each, chosen, 0, plan).model.rows for each in (weighted, repeated, plain))
    assert np.abs(found - wanted).max() < 0.3 * np.abs(other - wanted).max()


def test_rows_of_weight_zero_are_not_trained_on():
    X, y, weight = rows()
    others = X.copy()
    others[weight == 0] = -9
    chosen, plan = method("softmax", {"name": "all", "batch_size": 8}, SGD), Plan(epochs=2, keep="last")
    found, same = (fit(Dataset.from_arrays(each, y, sample_weight=weight), chosen, 0, plan).model.rows
                   for each in (X, others))  # fmt: skip
    assert (weight == 0).any()
    assert np.array_equal(found, same)


def test_a_killed_fit_goes_on_with_the_same_visits(tmp_path):
    X, y, weight = rows()
    data = Dataset.from_arrays(X, y, sample_weight=weight)
    chosen = method("one-vs-each", "uniform", "adagrad")
    whole = fit(data, chosen, 0, Plan(epochs=5))
    plan = Plan(epochs=5, checkpoint=tmp_path / "checkpoint.h5", checkpoint_seconds=0)
    with pytest.raises(KilledError):
        fit(data, chosen, 0, plan, callbacks=[KillAfter(3)])
    assert np.array_equal(fit(data, chosen, 0, plan).model.rows, whole.model.rows)
    assert not np.array_equal(fit(Dataset.from_arrays(X, y), chosen, 0, Plan(epochs=5)).model.rows, whole.model.rows)


def test_weights_of_rows_that_are_measured_are_refused():
    X, y, weight = rows()
    split = Split(X, y.astype(np.int32), weight.astype(np.float32))
    data = ArrayDataset("here", {"train": split, "validation": split, "test": split}, np.arange(K))
    with pytest.raises(InputError, match="here: test and validation rows have weights, and metrics count rows alike"):
        fit(data, method("softmax", "all", SGD), 0, Plan(epochs=1))
