"""Fit a proposal beforehand, such as the adversarial tree: for fits that draw from it to share, or to classify by.

xsoftmax proposal data/prepared/icd10.h5 --kind tree -o tree.h5
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsoftmax.data.store import open_prepared
from xsoftmax.gpu.device import add_device, chosen_place
from xsoftmax.gpu.tree_engine import engine_on
from xsoftmax.internal import registry
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.proposals import build_proposal
from xsoftmax.proposals._file import fit_beforehand, write_proposal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("prepared", type=Path, help="prepared data")
    parser.add_argument("--kind", required=True, metavar="NAME", help="which proposal, such as tree")
    parser.add_argument(
        "--set", default="{}", metavar="JSON", help="parameters that differ from its defaults: '{\"dimension\": 8}'"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random in its fit")
    add_device(parser, "where it is fitted")
    parser.add_argument("-o", "--output", type=file_to_write, required=True, help="file to write")


def run(options: argparse.Namespace) -> None:
    """Fit, write, and print what came out."""
    parameters = parse_json(options.set, f"--set {options.set[:80]!r}")
    if not isinstance(parameters, dict):
        raise InputError(f"--set {options.set!r} is not JSON of the form '{{\"dimension\": 8}}'")
    member = build_proposal("--set", {**parameters, "name": options.kind})
    engine = engine_on(chosen_place(options.device, "fits it"))
    progress = registry.load("xsoftmax.internal", "progress")  # by name: an edit of it is no edit of a proposal
    with (
        open_prepared(options.prepared) as data,
        progress.Progress(f"proposal {options.kind} of {data.name}", "steps") as report,
    ):
        stored = fit_beforehand(
            data, member, options.seed, lambda done, whole: report.move_to(done, f"of {whole:.4g}"), engine
        )
    write_proposal(options.output, stored)
    known = stored.attributes
    print(
        f"{options.output}: proposal {options.kind} for {known['n_classes']} classes of {known['dataset']}, "
        f"fitted in {known['seconds']:.2f} s"
    )
    _print_fit_summary(stored.fit_summary)


def _print_fit_summary(fit_summary: Mapping[str, Any]) -> None:
    for name, value in fit_summary.items():
        values = value if isinstance(value, list) else [value]
        print(f"  {name}: {' '.join(f'{each:.6g}' for each in values)}")
