"""Measure us beside what users pick today: time to quality, time per epoch, memory; one run at a time."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from xsoftmax.internal.files import write_text
from xsoftmax.internal.shipped import methods_file
from xsoftmax.lab.benchmark.peers.config import read_benchmark
from xsoftmax.lab.benchmark.peers.rounds import Rounds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--experiment", type=Path, default=Path("config/experiments/benchmark.yaml"))
    parser.add_argument("--peers", type=Path, default=Path("config/peers.yaml"), help="default: %(default)s")
    parser.add_argument(
        "--methods", type=Path, default=methods_file(), help="default: config/methods.yaml, or else those shipped"
    )
    parser.add_argument("--minutes", type=float, help="scale all budgets so that everything takes about so long")
    parser.add_argument("--repetitions", type=int, default=1, help="final runs of each (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of each run, which is pinned to as many cores")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: seconds that a run computes, on a busy machine"
    )
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--entrants", nargs="+", metavar="NAME", help="only those whose names begin so")
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="default: %(default)s")
    parser.add_argument(
        "--scratch", type=Path, default=Path("scratch/peers"), help="exported data (default: %(default)s)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("results/benchmark/peers"), help="default: %(default)s"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Do all runs that ``output`` does not hold yet, write tables and figures beside them, and return them."""
    from xsoftmax.lab.report.targets import limits  # what the report lacks is told before hours of runs

    benchmark = read_benchmark(options.experiment, options.peers, options.methods, options.datasets, options.entrants)
    rounds = Rounds(
        benchmark,
        folder=options.output,
        environments=options.environments,
        scratch=options.scratch,
        n_threads=options.threads,
        repetitions=options.repetitions,
        clock=options.clock,
        minutes=options.minutes,
        limits_of=partial(limits, benchmark.targets),
    )
    content = {"datasets": rounds.run(), "targets": benchmark.targets}
    print(write(content, options.output))
    return content


def write(content: dict[str, Any], folder: Path) -> str:
    """Write ``table.md`` and figures of what was found into ``folder``; return the tables."""
    from xsoftmax.lab.report.leaderboard import summaries, verdicts
    from xsoftmax.lab.report.peers import markdown, write_figures
    from xsoftmax.lab.report.targets import targets_table

    found = content["datasets"]
    summary = summaries(found)
    text = f"{targets_table(content)}\n\n{markdown(found, summary, verdicts(found, summary))}".lstrip()
    write_text(folder / "table.md", text)
    write_figures(found, folder / "figures")
    return text
