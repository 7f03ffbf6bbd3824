"""Implicit steps for batches, many classes and an L2 penalty against their definition."""

import itertools

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from kernels import naive_implicit
from problems import sparse_problem
from training.problems import method
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS, implicit_batch
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.implicit_batch import draw_outside, solve
from xsoftmax.kernels.random import start, stream
from xsoftmax.objectives.double_sum import implicit_step
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.implicit import inclusion_of, log_absent

N, D, K = 23, 6, 9
SEED = 4


def problem(seed=0):
    rng = np.random.default_rng(seed)
    return *sparse_problem(rng, N, D, K, spread=0.7), 3 * rng.random(N)


@njit(**OPTIONS)
def _outside(proposal, i, y, batch_labels, rng, draws):
    return draw_outside(proposal, None, i, y, batch_labels, rng, draws)


def drawn_weights(kernel, i, y, batch_labels, position, n_sampled, epoch=0):
    """Weights by class of what a batch whose first row is ``i`` draws outside its labels."""
    draws = empty_draws(n_sampled + (kernel.exact_classes.size if "exact_classes" in kernel._fields else 0))
    rng = np.uint64(start(np.uint64(stream(SEED, epoch)), position))
    n = _outside(kernel, i, np.int64(y), np.array(sorted(batch_labels)), rng, draws)
    weights = {}
    for k, weight in zip(draws.classes[:n], draws.weights[:n], strict=True):
        if k not in batch_labels and weight > 0:
            weights[int(k)] = weights.get(int(k), 0.0) + float(weight)
    return weights


def solver_of(X, y, W, u, n_sampled, size, l2, proposal="frequency", bias=True, dense=True, n_classes=K):
    """A solver that stands at these weights, and what belongs to it."""
    proposal = ({"name": proposal} if isinstance(proposal, str) else proposal) | {"n_sampled": n_sampled}
    chosen = method(
        "double-sum", proposal, "implicit",
        batch={"size": size}, l2=l2, bias=bias,
    )  # fmt: skip
    data = TrainingSet(X if dense else csr_array(X), y, n_classes, SEED)
    fitted = chosen.proposal.fit(data)
    solver = make_solver(chosen, chosen.objective, fitted, data)
    solver.auxiliary[:, 0] = u
    solver.arrays()["W"][:, : W.shape[1]] = W
    return solver, fitted, fitted.kernel(data.X)


def l2_weights_of(fitted, kernel, y, batch, weights, n_sampled, size, n_classes=K):
    """b_k of the touched classes, from the package's table: its mean is for another test."""
    inclusion = inclusion_of(fitted, kernel, np.bincount(y, minlength=n_classes), n_sampled, size)
    kind = int(len(batch) != size)
    found = {int(k): inclusion.inverse[kind, k] for k in set(y[batch])}
    for k, weight in weights.items():
        found[k] = inclusion.inverse[kind, k] * (inclusion.share[kind] * weight if inclusion.share[kind] else 1.0)
    return found


SHAPES = [(1, 1, 2.0), (1, 4, 0.0), (5, 1, 0.0), (5, 3, 3.0), (7, 20, 1.0), (40, 2, 1.0)]
CASES = [
    pytest.param(*shape, proposal, dense, bias, marks=[pytest.mark.slow] * later)
    for proposal, dense, bias, later in [
        ("frequency", True, True, False),
        ("frequency", False, False, False),
        ("uniform", True, False, True),
        ("uniform", False, True, True),
    ]
    for shape in SHAPES
]


@pytest.mark.parametrize(("size", "n_sampled", "l2", "proposal", "dense", "bias"), CASES)
def test_a_step_is_the_argmin_of_its_definition(size, n_sampled, l2, proposal, dense, bias):
    """Within float32 of the scores and weights; two batches in a row, the second one perhaps shorter."""
    X, y, W, u = problem()
    W[:, -1] *= bias
    rate, order = 4.0, np.random.default_rng(3).permutation(N)[: min(2 * size, 40) - (size > 1)]
    solver, fitted, kernel = solver_of(X, y, W, u, n_sampled, size, l2, proposal, bias, dense)
    assert solver.advance(order, 0, 0, rate) == order.size
    W_naive, b, u_naive = W[:, :-1].astype(float), W[:, -1].astype(float), u.copy()
    for first in range(0, order.size, size):
        batch = order[first : first + size]
        weights = drawn_weights(kernel, batch[0], y[batch[0]], set(y[batch].tolist()), first, n_sampled)
        betas = l2_weights_of(fitted, kernel, y, batch, weights, n_sampled, size)
        arguments = (X[batch].astype(float), y[batch].tolist(), weights, betas, N, l2, rate)
        W_naive, b, u_naive[batch] = naive_implicit.step_by_minimizing(W_naive, b, u_naive[batch], *arguments, bias)
    found = solver.weights()
    assert np.allclose(found[:, :-1], W_naive, rtol=0, atol=3e-6)
    assert np.allclose(found[:, -1], b, rtol=0, atol=3e-6)
    assert np.allclose(solver.auxiliary[:, 0], u_naive, rtol=0, atol=3e-6)
    assert np.abs(found - W).max() > 0.1


