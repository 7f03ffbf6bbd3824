"""Predicted times: the formula, and its fit."""

import numpy as np
import pytest

from xsoftmax.advice import costs
from xsoftmax.advice.statistics import DatasetStatistics, likeness, statistics_of_arrays
from xsoftmax.lab.benchmark.problems import method_of, sparse_rows

TEXT = DatasetStatistics(60_000, 2_000, 6_000, 10.0, True)
IMAGES = DatasetStatistics(60_000, 10, 784, 784.0, False)
METHODS = {
    "all": method_of("softmax", {"name": "all", "batch_size": 64}),
    "single": method_of("sampled-softmax", {"name": "uniform", "n_sampled": 5}),
    "shared": method_of("sampled-softmax", {"name": "uniform", "n_sampled": 64}, batch={"size": 64, "shared": True}),
}


@pytest.mark.parametrize("statistics", [TEXT, IMAGES], ids=["text", "images"])
@pytest.mark.parametrize("name", METHODS)
def test_the_fit_finds_the_coefficients_behind_the_times(name, statistics, rng):
    """Of any sizes; times that differ a thousandfold count alike."""
    true = rng.random(6) * 1e-8
    sizes = [
        statistics._replace(n_classes=int(k), n_features=d) for k in (10, 1e3, 1e4, 1e6) for d in (784, 2_000, 9_000)
    ]
    counts = [costs.terms(METHODS[name], each) for each in sizes]
    found = costs.fit_costs(counts, [float(row @ true) for row in counts])
    assert np.abs(costs.relative_errors(found, counts, [float(row @ true) for row in counts])).max() < 1e-6
    assert min(found) >= 0
    assert costs.seconds_per_sample(found, METHODS[name], statistics) == pytest.approx(
        float(costs.terms(METHODS[name], statistics) @ true), rel=1e-6
    )


def test_of_counts_that_are_multiples_the_first_gets_all(rng):
    """So that rounding, which another processor does otherwise, cannot choose."""
    work = rng.random(20) + 1
    for share in (np.float64(6), 1 / 3):
        counts = np.stack([np.ones(20), np.full(20, share), work, work * share], axis=1)
        found = costs.fit_costs(list(counts), list(2 + 3 * work))
        assert found == pytest.approx([2, 0, 3, 0])
        assert found[1] == found[3] == 0


@pytest.mark.parametrize(("name", "grows"), [("all", True), ("single", False), ("shared", False)])
def test_only_methods_that_look_at_all_classes_cost_more_with_more(name, grows):
    few, many = (costs.terms(METHODS[name], TEXT._replace(n_classes=k)) for k in (10**7, 10**8))
    assert (many.max() > 5 * few.max()) == grows


def test_columns_of_a_batch():
    """With the rows of an experiment."""
    rows = sparse_rows(4096, 1_000, 10, 20)
    statistics = statistics_of_arrays(rows.X, 10)
    assert statistics == DatasetStatistics(
        4096, 10, 1_000, 20.0, True, pytest.approx(abs(rows.X).sum() / 4096, rel=1e-5)
    )
    counted = np.mean([np.unique(rows.X[b : b + 64].indices).size for b in range(0, 4096, 64)])
    assert costs.n_columns(statistics, 64) == pytest.approx(counted, rel=0.02)
    assert costs.n_columns(IMAGES, 64) == 784
    assert costs.n_columns(TEXT._replace(n_features=0, n_entries=0.0), 64) == 0


def test_likeness_is_of_sizes_by_decades():
    assert likeness(TEXT, IMAGES) == likeness(IMAGES, TEXT)
    hundred_times = TEXT._replace(n_samples=100 * TEXT.n_samples)
    assert likeness(TEXT, hundred_times) == pytest.approx(np.exp(-0.5))
    assert likeness(TEXT, TEXT._replace(sparse=False)) == pytest.approx(np.exp(-0.5))
    assert likeness(TEXT, IMAGES) < likeness(TEXT, TEXT._replace(sparse=False))


def test_data_of_the_same_sizes_are_worth_many_others():
    nearly, twice = (TEXT._replace(n_samples=int(factor * TEXT.n_samples)) for factor in (1.02, 2))
    assert likeness(TEXT, TEXT) == pytest.approx(101)
    assert likeness(TEXT, nearly) > 90
    assert likeness(TEXT, twice) < 1
