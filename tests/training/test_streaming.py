"""Training rows that stay in their file, visited window by window."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import psutil
import pytest

from training.interruptions import KillAfter, KilledError
from training.problems import K, curve, method, rows
from xsoftmax.data import windows
from xsoftmax.data.store import open_prepared
from xsoftmax.data.windows import Windows
from xsoftmax.internal.errors import InputError
from xsoftmax.solvers import sampled
from xsoftmax.training.epoch_sampler import WindowSampler
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import estimate, must_stream
from xsoftmax.training.plan import Plan

SLOWER = {"schedule": {"name": "exponential", "decay": 0.7}}  # so that fits end near their optimum
FIVE = {"name": "uniform", "n_sampled": 5}
METHODS = {
    "sampled": method("one-vs-each", FIVE, {"name": "sgd", "learning_rate": 0.2}, **SLOWER),
    "batches": method("one-vs-each", FIVE, {"name": "sgd", "learning_rate": 1.0}, batch={"size": 8}, **SLOWER),
    "all classes": method(
        "softmax", {"name": "all", "batch_size": 16}, {"name": "sgd", "learning_rate": 3.0}, **SLOWER
    ),
    "auxiliary": method(optimizer={"name": "implicit", "learning_rate": 0.3}, bias=False, **SLOWER),
    "tree": method(
        "negative-sampling",
        {"name": "tree", "dimension": 3, "n_sampled": 5},
        {"name": "adagrad", "learning_rate": 0.3},
        **SLOWER,
    ),
}


CASES = [(name, sparse) for name in METHODS for sparse in (False, True)]
cases = pytest.mark.parametrize(  # the others: in the slow run
    ("name", "path"),
    [pytest.param(*case, marks=[] if case in CASES[:3] else pytest.mark.slow) for case in CASES],
    indirect=["path"],
)


@pytest.fixture
def path(prepare, request):
    """Dense rows, or sparse ones if asked for."""
    return prepare(*rows(2000), K, n_validation=200, n_test=200, sparse=getattr(request, "param", False))


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Some 12 windows of 8 blocks each."""
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 48)
    monkeypatch.setattr(windows, "Windows", partial(Windows, window_bytes=6400, block_bytes=800))


def run(path, chosen, callbacks=(), **plan):
    with open_prepared(path) as data:
        return fit(data, chosen, 0, Plan(**plan), callbacks=callbacks)


@cases
def test_the_likelihood_is_that_of_rows_in_memory(path, name):
    """Another order of the same rows: the fits differ, but not in what they reach."""
    inside, outside = (run(path, METHODS[name], epochs=8, stream=stream) for stream in (False, True))
    assert (inside.streamed, outside.streamed) == (False, True)
    reached = [each.state.history[-1]["test_log_likelihood"] for each in (inside, outside)]
    assert abs(reached[0] - reached[1]) < 0.03
    assert reached[1] > -1.95
    assert not np.array_equal(inside.model.rows, outside.model.rows)


@cases
def test_a_killed_fit_resumes_in_the_middle_of_a_window(path, name, tmp_path):
    whole = run(path, METHODS[name], epochs=3, stream=True)
    kept = tmp_path / "checkpoint.h5"
    with pytest.raises(KilledError):
        run(path, METHODS[name], [KillAfter(17, save=True)], epochs=3, stream=True, checkpoint=kept)
    resumed = run(path, METHODS[name], epochs=3, stream=True, checkpoint=kept)
    assert curve(resumed) == curve(whole)
    assert np.array_equal(resumed.model.rows, whole.model.rows)


@pytest.mark.parametrize("callbacks", [[], [KillAfter(17)]], ids=["finished", "killed"])
def test_a_fit_that_ends_lets_go_of_its_file(path, monkeypatch, callbacks):
    calls = []
    for name in ("samples", "close"):
        original = getattr(WindowSampler, name)

        def noted(sampler, *given, name=name, original=original):
            found = original(sampler, *given)
            calls.append(name)
            return found

        monkeypatch.setattr(WindowSampler, name, noted)
    with pytest.raises(KilledError) if callbacks else nullcontext():
        run(path, METHODS["sampled"], callbacks, epochs=2, stream=True)
    assert calls[-2:] == ["samples", "close"]


def test_every_row_is_visited_once_an_epoch(path, monkeypatch):
    visited = []
    advance = sampled.SampledSolver.advance

    def noted(self, samples, epoch, first, rate):
        visited.append((epoch, first, samples.copy()))
        return advance(self, samples, epoch, first, rate)

    monkeypatch.setattr(sampled.SampledSolver, "advance", noted)
    run(path, METHODS["batches"], epochs=2, stream=True)
    for epoch in range(2):
        mine = [(first, samples) for at, first, samples in visited if at == epoch and samples.size]
        assert sorted(np.concatenate([samples for _, samples in mine])) == list(range(1600))
        assert all(first % 8 == 0 for first, _ in mine)  # whole batches


def test_rows_stay_in_the_file_only_if_memory_does_not_hold_them(path):
    with open_prepared(path) as data:
        chosen = METHODS["sampled"]
        assert not must_stream(chosen, data, False)
        held = psutil.Process().memory_info().rss
        needed = sum(estimate(chosen, data, False).values())
        assert must_stream(chosen, data, False, held // 2 + needed)
        with pytest.raises(InputError, match=r"needs .* MB"):  # then it would not help, either
            fit(data, chosen, 0, Plan(epochs=1, memory=held // 2))


def test_streaming_needs_the_memory_of_its_windows(prepare):
    path = prepare(np.ones((20_000, 3000), np.float32), np.arange(20_000) % 4, 4)
    with open_prepared(path) as data:
        inside, outside = (estimate(METHODS["sampled"], data, False, stream) for stream in (False, True))
    assert inside["the data"] > 240_000_000
    assert outside["the data"] < 150_000_000


def test_the_full_gradient_needs_all_rows(path):
    full = method("softmax", "all", "lbfgs", l2=1.0)
    with pytest.raises(InputError, match="lbfgs needs all training rows in memory"):
        run(path, full, epochs=1, stream=True)
