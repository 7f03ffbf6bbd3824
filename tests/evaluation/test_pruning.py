"""Magnitude pruning, conversions between sparse and dense, and what a pruned model still does."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from training.problems import D, K, method, rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.evaluation.calibration import fit_calibration
from xsoftmax.evaluation.likelihood import evaluate, score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.pruning import pruned
from xsoftmax.internal.text import pruning_in_words
from xsoftmax.model import Model, load_model, save_model
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.training.record import write_fit


def dataset(n_validation=150):
    X, y = rows(600)
    X = csr_array(X.astype(np.float32) * (np.random.default_rng(5).random(X.shape) < 0.5))
    kept = (X[400 : 400 + n_validation], y[400 : 400 + n_validation])
    return Dataset.from_arrays(X[:400], y[:400], classes=range(K), validation=kept, test=(X[550:], y[550:]))


def model_of(W):
    return Model(np.asarray(W, np.float32), [str(k) for k in range(len(W))], len(W[0]), np.ones(len(W), np.float32))


def test_sparse_and_dense_are_one_call_apart():
    model = model_of([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.5]])
    sparse = model.to_sparse()
    assert issparse(sparse.W)
    assert sparse.W.nnz == 3
    assert np.array_equal(sparse.to_dense().W, model.W)
    assert np.array_equal(sparse.rows, model.rows)
    assert model.to_dense() is model


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.99])
def test_the_smallest_weights_go_and_no_others(share):
    W = np.random.default_rng(1).standard_normal((7, 9)).astype(np.float32)
    W[W > 1] = 0
    n = np.count_nonzero(W)
    found = pruned(model_of(W), share).to_dense().W
    order = np.sort(np.abs(W[W != 0]))
    expected = np.where(np.abs(W) >= order[int(share * n)], W, 0)
    assert np.array_equal(found, expected)
    assert np.count_nonzero(found) == n - int(share * n)


def test_of_weights_that_are_alike_as_many_go():
    found = pruned(model_of(np.ones((4, 5))), 0.5)
    assert found.W.nnz == 10
    assert np.array_equal(found.b, np.ones(4, np.float32))


@pytest.mark.long_cases
@pytest.mark.parametrize("weights", ["dense", "sparse"])
def test_a_pruned_fit_says_what_it_cost_and_does_all_that_others_do(weights, tmp_path):
    how = {"weights": weights, "calibration": "temperature", "start": "class-means"}
    parts, plan, data = ("sampled-softmax", {"name": "uniform", "n_sampled": 3}, "adagrad"), Plan(epochs=3), dataset()
    whole, half = (fit(data, method(*parts, prune=share, **how), 0, plan) for share in (0.0, 0.5))
    validation, test = data.split("validation"), data.split("test")
    n = np.count_nonzero(whole.model.to_dense().W)
    assert half.model.W.nnz == n - n // 2
    assert half.pruning["n_before"] == n
    assert half.pruning["n_after"] == half.model.W.nnz
    for model, when in ((whole.model, "before"), (half.model, "after")):
        found = evaluate(model, validation.X, validation.y)
        assert half.pruning[when] == found
    assert half.pruning["before"] != half.pruning["after"]
    # the calibration is that of the pruned weights
    assert half.model.calibration == fit_calibration(
        replace(half.model, calibration=None), validation.X, validation.y
    )
    write_fit(tmp_path, half, data, method(*parts, prune=0.5, **how), 0, plan, "code")
    assert json.loads((tmp_path / "status.json").read_text())["pruning"] == half.pruning
    loaded, dense = load_model(tmp_path / "model.h5"), half.model.to_dense()
    assert loaded.W.nnz == half.model.W.nnz
    for X in (test.X, test.X.toarray()):
        found, expected = score_rows(loaded, X, test.y), score_rows(dense, X, test.y)
        assert np.allclose(found.log_likelihood, expected.log_likelihood, atol=1e-5)
        assert np.array_equal(top_k(loaded, X, 3).classes, top_k(dense, X, 3).classes)


def test_without_validation_rows_the_cost_is_not_known():
    result = fit(dataset(0), method("one-vs-each", "uniform", "sgd", prune=0.9), 0, Plan(epochs=1))
    assert result.model.W.nnz == K * D - int(0.9 * K * D)
    assert result.pruning["before"] == result.pruning["after"] == {}
    assert "no validation rows" in pruning_in_words(result.pruning)


def test_a_larger_model_is_not_written(tmp_path):
    model = model_of(np.random.default_rng(0).standard_normal((300, 400)))
    model.attributes["status"] = "finished"
    save_model(model, tmp_path / "whole.h5")
    save_model(pruned(model, 0.9), tmp_path / "pruned.h5")
    assert (tmp_path / "pruned.h5").stat().st_size < 0.3 * (tmp_path / "whole.h5").stat().st_size
