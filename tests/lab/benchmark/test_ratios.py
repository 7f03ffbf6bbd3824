"""Regressions: every kernel against its floor, small, with so much margin that a busy machine does not fail it.

A ratio is taken by the wall clock or by the processor's time, whichever is better, and may be twice what is promised.
Promised seconds are left to the benchmark itself: by themselves they say how fast the machine is.
"""

import time
from itertools import islice

import pytest

from xsoftmax.internal import registry
from xsoftmax.lab.benchmark.case import Case, Quantity
from xsoftmax.lab.benchmark.timing import measure, read

KERNELS = "xsoftmax.lab.benchmark.kernels"
MARGIN = 2.0
ATTEMPTS = 3
SECONDS = ("s", "CPU s")


def excesses(case):
    """By how much the promised ratios are exceeded, by run; the best of some attempts."""
    best = {}
    for _ in range(ATTEMPTS):
        found = measure(case, rounds=5)["runs"]
        for name, limit in case.limits.items():
            ratio = min(found[name]["ratio"][clock]["median"] for clock in ("wall", "cpu"))
            best[name] = min(best.get(name, ratio / limit), ratio / limit)
        if all(excess <= MARGIN for excess in best.values()):
            break
    return best


def excess_of_quantity(quantity):
    """The same of a number; where none at all is promised, nothing is in excess but more than that."""
    for _ in range(ATTEMPTS):
        value = read(quantity)["value"]
        excess = value / quantity.limit if quantity.limit else MARGIN + value
        if excess <= MARGIN:
            break
    return {"value": excess}


def too_slow(cases):
    """What takes more than twice what is promised."""
    found = []
    for case in cases:
        if isinstance(case, Quantity):
            over = excess_of_quantity(case) if case.limit is not None and case.unit not in SECONDS else {}
        else:
            assert set(case.limits) <= set(case.runs) - {next(iter(case.runs))}, case.name
            over = excesses(case) if case.limits else {}
        found += [f"{case.name}, {run}: {by:.2f} x what is promised" for run, by in over.items() if by > MARGIN]
    return found


@pytest.mark.alone
@pytest.mark.parametrize("topic", registry.names(KERNELS))
def test_every_kernel_keeps_near_its_floor(topic):
    assert too_slow(registry.load(KERNELS, topic).cases(small=True)) == []


@pytest.mark.alone
def test_a_kernel_three_times_slower_is_noticed():
    """Whatever the ratio is now: three times that is too slow."""
    for case in islice(registry.load(KERNELS, "sampled").cases(small=True), 2):
        name, run = list(case.runs.items())[1]
        slow = case._replace(runs=case.runs | {name: lambda run=run: (run(), run(), run())})
        assert len(too_slow([slow])) == 1, case.name


def working(seconds):
    """Something that keeps the processor busy for so long."""

    def work():
        start = time.process_time()
        while time.process_time() - start < seconds:
            pass

    return work


@pytest.mark.slow
def test_margins_are_as_said():
    runs = {"floor": working(0.02), "fast": working(0.03), "slow": working(0.07)}
    case = Case("work", "piece", 1, runs, {"fast": 1.0, "slow": 1.0})
    (found,) = too_slow([case])
    assert found.startswith("work, slow: ")
    assert float(found.split()[2]) == pytest.approx(3.5, rel=0.3)
    assert too_slow([case._replace(limits={"slow": 2.0})]) == []
    assert too_slow([case._replace(limits={})]) == []


def test_a_quantity_has_the_same_margin_and_nothing_means_nothing():
    assert too_slow([Quantity("n", "nats", lambda: 3.9, 2.0), Quantity("n", "nats", lambda: 99, None)]) == []
    assert len(too_slow([Quantity("n", "nats", lambda: 4.1, 2.0)])) == 1
    assert too_slow([Quantity("n", "1", lambda: 0, 0.0)]) == []
    assert len(too_slow([Quantity("n", "1", lambda: 1, 0.0)])) == 1
    assert too_slow([Quantity("t", "s", lambda: 99, 2.0)]) == []


def test_a_bad_moment_is_forgiven():
    pieces = iter(2 * [0.02] + 5 * [0.3] + 1000 * [0.02])
    case = Case("work", "piece", 1, {"floor": working(0.02), "run": lambda: working(next(pieces))()}, {"run": 1.0})
    assert too_slow([case]) == []
