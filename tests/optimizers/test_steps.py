"""One step of each optimizer, on its own."""

import numpy as np
import pytest
from numba import njit, typeof, types

import naive
from kernels.layouts import accumulators, laid_out
from xsoftmax.data.training_set import TrainingSet
from xsoftmax.internal import registry
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.layout import Apart
from xsoftmax.kernels.protocol import Draws, Step, coefficients, updated
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.walk import move, move_stretch
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax


@njit(**OPTIONS)
def coefficients_of(optimizer, objective, features, rate, state, score_true, draws):
    return coefficients(optimizer, objective, features, 0, rate, state, score_true, np.float32(0), draws)


@njit(**OPTIONS)
def moved(weights, features, optimizer, i, rate, coefficient, k):
    move(weights, features, optimizer, i, Step(rate, 0), coefficient, k)


@njit(**OPTIONS)
def moved_stretch(weights, optimizer, rate, first, gradient):
    move_stretch(weights, optimizer, Step(rate, 0), 0, first, gradient)


def draws_of(scores, weights, classes=None):
    n = len(scores)
    arrays = [np.zeros(n), weights, scores, np.zeros(n)]
    classes = np.arange(1, n + 1) if classes is None else np.array(classes)
    return Draws(classes, *(np.array(a, np.float32) for a in arrays), np.zeros(1, np.uint64))


RULES = [registry.load("xsoftmax.optimizers", name).MEMBER for name in registry.names("xsoftmax.optimizers")]


@njit(**OPTIONS)
def updated_by(optimizer, step, w, a, g):
    return updated(optimizer, step, w, a, g)


@pytest.mark.parametrize("rule", [r for r in RULES if r.needs != "full_gradient"], ids=lambda rule: rule.__name__)
def test_every_rule_keeps_to_what_it_says_of_itself(rule):
    """An L2 penalty may shrink weights only where steps are minus the rate times the gradient; nothing is float64."""
    fitted = rule().fit(TrainingSet(np.zeros((6, 1), np.float32), np.arange(6, dtype=np.int32), 6))
    w, a, rate = np.float32(0.7), np.float32(0.5), np.float32(0.1)
    for g in np.float32([-2.0, -0.01, 0.0, 0.3, 40.0]):
        new, kept = updated_by(fitted, Step(rate, 3), w, a, g)
        solved = rule.needs == "proximal"  # coefficients have the rate in them
        if rule.takes_l2:
            assert new == pytest.approx(w - (1 if solved else rate) * g, rel=1e-6)
        if not rule.accumulates:
            assert kept == a
    types_of = updated_by.overloads[tuple(map(typeof, (fitted, Step(rate, 3), w, a, g)))].signature.return_type
    assert set(types_of) == {types.float32}


FEATURES = features_of(np.ones((1, 3), np.float32), True)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n_sampled", [1, 5])
def test_u_max_bounds_its_coefficients(threshold, n_sampled):
    """(K - 1) e^delta, Fagan and Iyengar, section 3.1; u and the scores as wild as may be."""
    rng, n_classes = np.random.default_rng(0), 1000
    rate = np.float32(1e-6)
    for _ in range(500):
        state = np.array([abs(rng.normal()) * 10 ** rng.uniform(-2, 3)])
        scores = rng.standard_normal(n_sampled) * 10 ** rng.uniform(-2, 3)
        draws = draws_of(scores, np.full(n_sampled, (n_classes - 1) / n_sampled))
        score_true = np.float32(rng.normal())
        of_true = coefficients_of(UMax(threshold=threshold), DoubleSum(), FEATURES, rate, state, score_true, draws)
        assert np.isfinite(state[0])
        assert state[0] >= 0
        # scores of some thousands have float32 steps of some 1e-4
        assert draws.out.sum() <= (n_classes - 1) * np.exp(threshold) * 1.001
        assert of_true == pytest.approx(-draws.out.sum(), rel=1e-5)


def test_u_max_leaves_a_u_that_is_high_enough():
    for u, lifted in ((0.0, True), (1.5, False), (9.0, False)):
        state, draws = np.array([u]), draws_of([2.0], [9.0])
        coefficients_of(UMax(threshold=1.0), DoubleSum(), FEATURES, np.float32(0), state, np.float32(0), draws)
        assert state[0] == pytest.approx(np.logaddexp(0, 2.0) if lifted else u, rel=1e-6)


