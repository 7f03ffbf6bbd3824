"""The smoothed margin of the classes that a search found: those that are missing are not there."""

import numpy as np
import pytest

import naive_bounds
from objectives.one_sample import draws_of, slopes_of
from objectives.one_step import loss_of
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method
from xsoftmax.objectives.max_margin import MaxMargin


def found_of(rng):
    """Scores, a class, places of which the last ones are left over as a search leaves them, and a smoothing."""
    n_classes = int(rng.integers(3, 30))
    s, y = 2 * rng.standard_normal(n_classes), int(rng.integers(n_classes))
    others = rng.permutation(np.delete(np.arange(n_classes), y))[: int(rng.integers(n_classes))]
    classes = np.append(others, np.full(3, y))
    weights = (np.arange(classes.size) < others.size).astype(float)
    return s, y, classes, weights, 10 ** rng.uniform(-1, 1)


def value_of(s, y, classes, weights, mu):
    return loss_of(MaxMargin(mu), np.zeros(0), s[y], 0.0, draws_of(classes, weights, s[classes]))


def test_loss_and_slopes_are_those_of_the_found_and_the_true_class_alone(rng):
    for _ in range(500):
        s, y, classes, weights, mu = found_of(rng)
        there = np.append(classes[weights > 0], y)
        nothing = 0.0, np.zeros(1)
        value, slopes = naive_bounds.max_margin(s[there], there.size - 1, mu) if there.size > 1 else nothing
        expected = np.zeros_like(s)
        expected[there] = slopes
        assert value_of(s, y, classes, weights, mu) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert np.allclose(slopes_of(MaxMargin(mu), s, y, classes, weights), expected, atol=1e-10)


def test_slopes_are_numerical_derivatives_of_the_loss(rng):
    for _ in range(100):
        s, y, classes, weights, mu = found_of(rng)
        steps = 1e-6 * np.eye(s.size)
        numerical = [
            (value_of(s + step, y, classes, weights, mu) - value_of(s - step, y, classes, weights, mu)) / 2e-6
            for step in steps
        ]
        assert np.allclose(slopes_of(MaxMargin(mu), s, y, classes, weights), numerical, atol=1e-5 / mu)


def test_it_takes_what_is_found_and_no_draws():
    axes = {"objective": {"name": "max-margin"}, "optimizer": {"name": "sgd"}}
    assert build_method("mine", axes | {"proposal": {"name": "search", "n_sampled": 4}}).n_sampled == 4
    with pytest.raises(InputError, match="objective max-margin needs every class, proposal uniform leaves some out"):
        build_method("mine", axes | {"proposal": {"name": "uniform"}})
    with pytest.raises(InputError, match="objective softmax needs every class, proposal search leaves some out"):
        build_method("mine", axes | {"objective": {"name": "softmax"}, "proposal": {"name": "search"}})
