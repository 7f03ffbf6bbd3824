"""Augment and reduce, for the softmax, probit and logistic models, against the paper's equations."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize

import naive
import naive_augment_reduce as slow
from kernels.drawing import drawn
from kernels.layouts import laid_out
from kernels.loops import run_steps
from objectives import one_step
from problems import sparse_problem
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.augment import GAMMA_OF_ONE
from xsoftmax.kernels.coefficients import OWN_NUMBERS
from xsoftmax.kernels.noise import Logistic, Normal, draw_noise
from xsoftmax.kernels.protocol import Clock, Draws, gradient
from xsoftmax.kernels.random import start, stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.objectives.augment_reduce import AugmentReduce
from xsoftmax.objectives.augment_reduce_logistic import AugmentReduceLogistic
from xsoftmax.objectives.augment_reduce_probit import AugmentReduceProbit
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform

KEY = np.uint64(stream(5, 3))
# Objective, and the noise of its model: for the kernels, and for the naive reference.
GENERAL = {
    "probit": (AugmentReduceProbit, Normal(), "normal"),
    "logistic": (AugmentReduceLogistic, Logistic(), "logistic"),
}
every_model = pytest.mark.parametrize("model", GENERAL)


def loss_of(objective, state, score_true, draws):
    return one_step.loss_of(objective, state, score_true, 0.0, draws)


def gradient_of(objective, rate, state, score_true, draws):
    kind = draws.scores.dtype.type
    return one_step.gradient_of(objective, kind(rate), state, kind(score_true), kind(0), draws)


@njit(**OPTIONS)
def mean_coefficients(objective, state, score_true, draws, n_steps):
    """Mean and standard error over steps from the same state: first the true class, then the draws."""
    total, squares = np.zeros(draws.out.size + 1), np.zeros(draws.out.size + 1)
    of_step, moved = np.empty(draws.out.size + 1), state.copy()
    for n in range(n_steps):
        moved[:] = state
        draws.rng[0] = start(np.uint64(7), n)
        of_step[0] = gradient(objective, np.float32(0), moved, score_true, np.float32(0), draws)
        of_step[1:] = draws.out
        total += of_step
        squares += of_step * of_step
    mean = total / n_steps
    return mean, np.sqrt((squares / n_steps - mean * mean) / n_steps)


@njit(**OPTIONS)
def settle(objective, state, score_true, draws, n_steps):
    for n in range(n_steps):
        draws.rng[0] = start(np.uint64(11), n)
        gradient(objective, np.float32(0), state, score_true, np.float32(0), draws)


@njit(**OPTIONS)
def numbers(noise, rng, out):
    for i in range(out.size):
        rng, out[i] = draw_noise(noise, rng)


def noise_after(noise, rng, n):
    out = np.empty(n)
    numbers(noise, np.uint64(rng), out)
    return out


def all_but(y, s, dtype=np.float64):
    """Draws that are all other classes, with weight 1."""
    others = np.delete(np.asarray(s, dtype), y)
    ones, classes = np.ones(others.size, dtype), np.delete(np.arange(len(s)), y)
    return Draws(classes, ones, ones.copy(), others, np.empty(others.size, dtype), np.ones(1, np.uint64))


def gamma_of(sigma):
    return np.log(np.expm1(sigma))


def best_bound(noise, s, y):
    """(mu, sigma) of the highest bound, and its value."""
    found = minimize(
        lambda p: -slow.elbo(noise, s, y, p[0], slow.softplus(p[1])),
        [1.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-11},
    )
    return found.x[0], slow.softplus(found.x[1]), -found.fun


# Values.


@pytest.mark.parametrize("spread", [0.1, 2.0, 30.0])
def test_the_softmax_bound_is_equation_8(spread, rng):
    for _ in range(20):
        s, log_eta = spread * rng.standard_normal(8), 3 * rng.standard_normal()
        value = loss_of(AugmentReduce(), np.array([log_eta, 0.0]), s[3], all_but(3, s))
        assert value == pytest.approx(-slow.softmax_bound(s, 3, np.exp(log_eta)), rel=1e-12)
        exact = naive.softmax(s, 3)[0]
        assert value >= exact - 1e-12
        tight = loss_of(AugmentReduce(), np.array([exact, 0.0]), s[3], all_but(3, s))
        assert tight == pytest.approx(exact, rel=1e-12)


@every_model
@pytest.mark.parametrize("spread", [0.1, 2.0, 12.0])
def test_general_bounds_are_equation_7_and_below_their_own_likelihood(model, spread, rng):
    objective, _, noise = GENERAL[model]
    for _ in range(10):
        s, mu, sigma = spread * rng.standard_normal(6), 3 * rng.standard_normal(), rng.uniform(0.05, 2.5)
        value = loss_of(objective(), np.array([mu, gamma_of(sigma), 0.0]), s[2], all_but(2, s))
        assert value == pytest.approx(-slow.elbo(noise, s, 2, mu, sigma), rel=1e-8, abs=1e-8)
        assert -value <= slow.log_probability(noise, s, 2) + 1e-9


@every_model
def test_general_bounds_at_their_best_are_near_the_likelihood(model, rng):
    noise = GENERAL[model][2]
    for n_classes in (2, 30):
        s = rng.standard_normal(n_classes)
        exact = slow.log_probability(noise, s, 0)
        assert exact - 0.2 < best_bound(noise, s, 0)[2] < exact


@every_model
def test_weights_of_draws_count_in_the_value(model, rng):
    objective, _, noise = GENERAL[model]
    s, weights = rng.standard_normal(5), np.array([3.0, 1.0, 1.0, 2.0])
    draws = all_but(0, s)._replace(weights=weights)
    repeated = np.append(np.repeat(s[1:], weights.astype(int)), s[0])
    value = loss_of(objective(), np.array([0.5, 0.2, 0.0]), s[0], draws)
    assert value == pytest.approx(-slow.elbo(noise, repeated, 7, 0.5, slow.softplus(0.2)), rel=1e-8)


# Slopes.


def differences(value, point):
    step = 1e-5 * np.eye(len(point))
    return np.array([(value(point + e) - value(point - e)) / 2e-5 for e in step])


def test_softmax_coefficients_are_slopes_of_the_bound(rng):
    s, log_eta = 2 * rng.standard_normal(6), 1.3
    draws = all_but(1, s)
    of_true = gradient_of(AugmentReduce(local_rate=0.0), np.float32(0), np.array([log_eta, 3.0]), s[1], draws)
    expected = differences(lambda s: -slow.softmax_bound(s, 1, np.exp(log_eta)), s)
    assert of_true == pytest.approx(expected[1], rel=1e-6)
    assert np.allclose(draws.out, np.delete(expected, 1), rtol=1e-6)


@pytest.mark.long_cases
@every_model
def test_expected_coefficients_are_slopes_of_the_bound(model, rng):
    """At fixed variables; the weights of the draws counted."""
    objective, _, noise = GENERAL[model]
    s, mu, sigma = rng.standard_normal(5), 0.8, 0.6
    weights = np.array([1.0, 2.0, 1.0, 3.0])
    draws = all_but(0, s, np.float32)._replace(weights=weights.astype(np.float32))
    state = np.array([mu, gamma_of(sigma), 4.0])
    mean, error = mean_coefficients(objective(local_rate=0.0), state, np.float32(s[0]), draws, 50_000)

    def value(point):
        others = np.repeat(point[1:], weights.astype(int))
        return -slow.elbo(noise, np.append(others, point[0]), len(others), mu, sigma)

    expected = differences(value, s.astype(np.float32).astype(float))
    assert (np.abs(mean - expected) < 5 * error + 1e-6).all()
    assert error.max() < 0.02


@every_model
def test_expected_local_steps_are_slopes_of_the_bound(model, rng):
    """With the gradient of the entropy; without it they are not."""
    objective, _, name = GENERAL[model]
    s, mu, gamma, n_steps = rng.standard_normal(5), 0.8, -0.3, 20_000
    expected = differences(lambda p: slow.elbo(name, s, 0, p[0], slow.softplus(p[1])), np.array([mu, gamma]))
    draws, steps = all_but(0, s), np.empty((2, n_steps, 2))
    for entropy in (False, True):
        rate = 1e-3 * 2.0**-0.9
        parameters = objective(local_rate=1e-3, entropy=entropy)
        for n in range(n_steps):
            state = np.array([mu, gamma, 0.0])
            draws.rng[0] = start(np.uint64(3), n)
            gradient_of(parameters, np.float32(0), state, s[0], draws)
            steps[int(entropy), n] = (state[:2] - [mu, gamma]) / rate
    error = steps[1].std(axis=0) / np.sqrt(n_steps)
    assert (np.abs(steps[1].mean(axis=0) - expected) < 5 * error + 1e-6).all()
    lost = 1 / slow.softplus(gamma) / (1 + np.exp(-gamma))
    assert np.allclose(steps[1] - steps[0], [0, lost], atol=1e-9)


# Steps.


def naive_steps(objective, noise, name, proposal, X, y, W, auxiliary, order, rate, n_sampled):
    """float64 W and states after all steps, given the same draws and numbers."""
    fitted, n_classes = proposal.fit(TrainingSet(X, y, len(W))), len(W)
    kernel, log_q = fitted.kernel(X), fitted.log_q(X, 0, n_classes)
    W, auxiliary, inputs = W.astype(float), auxiliary.copy(), naive.with_constant(X)
    for t, i in enumerate(order):
        s, k = W @ inputs[i], y[i]
        classes = drawn(kernel, i, k, KEY, t, 1, n_sampled)[0][0]
        q = np.full(n_classes, 1 / (n_classes - 1)) if log_q is None else np.exp(log_q[0].astype(float))
        weights = [0.0 if c == k else 1 / (n_sampled * q[c]) for c in classes]
        if noise is None:
            eta = np.exp(auxiliary[i, 0])
            slopes, eta, auxiliary[i, 1] = slow.softmax_step(s, k, eta, auxiliary[i, 1], classes, weights)
            auxiliary[i, 0] = np.log(eta)
        else:
            u, fresh = noise_after(noise, start(KEY ^ OWN_NUMBERS, t), 4 if name == "normal" else 2)[:2]
            slopes, *auxiliary[i] = slow.general_step(name, s, k, *auxiliary[i], classes, weights, u, fresh, 0.05)
        W -= rate * np.outer(slopes, inputs[i])
    return W, auxiliary


@pytest.mark.long_cases
@pytest.mark.parametrize(
    "proposal", [pytest.param(Uniform(), marks=pytest.mark.slow), Frequency()], ids=["uniform", "frequency"]
)
@pytest.mark.parametrize("model", ["softmax", *GENERAL])
def test_sweeps_are_the_naive_loop(model, proposal):
    X, y, W = sparse_problem(np.random.default_rng(0), 30, 9, 7)
    cls, noise, name = GENERAL.get(model, (AugmentReduce, None, None))
    objective = cls() if noise is None else cls(local_rate=0.05)
    order = np.concatenate([np.random.default_rng(1).permutation(30) for _ in range(2)])
    auxiliary = objective.initial_auxiliary(30, 7)
    expected_W, expected_auxiliary = naive_steps(objective, noise, name, proposal, X, y, W, auxiliary, order, 0.05, 3)
    layout, kernel = laid_out(Sgd(), W), proposal.fit(TrainingSet(X, y, 7)).kernel(X)
    clock = Clock(KEY, 0, 0)
    run_steps(objective, kernel, Sgd(), features_of(X, True), y, auxiliary, layout, order, clock, np.float32(0.05), 3)
    assert np.allclose(layout.W, expected_W, rtol=1e-4, atol=3e-5)
    assert np.allclose(auxiliary, expected_auxiliary, rtol=1e-4, atol=3e-5)
    assert (auxiliary[:, -1] == 2).all()
    assert np.abs(layout.W - W).max() > 0.01


def test_no_softmax_coefficient_exceeds_one_over_alpha():
    rng = np.random.default_rng(0)
    for _ in range(500):
        s = rng.standard_normal(6) * 10 ** rng.uniform(-2, 4)
        draws, visits = all_but(0, s, np.float32), float(rng.integers(50))
        draws.weights[:] = 1e5
        state = np.array([rng.normal() * 10 ** rng.uniform(-2, 4), visits])
        of_true = gradient_of(AugmentReduce(), np.float32(0), state, np.float32(s[0]), draws)
        assert np.isfinite(state).all()
        # float32 differences of scores of some thousands are good to 1e-3
        assert 0 <= draws.out.max() <= -of_true * 1.0001 <= (2 + visits) ** 0.9 * 1.01


@every_model
def test_scores_far_apart_stay_finite(model):
    objective = GENERAL[model][0]()
    for s in ([1e4, 0.0, -1e4], [0.0, 1e4, -1e4], [-1e4, 1e4, 1e4], [0.0, 1e4]):
        state = objective.initial_auxiliary(1, len(s))[0]
        draws = all_but(0, s, np.float32)
        for n in range(200):
            draws.rng[0] = start(np.uint64(1), n)
            assert np.isfinite(gradient_of(objective, np.float32(1), state, np.float32(s[0]), draws))
            assert np.isfinite(draws.out).all()
        assert np.isfinite(state).all()
        assert np.isfinite(loss_of(objective, state, s[0], all_but(0, s)))


# A toy problem: where mu and sigma settle.


@every_model
def test_local_steps_find_the_best_bound_and_the_published_ones_lose_it(model):
    """The authors' program leaves out the entropy's gradient, so that its sigma goes to 0."""
    objective, _, noise = GENERAL[model]
    s = np.array([1.0, 0.5, -0.5, 0.0, 0.3])
    mu, sigma, _ = best_bound(noise, s, 0)
    state = objective().initial_auxiliary(1, 5)[0]
    settle(objective(local_rate=0.3, local_power=0.6), state, 1.0, all_but(0, s), 400_000)
    assert state[0] == pytest.approx(mu, abs=0.05)
    assert slow.softplus(state[1]) == pytest.approx(sigma, abs=0.05)
    lost = objective().initial_auxiliary(1, 5)[0]
    settle(objective(local_rate=1e-3, local_power=0.0, entropy=False), lost, 1.0, all_but(0, s), 400_000)
    assert slow.softplus(lost[1]) < 0.2 * sigma


@every_model
def test_variables_begin_at_the_best_bound_of_equal_scores(model):
    objective, _, noise = GENERAL[model]
    for n_classes in (2, 40):
        mu, sigma, _ = best_bound(noise, np.zeros(n_classes), 0)
        auxiliary = objective().initial_auxiliary(3, n_classes)
        assert auxiliary.shape == (3, 3)
        assert np.allclose(auxiliary, [mu, gamma_of(sigma), 0], atol=1e-3)
    published = objective(start_at_best=False).initial_auxiliary(2, 40)
    assert np.allclose(published, [0, GAMMA_OF_ONE, 0])
    assert slow.softplus(GAMMA_OF_ONE) == pytest.approx(1)


def test_eta_begins_at_the_inner_sum_of_equal_scores():
    assert np.allclose(AugmentReduce().initial_auxiliary(2, 40), [[np.log(40), 0]] * 2)


def test_a_local_rate_above_one_is_refused():
    axes = {"proposal": {"name": "uniform"}, "optimizer": {"name": "sgd"}}
    with pytest.raises(InputError, match=r"local_rate is 1\.5; set it above 0, to 1 at most"):
        build_method("mine", axes | {"objective": {"name": "augment-reduce", "local_rate": 1.5}})


@every_model
def test_noise_is_what_it_is_called(model):
    """Mean, variance and a tail, within 5 standard errors of their estimates."""
    draws = noise_after(GENERAL[model][1], 9, 200_000)
    variance = 1.0 if model == "probit" else np.pi**2 / 3
    tail = np.exp(slow.log_cumulative(GENERAL[model][2], -1.5))
    assert abs(draws.mean()) < 5 * np.sqrt(variance / 200_000)
    assert draws.var() == pytest.approx(variance, rel=0.03)
    assert abs((draws < -1.5).mean() - tail) < 5 * np.sqrt(tail / 200_000)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 5 / np.sqrt(200_000)
