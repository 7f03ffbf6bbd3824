"""A verb in a process of its own: what it took, and that a failure is told."""

import json

import numpy as np
import pytest

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.observed import observed

METHODS = "plain: {objective: {name: one-vs-each}, proposal: {name: uniform}, optimizer: {name: sgd}}"


@pytest.fixture
def train(prepare, tmp_path):
    """Arguments of a small fit of so many classes."""
    (tmp_path / "methods.yaml").write_text(METHODS)

    def arguments(n_classes, *others):
        X = np.ones((40, 50), np.float32)
        data = prepare(X, np.arange(40) % n_classes, n_classes)
        common = ["train", data, "--methods", tmp_path / "methods.yaml", "--method", "plain", "--epochs", 1]
        return [*common, "--points", 1, "-o", tmp_path / "fit", *others]

    return arguments


@pytest.mark.slow  # compiles everything; the ratios of start-up, which are not slow, look at the same
def test_a_second_process_loads_what_the_first_one_compiled(train, tmp_path):
    first, second = (observed(train(3, "--seed", seed), cache=tmp_path / "cache") for seed in (0, 1))
    assert first.compiled > 5
    assert second.compiled == 0
    assert second.seconds < first.seconds
    assert json.loads((tmp_path / "fit" / "status.json").read_text())["status"] == "finished"


@pytest.mark.slow
def test_peak_memory_grows_by_what_is_held(train):
    """100,000 x 51 weights more: 20 MB."""
    observed(train(10))  # compiles, which takes more than the weights
    few, many = (observed(train(n)).peak_bytes for n in (10, 100_000))
    assert many - few > 4 * 51 * 100_000
    assert few < 2**30


@pytest.mark.slow
def test_peak_memory_is_not_that_of_whoever_asks(train):
    large = np.ones(2**28)  # 2 GB
    assert observed(train(3)).peak_bytes < large.nbytes / 2


def test_a_failure_is_an_error(train):
    with pytest.raises(InputError, match=r"(?s)xsoftmax train .* failed:.*--points is 0"):
        observed([*train(3), "--points", "0"])
