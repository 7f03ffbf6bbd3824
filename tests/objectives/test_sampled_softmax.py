"""The two biased softmaxes over a few classes: sampled softmax and importance sampling."""

import numpy as np
import pytest

import naive
import naive_sampled
from objectives import one_step
from xsoftmax.data.dataset import Dataset
from xsoftmax.kernels.full_softmax import loss_block
from xsoftmax.methods import build_method
from xsoftmax.objectives.importance_sampling import ImportanceSampling
from xsoftmax.objectives.sampled_softmax import SampledSoftmax
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

S = np.array([0.4, -1.1, 1.7, 0.2, -0.6])
LOG_Q = np.log([0.35, 0.3, 0.15, 0.1, 0.1])
Y = 1
NAIVE = {
    SampledSoftmax: naive_sampled.sampled_softmax_draws,
    ImportanceSampling: naive_sampled.importance_sampling_draws,
}
both = pytest.mark.parametrize("objective", NAIVE, ids=lambda o: o.__name__)


def of_draws(objective, n):
    """The objective, fitted to so many draws a step."""
    return objective().fit(TrainingSet(np.empty((0, 0), np.float32), np.empty(0, np.int32), 5, n_sampled=n))


def bias(mean):
    return np.abs(mean - naive.softmax(S, Y)[1]).max()


@both
@pytest.mark.parametrize("drawn", [[0], [2, 3], [1], [2, 2, 1, 4]], ids=str)
def test_one_step_is_the_equation(objective, drawn):
    """The true class among the draws: removed from the one, counted by the other."""
    of = of_draws(objective, len(drawn))
    loss, slopes = NAIVE[objective](S, Y, drawn, LOG_Q)
    draws = one_step.draws_of(of, S, Y, drawn, LOG_Q)
    assert np.allclose(one_step.step(of, S, Y, drawn, LOG_Q)[0], slopes, rtol=1e-12, atol=1e-14)
    assert one_step.loss_of(of, np.empty(0), S[Y], LOG_Q[Y], draws) == pytest.approx(loss, rel=1e-12, abs=1e-14)


@pytest.mark.long_cases
@both
@pytest.mark.parametrize("n_sampled", [1, 3])
def test_its_mean_is_that_of_all_draws_enumerated_and_not_the_softmaxs(objective, n_sampled):
    q = np.exp(LOG_Q)
    draws = list(naive_sampled.ordered_draws(q, n_sampled))
    expected = naive_sampled.expected(lambda drawn: NAIVE[objective](S, Y, drawn, LOG_Q)[1], draws)
    of = of_draws(objective, n_sampled)
    enumerated = naive_sampled.expected(lambda drawn: one_step.step(of, S, Y, drawn, LOG_Q)[0], draws)
    assert np.allclose(enumerated, expected, rtol=1e-11, atol=1e-13)
    counts = np.repeat(np.arange(5), [7, 6, 3, 2, 2])
    kernel = Frequency().fit(TrainingSet(np.zeros((20, 0), np.float32), counts, 5)).kernel(None)
    mean, error = one_step.mean_step(of, kernel, S, Y, 100_000, n_sampled=n_sampled)
    assert (np.abs(mean - expected) <= 5 * error + 1e-6).all()
    assert (np.abs(mean - naive.softmax(S, Y)[1]) / (error + 1e-9)).max() > 20


@both
def test_its_bias_shrinks_as_more_are_drawn(objective):
    def biases(q, log_q):
        for n in (1, 2, 4, 6):
            draws = naive_sampled.ordered_draws(q, n)
            of = of_draws(objective, n)
            slopes = naive_sampled.expected(lambda d, of=of: one_step.step(of, s, 1, d, log_q)[0], draws)
            yield np.abs(slopes - naive.softmax(s, 1)[1]).max()

    s, q = np.array([0.4, -0.3, 0.9]), np.array([0.4, 0.3, 0.3])
    found = list(biases(q, np.log(q)))
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.5 * found[0]
    assert found[-1] > 1e-3


def test_sampling_all_others_without_replacement_is_the_softmax():
    """Complementary sum sampling, over every set of classes: the less is left out, the smaller the bias."""
    log_q, found = np.full(5, -np.log(4)), []
    for n in (1, 2, 3, 4):
        draws = naive_sampled.subsets_of_others(5, Y, n)
        found.append(
            bias(naive_sampled.expected(lambda d: one_step.step(SampledSoftmax(), S, Y, d, log_q)[0], draws))
        )
    assert found[0] > found[1] > found[2] > 0.01
    assert found[3] < 1e-12


