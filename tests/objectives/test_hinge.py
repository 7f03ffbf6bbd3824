"""The hinge, by the equation and by a minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from objectives.one_step import full_loss, proximal_of, run, step
from xsoftmax.kernels.protocol import Draws
from xsoftmax.objectives.hinge import Hinge
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.proposals.uniform import UniformDraws

K = 6


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0])
def test_it_is_the_sum_of_all_excesses(margin, rng):
    for _ in range(20):
        s, y = rng.standard_normal(K), int(rng.integers(K))
        excess = [max(0.0, margin + s[k] - s[y]) for k in range(K) if k != y]
        assert full_loss(Hinge(margin), s, y) == pytest.approx(sum(excess), rel=1e-12, abs=1e-12)
        drawn = [k for k in range(K) if k != y]
        slopes, _ = step(Hinge(margin), s, y, drawn, np.full(K, -np.log(K - 1)))
        expected = np.array([float(margin + s[k] - s[y] > 0) if k != y else 0.0 for k in range(K)])
        expected[y] = -expected.sum()
        assert np.allclose(slopes, expected)


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("rate", [0.05, 0.5, 20.0])
@pytest.mark.parametrize("gap", [-3.0, -0.4, 0.0, 2.0])
def test_the_implicit_step_is_the_least_of_its_definition(gap, rate, weight):
    """min over the weights of rate x weight x loss + half the squared distance that they move."""
    x = np.array([0.6, -1.1, 0.5])
    draws = Draws(
        np.array([1]), *(np.array([v], np.float32) for v in (0.0, weight, gap, 0.0)), np.zeros(1, np.uint64)
    )
    squared = np.float32(x @ x)
    of_true = proximal_of(Hinge(1.0), np.float32(rate), np.zeros(0), squared, np.float32(0), draws)
    assert of_true == -draws.out[0]

    def value(z):  # how far both classes move along x, and what is left of the excess, a slack
        return rate * weight * z[2] + 0.5 * (z[0] ** 2 + z[1] ** 2) * (x @ x)

    left = {"type": "ineq", "fun": lambda z: z[2] - (1 + gap + (z[1] - z[0]) * (x @ x))}
    best = minimize(value, [0.0, 0.0, 10.0], constraints=[left], bounds=[(None, None), (None, None), (0, None)])
    assert -of_true == pytest.approx(best.x[0], abs=2e-4)
    assert -draws.out[0] == pytest.approx(best.x[1], abs=2e-4)


def test_a_long_implicit_step_ends_at_no_loss_and_rows_of_zeros_do_not_move():
    X = np.array([[1.0, 2.0], [0.0, 0.0]], np.float32)
    W, _, taken = run(Hinge(), UniformDraws(2), Implicit(), X[:1], [0], np.zeros((2, 3)), [0], 1e6)
    scores = W @ np.append(X[0], 1)
    assert taken == 1
    assert scores[0] - scores[1] == pytest.approx(1, abs=1e-5)
    draws = Draws(np.array([1]), *(np.array([v], np.float32) for v in (0, 1, 0, 0)), np.zeros(1, np.uint64))
    assert proximal_of(Hinge(), np.float32(1), np.zeros(0), np.float32(0), np.float32(0), draws) == 0
