import numpy as np
import pytest
from numba import njit
from scipy.sparse import csc_array, csr_array

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.rows import axpy, dot, features_of, squared_norm


@njit(**OPTIONS)
def dots(features, row, out):
    for i in range(out.size):
        out[i] = dot(features, i, row)


@njit(**OPTIONS)
def norms(features, out):
    for i in range(out.size):
        out[i] = squared_norm(features, i)


@njit(**OPTIONS)
def add(features, i, a, row):
    axpy(features, i, a, row)


def sparse_rows(n_samples, n_features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.3)
    if n_samples > 1:
        X[1] = 0
    return X.astype(np.float32)


SHAPES = [(7, 13), (3, 1), (4, 0), (2, 257)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_row_functions(shape, bias, storage):
    X = sparse_rows(*shape)
    features = features_of(storage(X), bias)
    row = np.random.default_rng(1).standard_normal(shape[1] + 1).astype(np.float32)
    inputs = np.column_stack([X, np.full(len(X), bias)]).astype(float)
    found = np.empty(len(X), np.float32)
    dots(features, row, found)
    assert np.allclose(found, inputs @ row, rtol=1e-5, atol=1e-5)
    norms(features, found)
    assert np.allclose(found, (inputs**2).sum(axis=1), rtol=1e-6, atol=0)
    for i in range(len(X)):
        moved = row.copy()
        add(features, i, np.float32(-0.7), moved)
        assert np.allclose(moved, row - 0.7 * inputs[i], rtol=1e-5, atol=1e-6)


def test_a_constant_of_zero_leaves_the_bias_alone():
    row = np.ones(6, np.float32)
    add(features_of(np.ones((1, 5), np.float32), False), 0, np.float32(3), row)
    assert row.tolist() == [4, 4, 4, 4, 4, 1]


@pytest.mark.parametrize(
    "make", [np.asfortranarray, lambda X: X.astype(np.float64), lambda X: np.repeat(X, 2, 1)[:, ::2]]
)
def test_dense_rows_of_any_layout_become_one_type(make):
    X = sparse_rows(7, 13)
    features = features_of(make(X), True)
    assert np.array_equal(features.X, X)
    assert features.X.dtype == np.float32
    assert features.X.flags.c_contiguous


@pytest.mark.parametrize("make", [csr_array, csc_array, lambda X: csr_array(X.astype(np.float64))])
def test_sparse_rows_of_any_layout_become_one_type(make):
    X = sparse_rows(7, 13)
    features = features_of(make(X), True)
    assert [features.data.dtype, features.indices.dtype, features.indptr.dtype] == [np.float32, np.int32, np.int64]
    assert np.array_equal(csr_array(features[:3], shape=X.shape).toarray(), X)
