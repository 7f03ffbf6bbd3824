import numpy as np
import pytest

import naive_sampled
from objectives import one_step
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method
from xsoftmax.objectives.nce import Nce
from xsoftmax.optimizers.sgd import Sgd

LOG_Q = np.log([0.35, 0.3, 0.15, 0.1, 0.1])
parameters = pytest.mark.parametrize(("ratio", "regularizer"), [(1.0, 0.0), (5.0, 0.0), (1.0, 0.3), (3.0, 0.02)])


@parameters
def test_its_loss_and_slopes_are_the_equations(rng, ratio, regularizer):
    s, objective = 2 * rng.standard_normal(5), Nce(ratio, regularizer)
    loss, slopes = naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer)
    draws = one_step.every_class(objective, s, 2, LOG_Q)
    of_true = one_step.gradient_of(objective, 0.0, np.empty(0), s[2], LOG_Q[2], draws)
    assert one_step.full_loss(objective, s, 2, LOG_Q) == pytest.approx(loss, rel=1e-12)
    assert np.allclose(one_step.slopes_by_scores(draws, of_true, 2, 5), slopes, rtol=1e-11, atol=1e-13)


@parameters
@pytest.mark.parametrize("n_sampled", [1, 3])
def test_its_mean_over_all_draws_is_its_gradient(rng, ratio, regularizer, n_sampled):
    s, objective = 2 * rng.standard_normal(5), Nce(ratio, regularizer)
    draws = naive_sampled.ordered_draws(np.exp(LOG_Q), n_sampled)
    mean = naive_sampled.expected(lambda drawn: one_step.step(objective, s, 2, drawn, LOG_Q)[0], draws)
    assert np.allclose(mean, naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer)[1], rtol=1e-11, atol=1e-13)


def test_its_mean_step_in_the_loop_is_its_gradient(rng):
    s, uniform = rng.standard_normal(6), np.full(6, -np.log(6))
    mean, error = one_step.mean_step(Nce(2.0, 0.1), one_step.even_draws(6), s, 4, 100_000, n_sampled=2)
    assert (np.abs(mean - naive_sampled.nce(s, 4, uniform, 2.0, 0.1)[1]) <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("ratio", [1.0, 5.0])
@pytest.mark.parametrize("log_q", [LOG_Q, np.full(5, -np.log(5))], ids=["unequal", "uniform"])
def test_a_flexible_models_optimum_is_the_log_probability_itself(ratio, log_q):
    """Whatever the proposal and the ratio; with a constant added it is not."""
    p = np.array([0.5, 0.2, 0.15, 0.1, 0.05])

    def slopes(s):
        draws = [(one_step.every_class(Nce(ratio), s, y, log_q), y) for y in range(5)]
        return sum(
            p[y]
            * one_step.slopes_by_scores(
                d, one_step.gradient_of(Nce(ratio), 0.0, np.empty(0), s[y], log_q[y], d), y, 5
            )
            for d, y in draws
        )

    assert np.allclose(slopes(np.log(p)), 0, atol=1e-13)
    assert np.abs(slopes(np.log(p) + 0.1)).max() > 1e-3


def test_no_noise_is_refused():
    settings = {"proposal": {"name": "uniform"}, "optimizer": {"name": "sgd"}}
    with pytest.raises(InputError, match="noise_ratio is 0"):
        build_method("nce", settings | {"objective": {"name": "nce", "noise_ratio": 0.0}})


def test_a_class_that_is_never_drawn_counts_nothing():
    s, log_q = np.array([0.4, -1.1, 1.7, 0.2, -0.6, 3.0]), np.append(LOG_Q, -np.inf)
    assert one_step.full_loss(Nce(), s, 2, log_q) == one_step.full_loss(Nce(), s[:5], 2, LOG_Q)


@pytest.mark.parametrize("gap", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_apart_have_bounded_slopes(gap, dtype):
    s, objective = np.array([-gap, gap, gap / 2, 0.0, 0.0]), Nce(3.0)
    slopes, _ = one_step.step(objective, s, 0, [1, 2], LOG_Q, dtype=dtype)
    assert np.allclose(slopes, [-1, 1.5, 1.5, 0, 0] if gap > 0 else 0, atol=1e-6)
    assert np.isfinite(one_step.full_loss(objective, s, 0, LOG_Q))


@pytest.mark.parametrize("rate", [1.0, 1e5])
def test_two_classes_far_apart_at_a_high_rate_stay_finite(rate):
    W = np.array([[0, 1e4], [0, 0]], np.float32)
    X, y, order = np.linspace(-1, 1, 10)[:, None], np.arange(10) % 2, np.arange(100) % 10
    found, _, taken = one_step.run(Nce(), one_step.even_draws(2), Sgd(), X, y, W, order, rate)
    assert taken == 100
    assert np.isfinite(found).all()
