import itertools

import numpy as np
import pytest
from scipy.special import wrightomega

import naive
from xsoftmax.objectives.double_sum import implicit_step

MODERATE = list(itertools.product([0.01, 0.5, 3.0], [0.3, 1.0], [4.0, 300.0], [-3.0, 0.0, 4.0], [0.0, 0.7, 5.0]))
EXTREME = list(
    itertools.product([1e-4, 1.0, 1e5], [0.1, 1.0, 32.0], [1.0, 2e6], [-1e4, -30.0, 0.0, 30.0, 1e4], [0.0, 14.5, 1e4])
)


def residuals(rate, rho, weight, s, u_old, u, a):
    """Both equations at the new point, relative to the step's rate and terms; the exponential is never formed.

    u - u_old + h (1 - e^-u - w e^(s - a - u)) with h w e^(s - a - u) = a / (2 rho), and that last equation's log.
    """
    terms = [u - u_old, -rate * np.expm1(-u), -a / (2 * rho)]
    by_u = abs(sum(terms)) / max(1.0, rate, u, u_old, *map(abs, terms))
    z = s - u + np.log(2 * rate * weight * rho)
    by_w = abs(a + np.log(a) - z) / max(1.0, a, abs(z)) if a > 1e-300 else 0.0
    return by_u, by_w


@pytest.mark.parametrize("cases", [MODERATE, EXTREME], ids=["moderate", "extreme"])
def test_the_step_ends_where_its_gradient_is_taken(cases):
    for case in cases:
        u, a = implicit_step(*case)
        assert u >= 0
        assert a >= 0
        assert max(residuals(*case, u, a)) < 1e-12, case


def test_random_steps_end_where_their_gradients_are_taken():
    rng = np.random.default_rng(0)
    for _ in range(5000):
        case = (
            10 ** rng.uniform(-4, 5), 10 ** rng.uniform(-1, 1.5), rng.integers(1, 2_000_000),
            rng.normal() * 10 ** rng.uniform(-2, 4), abs(rng.normal()) * 10 ** rng.uniform(-2, 3),
        )  # fmt: skip
        u, a = implicit_step(*map(float, case))
        assert u >= 0
        assert max(residuals(*case, u, a)) < 1e-12, case


def test_it_is_the_root_of_the_naive_equation():
    for case in MODERATE + EXTREME:
        u, a = implicit_step(*case)
        u_true, t_true = naive.implicit_step(*case)
        assert u == pytest.approx(u_true, rel=1e-11, abs=1e-11), case
        assert a / (2 * case[1]) == pytest.approx(t_true, rel=1e-9, abs=1e-9), case


@pytest.mark.parametrize("case", MODERATE[::7])
def test_it_minimizes_the_proximal_objective(case):
    u, a = implicit_step(*case)
    u_true, t_true = naive.implicit_step_by_minimizing(*case)
    assert u == pytest.approx(u_true, abs=1e-5)
    assert a / (2 * case[1]) == pytest.approx(t_true, abs=1e-5)


def test_a_step_of_no_length_goes_nowhere():
    u, a = implicit_step(0.0, 1.0, 5.0, 2.0, 1.5)
    assert u == pytest.approx(1.5, abs=1e-12)
    assert a == 0


def test_a_draw_of_the_true_class_only_lets_u_fall():
    u, a = implicit_step(0.5, 1.0, 0.0, 0.0, 2.0)
    assert a == 0
    assert u - 2.0 - 0.5 * np.expm1(-u) == pytest.approx(0, abs=1e-12)


def test_omega_of_the_step_is_scipys():
    u, a = implicit_step(0.7, 1.3, 50.0, 1.0, 2.0)
    assert a == pytest.approx(wrightomega(1.0 + np.log(2 * 0.7 * 50 * 1.3) - u), rel=1e-13)
