"""Weights that begin along the means of classes."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.starts import Start, class_means, load_start
from xsoftmax.starts.class_means import ClassMeans

STORAGES = pytest.mark.parametrize("storage", [np.asarray, csr_array])


def problem(seed=0, n_classes=7):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4)).astype(np.float32)
    y = rng.choice([0, 1, 2, 4, 5], 60).astype(np.int32)  # 3 and 6 have no rows
    X[y == 5] = 0  # a class whose rows are all zero
    return X, y


def array(W):
    return W if isinstance(W, np.ndarray) else W.toarray()


@STORAGES
@pytest.mark.parametrize("rows_at_a_time", [1, 7, 1000])
def test_they_are_the_directions_of_the_means(storage, rows_at_a_time, monkeypatch):
    monkeypatch.setattr(class_means, "_ROWS", rows_at_a_time)
    X, y = problem()
    found = ClassMeans().directions(storage(X), y, 7)
    assert found.dtype == np.float32
    for k in range(7):
        rows = X[y == k].astype(float)
        mean = rows.mean(axis=0) if len(rows) else np.zeros(9)
        length = np.linalg.norm(mean)
        assert np.allclose(array(found)[k], mean / length if length else 0, atol=1e-6)
    assert (np.linalg.norm(array(found), axis=1).round(5) == [1, 1, 1, 0, 1, 0, 0]).all()


def test_they_are_as_sparse_as_the_rows():
    X, y = problem()
    found = ClassMeans().directions(csr_array(X), y, 7)
    assert found.nnz == sum((X[y == k] != 0).any(axis=0).sum() for k in range(7))


@STORAGES
@pytest.mark.parametrize("at_once", [1, 2**22])
@pytest.mark.parametrize("turned", [False, True])
def test_they_are_loaded_into_any_view_of_weights(storage, at_once, turned, monkeypatch):
    monkeypatch.setattr("xsoftmax.starts._WRITTEN_AT_ONCE", at_once)
    W = storage(np.random.default_rng(1).standard_normal((7, 9)).astype(np.float32) * (np.arange(9) != 4))
    weights = np.full((10, 7), 3.0, np.float32).T if turned else np.full((7, 10), 3.0, np.float32)
    weights[:, :-1] = 0
    load_start(Start(W, 1.0), weights)
    assert np.array_equal(weights[:, :-1], array(W))
    assert (weights[:, -1] == 3).all()
