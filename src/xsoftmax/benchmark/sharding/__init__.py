"""Compute, from measured rates, the time of a model that is spread over nodes, and simulate that on a few classes.

Nothing here trains on several machines, and nothing is timed: rates are read from what `benchmark kernels` wrote,
machines are published numbers. The machine in the result is that of the rates.
"""

import argparse
from pathlib import Path
from typing import Any

from xsoftmax.benchmark.sharding.checks import N_NODES, simulate
from xsoftmax.benchmark.sharding.hardware import PUBLISHED, measured
from xsoftmax.benchmark.sharding.rates import N_FEATURES, N_SAMPLED, Rates, read_rates
from xsoftmax.benchmark.sharding.schemes import (
    SCHEMES,
    Problem,
    exact_bytes,
    routed_bytes,
    step_bytes,
    stratified_bytes,
)
from xsoftmax.benchmark.sharding.times import SHARE_OF_BANDWIDTH, SHARE_OF_MEMORY, curve, memory_rows, time_rows
from xsoftmax.errors import InputError

N_CLASSES = (10**8, 10**9)
DRAWN = ("exact", "routed", "stratified")
SENT_FOR = (2, 4, 8, 64, 256)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "--kernels", type=Path, required=True, metavar="FILE.json", help="what `benchmark kernels` wrote"
    )
    parser.add_argument("--steps", type=int, default=1000, help="simulated of sampled methods (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Compute memory, bytes and times, and simulate, printing the times and what the simulation finds."""
    if options.steps < 2 * max(N_NODES):
        raise InputError(f"--steps is {options.steps}; give {2 * max(N_NODES)} or more")
    rates, machine = read_rates(options.kernels)
    hardware = (measured(machine), *PUBLISHED)
    problems = [Problem(n_classes) for n_classes in N_CLASSES]
    both = [(problem, each) for each in hardware for problem in problems]
    found: dict[str, Any] = {
        "machine": machine,
        "rates": rates._asdict() | _derived(rates),
        "assumptions": _assumptions(problems[0]),
        "hardware": [each._asdict() for each in hardware],
        "memory": [row for problem in problems for row in memory_rows(problem, hardware)],
        "sent": [_sent(n_nodes) for n_nodes in SENT_FOR],
        "times": [row for problem, each in both for row in time_rows(problem, rates, each)],
        "curves": [curve(name, problem, rates, each) for problem, each in both for name in SCHEMES if name in DRAWN],
    }
    print("\n".join(map(_time_line, found["times"])), flush=True)
    found["simulation"] = simulate(options.steps)
    print("\n".join(map(_simulation_line, found["simulation"])), flush=True)
    return found


def _assumptions(problem: Problem) -> dict[str, float]:
    """Sizes that all times have in common, and shares of what a machine has."""
    sizes = {"features": N_FEATURES, "sampled": N_SAMPLED, "batch_size": problem.batch_size}
    return sizes | {"share_of_memory": SHARE_OF_MEMORY, "share_of_bandwidth": SHARE_OF_BANDWIDTH}


def _derived(rates: Rates) -> dict[str, float]:
    """Memory that a step touches, and how much of it all cores together touched in a second."""
    moved = step_bytes()
    return {"step_bytes": moved, "bandwidth": moved / rates.step * rates.step_speedup}


def _sent(n_nodes: int) -> dict[str, float]:
    """Bytes sent for a row, by scheme."""
    return {
        "nodes": n_nodes,
        "exact": exact_bytes(N_FEATURES, n_nodes),
        "routed": routed_bytes(N_FEATURES, N_SAMPLED, n_nodes),
        "stratified": stratified_bytes(N_FEATURES, n_nodes),
    }


def _time_line(row: dict[str, Any]) -> str:
    return (
        f"{row['hardware']:<18} {row['classes']:>13,} classes  {row['nodes']:>4} nodes  {row['scheme']:<13}"
        f"{row['seconds']:12.4g} s per million rows, most of it {row['limit']}"
    )


def _simulation_line(row: dict[str, Any]) -> str:
    outcome = (
        f"gradient off by {row['error']:.1e}"
        if row["deviation"] is None
        else f"farthest {row['deviation']:.1f} standard errors"
    )
    return (
        f"{row['scheme']:<11} {row['nodes']} nodes, {row['visited'] or 'no'} visited: "
        f"{row['counted']:.1f} bytes a row, by the formula {row['formula']:.1f}; {outcome}"
    )
