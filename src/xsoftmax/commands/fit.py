"""Fit a classifier to a file of labelled rows in one go: prepare, choose and train a method, test, write model.h5.

    xsoftmax fit goods.csv --text title --text comment --numeric price --categorical brand --label product -o model.h5

A tenth of the rows each is kept for validation, which chooses the method and the epoch, and for the test.
"""

import argparse
import json
import math
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.commands import train
from xsoftmax.data.config import load_config
from xsoftmax.data.download import download
from xsoftmax.data.json_rows import SUFFIXES
from xsoftmax.data.new_rows import file_of_rows
from xsoftmax.data.prepare import prepare
from xsoftmax.data.store import open_prepared
from xsoftmax.data.vocabulary import ANALYZERS
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.confusions import confusions
from xsoftmax.evaluation.likelihood import score_together
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.files import folder_aside, written_aside
from xsoftmax.internal.outputs import Named, check_not_read, file_to_write
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import AUTO
from xsoftmax.model import load_model

FORMATS = dict.fromkeys((".csv", ".tsv", ".parquet", *SUFFIXES), "table")
FORMATS |= {".svm": "svmlight", ".svmlight": "svmlight"}
# What is trained where rows have several labels, among which auto does not choose, and how long.
FOR_SETS, EPOCHS_FOR_SETS = "one-vs-rest", 20
CONFUSIONS = 10
# Rows that count nowhere, and why.
DROPPED = {
    "unlabelled": "without a label",
    "empty": "without a feature",
    "unseen_validation": "for validation, of classes that no training row has, which no model can learn",
    "unseen_test": "for the test, of classes that no training row has, which no model can learn",
}
OF_TABLES = ("text", "numeric", "categorical", "weight", "label_separator", "delimiter", "encoding")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("rows", type=Path, help=f"a file that ends in {', '.join(FORMATS)}, perhaps compressed")
    parser.add_argument("--label", default="label", help="column of the labels (default: %(default)s)")
    parser.add_argument("--label-separator", metavar="CHARACTER", help="stands between the labels of a row")
    _add_columns(parser)
    parser.add_argument("--method", default=AUTO, help="name of a method, see `xsoftmax methods` (default: auto)")
    parser.add_argument(
        "--methods", type=Path, metavar="FILE.yaml", help="methods of your own, laid over those that are shipped"
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--seconds", type=float, help=f"training time: {train.SECONDS} (default of auto: {train.AUTO_SECONDS:g})"
    )
    budget.add_argument("--epochs", type=int, help="passes over the training rows")
    for name in ("validation", "test"):
        parser.add_argument(
            f"--{name}", type=_share, default=0.1, help="share or number of rows (default: %(default)s)"
        )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="more than 1: bits differ from run to run")
    parser.add_argument("-o", "--output", type=file_to_write, default=Path("model.h5"), help="default: %(default)s")


def _share(text: str) -> float:
    """Read a share below 1, or a number of rows; 1.0, which may be meant as all of them, is refused."""
    with suppress(ValueError):
        found = float(text)
        if found < 1 or text.strip().isdecimal():
            return found
    raise argparse.ArgumentTypeError(f"{text} is neither a share below 1 nor a whole number of rows")


def _is_standard_output(path: Path) -> bool:
    with suppress(OSError):
        found = path.stat()
        return os.path.samestat(found, os.fstat(1)) and not os.path.samestat(found, Path(os.devnull).stat())
    return False


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """Define what the columns of a table hold, and how their cells are read."""
    for name, what in (("text", "texts"), ("numeric", "numbers"), ("categorical", "categories")):
        parser.add_argument(
            f"--{name}",
            action="append",
            metavar="COLUMN",
            help=f"column of {what}; may be given again for another. Without --text, --numeric and --categorical all "
            "other columns are numbers",
        )
    parser.add_argument("--delimiter", metavar="CHARACTER", help="stands between cells (default: , or a tab in .tsv)")
    parser.add_argument("--encoding", help="of a table of text, such as latin-1 (default: utf-8)")
    parser.add_argument("--weight", metavar="COLUMN", help="column of what training rows count")
    parser.add_argument(
        "--ngram-range",
        type=int,
        nargs=2,
        metavar=("FROM", "TO"),
        help="count so many words in a row as one feature, at least and at most (default: 1 1)",
    )
    parser.add_argument(
        "--analyzer", choices=ANALYZERS, help="what is counted of texts: words, characters, or those within words"
    )
    parser.add_argument("--sublinear-tf", action="store_true", help="take 1 + log(count) in place of counts of words")


def run(options: argparse.Namespace) -> None:
    """Write the model, and print what test rows say of it."""
    check_not_read([Named(options.output, "-o")], [options.rows])
    file_of_rows(options.rows)
    if _is_standard_output(options.output):
        raise InputError(f"-o is {options.output}, standard output, where the report goes; name another file")
    if not options.output.absolute().parent.is_dir():
        raise InputError(f"-o is {options.output}, and there is no such folder; make it, or name another")
    if options.seed < 0:
        raise InputError(f"--seed is {options.seed}; set it to 0 or more")
    for name in ("validation", "test"):
        if not getattr(options, name) >= 0:
            raise InputError(
                f"--{name} is {getattr(options, name):g}; set it to a share or a number of rows, or to 0"
            )
    with _ended_by_sigterm() as written, folder_aside(options.output) as folder:
        prepared, fit = folder / "data.h5", folder / "fit"
        training = _training(options, prepared, fit)
        train.asked(training)  # for its errors, before rows are read
        _prepare(options, prepared)
        train.run(training)
        trained = fit / "model.h5"
        if not trained.is_file():
            raise InputError(f"{options.rows}: the fit diverged; take another --method, such as auto")
        _tell(trained, prepared, ThreadPool(options.threads))
        with written_aside(options.output) as aside:
            shutil.move(trained, aside)
        written.set()
    print(f"{options.output}: written; try `xsoftmax predict {options.output} NEW_ROWS`")


