"""Composition, SOX and SCENT: one running average of the inner sum per sample."""

import numpy as np
import pytest

import naive
import naive_sampled
from objectives import one_step
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method
from xsoftmax.objectives.composition import Composition
from xsoftmax.objectives.scent import Scent
from xsoftmax.objectives.sox import Sox
from xsoftmax.optimizers.sgd import Sgd

S = np.array([0.4, -1.1, 1.7, 0.2, -0.6])
Y, K = 1, 5
LOG_Q = np.log([0.35, 0.3, 0.15, 0.1, 0.1])
LOG_INNER = np.log(naive_sampled.inner_sum(S, Y))
KINDS = [Composition, Sox, Scent]
each = pytest.mark.parametrize("objective", KINDS, ids=lambda o: o.__name__)


def start(objective, nu):
    state = objective.initial_auxiliary(1, K)[0]
    state[0] = nu
    return state


def mean_over_all_draws(objective, nu, n_sampled=1):
    draws = naive_sampled.ordered_draws(np.exp(LOG_Q), n_sampled)
    return naive_sampled.expected(
        lambda drawn: one_step.step(objective, S, Y, drawn, LOG_Q, start(objective, nu))[0], draws
    )


@each
@pytest.mark.parametrize("gap", [-2.0, -0.1, 0.0, 3.0])
def test_its_value_is_the_double_sum_a_bound(objective, gap):
    value = one_step.full_loss(objective(), S, Y, state=start(objective(), LOG_INNER + gap))
    assert value == pytest.approx(naive.double_sum(S, Y, LOG_INNER + gap)[0], rel=1e-12)
    exact = naive.softmax(S, Y)[0]
    assert value == pytest.approx(exact, rel=1e-12) if gap == 0 else value > exact


@each
def test_the_average_begins_at_what_zero_weights_give(objective):
    auxiliary = objective().initial_auxiliary(3, K)
    assert auxiliary.shape == (3, objective.n_auxiliary)
    assert one_step.full_loss(objective(), np.zeros(K), Y, state=auxiliary[0]) == pytest.approx(np.log(K), rel=1e-13)


def steps(objective, nu, draws):
    """State after steps of fixed scores."""
    state = start(objective, nu)
    for drawn in draws:
        _, state = one_step.step(objective, S, Y, drawn, LOG_Q, state)
    return state


def test_composition_with_power_1_is_the_plain_mean_of_its_estimates(rng):
    draws = [[int(k)] for k in rng.choice(K, 50, p=np.exp(LOG_Q))]
    estimates = [sum(term for _, term in naive_sampled.other_terms(S, Y, drawn, LOG_Q)) for drawn in draws]
    nu, visits = steps(Composition(power=1.0), 3.0, draws)
    assert np.expm1(nu) == pytest.approx(np.mean(estimates), rel=1e-12)
    assert visits == 50


def test_composition_divides_by_the_average_from_before():
    of = Composition()
    slopes, _ = one_step.step(of, S, Y, [2], LOG_Q, start(of, 1.3))
    assert slopes[2] == pytest.approx(np.exp(S[2] - S[Y] - LOG_Q[2] - 1.3), rel=1e-12)


def test_composition_with_power_0_moves_by_a_constant_share():
    of = Composition(averaging=0.25, power=0.0)
    v = np.expm1(1.3)
    for drawn in ([2], [0], [2]):
        estimate = sum(term for _, term in naive_sampled.other_terms(S, Y, drawn, LOG_Q))
        v = 0.75 * v + 0.25 * estimate
    assert np.expm1(steps(of, 1.3, [[2], [0], [2]])[0]) == pytest.approx(v, rel=1e-12)


@pytest.mark.parametrize("averaging", [1e-3, 0.3, 20.0])
@pytest.mark.parametrize("nu", [0.0, 1.3, 6.0])
@pytest.mark.parametrize("drawn", [[2], [1], [0, 3]], ids=str)
def test_scents_step_is_the_proximal_one(averaging, nu, drawn):
    """That of its definition: nu + e^-nu z and the Bregman divergence of e^-nu."""
    estimate = 1.0 + sum(term for _, term in naive_sampled.other_terms(S, Y, drawn, LOG_Q))
    found = steps(Scent(averaging), nu, [drawn])[0]
    assert found == pytest.approx(naive_sampled.scent_by_minimizing(nu, estimate, averaging), abs=2e-6)
    assert found == pytest.approx(naive_sampled.scent_draws(S, Y, nu, drawn, LOG_Q, averaging)[1], rel=1e-12)


@pytest.mark.parametrize("objective", [Composition(), Sox(averaging=1e-6), Scent(averaging=1e-7)], ids=repr)
def test_at_the_best_average_that_moves_slowly_the_mean_step_is_the_softmaxs(objective):
    assert np.allclose(mean_over_all_draws(objective, LOG_INNER), naive.softmax(S, Y)[1], atol=2e-5)


