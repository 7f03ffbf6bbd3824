"""Evaluate a model, or a fitted proposal, by its exact likelihood (mostly the softmax's) on validation and test rows.

New rows with labels do as well: what `predict` takes, with a column or numbers of labels as the training rows had.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data.dataset import Split, check_plain
from xsoftmax.data.labels import choose
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation import legacy_metrics, metrics
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.reliability import reliability
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.internal.checksummed import is_hdf5
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import DivergedError, Model, load_model
from xsoftmax.training.folders import check_model


class Rows(NamedTuple):
    """Rows to be measured, and what is known of where they come from; counts are training rows of each class."""

    name: str
    dataset: str
    split: Split
    class_counts: np.ndarray | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit, or what `proposal` wrote")
    parser.add_argument("data", type=Path, help="prepared data set (HDF5), or a file of new rows with labels")
    parser.add_argument("--reference", type=Path, help="a model.h5 to tell the distance of the weights from")
    parser.add_argument("--train", action="store_true", help="evaluate on all training rows, too")
    parser.add_argument(
        "--as-published",
        nargs="+",
        dest="legacy_metrics",
        choices=legacy_metrics.KINDS,
        default=[],
        help="add log-likelihoods as papers report them: floored at -26 a row, by importance sampling (Ruiz et al. "
        "2018), or of probabilities that are normalised once more (Fagan & Iyengar 2018)",
    )
    parser.add_argument("--threads", type=int, default=1, help="metrics do not depend on it (default: %(default)s)")
    parser.add_argument("-o", "--output", type=file_to_write, help="metrics.json; default: print")


def run(options: argparse.Namespace) -> None:
    """Evaluate; metrics of a fit that diverged are null."""
    pool = ThreadPool(options.threads)
    found: dict[str, Any] = {"status": "diverged"}
    model: Model | None = None
    try:
        model = load_model(options.model)
    except DivergedError as error:
        found["message"] = str(error)
    if model is not None:
        found["status"] = model.attributes["status"]
    for path in filter(None, (options.model, options.reference)):
        if path.name == "model.h5" and path.with_name("status.json").exists():
            check_model(path)
    prepared = is_hdf5(options.data)
    for rows in _prepared_rows(options, model) if prepared else _new_rows(options, model):
        found["dataset"], found[rows.name] = rows.dataset, {"n_samples": rows.split.n_samples}
        if model is not None:
            scores = _scores(model, rows, pool)
            binned, values = reliability(scores), metrics.measure(scores, "end")
            found.setdefault("reliability", {})[rows.name] = binned.as_json() if math.isfinite(binned.error) else None
            values |= legacy_metrics.log_likelihoods(model, rows.split.X, rows.split.y, options.legacy_metrics, pool)
            found[rows.name] |= {key: value if math.isfinite(value) else None for key, value in values.items()}
    if options.reference is not None:
        found["weight_distance"] = _weight_distance(model, options.reference)
    text = json.dumps(found, indent=2, sort_keys=True) + "\n"
    if options.output is None:
        print(text, end="")
        return
    write_text(options.output, text)


def _scores(model: Model, rows: Rows, pool: ThreadPool) -> metrics.RowScores:
    """Give all that metrics may need."""
    scores = score_rows(model, rows.split.X, rows.split.y, pool, confident=True)
    return replace(scores, class_counts=rows.class_counts, label_sets=rows.split.label_sets)


def _prepared_rows(options: argparse.Namespace, model: Model | None) -> Iterator[Rows]:
    """Go through the splits of a prepared file."""
    with open_prepared(options.data) as data:
        check_plain(data, "no metric counts")
        if model is not None:
            if model.class_names != data.class_names:
                raise InputError(f"{options.model} has other classes than {data.name}; train it on this data set")
            if not model.has_features(data.n_features, data.transform.sha256):
                raise InputError(
                    f"{options.model} has other features than {options.data}, prepared in another way or from other"
                    " rows; train it on these data, or evaluate it on rows as they were before they were prepared"
                )
        for name in ("train", "validation", "test") if options.train else ("validation", "test"):
            yield Rows(name, data.name, data.split(name), data.class_counts)


def _new_rows(options: argparse.Namespace, model: Model | None) -> Iterator[Rows]:
    """Read a file of new rows with labels; what the model cannot know is left out, and said."""
    if model is None or model.transform is None:
        raise InputError(f"{options.model} does not say how to read rows; give the model.h5 of a fit that has one")
    rows = model.transform.labelled_rows_of(options.data)
    labelled, names = choose({"new": rows}, "first")
    chosen, known = labelled["new"], {name: k for k, name in enumerate(model.class_names)}
    called = [str(label) if names is None else names[label] for label in chosen.labels.tolist()]
    y = np.array([known.get(name, -1) for name in called], np.int32)
    left_out = {
        "rows without a label": rows.n_samples - len(y),
        "rows of classes that the model does not know": int((y < 0).sum()),
    }
    several = int((np.diff(rows.label_starts) > 1).sum())
    for what, n in left_out.items():
        if n:
            print(f"warning: {options.data}: {n} of {rows.n_samples} {what} are left out", file=sys.stderr)
    if several:
        print(f"warning: {options.data}: {several} rows have several labels, the first counts", file=sys.stderr)
    if not (y >= 0).any():
        example = f", such as {called[0]!r}" if called else ""
        raise InputError(f"{options.data}: no row has a label that the model knows{example}")
    X = model.transform.apply(rows.features)[chosen.rows[y >= 0]]
    empty = int((np.diff(X.indptr) == 0).sum()) if issparse(X) else 0
    if empty:
        print(
            f"warning: {options.data}: {empty} rows have no feature that the model knows; they count", file=sys.stderr
        )
    yield Rows("new", options.data.name, Split(X, y[y >= 0]))


def _weight_distance(model: Model | None, reference: Path) -> float | None:
    """Distance to the reference's weights; None where one of them diverged or is not linear."""
    try:
        value = math.nan if model is None else weight_distance(model, load_model(reference))
    except DivergedError:
        value = math.nan
    return value if math.isfinite(value) else None