@contextmanager
def _ended_by_sigterm() -> Iterator[threading.Event]:
    """Have SIGTERM end the fit as Ctrl-C does, so that nothing of it is left, until the model is written.

    The event is set then. Only a main thread hears signals.
    """
    written = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield written
        return

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # while what was made on the way is removed
        if not written.is_set():
            raise StoppedError("nothing was written, and what was there is still there")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield written
    finally:
        signal.signal(signal.SIGTERM, before)


def _prepare(options: argparse.Namespace, prepared: Path) -> None:
    """Prepare the rows."""
    description, raw = prepared.with_name("data.yaml"), prepared.with_name("raw")
    description.write_text(json.dumps(_description(options)), encoding="utf-8")
    config = load_config(description)
    download(config, raw, None)
    sizes = prepare(config, raw, prepared)
    print(f"{options.rows}: " + ", ".join(f"{name} {sizes[name]}" for name in ("rows", "classes", "features")))
    for name, why in DROPPED.items():
        if n := sizes.get(f"dropped_{name}"):
            print(f"rows left out: {n} {why}")


def _description(options: argparse.Namespace) -> dict[str, Any]:
    """Describe the data as a YAML file would."""
    kind = next((FORMATS[each] for each in reversed(options.rows.suffixes) if each in FORMATS), None)
    if kind is None:
        raise InputError(
            f"{options.rows}: its form is not known by its name, which ends in none of {', '.join(FORMATS)}; rename "
            "it, or describe it in a YAML file for `xsoftmax prepare` (docs/data.md)"
        )
    asked = {key: getattr(options, key) for key in OF_TABLES}
    given = {key: value for key, value in asked.items() if value is not None}
    if kind != "table" and given:
        raise InputError(f"{options.rows}: --{next(iter(given)).replace('_', '-')} is for tables; leave it out")
    return {
        "name": options.rows.name.partition(".")[0] or "rows",
        "format": kind,
        "files": [{"path": str(options.rows.absolute())}],
        "options": given | {"label": options.label} if kind == "table" else {},
        "labels": "sets" if options.label_separator is not None else "first",
        "text": _text(options),
        "normalize": _normalize(options, kind),
        "split": {"validation": options.validation, "test": options.test, "seed": options.seed},
    }


def _text(options: argparse.Namespace) -> dict[str, Any]:
    """Say how texts are cut and weighed."""
    asked = {key: getattr(options, key) for key in ("ngram_range", "analyzer", "sublinear_tf")}
    given = {key: value for key, value in asked.items() if value}
    if given and not options.text:
        name = next(iter(given)).replace("_", "-")
        raise InputError(f"{options.rows}: --{name} is of texts; name their column (--text), or leave it out")
    return given


def _normalize(options: argparse.Namespace, kind: str) -> Any:
    """Say how rows are brought to about unit length; of several kinds of columns each is already."""
    n_parts = len(options.text or []) + bool(options.numeric) + bool(options.categorical)
    if n_parts > 1:
        return {"divide": math.sqrt(n_parts)}
    if options.categorical:
        return "none"
    return "standardize" if kind == "table" and not options.text else "l2"


def _training(options: argparse.Namespace, prepared: Path, output: Path) -> argparse.Namespace:
    """Give the options of ``train``."""
    method, epochs = options.method, options.epochs
    if options.label_separator is not None and method == AUTO:
        method = FOR_SETS
        if epochs is None and options.seconds is None:
            epochs = EPOCHS_FOR_SETS
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    words = [str(prepared), "--method", method, "--seed", str(options.seed), "--threads", str(options.threads)]
    for name, value in (("--seconds", options.seconds), ("--epochs", epochs), ("--methods", options.methods)):
        words += [] if value is None else [name, str(value)]
    return parser.parse_args([*words, "-o", str(output)])


def _tell(trained: Path, prepared: Path, pool: ThreadPool) -> None:
    """Print metrics of test rows, and which classes are taken for which."""
    model = load_model(trained)
    with open_prepared(prepared) as data:
        if not data.n_samples("test"):
            return
        test = data.split("test")
        (scores,) = score_together(model, [test], pool)
        scores = replace(
            scores, class_counts=data.class_counts, n_train=data.n_samples("train"), propensity=data.propensity
        )
        measured = metrics.measure(scores, "end")
        for name, value in measured.items():
            if np.isfinite(value):
                print(f"test {name} {value:.4f}")
        if test.label_sets is None:
            found = confusions(model, test, scores.rank, pool)
            for pair in found.pairs[:CONFUSIONS]:
                print(f"{pair['n']} x {pair['true']} taken for {pair['predicted']}")
            if found.n_seen < found.n_wrong:
                print(f"these are {found.n_seen} of {found.n_wrong} wrong rows; the others were not looked at")
