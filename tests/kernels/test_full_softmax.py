"""Minibatches over all classes against naive ones."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
from covering import in_tiers
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.full_softmax import (
    CLASSES_OF_A_BLOCK,
    CLASSES_OF_A_LARGE_BLOCK,
    Pace,
    add_product,
    classes_of_a_block,
    classes_of_a_move,
    gather_block,
    loss_block,
    move_classes_block,
    run_all_classes,
    score_block,
    score_classes_block,
    slope_block,
)
from xsoftmax.kernels.layout import Apart, Plain
from xsoftmax.kernels.products import columns_times_columns, rows_times_rows
from xsoftmax.kernels.protocol import Step
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.objectives.softmax import Softmax
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.all import All
from xsoftmax.solvers import full as minibatches
from xsoftmax.solvers import make_solver

N, D, K = 23, 8, 6
OBJECTIVES = {"softmax": Softmax(), "one-vs-each": OneVsEach(), "double-sum": DoubleSum()}
STORAGES = {"dense": np.asarray, "csr": csr_array}


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)).astype(np.float32)
    X[:, 3] = 0  # a feature that nobody has
    X[5] = 0
    return X, rng.integers(K, size=N).astype(np.int32), (0.3 * rng.standard_normal((K, D + 1))).astype(np.float32)


def laid_out(W, storage):
    """Class-major weights as the kernels want them, or these as class-major ones."""
    return W.copy() if storage == "dense" else np.ascontiguousarray(W.T)


def arranged(batch_size, n_classes=K):
    return np.full((batch_size, n_classes), np.nan, np.float32)


def pace(rate, decay=0.0):
    return Pace(Step(np.float32(rate), 0), np.float32(decay))


def naive_slopes(objective, s, y, u, rate):
    """Slopes by all scores; ``u``, an array of one, moves."""
    if objective == "softmax":
        return naive.softmax(s, y)[1]
    if objective == "one-vs-each":
        return naive.one_vs_each(s, y)[1]
    _, slopes, slope_u = naive.double_sum(s, y, u[0])
    u[0] = max(0.0, u[0] - rate * slope_u)
    return slopes


def naive_all_classes(objective, X, y, W, order, batch_size, rate, bias, adagrad):
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


CASES = list(product(OBJECTIVES, [False, True], STORAGES, [True, False]))
FEW = [
    ("softmax", False, "dense", True),
    ("softmax", False, "dense", False),
    ("softmax", False, "csr", True),
    ("softmax", False, "csr", False),
    ("double-sum", True, "dense", True),
]


@pytest.mark.long_cases
@pytest.mark.parametrize(("objective", "adagrad", "storage", "bias"), in_tiers(CASES, FEW))
def test_sweep_all_is_the_naive_loop(objective, adagrad, storage, bias):
    X, y, W = problem()
    order = np.random.default_rng(1).permutation(N)
    features = features_of(STORAGES[storage](X), bias)
    parameters, optimizer = OBJECTIVES[objective], Adagrad() if adagrad else Sgd()
    for batch_size in (1, 5, 64):  # single samples; a remainder of 3; less than one batch
        expected = naive_all_classes(objective, X, y, W, order, batch_size, 0.1, bias, adagrad)
        found = laid_out(W, storage)
        accumulator = np.full(found.shape, 1e-8, np.float32)
        auxiliary = np.full((N, 1), np.log(K)) if parameters.n_auxiliary else np.zeros((N, 0))
        arguments = (parameters, optimizer, features, y, auxiliary, Apart(found, accumulator), arranged(batch_size))
        assert run_all_classes(*arguments, order, batch_size, pace(0.1)) == N
        found, accumulator = laid_out(found, storage), laid_out(accumulator, storage)
        # Adagrad's first step is the sign of the gradient, so that rounding may matter where it nearly vanishes.
        assert np.allclose(found, expected[0], rtol=1e-4, atol=1e-4 if adagrad else 1e-5)
        if adagrad:
            assert np.allclose(accumulator, expected[1], rtol=1e-3, atol=1e-9)
        if parameters.n_auxiliary:
            assert np.allclose(auxiliary, expected[2], rtol=1e-4, atol=1e-5)
        if not bias:
            assert np.array_equal(found[:, -1], W[:, -1])


@pytest.mark.parametrize("storage", STORAGES)
def test_rows_without_features(storage):
    y = (np.arange(20) % 3).astype(np.int32)
    W = laid_out(np.zeros((3, 1), np.float32), storage)
    features = features_of(STORAGES[storage](np.zeros((20, 0), np.float32)), True)
    arguments = (Softmax(), Sgd(), features, y, np.zeros((20, 0)), Plain(W), arranged(20, 3))
    assert run_all_classes(*arguments, np.arange(20), 20, pace(1)) == 20
    expected = -naive.softmax_objective(np.zeros((20, 0)), y, np.zeros((3, 1)))[1][:, 0]
    assert np.allclose(W.ravel(), expected, atol=1e-7)


@pytest.mark.parametrize("storage", STORAGES)
def test_it_stops_before_a_batch_whose_scores_are_not_finite(storage):
    X, y, W = problem()
    X[:, 3] = np.arange(N) == 13
    W[:, 3] = 3e38
    X[:, 3] *= 100
    features, found = features_of(STORAGES[storage](X), True), laid_out(W, storage)
    arguments = (Softmax(), Sgd(), features, y, np.zeros((N, 0)), Plain(found), arranged(5))
    assert run_all_classes(*arguments, np.arange(N), 5, pace(0.1)) == 10
    assert np.isfinite(found).all()


def test_scores_of_sparse_rows_for_some_classes():
    X, _, W = problem()
    samples = np.array([7, 5, 7, 0])
    for first, last in ((0, K), (2, 5), (K - 1, K)):
        found = np.full((4, last - first), np.nan, np.float32)
        score_block(features_of(csr_array(X), True), samples, np.ascontiguousarray(W.T), first, found)
        assert np.allclose(found, naive.scores(X, W)[samples, first:last], rtol=1e-5, atol=1e-6)


SLOPES_SOONER = [("softmax", np.float32), ("one-vs-each", np.float64), ("double-sum", np.float32)]


@pytest.mark.parametrize(
    ("objective", "dtype"), in_tiers(list(product(OBJECTIVES, [np.float32, np.float64])), SLOPES_SOONER)
)
def test_slopes_and_losses_of_all_classes(objective, dtype):
    rng = np.random.default_rng(3)
    s = (3 * rng.standard_normal((K, K))).astype(dtype)
    y = np.arange(K, dtype=np.int32)  # each class is the true one once, the last too
    auxiliary = rng.random((K, 1)) + 0.5
    slopes = s.copy()
    slope_block(OBJECTIVES[objective], np.float32(0), y, auxiliary.copy(), np.arange(K), slopes)
    losses = loss_block(OBJECTIVES[objective], y, auxiliary, np.arange(K), s.copy(), np.zeros((1, 1), np.float32))
    close = {"rtol": 1e-12, "atol": 1e-14} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    if objective == "double-sum" and dtype == np.float64:
        close = {"rtol": 1e-6, "atol": 1e-7}  # its exponent holds u in float32
    for i in range(K):
        if objective == "double-sum":
            loss, expected = naive.double_sum(s[i].astype(float), i, auxiliary[i, 0])[:2]
        else:
            loss, expected = getattr(naive, objective.replace("-", "_"))(s[i].astype(float), i)
        assert np.allclose(slopes[i], expected, **close)
        assert np.allclose(losses[i], loss, **close)


@pytest.mark.parametrize("rows", [1, 4])
def test_losses_under_the_proposal_see_each_rows_own_probabilities(rows):
    rng = np.random.default_rng(4)
    log_q = np.log(rng.dirichlet(np.ones(K), rows)).astype(np.float32)
    s, y = rng.standard_normal((4, K)).astype(np.float32), np.array([0, 5, 2, 2], np.int32)
    found = loss_block(NegativeSampling(0.1), y, np.zeros((4, 0)), np.arange(4), s.copy(), log_q)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_is_added_to_what_is_there(dtype):
    """Rows of no entry up to eleven; the constant feature is left out, and so are rows that were not asked for."""
    rng = np.random.default_rng(0)
    A = np.tril(rng.standard_normal((12, 11)), -1).astype(np.float32)
    B, before = rng.standard_normal((12, 7)).astype(dtype), rng.standard_normal((13, 7)).astype(dtype)
    found, expected = before.copy(), before.astype(float)
    add_product(features_of(csr_array(A), True), 2, 12, B, found)
    expected[2:12] += A[2:].astype(float) @ B[:11]
    assert np.allclose(found, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-14)
    assert np.array_equal(found[[0, 1, 12]], before[[0, 1, 12]])


# Blocks of classes, and threads that share them.


def many_classes(storage, n=40, n_classes=1300, n_features=12):
    """More than two blocks of classes, the last one odd; rows that share features, and features of one row."""
    rng = np.random.default_rng(7)
    X = (rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.4)).astype(np.float32)
    X[:, 0] = np.arange(n) == 3
    W = (0.3 * rng.standard_normal((n_classes, n_features + 1))).astype(np.float32)
    return features_of(STORAGES[storage](X), True), X, rng.integers(n_classes, size=n).astype(np.int32), W


@pytest.mark.parametrize("size", [CLASSES_OF_A_BLOCK, 1, 7, 1299, 1300, 1301])
@pytest.mark.parametrize("storage", STORAGES)
def test_scores_of_blocks_are_the_naive_ones(storage, size):
    features, X, _, W = many_classes(storage)
    samples = np.array([3, 39, 3, 0, 17])
    batch, weights, found = gather_block(features, samples), laid_out(W, storage), arranged(5, 1300)
    for first in range(0, 1300, size):
        assert score_classes_block(batch, weights, first, min(first + size, 1300), found)
    assert np.allclose(found, naive.scores(X, W)[samples], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("size", [CLASSES_OF_A_BLOCK, 1, 7, 1299, 1300, 1301])
@pytest.mark.parametrize("storage", STORAGES)
def test_moves_of_blocks_are_the_naive_ones(storage, size, decay):
    features, X, _, W = many_classes(storage)
    samples = np.array([3, 39, 3, 0, 17])
    slopes = np.random.default_rng(8).standard_normal((5, 1300)).astype(np.float32)
    batch, found = gather_block(features, samples), laid_out(W, storage)
    for first in range(0, 1300, size):
        last = min(first + size, 1300)
        move_classes_block(batch, Sgd(), pace(0.5, decay), slopes, Plain(found), first, last)
    expected = W.astype(float)
    expected[:, :-1] *= 1 - 0.5 * decay
    expected -= 0.5 * slopes.T.astype(float) @ naive.with_constant(X, True)[samples] / 5
    assert np.allclose(laid_out(found, storage), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.002, 0.3])
@pytest.mark.parametrize("optimizer", [Sgd(np.float32(0.2)), Adagrad(np.float32(0.2))], ids=["sgd", "adagrad"])
def test_classes_without_slopes_stay_where_they_are(optimizer, share):
    """Of slopes that are mostly zero the moves are the naive ones; nothing else changes a bit."""
    rng, n_classes = np.random.default_rng(4), 1300
    X, _, _ = problem()
    W = rng.standard_normal((n_classes, D + 1)).astype(np.float32)
    accumulator = np.ones_like(W)
    slopes = np.zeros((N, n_classes), np.float32)
    some = rng.random(n_classes) < share
    slopes[:, some] = rng.standard_normal((N, some.sum())) * (rng.random((N, some.sum())) < 0.5)
    found = W.copy()
    batch = gather_block(features_of(X, True), np.arange(N))
    move_classes_block(batch, optimizer, pace(0.2), slopes, Apart(found, accumulator), 0, n_classes)
    gradients = slopes.T.astype(float) @ np.hstack([X, np.ones((N, 1))]) / N
    moves = 0.2 * gradients if isinstance(optimizer, Sgd) else 0.2 * gradients / np.sqrt(1 + gradients**2)
    assert np.allclose(found, W - moves, atol=1e-5)
    still = ~slopes.any(axis=0)
    assert np.array_equal(found[still], W[still])
    assert still.any()


@pytest.mark.parametrize("where", [0, CLASSES_OF_A_BLOCK - 1, CLASSES_OF_A_BLOCK, 1299])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_score_that_is_not_finite_is_found_in_any_block(storage, value, where):
    features, _, _, W = many_classes(storage)
    W[where, -1] = value
    batch, weights, found = gather_block(features, np.arange(4)), laid_out(W, storage), arranged(4, 1300)
    finite = [score_classes_block(batch, weights, first, min(first + 512, 1300), found) for first in (0, 512, 1024)]
    assert finite == [where // 512 != block for block in range(3)]


THREADED = list(
    product([1300, 9000], STORAGES, [False, True], ["softmax", "one-vs-each", "double-sum", "max-margin"])
)
THREADED_SOONER = [
    (1300, "dense", False, "softmax"),
    (9000, "dense", False, "softmax"),
    (1300, "csr", False, "softmax"),
    (9000, "dense", True, "double-sum"),
]


@pytest.mark.parametrize(("n_classes", "storage", "adagrad", "objective"), in_tiers(THREADED, THREADED_SOONER))
def test_threads_change_no_bit(n_classes, storage, adagrad, objective, monkeypatch):
    monkeypatch.setattr(minibatches, "WORTH_THREADS", 0)
    _, X, y, _ = many_classes(storage, n_classes=n_classes)
    optimizer = {"name": "adagrad" if adagrad else "sgd", "learning_rate": 0.3}
    settings = {"objective": {"name": objective}, "proposal": {"name": "all", "batch_size": 16}}
    method = build_method("mine", settings | {"optimizer": optimizer} | ({} if adagrad else {"l2": 2.0}))
    data, weights = TrainingSet(STORAGES[storage](X), y, n_classes), {}
    for n_threads in (1, 2, 3):
        fitted = method.objective.fit(data)
        solver = make_solver(method, fitted, method.proposal.fit(data), data, ThreadPool(n_threads))
        for epoch in range(3):
            assert solver.advance(np.random.default_rng(epoch).permutation(40), epoch, 0, 0.3) == 40
        weights[n_threads] = solver.weights()
        assert weights[n_threads].shape == (n_classes, 13)
        assert np.array_equal(weights[n_threads], weights[1])
    assert np.abs(weights[1]).max() > 0.01


@pytest.mark.parametrize("storage", STORAGES)
def test_threads_stop_before_the_same_batch(storage, monkeypatch):
    monkeypatch.setattr(minibatches, "WORTH_THREADS", 0)
    X, y, _ = problem()
    X[13, 3] = np.inf
    optimizer, proposal = {"name": "sgd", "learning_rate": 0.1}, {"name": "all", "batch_size": 5}
    method = build_method("mine", {"objective": {"name": "softmax"}, "proposal": proposal, "optimizer": optimizer})
    data = TrainingSet(STORAGES[storage](X), y, K)
    for n_threads in (1, 2):
        solver = make_solver(method, Softmax(), All().fit(data), data, ThreadPool(n_threads))
        assert solver.advance(np.arange(N), 0, 0, 0.1) == 10
        assert np.isfinite(solver.weights()).all()


def test_slopes_where_nearly_all_is_known():
    """The slope of the true class is minus the sum of the others, not 1 - 1; far classes count next to nothing."""
    scores = np.array([[0, 30, 2, -200], [0, -300, 300, 1]], np.float32)
    expected = np.exp([naive.log_probabilities(row) for row in scores.astype(float)])
    for row, y in zip(expected, (1, 2), strict=True):
        row[y] = -np.delete(row, y).sum()
    slope_block(Softmax(), np.float32(0), np.array([1, 2], np.int32), np.zeros((2, 0)), np.arange(2), scores)
    assert np.allclose(scores, expected, rtol=1e-5, atol=1e-37)
    assert -1e-12 < scores[0, 1] < -5e-14


def test_products_of_views():
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((n, 40)).astype(np.float32) for n in (30, 20))
    for rows, columns, m in ((0, 5, 3), (1, 1, 1), (7, 11, 13), (30, 20, 17)):
        out = np.full((rows, 2 * columns), np.nan, np.float32)
        rows_times_rows(A[:rows, 3 : 3 + m], B[:columns, 5 : 5 + m], out[:, :columns])
        assert np.allclose(out[:, :columns], A[:rows, 3 : 3 + m] @ B[:columns, 5 : 5 + m].T, rtol=1e-4, atol=1e-5)
        assert np.isnan(out[:, columns:]).all()
        out = np.full((rows, 2 * columns), np.nan, np.float32)
        columns_times_columns(A[:m, :rows], B[:m, :columns], np.float32(0.5), out[:, :columns])
        assert np.allclose(out[:, :columns], 0.5 * A[:m, :rows].T @ B[:m, :columns], rtol=1e-4, atol=1e-5)
        assert np.isnan(out[:, columns:]).all()


@pytest.mark.parametrize("n_classes", [2, 512, 513, 1500, 2000, 8191, 8192, 10_000, 214_000])
def test_blocks_can_be_shared_evenly(n_classes):
    size, most = classes_of_a_block(n_classes), CLASSES_OF_A_LARGE_BLOCK if n_classes >= 8192 else CLASSES_OF_A_BLOCK
    n_blocks = -(-n_classes // size)
    assert size <= most
    n_moves = -(-size // classes_of_a_move(n_classes))
    assert classes_of_a_move(n_classes) <= CLASSES_OF_A_BLOCK
    assert n_moves == -(-size // CLASSES_OF_A_BLOCK)
    assert n_moves * classes_of_a_move(n_classes) - size < 16 * n_moves
    if n_classes <= most:
        assert n_blocks == 1
    else:
        more = size * (n_blocks - n_blocks // 2)  # of two threads, the one with more classes
        assert n_blocks % 2 == 0
        assert more - n_classes / 2 <= 8 * n_blocks