def test_the_ridge_as_printed_is_another_step():
    """(19) to (21) lack the factor 2 eta of the rest: then the argmin lies elsewhere, by far."""
    X, y, W, u = problem()
    size, n_sampled, l2, rate = 5, 3, 3.0, 4.0
    batch = np.random.default_rng(3).permutation(N)[:size]
    solver, fitted, kernel = solver_of(X, y, W, u, n_sampled, size, l2)
    solver.advance(batch, 0, 0, rate)
    weights = drawn_weights(kernel, batch[0], y[batch[0]], set(y[batch].tolist()), 0, n_sampled)
    betas = l2_weights_of(fitted, kernel, y, batch, weights, n_sampled, size)
    old = (W[:, :-1].astype(float), W[:, -1].astype(float), u[batch])
    printed = naive_implicit.step_as_printed(
        *old, X[batch].astype(float), y[batch].tolist(), weights, betas, N, l2, rate
    )
    assert np.abs(solver.weights()[:, :-1] - printed[0]).max() > 0.1


def step(scores, own, log_weights, u, kappa, products, divisors, constant=0.0):
    """Numbers p, scores and u after a step, of copies."""
    scores, u = scores.copy(), u.copy()
    p = solve(scores, own, log_weights, u, kappa, products, divisors, constant)
    return p, scores, u


def test_one_row_and_one_class_is_the_closed_form():
    axes = ([0.01, 3.0, 1e5], [0.3, 1.0, 30.0], [4.0, 3e5], [-1e4, -3.0, 4.0, 1e4], [0.0, 0.7, 20.0])
    for rate, rho, weight, s, u_old in itertools.product(*axes):
        one = (np.array([[s], [0.0]]), np.array([1]), np.array([np.log(weight), 0.0]), np.array([u_old]))
        p, _, u = step(*one, rate, np.array([[rho]]), np.ones(2))
        u_closed, a = implicit_step(rate, rho, weight, s, u_old)
        assert u[0] == pytest.approx(u_closed, rel=1e-7, abs=1e-7), (rate, rho, weight, s, u_old)
        assert p[1, 0] == pytest.approx(a / (2 * rho), rel=2e-8, abs=1e-12)
        assert p[0, 0] == pytest.approx(-a / (2 * rho), rel=2e-8, abs=1e-12)


