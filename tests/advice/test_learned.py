"""Epochs to a quality: read off curves, and taken over to other data sets."""

import numpy as np
import pytest

from xsoftmax.advice.learned import (
    LEVELS,
    Learned,
    gaps,
    predicted_epochs,
    predicted_rate,
    reached,
    seconds_to,
)
from xsoftmax.advice.statistics import DatasetStatistics, likeness

HERE = DatasetStatistics(60_000, 2_000, 6_000, 10.0, True)
LIKE = HERE._replace(n_samples=80_000)
FAR = DatasetStatistics(1_000, 10, 784, 784.0, False)
EPOCHS = np.geomspace(0.01, 100, 40)


def law(scale):
    """A gap that falls as a power of epochs."""
    return np.minimum(1.0, scale * EPOCHS**-0.5)


def test_gaps_are_from_the_best_to_a_guess():
    assert gaps(np.array([-np.log(8), -0.5, np.nan]), 8, -0.5) == pytest.approx([1, 0, 1])


def test_levels_of_a_power_law():
    found = reached(EPOCHS, law(0.1))
    assert found == pytest.approx([(0.1 / level) ** 2 for level in LEVELS], rel=1e-6)


def test_a_curve_is_continued_a_little_and_then_no_further():
    """It stops at 0.1 after 100 epochs: 0.08 is 156 by its slope, 0.05 would be 400, 0.03 1,111."""
    found = reached(EPOCHS, law(1.0))
    by_level = dict(zip(LEVELS, found, strict=True))
    assert by_level[0.08] == pytest.approx(156.25, rel=1e-6)
    assert by_level[0.05] == pytest.approx(400, rel=1e-6)
    assert by_level[0.03] == np.inf


def test_what_gets_worse_again_counts_by_its_best():
    """As early stopping would have it."""
    gap = np.where(EPOCHS < 1, law(0.1), 0.5)
    assert reached(EPOCHS, gap)[LEVELS.index(0.12)] == pytest.approx((0.1 / 0.12) ** 2, rel=1e-6)
    assert reached(EPOCHS, np.ones(40)) == [np.inf] * len(LEVELS)


def test_seconds_to_a_level():
    assert seconds_to(0.1, EPOCHS, law(0.1)) == pytest.approx(1.0, rel=1e-6)
    assert seconds_to(0.001, EPOCHS, law(0.1)) == np.inf
    assert seconds_to(1.0, EPOCHS, law(0.1)) == EPOCHS[0]


def learned(statistics, times, rate):
    return Learned(
        "of " + str(statistics), statistics, {"m": [times * 2.0**k for k in range(len(LEVELS))]}, {"m": rate}
    )


def test_the_data_set_itself_is_what_is_expected():
    experience = [learned(HERE, 1.0, 3.0)]
    assert predicted_epochs(experience, "m", HERE) == pytest.approx(experience[0].epochs["m"])
    assert predicted_rate(experience, "m", HERE) == pytest.approx(3.0)


def test_the_like_counts_more_than_the_far():
    experience = [learned(LIKE, 1.0, 3.0), learned(FAR, 100.0, 0.03)]
    weight = likeness(LIKE, HERE) / (likeness(LIKE, HERE) + likeness(FAR, HERE))
    assert 0.9 < weight < 0.99
    assert predicted_epochs(experience, "m", HERE)[0] == pytest.approx(100 ** (1 - weight))
    assert predicted_rate(experience, "m", HERE) == pytest.approx(3.0 * 0.01 ** (1 - weight))


def test_a_data_set_that_was_measured_is_what_it_was():
    experience = [learned(LIKE, 1.0, 3.0), learned(FAR, 100.0, 0.03)]
    assert 98 < predicted_epochs(experience, "m", FAR)[0] <= 100


def test_what_most_never_reach_is_not_expected():
    never = Learned("n", LIKE, {"m": [1.0] * 3 + [np.inf] * (len(LEVELS) - 3)}, {"m": 1.0})
    found = predicted_epochs([never, learned(FAR, 1.0, 1.0)], "m", HERE)
    assert np.isfinite(found[:3]).all()
    assert np.isinf(found[3:]).all()
    assert np.isfinite(predicted_epochs([never, learned(HERE, 1.0, 1.0), learned(LIKE, 1.0, 1.0)], "m", HERE)).all()
