"""Predict the likeliest classes of new rows, with their probabilities, as CSV or JSON; texts stand beside them.

    xsoftmax predict model.h5 new.csv --top 3 -o predicted.csv

Rows of a prepared data set do as well. `--scores` writes a file in pyxclib's text form, which `evaluate` takes.
"""

import argparse
import csv
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from xsoftmax.commands._reading import add_reading, check_not_given, given_reading, read_otherwise, warn_of_unknown
from xsoftmax.data.dataset import SPLITS
from xsoftmax.data.rows import Texts
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.prediction import Prediction, top_k
from xsoftmax.evaluation.prepared import check_same
from xsoftmax.evaluation.score_file import write_scores
from xsoftmax.gpu.device import add_device, chosen_place
from xsoftmax.internal.checksummed import is_hdf5
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import written_aside
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model, load_model

# In the place of a file: rows come from standard input, in one of these forms.
STDIN = "-"
FORMS = ("txt", "csv", "tsv", "parquet", "jsonl", "svm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit")
    parser.add_argument(
        "rows",
        type=Path,
        help="new rows, of the kind that the model was trained on: columns of a table are found by their names in "
        "any order, others are passed over; in svmlight, a blank line is a row without features, unless only blank "
        "lines follow; see docs/data.md. Or a prepared data set (HDF5); or -, standard input",
    )
    parser.add_argument(
        "--form",
        choices=FORMS,
        help="what standard input has; default: txt, a text per line, for models of texts, otherwise csv",
    )
    parser.add_argument(
        "--json-lines",
        action="store_true",
        help="write a JSON object per row instead, with its number from 0 and its classes, the likeliest first",
    )
    parser.add_argument(
        "--split", choices=SPLITS, default="test", help="which rows of a prepared data set (default: %(default)s)"
    )
    parser.add_argument("--top", type=int, default=5, help="classes per row (default: %(default)s)")
    add_reading(parser)
    add_device(parser)
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument(
        "--scores",
        type=file_to_write,
        help="write probabilities by numbers of classes, from 0: a line 'rows classes', then 'class:probability ...' "
        "for each row; no CSV is printed",
    )
    parser.add_argument("-o", "--output", type=file_to_write, help="CSV file; default: print")


def run(options: argparse.Namespace) -> None:
    """Write a line per row and class: row number from 0, rank from 1, class name, probability; of texts the text."""
    if options.top < 1:
        raise InputError(f"--top is {options.top}; set it to 1 or more")
    pool = ThreadPool(options.threads)
    place = chosen_place(options.device)
    model = load_model(options.model).scored_on(place)
    X, texts = _rows(options, model)
    prediction = top_k(model, X, options.top, pool)
    if options.scores is not None:
        with written_aside(options.scores) as aside, aside.open("w", encoding="utf-8") as file:
            write_scores(file, prediction, model.n_classes)
        if options.output is None:
            return
    write = _write_json if options.json_lines else _write_csv
    if options.output is None:
        write(sys.stdout, model, prediction, texts)
        return
    with written_aside(options.output) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        write(file, model, prediction, texts)


def _rows(options: argparse.Namespace, model: Model, where: str | None = None) -> tuple[Any, Texts | None]:
    """Read the features of rows, and their texts if they are texts; messages say ``where`` they come from."""
    if str(options.rows) == STDIN:
        return _rows_of_stdin(options, model)
    if options.form is not None:
        raise InputError(f"--form is {options.form}, and rows are in {options.rows}; leave it out, or name -")
    if is_hdf5(options.rows):
        check_not_given(options, options.rows)
        with open_prepared(options.rows) as data:
            check_same(model, options.model, data, options.rows)
            return data.split(options.split).X, None
    if model.transform is None:
        raise InputError(f"{options.model} does not say how to read rows; give the model.h5 of a fit")
    rows = read_otherwise(model.transform, options, options.rows).rows_of(options.rows)
    X = model.transform.apply(rows)
    warn_of_unknown(where or options.rows, X, "they get what is likeliest of any")
    return X, rows if isinstance(rows, Texts) else None


def _rows_of_stdin(options: argparse.Namespace, model: Model) -> tuple[Any, Texts | None]:
    """As ``_rows``, of a copy of standard input: rows are read more than once."""
    of_texts = model.transform is not None and model.transform.kind == "texts"
    with TemporaryDirectory() as folder:
        form = options.form or ("txt" if of_texts and not given_reading(options) else "csv")
        copy = Path(folder) / f"standard-input.{form}"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        there = argparse.Namespace(**vars(options) | {"rows": copy, "form": None})
        try:
            X, texts = _rows(there, model, "standard input")
        except InputError as error:
            raise InputError(str(error).replace(str(copy), "standard input")) from error
        return X, None if texts is None else Texts.of(list(texts))


def _write_csv(file: TextIO, model: Model, prediction: Prediction, texts: Iterable[str] | None) -> None:
    csv.writer(_Lines(file), lineterminator="\r\n").writerows(_lines(model, prediction, texts))


def _write_json(file: TextIO, model: Model, prediction: Prediction, texts: Iterable[str] | None) -> None:
    """Write an object per row: ``row``, ``classes`` with ``class`` and ``probability``, and ``text`` of texts."""
    for row, text in enumerate(repeat(None, len(prediction.classes)) if texts is None else texts):
        pairs = zip(prediction.classes[row], prediction.probabilities[row], strict=True)
        classes = [{"class": model.class_names[int(k)], "probability": float(f"{p:.6g}")} for k, p in pairs]
        said = {"row": row, "classes": classes} | ({} if text is None else {"text": text})
        file.write(json.dumps(said, ensure_ascii=False) + "\n")


class _Lines:
    """Ends lines in a newline; of what it writes, ``csv`` quotes only the characters that end its own lines."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> int:
        """Write a line that ends in a carriage return and a newline."""
        return self._file.write(line.removesuffix("\r\n") + "\n")


def _lines(model: Model, prediction: Prediction, texts: Iterable[str] | None) -> Iterator[Sequence[str | int]]:
    """Walk through the lines of the table, its header first."""
    yield ["row", "rank", "class", "probability", *(["text"] if texts is not None else [])]
    for row, text in enumerate(repeat(None, len(prediction.classes)) if texts is None else texts):
        for rank, k in enumerate(prediction.classes[row]):
            probability = f"{prediction.probabilities[row, rank]:.6g}"
            yield [row, rank + 1, model.class_names[int(k)], probability, *([] if text is None else [text])]
