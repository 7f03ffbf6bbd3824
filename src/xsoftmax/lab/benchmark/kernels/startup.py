"""What a fit spends before and after training, with what was compiled before it in the cache."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from xsoftmax.lab.benchmark.case import Quantity
from xsoftmax.lab.benchmark.observed import Observed, observed
from xsoftmax.lab.benchmark.problems import sparse_rows, write_problem

METHOD = {  # negative-frequency of config/methods.yaml
    "objective": {"name": "negative-sampling", "regularizer": 1e-5},
    "proposal": {"name": "frequency", "n_sampled": 5},
    "optimizer": {"name": "adagrad", "learning_rate": 1.0},
}


class Jobs:
    """Jobs of one experiment, one after the other, that share a cache which is empty at first.

    Parameters
    ----------
    sizes : tuple of int
        Rows, features and classes.
    """

    def __init__(self, sizes: tuple[int, int, int]) -> None:
        self._folder = TemporaryDirectory()
        self._root = Path(self._folder.name)
        n_samples, n_features, n_classes = sizes
        rows = sparse_rows(n_samples, n_features, n_classes, 9)
        write_problem(self._root / "data.h5", rows, n_classes, n_samples // 10)
        (self._root / "methods.yaml").write_text(yaml.safe_dump({"quick": METHOD}))

    @cache  # noqa: B019 - the jobs end with the benchmark
    def job(self, number: int) -> tuple[Observed, float]:
        """Run the jobs up to this one; tell what it took, and its seconds of training and evaluation."""
        if number:
            self.job(number - 1)
        fit = self._root / str(number)
        arguments = ["train", self._root / "data.h5", "--method", "quick", "--methods", self._root / "methods.yaml"]
        found = observed(
            [*arguments, "--seed", number, "--epochs", 2, "--points", 1, "-o", fit], self._root / "cache"
        )
        return found, float(json.loads((fit / "status.json").read_text(encoding="utf-8"))["seconds"])


def cases(small: bool) -> Iterator[Quantity]:
    """Yield what the first and the second job take, the sizes being those of the quick start."""
    jobs = Jobs((2_000, 500, 100) if small else (66_000, 6_400, 1_887))
    outside = "a fit of two epochs and two evaluations in a process of its own, less its seconds of training"
    yield Quantity("first job: compiled signatures", "1", lambda: jobs.job(0)[0].compiled, None, "empty cache")
    yield Quantity("first job: outside training", "s", lambda: _outside(jobs, 0), None, f"empty cache; {outside}")
    yield Quantity("second job: compiled signatures", "1", lambda: jobs.job(1)[0].compiled, 0.0, "what is cached")
    yield Quantity(
        "second job: outside training", "s", lambda: _outside_of(jobs, small), 2.0, f"warm cache; {outside}"
    )


def _outside(jobs: Jobs, number: int) -> float:
    found, trained = jobs.job(number)
    return found.seconds - trained


def _outside_of(jobs: Jobs, small: bool) -> float:
    """The median of three jobs with other seeds than the first; one is enough for a test."""
    return float(np.median([_outside(jobs, number) for number in ([1] if small else [1, 2, 3])]))
