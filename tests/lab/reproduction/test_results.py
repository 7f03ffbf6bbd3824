"""Means over seeds, measures of fits, and when a curve reaches a level."""

import math

import numpy as np
import pandas as pd
import pytest

from lab.reproduction.made_up import results_of, write_fit
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.reproduction.results import Estimate, Results, first_at, middle


def test_an_estimate_is_the_mean_and_its_standard_error():
    found = Estimate.of([1.0, 2.0, 3.0, 6.0])
    assert found.mean == 3
    assert found.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    assert (found.n, found.n_diverged) == (4, 0)


def test_seeds_without_a_value_are_counted_and_left_out():
    found = Estimate.of([1.0, None, math.nan, 3.0])
    assert (found.mean, found.n, found.n_diverged) == (2, 2, 2)
    assert math.isnan(Estimate.of([None]).mean)
    assert Estimate.of([5.0]).margin == 0


def test_measures_are_found_by_their_paths(tmp_path):
    measures = {"test.accuracy": 0.25, "train.log_likelihood": -2.0, "end.objective": 7.0, "fit.seconds": 9.0}
    results = results_of(tmp_path, {("a", "m"): measures | {"weight_distance": 0.5}}, seeds=1)
    for path, value in measures.items():
        assert results.values("a", "m", path) == pytest.approx([value], rel=1e-3)
    assert results.values("a", "m", "weight_distance") == pytest.approx([0.5], rel=1e-3)
    assert results.values("a", "m", "test.none") == [None]


def test_a_fit_that_diverged_has_a_status_and_no_measures(tmp_path):
    write_fit(tmp_path, "a", "m", 0, {"test.accuracy": 0.25}, ended="diverged")
    results = Results.read("x", tmp_path.glob("*/*/seed-*"), [], [])
    assert results.values("a", "m", "test.accuracy") == results.values("a", "m", "end.objective") == [None]
    assert results.values("a", "m", "fit.seconds") == [2.0]
    assert results.curve("a", "m").empty


def test_what_is_not_there_is_an_error_with_its_name(tmp_path):
    results = results_of(tmp_path, {("a", "m"): {}}, seeds=1)
    assert results.has("a", "m")
    assert not results.has("a", "n")
    with pytest.raises(InputError, match="no fit of n on a"):
        results.of("a", "n")
    with pytest.raises(InputError, match="no search for m on a"):
        results.search("a", "m")
    for ask in (lambda: results.data("a"), lambda: results.difference("a", "m", "m", "accuracy")):
        with pytest.raises(InputError, match=r"no prepared file of a, .* name it after --data"):
            ask()


def test_a_curve_is_the_mean_over_seeds(tmp_path):
    write_fit(tmp_path, "a", "m", 0, {"end.objective": 1.0}, evaluations=4)
    write_fit(tmp_path, "a", "m", 1, {"end.objective": 3.0}, evaluations=3)
    curve = Results.read("x", tmp_path.glob("*/*/seed-*"), [], []).curve("a", "m")
    assert len(curve) == 3  # what all have
    assert curve.objective.iloc[0] == pytest.approx((1.3 + 3.6) / 2)


def test_levels_are_reached_between_looks():
    curve = pd.DataFrame({"seconds": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 3.0]})
    assert first_at(curve, "y", 2.0) == 3.0
    assert first_at(curve, "y", -1.0) == 1.0
    assert math.isnan(first_at(curve, "y", 3.5))
    assert math.isnan(first_at(pd.DataFrame(), "y", 0.0))


def test_the_middle_of_what_is_there():
    assert middle([None, 3.0, 1.0, math.nan, 2.0]) == 2
    assert math.isnan(middle([]))
