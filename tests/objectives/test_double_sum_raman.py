import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import naive
import naive_sampled
from objectives import one_step
from xsoftmax.objectives.double_sum_raman import DoubleSumRaman, implicit_step
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax

RAMAN = DoubleSumRaman()
UNIFORM = np.full(8, -np.log(7))


@pytest.mark.parametrize("u", [-3.0, 0.0, 7.5])
def test_it_is_equation_8(rng, u):
    s = 2 * rng.standard_normal(8)
    loss, slopes, slope_u = naive_sampled.raman(s, 3, u)
    assert one_step.full_loss(RAMAN, s, 3, state=[u]) == pytest.approx(loss, rel=1e-12)
    draws, state = one_step.every_class(RAMAN, s, 3, UNIFORM), np.array([u])
    of_true = one_step.gradient_of(RAMAN, 0.5, state, s[3], 0.0, draws)
    assert np.allclose(one_step.slopes_by_scores(draws, of_true, 3, 8), slopes, rtol=1e-12, atol=1e-12)
    assert state[0] == pytest.approx(u - 0.5 * slope_u, rel=1e-12)


def test_it_is_a_bound_and_tight_at_the_log_sum_exp(rng):
    for _ in range(100):
        s = 10 ** rng.uniform(-1, 2) * rng.standard_normal(8) - 5
        exact = naive.softmax(s, 3)[0]
        at_best = one_step.full_loss(RAMAN, s, 3, state=[logsumexp(s)])
        assert at_best == pytest.approx(exact, rel=1e-12, abs=1e-12 * np.abs(s).max())
        for gap in rng.standard_normal(5):
            assert one_step.full_loss(RAMAN, s, 3, state=[logsumexp(s) + gap]) > at_best + 0.3 * min(1, gap**2)


@pytest.mark.parametrize("log_q", [UNIFORM, np.log(np.arange(1, 9) / 36)], ids=["uniform", "unequal"])
def test_its_mean_over_all_draws_is_its_gradient(rng, log_q):
    """And at the best u, the softmax's."""
    s = 2 * rng.standard_normal(8)
    q = np.where(np.arange(8) == 3, 0, 1 / 7) if log_q is UNIFORM else np.exp(log_q)
    for u in (1.3, logsumexp(s)):
        draws = list(naive_sampled.ordered_draws(q, 1))
        mean = naive_sampled.expected(lambda drawn, u=u: one_step.step(RAMAN, s, 3, drawn, log_q, [u])[0], draws)
        assert np.allclose(mean, naive_sampled.raman(s, 3, u)[1], rtol=1e-12, atol=1e-12)
        moved = naive_sampled.expected(
            lambda drawn, u=u: one_step.step(RAMAN, s, 3, drawn, log_q, [u], 0.1)[1], draws
        )
        assert moved[0] == pytest.approx(u - 0.1 * naive_sampled.raman(s, 3, u)[2], rel=1e-12)
    assert np.allclose(mean, naive.softmax(s, 3)[1], rtol=1e-12, atol=1e-12)


def test_its_mean_step_in_the_loop_is_its_gradient(rng):
    s = rng.standard_normal(6)
    mean, error = one_step.mean_step(RAMAN, one_step.even_draws(6), s, 4, 100_000, [1.1], n_sampled=2)
    # The true class has no noise, but its sums are float32.
    assert (np.abs(mean - naive_sampled.raman(s, 4, 1.1)[1]) <= 5 * error + 2e-5).all()


def test_where_u_begins():
    assert np.array_equal(RAMAN.initial_auxiliary(3, 10), np.full((3, 1), np.log(10)))
    assert not DoubleSumRaman(start_at_log_classes=False).initial_auxiliary(3, 10).any()
    assert one_step.full_loss(RAMAN, np.zeros(8), 3, state=[np.log(8)]) == pytest.approx(np.log(8), rel=1e-14)


# U-max.