@pytest.mark.parametrize(("weights", "classes"), [([0.0] * 5, [0] * 5), ([2.0] * 5, [3] * 5), ([0, 2, 2], [0, 3, 3])])
def test_u_max_lifts_u_to_no_more_than_its_optimum(weights, classes):
    """A draw of the true class (weight 0), and the second draw of a class, prove nothing about u."""
    scores = np.array([0.0 if k == 0 else 0.5 for k in classes])
    state, draws = np.zeros(1), draws_of(scores, weights, classes)
    coefficients_of(UMax(threshold=0.1), DoubleSum(), FEATURES, np.float32(0), state, np.float32(0), draws)
    others = {k: scores[j] for j, k in enumerate(classes) if weights[j] > 0}
    assert state[0] <= np.log1p(sum(np.exp(s) for s in others.values())) + 1e-6


def test_implicit_steps_of_any_length_stay_finite():
    rng = np.random.default_rng(0)
    for _ in range(500):
        state = np.array([abs(rng.normal()) * 10 ** rng.uniform(-2, 4)])
        score_true, score = (rng.standard_normal(2) * 10 ** rng.uniform(-2, 4)).astype(np.float32)
        rate, draws = np.float32(10 ** rng.uniform(-4, 5)), draws_of([score], [1e6])
        u_old = state[0]
        of_true = coefficients_of(Implicit(), DoubleSum(), FEATURES, rate, state, score_true, draws)
        assert state[0] >= 0
        assert draws.out[0] == -of_true >= 0
        s = float(score) - float(score_true)
        u, t = naive.implicit_step(float(rate), 4.0, 1e6, s, u_old)
        assert state[0] == pytest.approx(u, rel=1e-9, abs=1e-9)
        assert draws.out[0] == pytest.approx(t, rel=1e-6, abs=1e-12)


def test_implicit_passes_over_rows_without_features():
    features = features_of(np.zeros((1, 3), np.float32), False)
    state, draws = np.array([1.25]), draws_of([3.0], [9.0])
    assert coefficients_of(Implicit(), DoubleSum(), features, np.float32(1), state, np.float32(0), draws) == 0
    assert draws.out[0] == 0
    assert state[0] == 1.25


@pytest.mark.parametrize("optimizer", [Sgd(), Adagrad(), UMax(), Implicit()], ids=lambda o: type(o).__name__)
def test_moves(optimizer):
    X = np.array([[0.5, 0.0, -2.0]], np.float32)
    rate, coefficient = np.float32(0.1), np.float32(3)
    arranged = laid_out(optimizer, np.zeros((2, 4)))
    moved(arranged, features_of(X, True), optimizer, 0, rate, coefficient, 1)
    weights = arranged.weights()
    gradient = 3.0 * np.array([0.5, 0.0, -2.0, 1.0])
    if isinstance(optimizer, Implicit):
        expected = -gradient
    elif isinstance(optimizer, Adagrad):
        expected, accumulator = naive.adagrad(np.zeros(4), np.full(4, 1e-8), gradient, 0.1)
        assert np.allclose(accumulators(arranged)[1], accumulator, rtol=1e-6)
    else:
        expected = -0.1 * gradient
    assert np.allclose(weights[1], expected, rtol=1e-6)
    assert not weights[0].any()


@pytest.mark.parametrize("optimizer", [Sgd(), Adagrad()], ids=lambda o: type(o).__name__)
def test_moves_of_stretches(optimizer):
    gradient, weights = np.array([1.0, -2, 0, 1e-3], np.float32), np.ones((1, 5), np.float32)
    accumulators = np.full((1, 5), 1e-8, np.float32)
    moved_stretch(Apart(weights, accumulators), optimizer, np.float32(0.1), 1, gradient)
    assert weights[0, 0] == 1
    w, accumulator = weights[0, 1:], accumulators[0, 1:]
    expected = 1 - 0.1 * gradient
    if isinstance(optimizer, Adagrad):
        expected, new = naive.adagrad(np.ones(4), np.full(4, 1e-8), gradient.astype(float), 0.1)
        assert np.allclose(accumulator, new, rtol=1e-6)
    assert np.allclose(w, expected, rtol=1e-6)


def test_adagrads_first_step_is_as_long_as_the_rate():
    arranged, features = (
        laid_out(Adagrad(), np.zeros((1, 4))),
        features_of(np.array([[5.0, 0.1, -3]], np.float32), True),
    )
    moved(arranged, features, Adagrad(), 0, np.float32(0.1), np.float32(1), 0)
    assert np.allclose(arranged.weights()[0], [-0.1, -0.1, 0.1, -0.1], rtol=1e-4)
