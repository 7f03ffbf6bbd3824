"""Time several things against each other: A B C A B C ..., so that what else the machine does hits all alike."""

import gc
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.lab.benchmark.case import Case, Quantity

ROUNDS = 7
SHORTEST = 0.02  # seconds of one measurement; shorter runs are called several times
CLOCKS = ("wall", "cpu")


class Ratio(NamedTuple):
    """Median and quartiles of the ratios to the first run, one per round."""

    median: float
    lower: float
    upper: float


class Times(NamedTuple):
    """Seconds of one run per unit of work, one per round: of the wall clock, and of all the process's threads."""

    wall: list[float]
    cpu: list[float]


def interleaved(case: Case, rounds: int = ROUNDS) -> dict[str, Times]:
    """Time the runs of a case in turn, after one call of each outside the clock."""
    calls = {name: _calls(run) for name, run in case.runs.items()}
    found = {name: Times([], []) for name in case.runs}
    gc.collect()
    for _ in range(rounds):
        for name, run in case.runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(calls[name]):
                run()
            units = calls[name] * case.work
            found[name].cpu.append((time.process_time() - cpu) / units)
            found[name].wall.append((time.perf_counter() - wall) / units)
    return found


def _calls(run: Callable[[], object]) -> int:
    """Warm up: the first call may compile, the second tells how many make a measurement."""
    run()
    start = time.perf_counter()
    run()
    return max(1, math.ceil(SHORTEST / max(time.perf_counter() - start, 1e-9)))


def ratio(times: list[float], floor: list[float]) -> Ratio:
    """Divide round by round."""
    lower, median, upper = np.quantile(np.divide(times, floor), [0.25, 0.5, 0.75])
    return Ratio(float(median), float(lower), float(upper))


def measure(case: Case, rounds: int = ROUNDS) -> dict[str, Any]:
    """Time a case.

    Returns
    -------
    dict
        What is known of the case, and for each run the seconds per unit of every round, the ratio to the floor by
        each clock, and the limit of that ratio if there is one.
    """
    times = interleaved(case, rounds)
    floor = next(iter(times.values()))
    runs = {
        name: {
            "seconds": found._asdict(),
            "ratio": {clock: ratio(getattr(found, clock), getattr(floor, clock))._asdict() for clock in CLOCKS},
            "limit": case.limits.get(name),
        }
        for name, found in times.items()
    }
    return {"name": case.name, "unit": case.unit, "work": case.work, "note": case.note, "runs": runs}


def read(quantity: Quantity) -> dict[str, Any]:
    """Measure a quantity."""
    known = {"name": quantity.name, "unit": quantity.unit, "note": quantity.note, "limit": quantity.limit}
    return known | {"value": float(quantity.read())}