def lifted(s, y, drawn, u, threshold=1.0):
    state = np.array([u])
    log_q = np.full(len(s), -np.log(len(s)))
    one_step.raise_bound_of(RAMAN, threshold, state, s[y], one_step.draws_of(RAMAN, s, y, drawn, log_q))
    return state[0]


def test_u_is_lifted_to_what_distinct_classes_prove(rng):
    s = 3 * rng.standard_normal(8)
    for drawn in ([5], [5, 6], [5, 5, 6, 5], [3, 5], [3]):
        bound = logsumexp(s[sorted({3, *drawn})])
        assert lifted(s, 3, drawn, bound - 1.01) == pytest.approx(bound, rel=1e-12)
        assert lifted(s, 3, drawn, bound - 0.99) == bound - 0.99
        assert lifted(s, 3, drawn, bound + 50) == bound + 50


@pytest.mark.parametrize("gap", [1.0, 100.0, 1e4, -1e4])
def test_the_guard_bounds_every_coefficient(gap):
    """By n_classes / n_sampled times e^threshold, and that of the true class by e^threshold."""
    s, u = np.array([0.0, gap, gap / 2, 0.0]), -50.0
    log_q = np.full(4, -np.log(3))
    for dtype in (np.float32, np.float64):
        for drawn in ([1], [2, 3], [1, 2, 3]):
            slopes, _ = one_step.step(RAMAN, s, 0, drawn, log_q, [lifted(s, 0, drawn, u)], dtype=dtype)
            assert np.abs(slopes).max() <= 3 / len(drawn) * np.e
    assert one_step.step(RAMAN, s, 0, [1], log_q, [u])[0].max() > 1e20 or gap < 50  # without the guard


# The implicit step.

MODERATE = list(
    itertools.product([0.01, 0.5, 3.0], [0.3, 1.0], [4.0, 300.0], [-2.0, 1.0], [-3.0, 4.0], [-4.0, 0.7, 5.0])
)
EXTREME = list(
    itertools.product(
        [1e-4, 1.0, 1e5], [1e-6, 1.0, 32.0], [1.0, 2e6], [-1e4, 0.0, 1e4], [-1e4, 0.0, 30.0, 1e4], [-1e4, 14.5, 1e4]
    )
)


def residuals(rate, rho, weight, p, q, u_old, u, alpha, beta):
    """Of the three equations at the new point, relative to their terms; no exponential is formed."""
    terms = [u - u_old, rate, -alpha / rho, -beta / rho]
    by_u = abs(sum(terms)) / max(1.0, abs(u), abs(u_old), *map(abs, terms))
    z_true, z_drawn = np.log(rho * rate) + p + rho * rate - u, np.log(rho * rate * weight) + q - u
    both = [(alpha, z_true), (beta, z_drawn)]
    return [by_u, *(abs(a + np.log(a) - z) / max(1.0, a, abs(z)) for a, z in both if a > 1e-300)]


@pytest.mark.parametrize("cases", [MODERATE, EXTREME], ids=["moderate", "extreme"])
def test_the_step_ends_where_its_gradient_is_taken(cases):
    for case in cases:
        u, alpha, beta = implicit_step(*case)
        assert alpha >= 0 <= beta
        assert max(residuals(*case, u, alpha, beta)) < 1e-12, case


def test_random_steps_end_where_their_gradients_are_taken():
    rng = np.random.default_rng(0)
    for _ in range(5000):
        case = (
            10 ** rng.uniform(-4, 5), 10 ** rng.uniform(-30 if rng.random() < 0.1 else -3, 1.5),
            float(rng.integers(1, 2_000_000)), *(rng.normal(size=3) * 10 ** rng.uniform(-2, 4, 3)),
        )  # fmt: skip
        assert max(residuals(*case, *implicit_step(*case))) < 1e-12, case


def test_it_is_the_root_of_the_naive_equation():
    for case in MODERATE + EXTREME:
        rate, rho = case[:2]
        u, alpha, beta = implicit_step(*case)
        u_true, up, down = naive_sampled.raman_implicit_step(*case)
        size = max(1.0, rate, *map(abs, case[3:]))
        assert u == pytest.approx(u_true, abs=1e-11 * size), case
        assert rate - alpha / rho == pytest.approx(up, abs=1e-9 * size), case
        assert beta / rho == pytest.approx(down, abs=1e-9 * size), case


