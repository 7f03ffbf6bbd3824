"""Files of scores as pyxclib has them: a line ``n_rows n_classes``, then a line of ``class:score ...`` for each row.

Classes are numbered from 0; those that a row does not list are not predicted for it. Any program may have written it.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.sparse_text import Growing, LineBlock, header_sizes, line_blocks, shortened
from xsoftmax.evaluation.label_ranks import NO_HIT, best_ranks, holds, no_ranks, one_each, order_labels
from xsoftmax.evaluation.metrics import RowScores
from xsoftmax.evaluation.prediction import Prediction
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS

LINE = re.compile(rb"\s*(?:\d{1,10}:[^\s:_]+(?:\s+|$))*")


@dataclass(frozen=True)
class ScoreFile:
    """Scores of some classes of each row.

    Attributes
    ----------
    n_classes : int
    starts : ndarray of shape (n_samples + 1,), int64
        Classes of row i are ``classes[starts[i]:starts[i + 1]]``, perhaps none.
    classes : ndarray of shape (n_scores,), int32
        No class comes twice in a row; in the order of the file.
    scores : ndarray of shape (n_scores,), float64
        Finite.
    """

    n_classes: int
    starts: np.ndarray
    classes: np.ndarray
    scores: np.ndarray

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return len(self.starts) - 1


def write_scores(file: TextIO, prediction: Prediction, n_classes: int) -> None:
    """Write the probabilities of the classes predicted, the likeliest first; those of probability 0 are left out.

    Raises
    ------
    InputError
        If a row has a probability that is no number.
    """
    file.write(f"{len(prediction.classes)} {n_classes}\n")
    for i, (classes, probabilities) in enumerate(zip(prediction.classes, prediction.probabilities, strict=True)):
        if np.isnan(probabilities).any():
            raise InputError(f"row {i}: a score is NaN or infinite, so that there are no probabilities; train again")
        pairs = zip(classes.tolist(), probabilities.tolist(), strict=True)
        file.write(" ".join(f"{k}:{p!r}" for k, p in pairs if p > 0) + "\n")


def sizes_of(path: Path) -> tuple[int, int]:
    """Read the first line alone: numbers of rows and of classes.

    Raises
    ------
    InputError
        If it has others than two whole numbers.
    """
    n_rows, n_classes = header_sizes(path, _header(path)[0], "rows classes")
    return n_rows, n_classes


def read_scores(path: Path) -> ScoreFile:
    """Read a file of scores.

    Raises
    ------
    InputError
        If it is none, is truncated, or has a score that is no finite number, or one class twice in a row.
    """
    n_rows, n_classes = sizes_of(path)
    starts, classes, scores = Growing(np.int64, path), Growing(np.int32, path), Growing(np.float64, path)
    for number, line in _lines(path):
        if starts.size == n_rows:
            if not line.strip():
                continue
            raise InputError(f"{path}, line {number}: a row more than the {n_rows} of line 1; write the file again")
        own, values = _pairs(path, number, line, n_classes)
        for column, found in ((starts, [classes.size]), (classes, own), (scores, values)):
            column.room(len(found))[:] = found
            column.size += len(found)
    if starts.size != n_rows:
        raise InputError(f"{path}: {starts.size} rows, line 1 says {n_rows}; it is truncated, write it again")
    ends = np.append(starts.taken(), classes.size)
    return ScoreFile(n_classes, ends, classes.taken(), scores.taken())


def rows_of_scores(
    scores: ScoreFile, y: np.ndarray, label_sets: LabelSets | None = None, filtered: LabelSets | None = None
) -> RowScores:
    """Give the ranks of labels among the classes that rows list; labels that they do not list are no hits.

    Parameters are as for ``likelihood.score_rows``. As there, classes that score as much as a label and are none come
    before it.
    """
    labels = no_ranks(one_each(y) if label_sets is None else label_sets, filtered)
    listed = np.zeros(len(labels.classes), np.bool_)
    values = np.full(len(labels.classes), -np.inf)
    count_listed(scores.starts, scores.classes, scores.scores, labels, values, listed)
    order_labels(labels._replace(scores=values))
    labels.rank[~listed] = NO_HIT
    found = RowScores(None, best_ranks(labels), None, y)
    if label_sets is None:
        return found
    return RowScores(None, found.rank, None, y, label_sets=label_sets, label_ranks=labels.rank)


@njit(**OPTIONS)
def count_listed(starts, classes, scores, labels, values, listed):
    """Find the scores of labels, and count the other classes of their rows that come before them."""
    for i in range(starts.size - 1):
        begin, end = labels.starts[i], labels.starts[i + 1]
        first, last = labels.filtered_starts[i], labels.filtered_starts[i + 1]
        for place in range(starts[i], starts[i + 1]):
            for each in range(begin, end):
                if labels.classes[each] == classes[place]:
                    values[each] = scores[place]
                    listed[each] = True
        for place in range(starts[i], starts[i + 1]):
            k = classes[place]
            if not (holds(labels.classes, begin, end, k) or holds(labels.filtered, first, last, k)):
                for each in range(begin, end):
                    labels.rank[each] += scores[place] >= values[each]


def _header(path: Path) -> tuple[bytes, Iterator[LineBlock]]:
    """Give the first line, and what follows it."""
    blocks = line_blocks(path)
    header, _, rest = next(blocks).text.partition(b"\n")
    return header, chain([LineBlock(rest, 2)] if rest else [], blocks)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Go through the lines behind the first, with their numbers."""
    for block in _header(path)[1]:
        for offset, line in enumerate(block.text.removesuffix(b"\n").split(b"\n")):
            yield block.first_line + offset, line


def _pairs(path: Path, number: int, line: bytes, n_classes: int) -> tuple[list[int], list[float]]:
    """Read the classes of a line, and their scores."""
    where = f"{path}, line {number}"
    if not LINE.fullmatch(line):
        raise InputError(f"{where}: expected 'class:score class:score ...', found {shortened(line)!r}")
    words = line.replace(b":", b" ").split()
    own = [int(word) for word in words[::2]]
    if own and max(own) >= n_classes:
        raise InputError(f"{where}: class {max(own)} of {n_classes}, which are numbered from 0; write the file again")
    if len(set(own)) < len(own):
        raise InputError(f"{where}: class {_twice(own)} comes twice; write each class of a row once")
    try:
        values = [float(word) for word in words[1::2]]
    except ValueError as error:
        raise InputError(f"{where}: a score is no number ({error}); write the file again") from None
    if not all(map(math.isfinite, values)):
        raise InputError(f"{where}: a score is NaN or infinite; leave such classes out")
    return own, values


def _twice(classes: list[int]) -> int:
    return next(k for place, k in enumerate(classes) if k in classes[:place])
