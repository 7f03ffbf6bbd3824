"""Predict the likeliest classes of new rows, with their probabilities, as CSV."""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xsoftmax.errors import InputError
from xsoftmax.evaluation.prediction import Prediction, top_k
from xsoftmax.files import written_aside
from xsoftmax.model import Model, load_model
from xsoftmax.threads import Team


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit")
    parser.add_argument("rows", type=Path, help="new rows, of the kind that the model was trained on; see the README")
    parser.add_argument("--top", type=int, default=5, help="classes per row (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, help="CSV file; default: print")


def run(options: argparse.Namespace) -> None:
    """Write a line per row and class: row number from 0, rank from 1, class name, probability."""
    if options.top < 1:
        raise InputError(f"--top is {options.top}; set it to 1 or more")
    team = Team(options.threads)
    model = load_model(options.model)
    if model.transform is None:
        raise InputError(f"{options.model} does not say how to read rows; give the model.h5 of a fit")
    prediction = top_k(model, model.transform.features_of(options.rows), options.top, team)
    header = ["row", "rank", "class", "probability"]
    if options.output is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows([header, *_lines(model, prediction)])
        return
    with written_aside(options.output) as aside, aside.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *_lines(model, prediction)])


def _lines(model: Model, prediction: Prediction) -> Iterator[list[str | int]]:
    for row, rank in np.ndindex(prediction.classes.shape):
        name = model.class_names[int(prediction.classes[row, rank])]
        yield [row, rank + 1, name, f"{prediction.probabilities[row, rank]:.6g}"]
