"""Measure a served model: latency and throughput over HTTP, and what an index finds of the best classes."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.serve.load import measured as load_of
from xsoftmax.lab.benchmark.serve.models import KINDS, written
from xsoftmax.lab.benchmark.serve.recall import measured as recall_of

CLASSES = (20_000, 500_000)
CLIENTS = (1, 16)
# How requests are gathered: each alone, those that wait, or those that come within so many milliseconds, too.
WAYS = {"alone": ["--max-rows", 1], "waiting": ["--gather", 0], "waiting 2 ms": ["--gather", 2]}
# A graph of more classes takes minutes to make.
MOST_IN_GRAPH = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--classes", type=int, nargs="+", default=list(CLASSES), metavar="K", help="default: all")
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS), metavar="N", help="default: all")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement (default: %(default)g)")
    parser.add_argument("--workers", type=int, default=1, help="of the server (default: %(default)s)")
    parser.add_argument("--model", type=Path, help="a trained model.h5 of dense rows, whose index is measured")
    parser.add_argument("--data", type=Path, help="its prepared data set, whose test rows are asked for")
    parser.add_argument("--rows", type=int, default=1000, help="of these, at most (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, printing each line when it is known."""
    if (options.model is None) != (options.data is None):
        raise InputError("--model and --data belong together; give both, or neither")
    if not options.seconds > 0 or options.rows < 1 or min([*options.classes, *options.clients, options.workers]) < 1:
        raise InputError("--seconds, --rows, --classes, --clients and --workers must be above 0")
    found = [] if options.model is None else recall_of(options.model, options.data, options.rows)
    return {
        "seconds": options.seconds,
        "workers": options.workers,
        "recall": found,
        "load": [each for n_classes in options.classes for kind in KINDS for each in _load(options, n_classes, kind)],
    }


def _load(options: argparse.Namespace, n_classes: int, kind: str) -> list[dict[str, Any]]:
    """Serve a model of so many classes in every way, to every number of clients."""
    found = []
    index = "hnsw" if n_classes <= MOST_IN_GRAPH else "ivf"
    ways = WAYS | ({f"waiting, {index}": ["--index", index, "--gather", 0]} if kind == "dense" else {})
    with TemporaryDirectory() as folder:
        path, requests = written(Path(folder), n_classes, kind)
        for way, words in ways.items():
            for each in load_of(
                path, requests, [*words, "--workers", options.workers], options.clients, options.seconds
            ):
                found.append({"classes": n_classes, "rows": kind, "batches": way} | each)
                print(_line(found[-1]), flush=True)
    return found


def _line(found: dict[str, Any]) -> str:
    return (
        f"{found['classes']:,} classes, {found['rows']}, {found['batches']}, {found['clients']} clients: "
        f"p50 {1e3 * found['p50']:.1f} ms, p99 {1e3 * found['p99']:.1f} ms, {found['per_second']:.0f} rows/s, "
        f"{1e3 * found['cpu_seconds']:.2f} ms computed for a row"
    )