def test_the_loop_for_one_row_and_one_class_is_the_single_steps():
    """Without ridge the closed form is taken; here the loop for batches is made to do the same steps."""
    X, y, W, u = problem()
    order = np.random.default_rng(3).permutation(N)
    single = solver_of(X, y, W, u, 1, 1, 0.0)[0]
    single.advance(order, 0, 0, 2.0)
    loop = solver_of(X, y, W, u, 1, 1, 1e-30)[0]
    loop.advance(order, 0, 0, 2.0)
    assert np.allclose(loop.weights(), single.weights(), rtol=0, atol=2e-5)
    assert np.allclose(loop.auxiliary, single.auxiliary, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kappa", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("spread", [1.0, 100.0, 1e4])
@pytest.mark.parametrize(("n", "m"), [(1, 5), (4, 3), (32, 20)])
def test_a_step_ends_where_its_gradient_is_taken(n, m, spread, kappa):
    """p = -v_i dlog d_i/ds at its end, in the metric of the weights, relative to the step's length; u likewise."""
    rng = np.random.default_rng([n, int(spread), int(kappa)])
    for _ in range(5):
        X, labels = rng.standard_normal((n, 12)), rng.integers(0, max(2, n // 2), n)
        products = X @ X.T
        known, own = np.unique(labels, return_inverse=True)
        n_classes = len(known) + m
        log_weights = np.concatenate([np.zeros(len(known)), np.log(rng.uniform(1, 300, m))])
        old, u_old = spread * rng.standard_normal((n_classes, n)), 3 * rng.random(n)
        divisors = 1 + rng.random(n_classes)
        p, scores, u = step(old, own, log_weights, u_old, kappa, products, divisors, 1.0)

        def rise(q, products=products, divisors=divisors):
            return q @ products / divisors[:, None] + q.sum(axis=1, keepdims=True)

        moved = rise(p)
        assert np.allclose(scores, old + moved, rtol=1e-9, atol=1e-9 * spread)
        pulls = kappa * np.exp(log_weights[:, None] + scores - scores[own, np.arange(n)] - u)
        pulls[own, np.arange(n)] = 0
        pulls[own, np.arange(n)] = -pulls.sum(axis=0)
        residual = p + pulls
        assert np.sum(residual * rise(residual)) <= (1e-6) ** 2 * np.sum(p * moved)
        mismatch = u - u_old - kappa * np.expm1(-u) + pulls[own, np.arange(n)]
        assert np.abs(mismatch).max() <= 1e-9 * max(1, kappa, u.max())
        assert (u >= 0).all()


@pytest.mark.parametrize("l2", [0.0, 5.0])
@pytest.mark.parametrize("rate", [1.0, 1e5])
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_extreme_steps_of_the_loop_end_where_their_gradient_is_taken(spread, rate, l2):
    """theta_new - theta_old + eta grad f(theta_new), relative to what float32 holds of scores this large."""
    X, y, W, u = problem(1)
    W *= np.float32(spread)
    size, n_sampled = 6, 4
    batch = np.random.default_rng(5).permutation(N)[:size]
    solver, fitted, kernel = solver_of(X, y, W, u, n_sampled, size, l2)
    assert solver.advance(batch, 0, 0, rate) == size
    found = solver.weights().astype(float)
    assert np.isfinite(found).all()
    weights = drawn_weights(kernel, batch[0], y[batch[0]], set(y[batch].tolist()), 0, n_sampled)
    betas = l2_weights_of(fitted, kernel, y, batch, weights, n_sampled, size)
    arguments = (X[batch].astype(float), y[batch].tolist(), weights, betas, N, l2, rate)
    before = (W[:, :-1].astype(float), W[:, -1].astype(float), u[batch])
    after = (found[:, :-1], found[:, -1], solver.auxiliary[batch, 0])
    length = max(np.abs(new - old).max() for new, old in zip(after, before, strict=True))
    assert naive_implicit.fixed_point_residual(before, after, *arguments) <= 3e-3 * max(1.0, length)
    assert length > 0.1


@pytest.mark.slow
def test_dense_rows_equal_sparse_rows():
    X, y, W, u = problem()
    order = np.random.default_rng(3).permutation(N)
    solvers = [solver_of(X, y, W, u, 3, 4, 1.0, dense=dense)[0] for dense in (True, False)]
    for solver in solvers:
        for epoch in range(20):
            solver.advance(order, epoch, 0, 1.0)
    assert np.allclose(solvers[0].weights(), solvers[1].weights(), rtol=0, atol=1e-4)
    assert np.allclose(solvers[0].auxiliary, solvers[1].auxiliary, rtol=0, atol=1e-4)


def test_a_chunk_does_not_matter_and_what_is_saved_suffices():
    """Bit for bit, with lazily scaled rows, in chunks of whole batches; the second half in another solver."""
    X, y, W, u = problem()
    order = np.random.default_rng(3).permutation(N)
    whole = solver_of(X, y, W, u, 3, 4, 2.0, dense=False)[0]
    for epoch in range(3):
        whole.advance(order, epoch, 0, 1.0)
    first = solver_of(X, y, W, u, 3, 4, 2.0, dense=False)[0]
    for epoch in range(2):
        first.advance(order, epoch, 0, 1.0)
    first.advance(order[:12], 2, 0, 1.0)
    second = solver_of(X, y, W, u, 3, 4, 2.0, dense=False)[0]
    second.restore(first.arrays())
    second.advance(order[12:], 2, 12, 1.0)
    assert np.array_equal(whole.weights(), second.weights())
    assert np.array_equal(whole.auxiliary, second.auxiliary)


def test_rows_of_zeros_move_only_u_and_the_biases():
    X, y, W, u = problem()
    X[:] = 0
    solver = solver_of(X, y, W, u, 3, 4, 1e-20)[0]
    solver.advance(np.arange(N), 0, 0, 1.0)
    assert np.array_equal(solver.weights()[:, :-1], W[:, :-1])
    assert not np.array_equal(solver.weights()[:, -1], W[:, -1])
    solver = solver_of(X, y, W, u, 3, 4, 0.0, bias=False)[0]
    solver.advance(np.arange(N), 0, 0, 1.0)
    assert np.array_equal(solver.weights()[:, :-1], W[:, :-1])
    assert np.isfinite(solver.auxiliary).all()
    assert not np.array_equal(solver.auxiliary[:, 0], u)


def test_it_stops_before_scores_that_are_not_finite():
    X, y, W, u = problem()
    X[17, 2] = 1e3
    W[:, 2] = np.float32(3e38)
    X[np.arange(N) != 17, 2] = 0
    solver = solver_of(X, y, W, u, 3, 4, 0.0)[0]
    assert solver.advance(np.arange(N), 0, 0, 1.0) == 16


# How often a class is touched.


@pytest.mark.parametrize("counts", [[3, 1, 4, 0, 9], [1, 1], [17, 2, 2]])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_absence_is_hypergeometric(counts, n):
    n = min(n, sum(counts))
    labels = np.repeat(np.arange(len(counts)), counts)
    batches = list(itertools.combinations(range(len(labels)), n)) if sum(counts) < 20 or n < 4 else []
    found = np.exp(log_absent(np.array(counts), n))
    for k in range(len(counts)):
        assert found[k] == pytest.approx(naive_implicit.absent(counts, k, n), abs=1e-12)
        if batches:
            assert found[k] == pytest.approx(np.mean([k not in labels[list(batch)] for batch in batches]), abs=1e-12)


@pytest.mark.parametrize("proposal", ["uniform", "frequency"])
def test_of_one_row_and_one_class_it_is_the_papers_beta(proposal):
    """Eq. 6 for uniform draws, N / (n_k + (N - n_k) / (K - 1)); the like for others; as single steps have it."""
    X, y, W, u = problem()
    _, fitted, kernel = solver_of(X, y, W, u, 1, 1, 1.0, proposal)
    counts = np.bincount(y, minlength=K)
    drawn = np.full(K, 1 / (K - 1)) if proposal == "uniform" else counts / N
    expected = N / (counts + (N - counts) * drawn)
    assert np.allclose(inclusion_of(fitted, kernel, counts, 1, 1).inverse, expected, rtol=1e-6)


PROPOSALS = {
    "uniform": "uniform",
    "frequency": "frequency",
    "head": {"name": "head", "n_head": 2},
    "mixture": {"name": "mixture"},
}
every_proposal = pytest.mark.parametrize(
    "proposal",
    [pytest.param(p, id=n, marks=[pytest.mark.slow] * (n in ("head", "mixture"))) for n, p in PROPOSALS.items()],
)


@pytest.mark.parametrize(
    ("size", "n_sampled"), [(6, 3), *(pytest.param(*s, marks=pytest.mark.slow) for s in [(1, 1), (1, 4), (10, 2)])]
)
@every_proposal
def test_weighted_by_b_every_class_is_touched_once_on_average(proposal, size, n_sampled):
    """Over epochs of permutations, full and remainder batches apart, within 5 standard errors."""
    X, y, W, u = problem()
    _, fitted, kernel = solver_of(X, y, W, u, n_sampled, size, 1.0, proposal)
    rng, totals = np.random.default_rng(0), {0: [], 1: []}
    for position in range(4000):
        order = rng.permutation(N)
        for kind, batch in ((0, order[:size]), (1, order[N - N % size :])):
            if batch.size == 0:
                continue
            labels = set(y[batch].tolist())
            weights = drawn_weights(kernel, batch[0], y[batch[0]], labels, 2 * position + kind, n_sampled)
            row = np.zeros(K)
            for k, b in l2_weights_of(fitted, kernel, y, batch, weights, n_sampled, size).items():
                row[k] = b
            totals[kind].append(row)
    for rows in totals.values():
        if rows:
            error = np.std(rows, axis=0) / np.sqrt(len(rows))
            assert (np.abs(np.mean(rows, axis=0) - 1) <= 5 * error + 1e-9).all()
            assert error.max() < 0.06


@every_proposal
def test_the_drawn_terms_stand_for_all_classes_outside_the_labels(proposal):
    """Mean weight 1 of every class outside a batch's labels, within 5 standard errors."""
    X, y, W, u = problem()
    kernel = solver_of(X, y, W, u, 3, 4, 0.0, proposal)[2]
    labels = {0, 3}
    rows = np.zeros((20000, K))
    for position in range(len(rows)):
        for k, weight in drawn_weights(kernel, 5, 3, labels, position, 3).items():
            rows[position, k] = weight
    outside = [k for k in range(K) if k not in labels]
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - 1) <= 5 * error + 1e-9)[outside].all()
    assert error[outside].max() < 0.1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"proposal": "tree", "l2": 1.0}, "proposal tree draws differently for each sample"),
        ({"proposal": "tree", "batch": {"size": 4}}, "take uniform or frequency"),
        ({"objective": {"name": "one-vs-each"}, "batch": {"size": 4}}, "optimizer implicit needs a proximal step"),
    ],
)
def test_combinations_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        method(**({"objective": "double-sum", "proposal": "uniform", "optimizer": "implicit"} | changes))


def test_the_tolerance_is_below_what_weights_hold():
    assert np.finfo(np.float32).eps > implicit_batch.TOLERANCE
