"""Every objective's coefficients in float32, how its states move, and the papers' equations of some.

That coefficients are the slopes of the loss is for test_array_forms.py.
"""

import numpy as np
import pytest
from numba import njit, typeof, types

import naive
from objectives.one_step import draws_of, gradient_of, loss_of, raise_bound_of
from xsoftmax.internal import registry
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.protocol import Draws, floor
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.max_margin import MaxMargin
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.objectives.softmax import Softmax
from xsoftmax.proposals import TrainingSet

PACKAGE = "xsoftmax.objectives"
NAMES = registry.names(PACKAGE)
STEP = 1e-5


def members(name):
    """The objective with its defaults, and with every other number set to something else, fitted."""
    member = registry.load(PACKAGE, name).MEMBER
    data = TrainingSet(np.zeros((9, 0), np.float32), np.arange(9, dtype=np.int32), 9, n_sampled=5)
    changed = {key: 0.07 for key, value in member._field_defaults.items() if type(value) is float and key != "l2"}
    return [each.fit(data) for each in (member(), *([member(**changed)] if changed else []))]


# What draws numbers of its own has these slopes in the mean alone: its own tests show that.
OBJECTIVES = [objective for name in NAMES for objective in members(name) if not objective.draws_numbers]
# Their variable is a running average of what the draws say: it does not move along a slope of the loss.
AVERAGING = ("AugmentReduce", "Composition", "Scent", "Sox")


@pytest.mark.parametrize("name", NAMES)
def test_how_many_classes_are_drawn_is_not_for_objectives_to_say(name):
    assert "n_sampled" not in registry.load(PACKAGE, name).MEMBER._fields


def draws_for(rng, n, dtype=np.float64, spread=1.0):
    log_q = np.log(rng.dirichlet(np.ones(n))).astype(dtype)
    weights = rng.random(n).astype(dtype) + dtype(0.2)
    scores = (spread * rng.standard_normal(n)).astype(dtype)
    return Draws(np.arange(n), log_q, weights, scores, np.empty(n, dtype), np.zeros(1, np.uint64))


@njit(**OPTIONS)
def floor_of(objective, score_true):
    return floor(objective, score_true)


def test_a_floor_leaves_some_classes_out():
    assert floor_of(MaxMargin(), np.float32(0.4)) == pytest.approx(-0.6)


def state_of(objective, rng):
    if not objective.n_auxiliary:
        return np.empty(0)
    start = objective.initial_auxiliary(1, 9)[0]
    return start + 0.3 * rng.random(start.size)


