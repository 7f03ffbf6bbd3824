"""Time each kernel against its floor, interleaved in one run; one file per topic.

A file has ``cases(small)``, which yields ``Case`` s and ``Quantity`` s; ``small`` asks for sizes that set up and run
within a second or two.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import duration
from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.timing import ROUNDS, measure, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "topics", nargs="*", metavar="topic", help=f"of {', '.join(registry.names(__name__))}; or all"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    parser.add_argument("--small", action="store_true", help="sizes that take seconds, and prove nothing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all cases of the topics, printing each when it is done."""
    if options.rounds < 1:
        raise InputError(f"--rounds is {options.rounds}; give 1 or more")
    topics = {name: registry.load(__name__, name) for name in options.topics or registry.names(__name__)}
    results: list[dict[str, Any]] = []
    for name, topic in topics.items():
        for found in measured(topic.cases(options.small), options.rounds):
            results.append({"topic": name} | found)
            print("\n".join(lines(results[-1])), flush=True)
    return {"small": options.small, "rounds": options.rounds, "results": results}


def measured(cases: Iterator[Any], rounds: int = ROUNDS) -> Iterator[dict[str, Any]]:
    """Measure one by one, keeping no case longer than its turn: its arrays may be large."""
    while (case := next(cases, None)) is not None:
        result = measure(case, rounds) if isinstance(case, Case) else read(case)
        del case
        yield result


def lines(result: dict[str, Any]) -> list[str]:
    """Say what came out, for people."""
    if "runs" not in result:
        return [f"{result['name']}: {result['value']:.4g} {result['unit']}{_limit(result['limit'], result['value'])}"]
    found = [result["name"]]
    for name, timed in result["runs"].items():
        ratios = timed["ratio"]
        wall, cpu = ratios["wall"], ratios["cpu"]
        seconds = sorted(timed["seconds"]["wall"])[len(timed["seconds"]["wall"]) // 2]
        found.append(
            f"  {name:<24} {wall['median']:7.3f} x  ({wall['lower']:.3f} .. {wall['upper']:.3f}; cpu "
            f"{cpu['median']:.3f})  {duration(seconds)} per {result['unit']}{_limit(timed['limit'], wall['median'])}"
        )
    return found


def _limit(limit: float | None, value: float) -> str:
    if limit is None:
        return ""
    return f"  limit {limit:g}: {'met' if value <= limit else 'NOT MET'}"
