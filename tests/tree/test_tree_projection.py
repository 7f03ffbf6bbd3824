import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from xsoftmax.tree.projection import principal_components


def sparse_rows(n_samples, n_features, seed=0):
    X = random_array((n_samples, n_features), density=0.05, rng=seed, dtype=np.float32, format="csr")
    X.data *= 1 + np.float32(9) * (X.indices < 10)
    return csr_array(X)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("n_features", [40, 300])
@pytest.mark.parametrize("dense", [False, True])
def test_components_are_centred_white_and_principal(standardize, n_features, dense):
    X = sparse_rows(900, n_features)
    full = X.toarray().astype(np.float64)
    Z = principal_components(full.astype(np.float32) if dense else X, 12, standardize)(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(12), atol=2e-3)
    centred = full - full.mean(axis=0)
    if standardize:
        centred /= centred.std(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    # Only up to the first clear gap are single components determined: compare the leading one.
    assert values[0] > values[1]
    assert abs(np.corrcoef(left[:, 0], Z[:, 0])[0, 1]) > 0.99
    explained = np.linalg.norm(centred.T @ Z / np.sqrt(900)) ** 2
    assert explained == pytest.approx(np.sum(values[:12] ** 2), rel=1e-3)


@pytest.mark.parametrize("standardize", [False, True])
def test_dense_equals_csr(standardize):
    X = sparse_rows(500, 30)
    sparse = principal_components(X, 6, standardize)
    dense = principal_components(X.toarray(), 6, standardize)
    np.testing.assert_allclose(sparse.components, dense.components, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sparse(X), dense(X.toarray()), atol=2e-3)


def test_same_projection_of_dense_and_csr_rows():
    X = sparse_rows(500, 30)
    projection = principal_components(X, 6)
    np.testing.assert_allclose(projection(X), projection(X.toarray()), atol=1e-5)


def test_same_seed_same_bits():
    X = sparse_rows(500, 300)
    first, second = (principal_components(X, 8, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_constant_columns_change_nothing():
    X = np.random.default_rng(0).standard_normal((100, 5)).astype(np.float32)
    padded = np.concatenate([X, np.full((100, 2), 7, np.float32)], axis=1)
    expected = principal_components(X, 3)(X)
    np.testing.assert_allclose(principal_components(padded, 3)(padded), expected, atol=1e-5)
    assert np.all(principal_components(padded, 3).components[5:] == 0)


def test_large_offsets_do_not_cancel():
    X = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32)
    shifted = (X + 1000).astype(np.float32)
    Z = principal_components(shifted, 2)(shifted)
    np.testing.assert_allclose(Z.std(axis=0), 1, atol=1e-3)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-3)


@pytest.mark.parametrize(
    ("n_samples", "n_features", "rank", "expected"),
    [(50, 3, 3, 3), (4, 20, 20, 3), (50, 20, 2, 2), (1, 5, 5, 0)],
)
@pytest.mark.parametrize("storage", [csr_array, np.asarray])
def test_dimension_is_reduced_to_the_rank(n_samples, n_features, rank, expected, storage):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n_samples, rank)) @ rng.standard_normal((rank, n_features))).astype(np.float32)
    projection = principal_components(storage(X), 16)
    assert projection.dimension == expected
    assert projection(storage(X)).shape == (n_samples, expected)


@pytest.mark.parametrize("X", [csr_array((7, 0), dtype=np.float32), np.empty((7, 0), np.float32)])
def test_no_features(X):
    assert principal_components(X, 16)(X).shape == (7, 0)


def test_wide_dense_rows_need_no_square_matrix(monkeypatch):
    X = sparse_rows(400, 200).toarray()
    expected = principal_components(X, 5)
    monkeypatch.setattr("xsoftmax.tree.projection.DENSE_LIMIT", 100)
    found = principal_components(X, 5)
    np.testing.assert_allclose(found.components, expected.components, rtol=1e-2, atol=1e-3)