@pytest.mark.parametrize("case", MODERATE[::11])
def test_it_minimizes_the_proximal_objective(case):
    u, alpha, beta = implicit_step(*case)
    u_true, up, down = naive_sampled.raman_implicit_step_by_minimizing(*case)
    assert u == pytest.approx(u_true, abs=2e-5)
    assert case[0] - alpha / case[1] == pytest.approx(up, abs=2e-5)
    assert beta / case[1] == pytest.approx(down, abs=2e-5)


def proximal(rate, squared_norm, weight, p, q, u_old):
    draws = one_step.draws_of(RAMAN, np.array([p, q]), 0, [1], [0.0, -np.log(weight)], np.float32)
    state = np.array([u_old])
    of_true = one_step.proximal_of(RAMAN, np.float32(rate), state, np.float32(squared_norm), np.float32(p), draws)
    return draws.out[0], of_true, state[0]


def test_coefficients_move_the_drawn_class_down_and_the_true_one_up():
    case = (0.5, 1.0, 300.0, 1.0, 2.0, 0.7)
    drawn, of_true, u = proximal(*case)
    u_true, up, down = naive_sampled.raman_implicit_step(*case)
    assert (drawn, of_true, u) == (pytest.approx(down, rel=1e-6), pytest.approx(-up, rel=1e-6), pytest.approx(u_true))
    assert down > 0


@pytest.mark.parametrize("u_old", [-20.0, 0.0, 2.0])
def test_a_row_of_length_zero_moves_u_alone(u_old):
    """To the root of u - u_old + h (1 - e^(p - u) - w e^(q - u)) = 0; what it returns is finite."""
    drawn, of_true, u = proximal(0.5, 0.0, 300.0, 0.0, 0.0, u_old)
    assert np.isfinite([drawn, of_true]).all()
    assert u - u_old + 0.5 * (1 - 301 * np.exp(-u)) == pytest.approx(0, abs=1e-5 * max(1, 1 / u))


def test_a_draw_of_the_true_class_moves_the_true_class_alone():
    u, alpha, beta = implicit_step(0.5, 1.3, 0.0, 1.0, 1.0, 2.0)
    u_true, up, _ = naive_sampled.raman_implicit_step(0.5, 1.3, 0.0, 1.0, 1.0, 2.0)
    assert beta == 0
    assert u == pytest.approx(u_true, rel=1e-12)
    assert 0.5 - alpha / 1.3 == pytest.approx(up, rel=1e-10)


def test_a_step_of_no_length_goes_nowhere():
    assert implicit_step(0.0, 1.0, 5.0, 1.0, 2.0, 1.5) == (pytest.approx(1.5, abs=1e-12), 0.0, 0.0)


@pytest.mark.parametrize("rate", [1.0, 1e5])
@pytest.mark.parametrize("gap", [1.0, 1e4])
@pytest.mark.slow
def test_implicit_steps_stay_finite_with_two_classes(gap, rate):
    """Rows of many lengths, 0 among them, and scores far apart; neither U-max nor SGD returns NaN before it stops."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3)) * 10 ** rng.uniform(-3, 1, (20, 1))
    X[4] = 0
    W = np.array([[0, 0, 0, gap], [0, 0, 0, 0]], np.float32)
    order = np.arange(200) % 20
    arguments = (one_step.even_draws(2), Implicit(), X, np.arange(20) % 2, W, order, rate)
    found, u, taken = one_step.run(RAMAN, *arguments)
    assert taken == 200
    assert np.isfinite(found).all()
    assert np.isfinite(u).all()
    for optimizer in (UMax(), Sgd()):
        found, _, taken = one_step.run(RAMAN, one_step.even_draws(2), optimizer, *arguments[2:])
        assert taken < 200 or np.isfinite(found).all()
