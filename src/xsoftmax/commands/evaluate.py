"""Evaluate a model, or a tree, by its exact likelihood (in most cases the softmax's) on validation and test rows."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from xsoftmax.data.store import open_prepared
from xsoftmax.errors import InputError
from xsoftmax.evaluation import as_published
from xsoftmax.evaluation.closeness import closeness
from xsoftmax.evaluation.metrics import evaluate
from xsoftmax.files import written_aside
from xsoftmax.model import DivergedError, Model, load_model
from xsoftmax.threads import Team


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit, or tree.h5")
    parser.add_argument("prepared", type=Path, help="prepared data set (HDF5)")
    parser.add_argument("--reference", type=Path, help="a model.h5 to tell the distance of the weights from")
    parser.add_argument("--train", action="store_true", help="evaluate on all training rows, too")
    parser.add_argument(
        "--as-published",
        nargs="+",
        choices=as_published.KINDS,
        default=[],
        help="add log-likelihoods as papers report them: floored at -26 a row, by importance sampling (Ruiz et al. "
        "2018), or of probabilities that are normalised once more (Fagan & Iyengar 2018)",
    )
    parser.add_argument("--threads", type=int, default=1, help="metrics do not depend on it (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="metrics.json; default: print")


def run(options: argparse.Namespace) -> None:
    """Evaluate; metrics of a fit that diverged are null."""
    team = Team(options.threads)
    metrics: dict[str, Any] = {"dataset": None, "status": "diverged"}
    try:
        model: Model | None = load_model(options.model)
    except DivergedError as error:
        model, metrics["message"] = None, str(error)
    with open_prepared(options.prepared) as data:
        metrics["dataset"] = data.name
        for name in ("train", "validation", "test") if options.train else ("validation", "test"):
            split = data.split(name)
            metrics[name] = {"n_samples": split.n_samples}
            if model is not None:
                metrics["status"] = model.attributes["status"]
                if model.class_names != data.class_names:
                    raise InputError(f"{options.model} has other classes than {data.name}; train it on this data set")
                values = dict(evaluate(model, split.X, split.y, team))
                values |= as_published.log_likelihoods(model, split.X, split.y, options.as_published, team)
                metrics[name] |= {key: value if math.isfinite(value) else None for key, value in values.items()}
    if options.reference is not None:
        metrics["closeness"] = _closeness(model, options.reference)
    text = json.dumps(metrics, indent=2, sort_keys=True) + "\n"
    if options.output is None:
        print(text, end="")
        return
    with written_aside(options.output) as aside:
        aside.write_text(text)


def _closeness(model: Model | None, reference: Path) -> float | None:
    """Distance to the reference's weights; None where one of them diverged or is not linear."""
    try:
        value = math.nan if model is None else closeness(model, load_model(reference))
    except DivergedError:
        value = math.nan
    return value if math.isfinite(value) else None