@pytest.mark.parametrize("kind", [Sox, Scent], ids=lambda o: o.__name__)
def test_an_average_that_follows_its_own_draws_is_biased(kind):
    """The less, the slower it moves, and the more are drawn."""

    def bias(averaging, n_sampled=1):
        mean = mean_over_all_draws(kind(averaging), LOG_INNER, n_sampled)
        return np.abs(mean - naive.softmax(S, Y)[1]).max()

    assert bias(0.3) > 0.05
    assert bias(0.3) > bias(0.1) > bias(0.01) > bias(0.001) > 1e-5
    assert bias(0.3) > bias(0.3, 3) > bias(0.3, 5)


@pytest.mark.long_cases
@pytest.mark.parametrize("kind", [Sox, Scent], ids=lambda o: o.__name__)
def test_its_mean_step_in_the_loop_is_that_of_all_draws(kind):
    """What it is with an average that follows its draws; and the softmax's with one that moves slowly."""
    s, uniform = np.array([0.4, -1.1, 1.7, 0.2, -0.6]), np.full(K, -np.log(K))
    for averaging in (0.3, 1e-5):
        objective = kind(averaging)

        def slopes(drawn, objective=objective):
            if kind is Sox:
                return naive_sampled.sox_draws(s, Y, np.exp(LOG_INNER), drawn, uniform, objective.averaging)[0]
            return naive_sampled.scent_draws(s, Y, LOG_INNER, drawn, uniform, objective.averaging)[0]

        expected = naive_sampled.expected(slopes, naive_sampled.ordered_draws(np.exp(uniform), 1))
        mean, error = one_step.mean_step(objective, one_step.even_draws(K), s, Y, 100_000, [LOG_INNER])
        assert (np.abs(mean - expected) <= 5 * error + 1e-6).all()
        is_softmaxs = (np.abs(mean - naive.softmax(s, Y)[1]) <= 5 * error + 1e-3).all()
        assert is_softmaxs == (averaging < 0.1)


@pytest.mark.long_cases
@pytest.mark.parametrize("objective", [Composition(), Sox(averaging=1e-3), Scent(averaging=1e-3 / K)], ids=repr)
def test_at_fixed_weights_the_average_tends_to_the_inner_sum(objective):
    W = S.astype(np.float32)[:, None]
    auxiliary = objective.initial_auxiliary(1, K)
    auxiliary[0, 0] = 6.0  # far above
    arguments = (np.zeros((1, 0)), np.array([Y]), W, np.zeros(60_000, np.int64), 0.0, auxiliary)
    _, auxiliary, taken = one_step.run(objective, one_step.even_draws(K), Sgd(), *arguments)
    assert taken == 60_000
    assert auxiliary[0, 0] == pytest.approx(LOG_INNER, abs=0.08)
    assert abs(LOG_INNER - np.log(K)) > 0.5  # not where it begins by itself


@pytest.mark.parametrize("gap", [3.0, 1e4, -1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_coefficient_exceeds_1_over_the_share(gap, dtype):
    s, log_q = np.array([0.0, gap, gap / 2]), np.full(3, -np.log(2))
    for nu in (0.0, np.log(3), 12.0):
        for averaging in (1.0, 0.1, 0.01):
            slopes, state = one_step.step(Sox(averaging), s, 0, [1], log_q, [nu], dtype=dtype)
            assert 0 <= slopes[1] <= 1.001 / averaging
            assert np.isfinite(state).all()
            share = averaging / (averaging + np.exp(-nu))
            slopes, state = one_step.step(Scent(averaging), s, 0, [1], log_q, [nu], dtype=dtype)
            assert 0 <= slopes[1] <= 1.001 / share
            assert np.isfinite(state).all()


def test_compositions_coefficients_have_no_bound():
    s, log_q = np.array([0.0, 50.0, 0.0]), np.full(3, -np.log(2))
    assert one_step.step(Composition(), s, 0, [1], log_q, [np.log(3), 0.0])[0][1] > 1e20


@each
@pytest.mark.parametrize("rate", [1.0, 1e5])
@pytest.mark.parametrize("gap", [1.0, 1e4])
def test_two_classes_far_apart_at_a_high_rate_are_finite_or_stop_the_loop(objective, rate, gap):
    W = np.array([[0, gap], [0, 0]], np.float32)
    X, y, order = np.linspace(-1, 1, 10)[:, None], np.arange(10) % 2, np.arange(100) % 10
    found, auxiliary, taken = one_step.run(objective(), one_step.even_draws(2), Sgd(), X, y, W, order, rate)
    if objective is not Composition:
        assert taken == 100
    assert taken < 100 or np.isfinite(found).all()
    assert not np.isnan(auxiliary).any()


@pytest.mark.parametrize("name", ["composition", "sox", "scent"])
def test_an_average_that_never_moves_is_refused(name):
    settings = {"proposal": {"name": "uniform"}, "optimizer": {"name": "sgd"}}
    with pytest.raises(InputError, match="averaging is 0"):
        build_method(name, settings | {"objective": {"name": name, "averaging": 0.0}})
    if name != "scent":
        with pytest.raises(InputError, match="averaging is 2"):
            build_method(name, settings | {"objective": {"name": name, "averaging": 2.0}})
