"""Evaluate a model, or a fitted proposal, by its exact likelihood (mostly the softmax's) on validation and test rows.

    xsoftmax evaluate fit/model.h5 data/prepared/bibtex.h5

New rows with labels do as well: what `predict` takes, with a column or numbers of labels as the training rows had.
A file of scores in pyxclib's text form, by any program, may stand in the place of the model.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.commands._reading import add_reading, check_not_given, read_otherwise, warn_of_unknown
from xsoftmax.data.dataset import SPLITS, Dataset, Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.labels import choose
from xsoftmax.data.rows import Rows as LabelledRows
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation import legacy_metrics, metrics
from xsoftmax.evaluation.confusions import confusions
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prepared import check_same
from xsoftmax.evaluation.reliability import reliability
from xsoftmax.evaluation.score_file import read_scores, rows_of_scores, sizes_of
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.gpu.device import NUMBA, add_device, chosen_place
from xsoftmax.internal.checksummed import is_hdf5
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import DivergedError, Model, load_model
from xsoftmax.training.folders import check_model


class Rows(NamedTuple):
    """Rows to be measured, and what is known of the training rows, as ``metrics.RowScores`` has it."""

    name: str
    dataset: str
    split: Split
    training: Mapping[str, Any] = MappingProxyType({})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit, what `proposal` wrote, or a file of scores")
    parser.add_argument("data", type=Path, help="prepared data set (HDF5), or a file of new rows with labels")
    parser.add_argument("--reference", type=Path, help="a model.h5 to tell the distance of the weights from")
    parser.add_argument("--train", action="store_true", help="evaluate on all training rows, too")
    parser.add_argument(
        "--split",
        choices=SPLITS,
        default="test",
        help="the rows of a prepared data set that a file of scores is of (default: %(default)s)",
    )
    parser.add_argument(
        "--as-published",
        nargs="+",
        dest="legacy_metrics",
        choices=legacy_metrics.KINDS,
        default=[],
        help="add log-likelihoods as papers report them: floored at -26 a row, by importance sampling (Ruiz et al. "
        "2018), or of probabilities that are normalised once more (Fagan & Iyengar 2018)",
    )
    add_device(parser)
    add_reading(parser)
    parser.add_argument("--threads", type=int, default=1, help="metrics do not depend on it (default: %(default)s)")
    parser.add_argument("-o", "--output", type=file_to_write, help="metrics.json; default: print")


def run(options: argparse.Namespace) -> None:
    """Evaluate; metrics of a fit that diverged are null."""
    if is_hdf5(options.data):
        check_not_given(options, options.data)
    found = _of_scores(options) if _is_score_file(options.model) else _of_model(options)
    text = json.dumps(found, indent=2, sort_keys=True) + "\n"
    if options.output is None:
        print(text, end="")
        return
    write_text(options.output, text)


def _is_score_file(path: Path) -> bool:
    """Whether a file is meant to be one of scores: text, by another name than models have."""
    return path.is_file() and not is_hdf5(path) and path.suffix not in (".h5", ".hdf5")


def _of_scores(options: argparse.Namespace) -> dict[str, Any]:
    """Measure a file of scores."""
    for option, given in (
        ("--reference", options.reference),
        ("--train", options.train),
        ("--as-published", options.legacy_metrics),
        ("--device", options.device != NUMBA),
    ):
        if given:
            raise InputError(f"{options.model}: {option} needs a model, which scores are not; leave it out")
    if not is_hdf5(options.data):
        raise InputError(f"{options.data}: scores are measured on a prepared data set; give its HDF5 file")
    with open_prepared(options.data) as data:
        _check_sizes(options, data)
        rows = _prepared(data, options.split)
        scores = rows_of_scores(read_scores(options.model), rows.split.y, rows.split.label_sets, rows.split.filtered)
    measured = {"n_samples": rows.split.n_samples} | _measured(replace(scores, **rows.training))
    return {"status": "scores", "dataset": rows.dataset, rows.name: measured}


def _check_sizes(options: argparse.Namespace, data: Dataset) -> None:
    """Make sure that a file of scores has as many rows and classes as the data."""
    n_rows, n_classes = sizes_of(options.model)
    if n_classes != data.n_classes:
        raise InputError(
            f"{options.model}: {n_classes} classes, {data.name} has {data.n_classes}; predict rows of this data set"
        )
    if n_rows != data.n_samples(options.split):
        others = ", ".join(f"{name} {data.n_samples(name)}" for name in SPLITS)
        raise InputError(
            f"{options.model}: {n_rows} rows, but the {options.split} rows of {data.name} are "
            f"{data.n_samples(options.split)} ({others}); say with --split which rows they are of"
        )


def _of_model(options: argparse.Namespace) -> dict[str, Any]:
    """Measure a model on all the rows that are asked for."""
    pool, place = ThreadPool(options.threads), chosen_place(options.device)
    found: dict[str, Any] = {"status": "diverged"}
    model: Model | None = None
    try:
        model = load_model(options.model).scored_on(place)
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
            binned = reliability(scores)
            found.setdefault("reliability", {})[rows.name] = binned.as_json() if math.isfinite(binned.error) else None
            found[rows.name] |= _measured(scores) | _as_published(options, model, rows, pool)
            if _tells_confusions(rows):
                taken = confusions(model, rows.split, scores.rank, pool)
                found.setdefault("confusions", {})[rows.name] = taken._asdict()
    if options.reference is not None:
        found["weight_distance"] = _weight_distance(model, options.reference)
    return found


def _tells_confusions(rows: Rows) -> bool:
    """Whether rows are held out, and each has one class that it can be mistaken for another."""
    return rows.name in ("test", "new") and rows.split.label_sets is None and rows.split.filtered is None


def _scores(model: Model, rows: Rows, pool: ThreadPool) -> metrics.RowScores:
    """Give all that metrics may need."""
    split = rows.split
    scores = score_rows(model, split.X, split.y, pool, True, split.label_sets, split.filtered)
    return replace(scores, **rows.training)


def _measured(scores: metrics.RowScores) -> dict[str, float | None]:
    """Give all metrics; None where there is no value."""
    return _finite(metrics.measure(scores, "end"))


def _as_published(options: argparse.Namespace, model: Model, rows: Rows, pool: ThreadPool) -> dict[str, float | None]:
    """Give log-likelihoods as papers report them, which are of rows with one label each."""
    if options.legacy_metrics and rows.split.label_sets is not None:
        raise InputError(f"{options.data}: --as-published is of rows with one label each; leave it out")
    return _finite(legacy_metrics.log_likelihoods(model, rows.split.X, rows.split.y, options.legacy_metrics, pool))


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in values.items()}


def _prepared_rows(options: argparse.Namespace, model: Model | None) -> Iterator[Rows]:
    """Go through the splits of a prepared file."""
    with open_prepared(options.data) as data:
        if model is not None:
            check_same(model, options.model, data, options.data)
        for name in ("train", "validation", "test") if options.train else ("validation", "test"):
            yield _prepared(data, name)


def _prepared(data: Dataset, name: str) -> Rows:
    """Read a split of a prepared file, whose rows count alike."""
    if name in data.weighted:
        raise InputError(f"{data.name}: no metric counts sample weights yet; leave them out, or repeat rows")
    training = {
        "class_counts": data.class_counts,
        "n_train": data.n_samples("train"),
        "propensity": data.propensity,
    }
    return Rows(name, data.name, data.split(name), training)


def _new_rows(options: argparse.Namespace, model: Model | None) -> Iterator[Rows]:
    """Read a file of new rows with labels; what the model cannot know is left out, and said."""
    if model is None or model.transform is None:
        raise InputError(f"{options.model} does not say how to read rows; give the model.h5 of a fit that has one")
    rows = read_otherwise(model.transform, options, options.data).labelled_rows_of(options.data)
    row, classes, example = _known_labels(rows, model)
    known = np.unique(row[classes >= 0])
    several = bool((np.diff(rows.label_starts) > 1).any())
    _warn_of_left_out(options.data, rows.n_samples, row, classes, several)
    if not known.size:
        example = f", such as {example!r}" if row.size else ""
        raise InputError(f"{options.data}: no row has a label that the model knows{example}")
    X = model.transform.apply(rows.features)[known]
    warn_of_unknown(options.data, X, "they count")
    kept = classes >= 0
    sets = LabelSets.of_pairs(np.searchsorted(known, row[kept]), classes[kept], known.size)
    split = Split(X, sets.classes[sets.starts[:-1]], label_sets=sets if several else None)
    yield Rows("new", options.data.name, split)


def _known_labels(rows: LabelledRows, model: Model) -> tuple[np.ndarray, np.ndarray, str]:
    """Give the row and the class of each label, -1 where the model does not know it; and the name of the first."""
    labelled, names = choose({"new": rows}, "pairs")
    chosen, known = labelled["new"], {name: k for k, name in enumerate(model.class_names)}
    found, place = np.unique(chosen.labels, return_inverse=True)
    called = [str(label) if names is None else names[label] for label in found.tolist()]
    classes = np.array([known.get(name, -1) for name in called], np.int32)[place]
    return chosen.rows, classes, called[place[0]] if called else ""


def _warn_of_left_out(path: Path, n_rows: int, row: np.ndarray, classes: np.ndarray, several: bool) -> None:
    """Say how many rows and labels do not count."""
    labelled, known = np.unique(row).size, np.unique(row[classes >= 0]).size
    left_out = [
        (n_rows - labelled, n_rows, "rows without a label"),
        (int((classes < 0).sum()) if several else 0, classes.size, "labels that the model does not know"),
        (labelled - known, n_rows, "rows of classes that the model does not know"),
    ]
    for n, total, what in left_out:
        if n:
            print(f"warning: {path}: {n} of {total} {what} are left out", file=sys.stderr)


def _weight_distance(model: Model | None, reference: Path) -> float | None:
    """Distance to the reference's weights; None where one of them diverged or is not linear."""
    try:
        value = math.nan if model is None else weight_distance(model, load_model(reference))
    except DivergedError:
        value = math.nan
    return value if math.isfinite(value) else None
