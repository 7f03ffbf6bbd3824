"""Measure fits of generated texts as classes grow: time, memory, recall of the search, accuracy, and peers."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.shipped import methods_file
from xsoftmax.internal.text import duration, megabytes
from xsoftmax.lab.benchmark.documents.programs import Ours, Peer, Program
from xsoftmax.lab.benchmark.documents.texts import ROWS_OF_A_CLASS, written
from xsoftmax.lab.benchmark.peers.config import read_benchmark

CLASSES = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
PEERS = ("pecos-xlinear", "omikuji-parabel")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--classes", type=int, nargs="+", default=list(CLASSES), metavar="K", help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of training, for one program (default: %(default)g)"
    )
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: seconds that a run computes, on a busy machine"
    )
    parser.add_argument(
        "--memory", type=float, default=4.0, metavar="GB", help="of each program (default: %(default)g)"
    )
    parser.add_argument(
        "--programs", nargs="+", default=["xsoftmax", *PEERS], metavar="NAME", help="default: xsoftmax and the peers"
    )
    parser.add_argument("--peers", type=Path, default=Path("config/peers.yaml"), help="default: %(default)s")
    parser.add_argument("--experiment", type=Path, default=Path("config/experiments/benchmark.yaml"))
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="default: %(default)s")
    parser.add_argument("--scratch", type=Path, default=Path("scratch/documents"), help="default: %(default)s")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Let every program train on each number of classes in turn, printing each line when it is known."""
    if min(options.classes) < 2:
        raise InputError(f"--classes has {min(options.classes)}; give numbers of 2 or more")
    if not (options.seconds > 0 and options.memory > 0):
        raise InputError(f"--seconds is {options.seconds:g}, --memory {options.memory:g}; give numbers above 0")
    results = list(_measured(options, _programs(options)))
    return {"seconds": options.seconds, "clock": options.clock, "memory_gb": options.memory, "results": results}


def _programs(options: argparse.Namespace) -> list[Program]:
    known = ("xsoftmax", *PEERS)
    if unknown := set(options.programs) - set(known):
        raise InputError(f"unknown program {sorted(unknown)[0]!r}; known: {', '.join(known)}")
    peers = [name for name in PEERS if name in options.programs]
    programs: list[Program] = [Ours(options.clock)] if "xsoftmax" in options.programs else []
    if peers:
        entrants = read_benchmark(options.experiment, options.peers, methods_file(), None, peers).entrants
        programs += [Peer(entrant, options.environments, options.clock) for entrant in entrants]
    return programs


def _measured(options: argparse.Namespace, programs: list[Program]) -> Iterator[dict[str, Any]]:
    """Measure all programs; one that did not finish is not tried with more classes."""
    given_up: dict[str, str] = {}
    for n_classes in sorted(options.classes):
        folder = options.scratch / str(n_classes)
        n_samples = round(ROWS_OF_A_CLASS * n_classes)
        for program in programs:
            found: dict[str, Any] = {"status": "not tried", "message": given_up.get(program.name, "")}
            if program.name not in given_up:
                written(n_classes, folder)
                found = program.train(folder, options.seconds, options.memory)
                if found["status"] != "finished":
                    given_up[program.name] = f"{found['status']} with {n_classes:,} classes"
            found = {"program": program.name, "classes": n_classes, "samples": n_samples} | found
            if "seconds" in found:  # of the whole training, however often it uses a row
                found["seconds_per_row"] = found["seconds"] / n_samples
            print(line(found), flush=True)
            yield found


def line(found: dict[str, Any]) -> str:
    """Say what came out, for people."""
    head = f"{found['classes']:,} classes, {found['program']}: {found['status']}"
    if found.get("accuracy") is None:
        return f"{head}, {found['message']}"
    recall = f", recall {found['recall']:.3f}" if found.get("recall") is not None else ""
    return (
        f"{head}, {duration(found['seconds_per_row'])} per row, {found['seconds']:.3g} s, "
        f"{megabytes(found['peak_bytes'])}, accuracy {found['accuracy']:.4f}{recall}"
    )
