import numpy as np
import pytest
from scipy.stats import chi2

from kernels.drawing import drawn, log_probabilities_of
from xsoftmax.kernels.random import stream
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.uniform import Uniform, UniformDraws

KEY = np.uint64(stream(1, 2))
N = 100_000
ALARM = 1e-6


def chi_square_alarm(counts, expected, degrees):
    return ((counts - expected) ** 2 / expected).sum() > chi2.isf(ALARM, degrees)


@pytest.mark.parametrize(("n_classes", "n_sampled"), [(2, 1), (7, 1), (7, 3), (7, 6), (100, 5)])
@pytest.mark.parametrize("last", [True, False])
def test_the_excluded_class_is_never_drawn_and_no_class_twice(n_classes, n_sampled, last):
    excluded = n_classes - 1 if last else n_classes // 3
    classes, log_q = drawn(UniformDraws(n_classes), 0, excluded, KEY, 0, N // 10, n_sampled)
    assert (classes != excluded).all()
    assert classes.min() >= 0
    assert classes.max() < n_classes
    assert all(len(set(row)) == n_sampled for row in classes.tolist())
    assert np.allclose(log_q, -np.log(n_classes - 1))


@pytest.mark.parametrize(("n_classes", "n_sampled"), [(7, 1), (7, 3), (40, 5)])
def test_each_other_class_is_included_equally_often(n_classes, n_sampled):
    classes, _ = drawn(UniformDraws(n_classes), 0, 2, KEY, 0, N, n_sampled)
    counts = np.delete(np.bincount(classes.ravel(), minlength=n_classes), 2)
    share = n_sampled / (n_classes - 1)
    # Inclusions of one step shut each other out: the variance is share (1 - share), and the sum is fixed.
    scaled = ((counts - N * share) ** 2).sum() / (N * share * (1 - share)) * (n_classes - 2) / (n_classes - 1)
    assert scaled < chi2.isf(ALARM, n_classes - 2)


def test_every_pair_is_included_equally_often():
    classes, _ = drawn(UniformDraws(7), 0, 0, KEY, 0, N, 2)
    pairs = np.sort(classes, axis=1)
    counts = np.bincount(pairs[:, 0] * 7 + pairs[:, 1], minlength=49)
    counts = counts[counts > 0]
    assert counts.size == 15
    assert not chi_square_alarm(counts, N / 15, 14)


def test_with_none_excluded_draws_are_independent_and_may_repeat():
    classes, log_q = drawn(UniformDraws(5), 0, -1, KEY, 0, N, 2)
    assert not chi_square_alarm(np.bincount(classes[:, 0] * 5 + classes[:, 1], minlength=25), N / 25, 24)
    assert np.allclose(log_q, -np.log(5))


def test_all_others_are_drawn_when_as_many_are_asked_for():
    classes, _ = drawn(UniformDraws(6), 0, 3, KEY, 0, 50, 5)
    assert all(sorted(row) == [0, 1, 2, 4, 5] for row in classes.tolist())


def test_probabilities_and_correction():
    fitted = Uniform().fit(TrainingSet(None, np.array([0, 1, 1]), 6))
    found = np.empty(6, np.float32)
    log_probabilities_of(fitted.kernel(None), 0, found)
    assert np.allclose(found, -np.log(6))
    assert fitted.log_q(None, 0, 6) is None


def test_more_draws_than_others_are_independent():
    classes, log_q = drawn(UniformDraws(4), 0, 1, KEY, 0, N // 5, 5)
    assert (classes != 1).all()
    pairs = np.delete(np.arange(4), 1)
    counts = np.array([[((classes[:, 0] == j) & (classes[:, 4] == k)).sum() for k in pairs] for j in pairs])
    assert not chi_square_alarm(counts.ravel(), N / 5 / 9, 8)
    assert np.allclose(log_q, -np.log(3))
