import numpy as np
import pytest

from xsoftmax.evaluation.frequencies import frequency_error
from xsoftmax.model import Model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency

Y = np.array([0, 1, 1, 2, 2, 2, 2, 2], np.int32)
X = np.empty((8, 0), np.float32)


def model_of(biases, **others):
    return Model.of_rows(np.asarray(biases, np.float32)[:, None], ["a", "b", "c"], 0, **others)


def test_it_is_the_sum_of_absolute_differences():
    assert frequency_error(model_of(np.zeros(3)), X, Y) == pytest.approx(
        abs(1 / 3 - 1 / 8) + abs(1 / 3 - 2 / 8) + abs(1 / 3 - 5 / 8), abs=1e-6
    )


def test_it_is_zero_at_the_shares_whatever_is_added():
    assert frequency_error(model_of(np.log([1, 2, 5]) + 7), X, Y) == pytest.approx(0, abs=1e-6)


def test_what_prediction_adds_counts():
    drawn = Frequency(power=0.5).fit(TrainingSet(X, Y, 3, 0))
    found = frequency_error(model_of(np.zeros(3), correction=drawn), X, Y)
    expected = np.sqrt([1, 2, 5]) / np.sqrt([1, 2, 5]).sum()
    assert found == pytest.approx(np.abs(expected - np.array([1, 2, 5]) / 8).sum(), abs=1e-6)


def test_other_links_have_none():
    assert np.isnan(frequency_error(model_of(np.zeros(3), link="probit"), X, Y))
