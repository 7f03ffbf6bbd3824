import numpy as np
import pytest
from scipy.stats import chi2

import naive
from kernels.drawing import drawn, log_probabilities_of
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.random import stream
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency, FrequencyDraws, alias_table

KEY = np.uint64(stream(1, 2))
UNIT = 2.0**-32

SHAPES = {
    "one": np.ones(1),
    "even": np.ones(5),
    "one holds nearly all": np.array([1e-9, 1.0, 1e-9]),
    "zipf": 1 / np.arange(1.0, 1919) ** 2,
    "binary fractions": np.array([1.0, 2, 4, 8, 1]),
}


def fitted(counts, **parameters):
    y = np.repeat(np.arange(len(counts)), counts)
    return Frequency(**parameters).fit(TrainingSet(None, y, len(counts)))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_table_holds_the_probabilities_exactly(shape):
    p = SHAPES[shape] / SHAPES[shape].sum()
    assert np.abs(naive.alias_probabilities(alias_table(p)) - p).max() <= 2 * UNIT


def test_random_tables_hold_their_probabilities_exactly():
    rng = np.random.default_rng(0)
    for _ in range(300):
        p = rng.dirichlet(np.full(rng.integers(1, 60), 10 ** rng.uniform(-2, 2)))
        assert np.abs(naive.alias_probabilities(alias_table(p)) - p).max() <= 2 * UNIT


def test_a_class_without_rows_is_never_drawn():
    """Also where rounding leaves the table's last share a little below 1."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        counts = rng.integers(1, 50, size=rng.integers(3, 40))
        counts[: rng.integers(1, counts.size - 1)] = 0
        rng.shuffle(counts)
        kernel = fitted(counts).kernel(None)
        drawable = naive.alias_probabilities(kernel.table)
        assert not drawable[counts == 0].any(), counts.tolist()


def test_draws_are_as_frequent_as_classes():
    counts = np.array([1, 5, 0, 20, 3, 70, 1])
    classes, log_q = drawn(fitted(counts).kernel(None), 0, -1, KEY, 0, 100_000, 2)
    expected = 200_000 * counts[counts > 0] / counts.sum()
    found = np.bincount(classes.ravel(), minlength=7)[counts > 0]
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 5)
    assert np.allclose(log_q, np.log(np.maximum(counts, 1) / counts.sum())[classes], rtol=1e-6)


def test_the_true_class_may_be_drawn():
    classes, _ = drawn(fitted([1, 9]).kernel(None), 0, 1, KEY, 0, 100, 1)
    assert (classes == 1).any()


@pytest.mark.parametrize("power", [1.0, 0.75, 0.0])
def test_probabilities_and_correction(power):
    counts = np.array([4, 1, 16, 9])
    proposal = fitted(counts, power=power)
    expected = np.log(counts**power / (counts**power).sum())
    assert np.allclose(proposal.log_q(None, 0, 4)[0], expected, rtol=1e-6)
    assert np.allclose(proposal.log_q(None, 1, 3)[0], expected[1:3], rtol=1e-6)
    found = np.empty(4, np.float32)
    log_probabilities_of(proposal.kernel(None), 0, found)
    assert np.allclose(found, expected, rtol=1e-6)
    assert isinstance(proposal.kernel(None), FrequencyDraws)


def test_a_power_too_large_is_refused():
    with pytest.raises(InputError, match=r"7 rows to the power of 3e\+38 are too many; lower power"):
        fitted([7, 1], power=3e38)
