"""Compute and measure how much signal proposals leave in the gradients of negative sampling, on prepared data.

    xsoftmax snr data/prepared/contingency.h5 -o snr.csv

The ratio eta of Bamler and Mandt 2020, eq. 12, as a share of its maximum. Equal training rows tell p(y | x), so it
takes data with few distinct rows, such as config/datasets/contingency.yaml.
"""

import argparse
from pathlib import Path
from typing import Any

from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.signal_to_noise import SignalToNoise, signal_to_noise
from xsoftmax.internal.documents import parse_yaml
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import written_aside
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.methods import build_method
from xsoftmax.proposals import TrainingSet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("prepared", type=Path, help="prepared data")
    parser.add_argument(
        "--proposals",
        nargs="+",
        default=["uniform", "frequency", "tree"],
        metavar="PROPOSAL",
        help="names, or as in a config: '{name: tree, dimension: 4}' (default: uniform frequency tree)",
    )
    parser.add_argument("--draws", type=int, default=4_000_000, help="simulated gradients (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=file_to_write, required=True, metavar="CSV", help="table to write")
    parser.add_argument("--figure", type=file_to_write, metavar="SVG", help="figure to write; a PNG goes beside it")


def run(options: argparse.Namespace) -> None:
    """Compute, measure, write, and print what came out."""
    import pandas as pd  # an optional dependency: that it lacks is told before minutes of work

    if options.draws < 2:
        raise InputError(f"--draws is {options.draws}; give 2 or more")
    if options.seed < 0:
        raise InputError(f"--seed is {options.seed}; give 0 or more")
    members = dict(_proposal(written) for written in options.proposals)
    with open_prepared(options.prepared) as prepared:
        train, name, n_classes = prepared.split("train"), prepared.name, prepared.n_classes
    if train.n_samples == 0 or n_classes < 2:
        raise InputError(
            f"{options.prepared}: {train.n_samples} rows of {n_classes} classes; it takes rows of 2 or more"
        )
    data = TrainingSet(train.X, train.y, n_classes, options.seed)
    found = signal_to_noise(data, members, options.draws, options.seed)
    table = pd.DataFrame([each.row() for each in found])
    with written_aside(options.output) as aside:
        table.to_csv(aside, index=False)
    if options.figure:
        from xsoftmax.lab.report.signal_to_noise import (
            write_figure,
        )  # needs the plotting libraries, which a table does not

        write_figure(table, name, options.figure)
    _print(found)


def _proposal(written: str) -> tuple[str, Any]:
    """Read a proposal as it may stand in a config; return its label and its parameters."""
    settings = parse_yaml(written, f"--proposals {written[:80]!r}")
    settings = settings if isinstance(settings, dict) else {"name": written}
    axes = {"objective": {"name": "negative-sampling"}, "proposal": settings, "optimizer": {"name": "sgd"}}
    member = build_method("snr", axes).proposal
    own = ", ".join(_short(key, value) for key, value in settings.items() if key != "name")
    return f"{settings['name']} ({own})" if own else settings["name"], member


def _short(key: str, value: Any) -> str:
    return str(value["name"]) if isinstance(value, dict) else f"{key} {value}"


def _print(found: list[SignalToNoise]) -> None:
    first, width = found[0], max(len(each.proposal) for each in found)
    print(
        f"{first.n_samples} rows, {first.n_distinct} distinct, {first.n_classes} classes; eta as share of its maximum"
    )
    for each in found:
        print(
            f"  {each.proposal:<{width}} {each.relative:.5f}   measured {each.measured:.5f}"
            f" +- {each.measured_error:.5f}   overlap with the ideal {each.overlap:.4f}"
        )
    print(f"  no proposal can be below {1 - 1 / first.n_classes:.5f}, (K - 1) / K")
    if first.n_infinite:
        print(f"  {first.n_infinite} pairs of a row and a class never occur; they count as in the limit p -> 0")
