"""Seconds per sample of each candidate, on generated rows of many shapes, by one thread and by all."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.advice.statistics import statistics_of_arrays
from xsoftmax.lab.benchmark.problems import Rows, Steps, dense_rows, solver_of, sparse_rows
from xsoftmax.methods import build_method

N_ROWS = 2**14
LONGEST = 2**13  # rows of one measurement
ROUNDS = 3
ENOUGH = 0.15  # seconds of a measurement
MOST_BYTES = 2**30  # of weights


class Shape(NamedTuple):
    """Of generated rows; ``n_entries`` is 0 where they are dense."""

    n_classes: int
    n_features: int
    n_entries: int = 0


def shapes(small: bool) -> Iterator[Shape]:
    """Say what is measured."""
    if small:
        yield from (Shape(k, d) for k in (10, 1000) for d in (16, 64, 256))
        yield from (Shape(k, d, n) for k in (10, 1000) for d, n in ((500, 5), (2000, 20), (2000, 100)))
        return
    classes = (10, 100, 1_000, 10_000, 50_000)
    yield from (Shape(k, d) for k in classes for d in (32, 128, 784))
    yield from (Shape(k, d, n) for k in classes for d, n in ((500, 15), (6_000, 10), (8_000, 40), (40_000, 130)))


def run(candidates: Mapping[str, Mapping[str, Any]], small: bool) -> Iterator[dict[str, Any]]:
    """Measure every shape; candidates take turns."""
    threads = sorted({1, len(os.sched_getaffinity(0))})
    for shape in shapes(small):
        if 8 * shape.n_classes * shape.n_features > MOST_BYTES:
            continue
        rows = _rows(shape)
        statistics = statistics_of_arrays(rows.X, shape.n_classes)
        for name, settings in candidates.items():
            for n in threads if not small else (1,):
                seconds = seconds_per_sample(name, settings, rows, shape.n_classes, n)
                yield {"method": name, "facts": statistics._asdict(), "threads": n, "seconds_per_sample": seconds}
                print(f"{name}, {statistics}, {n} threads: {1e6 * np.median(seconds):.3g} us per sample", flush=True)


def _rows(shape: Shape) -> Rows:
    if shape.n_entries:
        return sparse_rows(N_ROWS, shape.n_features, shape.n_classes, shape.n_entries)
    return dense_rows(N_ROWS, shape.n_features, shape.n_classes)


def seconds_per_sample(
    name: str, settings: Mapping[str, Any], rows: Rows, n_classes: int, threads: int
) -> list[float]:
    """Seconds per sample of a few rounds, each long enough to be measured."""
    method = build_method(name, settings)
    size = method.minibatch_size
    solver = solver_of(method, rows, n_classes, threads)
    n, rate = size, 1e-3
    Steps(solver, rows.y.size, n, rate)()
    while True:
        steps = Steps(solver, rows.y.size, n, rate)
        start = time.perf_counter()
        steps()
        elapsed = time.perf_counter() - start
        if elapsed > ENOUGH or n * 4 > LONGEST:
            break
        n *= 4
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        steps()
        found.append((time.perf_counter() - start) / n)
    return found