def test_over_all_classes_sampled_softmax_is_the_softmax(rng):
    for spread in (0.1, 3.0, 300.0):
        s = spread * rng.standard_normal(8)
        loss, slopes = naive.softmax(s, 3)
        draws = one_step.every_class(SampledSoftmax(), s, 3, np.zeros(8))
        of_true = one_step.gradient_of(SampledSoftmax(), 0.0, np.empty(0), s[3], 0.0, draws)
        assert np.allclose(one_step.slopes_by_scores(draws, of_true, 3, 8), slopes, rtol=1e-12, atol=1e-14)
        assert one_step.full_loss(SampledSoftmax(), s, 3) == pytest.approx(loss, rel=1e-12)


def test_importance_sampling_over_all_classes_is_the_value_at_the_expected_sum():
    n = 4
    inner = np.exp(S[Y] - LOG_Q[Y]) + n * np.exp(S).sum()
    expected = np.log(inner) - (S[Y] - LOG_Q[Y])
    objective = of_draws(ImportanceSampling, n)
    labels, samples = np.array([Y], np.int32), np.zeros(1, np.int64)
    found = loss_block(objective, labels, np.zeros((1, 0)), samples, S[None].copy(), LOG_Q[None])[0]
    assert found == pytest.approx(expected, rel=1e-12)
    draws = naive_sampled.ordered_draws(np.exp(LOG_Q), n)
    mean = naive_sampled.expected(lambda d: naive_sampled.importance_sampling_draws(S, Y, d, LOG_Q)[0], draws)
    assert found > mean + 0.01  # a logarithm is concave


@pytest.mark.parametrize("n", [1, 6])
def test_a_fit_takes_the_number_of_importance_samplings_draws_from_the_proposal(rng, n):
    X, y = rng.standard_normal((60, 3)).astype(np.float32), np.arange(60) % 4
    parts = {"objective": {"name": "importance-sampling"}, "optimizer": {"name": "sgd", "learning_rate": 0.1}}
    chosen = build_method("mine", parts | {"proposal": {"name": "uniform", "n_sampled": n}})
    found = fit(Dataset.from_arrays(X, y), chosen, 0, Plan(epochs=2, keep="last"))
    s = X.astype(float) @ found.model.W.T + found.model.b
    inner = 4 * np.exp(s[np.arange(60), y]) + n * np.exp(s).sum(axis=1)
    expected = np.mean(np.log(inner) - s[np.arange(60), y] - np.log(4))
    assert found.state.history[-1]["objective"] == pytest.approx(expected, rel=1e-5)
    assert found.model.W.any()


def test_a_class_that_is_never_drawn_counts_nothing():
    log_q = np.append(LOG_Q, -np.inf)
    of = of_draws(ImportanceSampling, 5)
    assert one_step.full_loss(of, np.append(S, 3.0), Y, log_q) == one_step.full_loss(of, S, Y, LOG_Q)


@both
@pytest.mark.parametrize("gap", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_apart_stay_probabilities(objective, gap, dtype):
    s, log_q = np.array([0.0, gap, gap / 2]), np.log([0.2, 0.4, 0.4])
    of = of_draws(objective, 2)
    slopes, _ = one_step.step(of, s, 0, [1, 2], log_q, dtype=dtype)
    assert np.allclose(slopes, [-1, 1, 0] if gap > 0 else 0, atol=2e-3)
    assert np.isfinite(one_step.full_loss(of, s, 0, log_q))


@both
@pytest.mark.parametrize("rate", [1.0, 1e5])
def test_two_classes_far_apart_at_a_high_rate_stay_finite(objective, rate):
    W = np.array([[0, 1e4], [0, 0]], np.float32)
    X, y, order = np.linspace(-1, 1, 10)[:, None], np.arange(10) % 2, np.arange(100) % 10
    found, _, taken = one_step.run(of_draws(objective, 1), one_step.even_draws(2), Sgd(), X, y, W, order, rate)
    assert taken == 100
    assert np.isfinite(found).all()
