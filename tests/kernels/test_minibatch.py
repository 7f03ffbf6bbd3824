"""Minibatches over all classes against naive ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
from xsoftmax.kernels.minibatch import loss_block, score_block, slope_block, sweep_all
from xsoftmax.kernels.rows import features_of
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.objectives.softmax import Softmax
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd

N, D, K = 23, 8, 6
OBJECTIVES = {"softmax": Softmax(), "one-vs-each": OneVsEach(), "double-sum": DoubleSum()}
STORAGES = {"dense": np.asarray, "csr": csr_array}


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)).astype(np.float32)
    X[:, 3] = 0  # a feature that nobody has
    X[5] = 0
    return X, rng.integers(K, size=N).astype(np.int32), (0.3 * rng.standard_normal((K, D + 1))).astype(np.float32)


def naive_slopes(objective, s, y, u, rate):
    """Slopes by all scores; ``u``, an array of one, moves."""
    if objective == "softmax":
        return naive.softmax(s, y)[1]
    if objective == "one-vs-each":
        return naive.one_vs_each(s, y)[1]
    _, slopes, slope_u = naive.double_sum(s, y, u[0])
    u[0] = max(0.0, u[0] - rate * slope_u)
    return slopes


def naive_sweep_all(objective, X, y, W, order, batch_size, rate, bias, adagrad):
    W, accumulator = W.astype(float), np.full(W.shape, 1e-8)
    inputs, u = naive.with_constant(X, bias), np.full((N, 1), np.log(K))
    for first in range(0, len(order), batch_size):
        batch = order[first : first + batch_size]
        gradient = np.zeros(W.shape)
        for i in batch:
            gradient += np.outer(naive_slopes(objective, W @ inputs[i], y[i], u[i], rate), inputs[i])
        gradient /= len(batch)
        if adagrad:
            W, accumulator = naive.adagrad(W, accumulator, gradient, rate)
        else:
            W = W - rate * gradient
    return W, accumulator, u


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("adagrad", [False, True], ids=["sgd", "adagrad"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sweep_all_is_the_naive_loop(objective, adagrad, storage, bias):
    X, y, W = problem()
    order = np.random.default_rng(1).permutation(N)
    features = features_of(STORAGES[storage](X), bias)
    parameters, optimizer = OBJECTIVES[objective], Adagrad() if adagrad else Sgd()
    for batch_size in (1, 5, 64):  # single samples; a remainder of 3; less than one batch
        expected = naive_sweep_all(objective, X, y, W, order, batch_size, 0.1, bias, adagrad)
        found, accumulator = np.ascontiguousarray(W.T), np.full(W.T.shape, 1e-8, np.float32)
        states = np.full((N, 1), np.log(K)) if parameters.n_states else np.zeros((N, 0))
        rate = np.float32(0.1)
        used = sweep_all(
            parameters, optimizer, features, y, states, found, accumulator, order, batch_size, rate, np.float32(0)
        )
        assert used == N
        # Adagrad's first step is the sign of the gradient, so that rounding may matter where it nearly vanishes.
        assert np.allclose(found.T, expected[0], rtol=1e-4, atol=1e-4 if adagrad else 1e-5)
        if adagrad:
            assert np.allclose(accumulator.T, expected[1], rtol=1e-3, atol=1e-9)
        if parameters.n_states:
            assert np.allclose(states, expected[2], rtol=1e-4, atol=1e-5)
        if not bias:
            assert np.array_equal(found[-1], W[:, -1])


@pytest.mark.parametrize("storage", STORAGES)
def test_rows_without_features(storage):
    y = (np.arange(20) % 3).astype(np.int32)
    W = np.zeros((1, 3), np.float32)
    features = features_of(STORAGES[storage](np.zeros((20, 0), np.float32)), True)
    used = sweep_all(
        Softmax(), Sgd(), features, y, np.zeros((20, 0)), W, W, np.arange(20), 20, np.float32(1), np.float32(0)
    )
    assert used == 20
    expected = -naive.softmax_objective(np.zeros((20, 0)), y, np.zeros((3, 1)))[1][:, 0]
    assert np.allclose(W[0], expected, atol=1e-7)


@pytest.mark.parametrize("storage", STORAGES)
def test_it_stops_before_a_batch_whose_scores_are_not_finite(storage):
    X, y, W = problem()
    X[:, 3] = np.arange(N) == 13
    W[:, 3] = 3e38
    X[:, 3] *= 100
    features, room = features_of(STORAGES[storage](X), True), np.ascontiguousarray(W.T)
    used = sweep_all(
        Softmax(), Sgd(), features, y, np.zeros((N, 0)), room, room, np.arange(N), 5, np.float32(0.1), np.float32(0)
    )
    assert used == 10
    assert np.isfinite(room).all()


@pytest.mark.parametrize("storage", STORAGES)
def test_scores(storage):
    X, _, W = problem()
    samples = np.array([7, 5, 7, 0])
    found = np.full((4, K), np.nan, np.float32)
    score_block(features_of(STORAGES[storage](X), True), samples, np.ascontiguousarray(W.T), found)
    assert np.allclose(found, naive.scores(X, W)[samples], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_slopes_and_losses_of_all_classes(objective, dtype):
    rng = np.random.default_rng(3)
    s = (3 * rng.standard_normal((K, K))).astype(dtype)
    y = np.arange(K, dtype=np.int32)  # each class is the true one once, the last too
    states = rng.random((K, 1)) + 0.5
    slopes = np.empty_like(s)
    slope_block(OBJECTIVES[objective], np.float32(0), y, states.copy(), np.arange(K), s.copy(), slopes)
    losses = loss_block(OBJECTIVES[objective], y, states, np.arange(K), s.copy(), np.zeros((1, 1), np.float32))
    close = {"rtol": 1e-12, "atol": 1e-14} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    if objective == "double-sum" and dtype == np.float64:
        close = {"rtol": 1e-6, "atol": 1e-7}  # its exponent holds u in float32
    for i in range(K):
        if objective == "double-sum":
            loss, expected = naive.double_sum(s[i].astype(float), i, states[i, 0])[:2]
        else:
            loss, expected = getattr(naive, objective.replace("-", "_"))(s[i].astype(float), i)
        assert np.allclose(slopes[i], expected, **close)
        assert np.allclose(losses[i], loss, **close)


@pytest.mark.parametrize("rows", [1, 4])
def test_losses_under_the_proposal_see_each_rows_own_probabilities(rows):
    rng = np.random.default_rng(4)
    log_q = np.log(rng.dirichlet(np.ones(K), rows)).astype(np.float32)
    s, y = rng.standard_normal((4, K)).astype(np.float32), np.array([0, 5, 2, 2], np.int32)
    found = loss_block(NegativeSampling(1, 0.1), y, np.zeros((4, 0)), np.arange(4), s.copy(), log_q)
    expected = [
        naive.negative_sampling(s[i].astype(float), y[i], log_q[min(i, rows - 1)].astype(float), 0.1)[0]
        for i in range(4)
    ]
    assert np.allclose(found, expected, rtol=1e-5)


def test_a_loss_of_huge_scores_is_exact():
    s = np.array([[3e4, -2e4, 1e4], [0, 60, -60]], np.float32)
    y = np.array([2, 2], np.int32)
    found = loss_block(Softmax(), y, np.zeros((2, 0)), np.arange(2), s.copy(), np.zeros((1, 1), np.float32))
    assert np.allclose(found, [2e4, 120], rtol=1e-7)
