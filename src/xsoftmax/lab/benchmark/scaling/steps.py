"""Seconds per step of sampled methods as one size grows, the others staying as they are.

All sizes of a sweep are held at once and take turns, so that what else the machine does hits all alike.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.text import duration, megabytes
from xsoftmax.kernels.rows import features_of
from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.machine import caches
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, steps_of
from xsoftmax.lab.benchmark.roofline import row_floor
from xsoftmax.lab.benchmark.timing import measure

# Time per step may grow by a quarter when there are ten times the classes: with them grows the chance that the
# processor has forgotten where in memory a row lies.
FLAT = 0.1
METHODS: dict[str, dict[str, Any]] = {
    "negative sampling": {"objective": "negative-sampling"},
    "negative sampling, frequency": {"objective": "negative-sampling", "proposal": "frequency"},
    "one-vs-each": {"objective": "one-vs-each"},
    "implicit": {"objective": "double-sum", "optimizer": {"name": "implicit", "learning_rate": 0.3}, "bias": False},
}
# What the memory itself does as the classes grow.
FLOOR = "two random rows (floor)"
N_ROWS = 2**15


class Size(NamedTuple):
    """Of one measurement."""

    classes: int
    features: int
    sampled: int = 1
    threads: int = 1


class Sweep(NamedTuple):
    """One size that grows, of one method."""

    method: str
    axis: str
    sizes: Sequence[Size]


def sweeps(small: bool) -> Iterator[Sweep]:
    """Say what is measured."""
    few, some = _decades(3, 5), _decades(3, 6)
    yield Sweep(FLOOR, "classes", [Size(k, 64) for k in (few if small else _decades(3, 7))])
    if not small:
        yield Sweep(FLOOR, "classes", [Size(k, 512) for k in some])
    for method in METHODS:
        yield Sweep(method, "classes", [Size(k, 64) for k in (few if small else _decades(3, 7))])
        if method != "negative sampling, frequency":
            if not small:
                yield Sweep(method, "classes", [Size(k, 512) for k in some])
            features = (16, 64, 256) if small else (16, 32, 64, 128, 256, 512, 1024, 2048)
            yield Sweep(method, "features", [Size(10_000 if small else 100_000, d) for d in features])
    for method in ("negative sampling", "one-vs-each"):
        sampled = (1, 4, 16) if small else (1, 2, 5, 10, 20, 50, 100)
        yield Sweep(method, "sampled", [Size(10_000 if small else 200_000, 128, n) for n in sampled])
    for method in ("negative sampling", "one-vs-each", "implicit"):
        threads = range(1, len(os.sched_getaffinity(0)) + 1)
        yield Sweep(method, "threads", [Size(20_000 if small else 200_000, 512, 1, n) for n in threads])


def _decades(first: int, last: int) -> list[int]:
    """Two sizes per decade."""
    return [round(k * 10**e) for e in range(first, last) for k in (1, 3)] + [10**last]


def run(small: bool, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure all sweeps."""
    for sweep in sweeps(small):
        found = measured(sweep, rounds)
        print("\n".join(_lines(found)), flush=True)
        yield found


def measured(sweep: Sweep, rounds: int) -> dict[str, Any]:
    """Measure one sweep.

    Returns
    -------
    dict
        What grows, of which method; for each size its seconds per step, round by round, and the bytes of weights and
        accumulators; how steeply time grows where they exceed the caches (``growth``), or None.
    """
    n = 2**13 if sweep.axis in ("sampled", "features") else 2**14
    rows: dict[int, Rows] = {}
    runs, points = {}, []
    for size in sweep.sizes:
        rows[size.features] = rows.get(size.features) or dense_rows(N_ROWS, size.features, 1)
        labels = np.random.default_rng(2).integers(0, size.classes, N_ROWS, np.int32)
        problem = Rows(rows[size.features].X, labels)
        settings = dict(METHODS.get(sweep.method, METHODS["negative sampling"]))
        settings["proposal"] = {"name": settings.get("proposal", "uniform"), "n_sampled": size.sampled}
        per_call = 2 * n * max(each.threads for each in sweep.sizes)
        solver, steps = steps_of(method_of(**settings), problem, size.classes, min(N_ROWS, per_call), size.threads)
        W = solver.arrays()["W"]
        run = row_floor(features_of(problem.X, True), W, steps.n)[1] if sweep.method == FLOOR else steps
        runs[str(getattr(size, sweep.axis))] = run
        points.append(size._asdict() | {"bytes": W.nbytes})
    case = Case(sweep.method, "step", steps.n, {**runs}, {})
    for point, timed in zip(points, measure(case, rounds)["runs"].values(), strict=True):
        point["seconds"] = timed["seconds"]
    steep = growth(points) if sweep.axis == "classes" else None
    limit = None if steep is None or sweep.method == FLOOR else FLAT
    return {"part": "steps", "method": sweep.method, "axis": sweep.axis, "points": points} | {
        "growth": steep,
        "limit": limit,
    }


def growth(points: Sequence[dict[str, Any]]) -> float | None:
    """Slope of the logarithm of time by that of the classes, where the model exceeds the caches.

    The median over rounds of the least-squares slope; None if there are fewer than two such sizes.
    """
    cache = max(caches().values(), default=2**26)
    large = [point for point in points if point["bytes"] > cache]
    if len(large) < 2:
        return None
    classes = np.log([point["classes"] for point in large])
    seconds = np.log([point["seconds"]["wall"] for point in large])
    return float(np.median(np.polyfit(classes, seconds, 1)[0]))


def _lines(found: dict[str, Any]) -> list[str]:
    axis, points = found["axis"], found["points"]
    fixed = {"classes": "features", "features": "classes"}.get(axis, "classes")
    lines = [f"{found['method']}, {axis} growing, {points[0][fixed]:,} {fixed}"]
    for point in points:
        wall = float(np.median(point["seconds"]["wall"]))
        lines.append(f"  {point[axis]:>12,}  {duration(wall):>8} per step  {megabytes(point['bytes']):>9}")
    if found["growth"] is not None:
        line = f"  growth beyond the caches: exponent {found['growth']:.3f}"
        if found["limit"] is not None:
            line += f"  limit {found['limit']}: {'met' if found['growth'] <= found['limit'] else 'NOT MET'}"
        lines.append(line)
    return lines
