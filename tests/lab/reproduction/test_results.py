"""Means over seeds, measures of fits, and when a curve reaches a level."""

import math

import numpy as np
import pandas as pd
import pytest

import xsoftmax.lab.reproduction.results as results_module
from lab.reproduction.made_up import results_of, write_fit
from xsoftmax.cli import main
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


METHODS = """
optimum: {objective: {name: softmax}, proposal: {name: all}, optimizer: {name: lbfgs}, l2: 1.0}
steps:
  objective: {name: one-vs-each}
  proposal: {name: uniform, n_sampled: 1}
  optimizer: {name: sgd, learning_rate: 0.001}
"""


@pytest.fixture(scope="module")
def fitted(prepare, tmp_path_factory):
    """Real fits on overlapping clouds: an optimum, and three seeds of what a few short steps leave."""
    folder, rng = tmp_path_factory.mktemp("fits"), np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.eye(3)[y] + rng.normal(size=(300, 3))
    prepared = prepare(X, y, 3, n_test=150, name="clouds", path=folder / "clouds.h5")
    (folder / "methods.yaml").write_text(METHODS)
    for method, seeds in (("optimum", 1), ("steps", 3)):
        for seed in range(seeds):
            fit = str(folder / "clouds" / method / f"seed-{seed}")
            options = ["--methods", str(folder / "methods.yaml"), "--method", method, "--seed", str(seed)]
            main(["train", str(prepared), *options, "--epochs", "100" if seeds == 1 else "1", "-o", fit])
            main(["evaluate", f"{fit}/model.h5", str(prepared), "-o", f"{fit}/metrics.json"])
    return folder


def read(folder, seeds=3):
    fits = [fit for fit in sorted(folder.glob("*/*/seed-*")) if int(fit.name[-1]) < seeds]
    return Results.read("real", fits, [], [folder / "clouds.h5"])


@pytest.mark.slow
def test_models_are_compared_on_the_same_test_rows(fitted):
    results = read(fitted)
    assert results.is_optimum("clouds", "optimum")
    for measure in ("log_likelihood", "accuracy"):
        found = results.difference("clouds", "optimum", "steps", measure)
        means = [results.estimate("clouds", method, f"test.{measure}").mean for method in ("optimum", "steps")]
        assert found.mean == pytest.approx(means[0] - means[1], abs=1e-6)
        assert 0 < found.half_width < 0.2
    assert results.difference("clouds", "optimum", "steps", "log_likelihood").is_above is True
    assert results.difference("clouds", "steps", "optimum", "log_likelihood").is_above is False
    assert results.difference("clouds", "optimum", "optimum", "log_likelihood").is_above is None


@pytest.mark.slow
def test_a_model_is_compared_with_so_many_times_another(fitted):
    results = read(fitted)
    means = [results.estimate("clouds", method, "test.accuracy").mean for method in ("optimum", "steps")]
    found = results.difference("clouds", "optimum", "steps", "accuracy", times=2.0)
    assert found.mean == pytest.approx(means[0] - 2 * means[1], abs=1e-6)
    assert found.is_above is False


def test_of_many_test_rows_some_are_compared_evenly_spaced(fitted, monkeypatch):
    whole = read(fitted).difference("clouds", "optimum", "steps", "log_likelihood")
    results_module._scored.cache_clear()
    monkeypatch.setattr(results_module, "MOST_ROWS", 20)
    some = read(fitted).difference("clouds", "optimum", "steps", "log_likelihood")
    results_module._scored.cache_clear()
    assert some.mean != whole.mean
    assert some.half_width > whole.half_width


def test_one_seed_of_what_draws_gives_no_order_on_rows(fitted):
    found = read(fitted, seeds=1).difference("clouds", "optimum", "steps", "log_likelihood")
    assert found.mean > 0
    assert math.isnan(found.half_width)
    assert found.is_above is None


def test_rows_of_a_method_that_diverged_give_no_order(fitted, tmp_path):
    write_fit(tmp_path, "clouds", "lost", 0, ended="diverged")
    results = Results.read(
        "real", [*fitted.glob("*/optimum/*"), *tmp_path.glob("*/lost/*")], [], [fitted / "clouds.h5"]
    )
    assert results.difference("clouds", "optimum", "lost", "accuracy").is_above is None