@pytest.mark.parametrize(
    "objective",
    [o for o in OBJECTIVES if o.n_auxiliary and not o.solves_auxiliary and type(o).__name__ not in AVERAGING],
    ids=repr,
)
def test_states_move_along_the_slope_of_the_loss(objective):
    rng = np.random.default_rng(2)
    for _ in range(20):
        draws, state, score_true = draws_for(rng, 5), state_of(objective, rng), rng.standard_normal()
        after = state.copy()
        gradient_of(objective, 1e-3, after, score_true, -1.3, draws)
        for j in range(state.size):
            up, down = state.copy(), state.copy()
            up[j] += STEP
            down[j] -= STEP
            slope = loss_of(objective, up, score_true, -1.3, draws) - loss_of(
                objective, down, score_true, -1.3, draws
            )
            assert state[j] - after[j] == pytest.approx(1e-3 * slope / (2 * STEP), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_float32_and_float64_agree(objective):
    rng = np.random.default_rng(3)
    for _ in range(20):
        draws, state, score_true = draws_for(rng, 5, np.float32, 3), state_of(objective, rng), np.float32(0.4)
        wide = Draws(draws.classes, *(array.astype(float) for array in draws[1:5]), draws.rng)
        arguments = (objective, np.float32(0), state.copy(), score_true, np.float32(-1.3), draws)
        short = gradient_of(*arguments)
        assert short == pytest.approx(
            gradient_of(objective, 0.0, state.copy(), float(score_true), -1.3, wide), rel=1e-5, abs=1e-6
        )
        assert np.allclose(draws.out, wide.out, rtol=1e-5, atol=1e-7)
        assert (draws.out[draws.scores < floor_of(objective, score_true)] == 0).all()
        # A float64 that leaks into the coefficients makes the float32 loops slow.
        compiled = gradient_of.overloads[tuple(typeof(argument) for argument in arguments)]
        assert compiled.signature.return_type == types.float32


def all_but(y, s):
    """Draws that are all other classes, with weight 1."""
    others = np.delete(s, y)
    ones = np.ones(others.size)
    return Draws(np.delete(np.arange(s.size), y), ones, ones, others, np.empty(others.size), np.zeros(1, np.uint64))


def assert_like(objective, y, s, loss_expected, slopes, state=None, tolerance=1e-12):
    draws, state = all_but(y, s), np.empty(0) if state is None else state
    value = loss_of(objective, state, s[y], 0.0, draws)
    of_true = gradient_of(objective, 0.0, state, s[y], 0.0, draws)
    assert value == pytest.approx(loss_expected, rel=tolerance, abs=tolerance)
    assert of_true == pytest.approx(slopes[y], rel=tolerance, abs=tolerance)
    assert np.allclose(draws.out, np.delete(slopes, y), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("spread", [0.1, 2.0, 30.0])
def test_softmax_is_the_likelihood(rng, spread):
    s = spread * rng.standard_normal(8)
    assert_like(Softmax(), 3, s, *naive.softmax(s, 3))


@pytest.mark.parametrize("spread", [0.1, 2.0, 30.0])
def test_one_vs_each_is_equation_4(rng, spread):
    s = spread * rng.standard_normal(8)
    assert_like(OneVsEach(), 3, s, *naive.one_vs_each(s, 3))


@pytest.mark.parametrize("u", [0.0, 1.0, 7.5])
def test_double_sum_is_equation_5(rng, u):
    s = rng.standard_normal(8)
    value, slopes, _ = naive.double_sum(s, 3, u)
    assert_like(DoubleSum(), 3, s, value, slopes, np.array([u]), 1e-6)  # the exponent is float32


@pytest.mark.parametrize("log_q_too", [True, False])
@pytest.mark.parametrize("regularizer", [0.0, 1e-3, 0.5])
def test_negative_sampling_is_equation_6(rng, regularizer, log_q_too):
    s, log_q = 2 * rng.standard_normal(8), np.log(rng.dirichlet(np.ones(8)))
    draws = Draws(np.arange(8), log_q, np.exp(log_q), s, np.empty(8), np.zeros(1, np.uint64))
    expected, slopes = naive.negative_sampling(s, 3, log_q, regularizer, added=float(log_q_too))
    objective = NegativeSampling(regularizer, log_q_too)
    assert loss_of(objective, np.empty(0), s[3], log_q[3], draws) == pytest.approx(expected, rel=1e-12)
    of_true = gradient_of(objective, 0.0, np.empty(0), s[3], log_q[3], draws)
    assert np.allclose(
        draws.out + of_true * (np.arange(8) == 3), slopes, rtol=1e-6, atol=1e-9
    )  # the regulariser's factor is float32


def test_bounds_lie_above_the_likelihood(rng):
    for _ in range(100):
        s, u = 4 * rng.standard_normal(8), 5 * rng.random()
        loss_true = naive.softmax(s, 3)[0]
        for objective, state in ((OneVsEach(), np.empty(0)), (DoubleSum(), np.array([u]))):
            assert loss_of(objective, state, s[3], 0.0, all_but(3, s)) >= loss_true - 1e-12
        tight = loss_of(DoubleSum(), np.array([loss_true]), s[3], 0.0, all_but(3, s))
        assert tight == pytest.approx(loss_true, rel=1e-12)


def test_the_lift_is_algorithm_1(rng):
    """To what the distinct drawn classes prove, where u is more than the threshold below."""
    s, drawn, log_q, lifted = 2 * rng.standard_normal(8), [2, 5, 3, 2, 7], np.full(8, -np.log(8)), []
    for y in range(8):
        for u in (0.0, 0.9, 4.0):
            state, bound = np.array([u]), naive.u_max_bound(s, y, drawn)
            raise_bound_of(DoubleSum(), 0.5, state, s[y], draws_of(DoubleSum(), s, y, drawn, log_q))
            assert state[0] == pytest.approx(bound if u < bound - 0.5 else u, rel=1e-12)
            lifted.append(state[0] > u)
    assert 5 < sum(lifted) < len(lifted) - 5


def test_u_stays_at_zero_or_above():
    draws = all_but(0, np.array([50.0, -50.0, -50.0]))
    state = np.array([0.3])
    gradient_of(DoubleSum(), 10.0, state, 50.0, 0.0, draws)
    assert state[0] == 0.0


def test_double_sum_starts_where_it_is_told():
    assert np.array_equal(DoubleSum().initial_auxiliary(3, 10), np.full((3, 1), np.log(10)))
    assert not DoubleSum(start_at_log_classes=False).initial_auxiliary(3, 10).any()
