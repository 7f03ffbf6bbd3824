"""Fits on several threads: sampled methods change their weights without locks."""

import numpy as np
import pytest

from training.problems import K, method, rows
from xsoftmax.data.store import open_prepared
from xsoftmax.solvers import sampled
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

METHODS = {
    "negative sampling": method(
        "negative-sampling", {"name": "frequency", "n_sampled": 3}, {"name": "adagrad", "learning_rate": 0.1}
    ),
    "one-vs-each in batches": method(
        "one-vs-each", {"name": "uniform", "n_sampled": 3}, {"name": "sgd", "learning_rate": 0.3}, batch={"size": 7}
    ),
    "implicit": method(optimizer={"name": "implicit", "learning_rate": 0.1}, bias=False),
}


@pytest.fixture
def data(prepare):
    with open_prepared(prepare(*rows(4000), K, n_validation=500, n_test=500)) as opened:
        yield opened


def final(data, chosen, threads):
    return fit(data, chosen, 0, Plan(epochs=10, threads=threads)).state.history[-1]["test_log_likelihood"]


@pytest.mark.alone
@pytest.mark.parametrize("name", METHODS)
def test_two_threads_reach_the_likelihood_of_one(data, name):
    """Eight classes, so that threads meet in the same rows all the time; each time in another order."""
    serial = final(data, METHODS[name], 1)
    parallel = np.median([final(data, METHODS[name], 2) for _ in range(9)])
    assert abs(serial - parallel) < 0.01
    assert serial > -1.9  # log 8 = 2.08


@pytest.mark.long_cases
@pytest.mark.parametrize("name", METHODS)
def test_threads_share_the_samples_of_a_chunk(data, monkeypatch, name):
    """Each sample once, at its own position, whole batches to a thread."""
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 100)
    taken = []
    task = sampled.SampledSolver._task

    def noted(self, samples, epoch, first, rate, weights):
        taken.extend((epoch, first + j, i) for j, i in enumerate(samples))
        assert first % self._batch.size == 0
        return task(self, samples, epoch, first, rate, weights)

    monkeypatch.setattr(sampled.SampledSolver, "_task", noted)
    fit(data, METHODS[name], 0, Plan(epochs=2, threads=3))
    for epoch in range(2):
        positions, samples = zip(*((at, i) for e, at, i in sorted(taken) if e == epoch), strict=True)
        assert list(positions) == list(range(3000))
        assert np.array_equal(samples, np.random.default_rng([0, epoch]).permutation(3000))


def test_a_fit_that_diverges_on_one_thread_diverges(data):
    wild = method({"name": "one-vs-each"}, optimizer={"name": "sgd", "learning_rate": 1e38})
    assert fit(data, wild, 0, Plan(epochs=3, threads=2)).state.status == "diverged"
