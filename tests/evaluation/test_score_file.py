"""Files of scores: what is written is read, what is measured of them, and what is refused."""

import gzip
import io

import numpy as np
import pytest

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.label_ranks import NO_HIT
from xsoftmax.evaluation.prediction import Prediction
from xsoftmax.evaluation.score_file import read_scores, rows_of_scores, sizes_of, write_scores
from xsoftmax.internal.errors import InputError

TEXT = "3 5\n4:0.5 0:0.25 2:1e-3\n\n1:-2 3:7\n"


def read(tmp_path, text):
    path = tmp_path / "scores.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scores(path)


def sets_of(lists):
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return LabelSets(starts, np.array([k for each in lists for k in each], np.int32))


@pytest.mark.parametrize("change", [str, lambda text: text.replace("\n", "\r\n"), lambda text: text + "\n \n"])
def test_rows_are_read(change, tmp_path):
    found = read(tmp_path, change(TEXT))
    assert (found.n_samples, found.n_classes) == (3, 5)
    assert found.starts.tolist() == [0, 3, 3, 5]
    assert found.classes.tolist() == [4, 0, 2, 1, 3]
    assert found.scores.tolist() == [0.5, 0.25, 1e-3, -2, 7]
    assert (found.starts.dtype, found.classes.dtype, found.scores.dtype) == (np.int64, np.int32, np.float64)


def test_without_a_last_newline_compressed_and_with_no_row(tmp_path):
    assert read(tmp_path, TEXT.rstrip("\n")).starts.tolist() == [0, 3, 3, 5]
    assert read(tmp_path, gzip.compress(TEXT.encode())).starts.tolist() == [0, 3, 3, 5]
    assert read(tmp_path, "0 5\n").n_samples == 0
    assert read(tmp_path, "2 5\n\n\n").starts.tolist() == [0, 0, 0]


def test_what_is_written_is_read_with_every_bit(tmp_path):
    rng = np.random.default_rng(0)
    classes = np.array([rng.permutation(30)[:6] for _ in range(50)])
    probabilities = -np.sort(-(rng.random((50, 6)) ** 40), axis=1)
    probabilities[3, 4:] = 0
    file = io.StringIO()
    write_scores(file, Prediction(classes, probabilities), 30)
    found = read(tmp_path, file.getvalue())
    assert np.diff(found.starts).tolist() == [6, 6, 6, 4, *[6] * 46]
    kept = probabilities > 0
    assert np.array_equal(found.classes, classes[kept])
    assert np.array_equal(found.scores, probabilities[kept])
    assert file.getvalue().startswith("50 30\n")


@pytest.mark.fault(
    "a row that is predicted with a probability that is no number, to be written as scores",
    happens="nothing is written",
    user="`error: row …: a score is NaN or infinite, so that there are no probabilities; train again`",
)
def test_what_is_no_number_is_not_written():
    found = Prediction(np.array([[0, 1], [1, 0]]), np.array([[0.5, 0.25], [np.nan, np.nan]]))
    with pytest.raises(InputError, match="row 1: a score is NaN or infinite, so that there are no probabilities"):
        write_scores(io.StringIO(), found, 2)


def test_labels_have_their_ranks_and_what_is_not_listed_is_no_hit(tmp_path):
    scores = read(tmp_path, "4 5\n4:0.5 0:0.25 2:0.1\n\n1:2 3:7 0:2 4:2\n0:1 1:1\n")
    labels = [[0, 1, 2], [3], [0, 1, 3], [2]]
    found = rows_of_scores(scores, np.array([0, 3, 0, 2]), sets_of(labels))
    assert found.label_ranks.tolist() == [1, NO_HIT, 2, NO_HIT, 2, 3, 0, NO_HIT]  # 4 ties with 0 and 1: before both
    assert found.rank.tolist() == [1, NO_HIT, 0, NO_HIT]
    assert found.log_likelihood is found.confidence is None
    found = rows_of_scores(scores, np.array([0, 3, 0, 2]), sets_of(labels), sets_of([[4], [], [3, 4], [2]]))
    assert found.label_ranks.tolist() == [0, NO_HIT, 1, NO_HIT, 0, 1, NO_HIT, NO_HIT]


def test_rows_with_one_label_each_have_accuracies(tmp_path):
    scores = read(tmp_path, "4 9\n4:0.5 0:0.25\n\n1:2 3:7\n0:1\n")
    measured = metrics.measure(rows_of_scores(scores, np.array([0, 3, 3, 2])), "end")
    assert (measured["accuracy"], measured["top_3_accuracy"]) == (0.25, 0.5)
    assert np.isnan([measured[name] for name in ("log_likelihood", "p_at_1", "expected_calibration_error")]).all()


BAD = {
    "nothing": ("", "the file is empty"),
    "no header": ("4:0.5 0:0.25\n", "line 1: expected 'rows classes', found '4:0.5 0:0.25'"),
    "a header of data": ("3 5 7\n", "line 1: expected 'rows classes', found '3 5 7'"),
    "too large a size": ("3 99999999999\n", "more than 2147483647"),
    "truncated between rows": ("3 5\n4:0.5\n\n", "2 rows, line 1 says 3; it is truncated"),
    "truncated within a pair": ("3 5\n4:0.5\n\n4:", "line 4: expected 'class:score class:score ...', found '4:'"),
    "a row too many": ("1 5\n4:0.5\n\n3:1\n", "line 4: a row more than the 1 of line 1"),
    "a class too large": ("1 5\n5:0.5\n", "line 2: class 5 of 5, which are numbered from 0"),
    "a class below 0": ("1 5\n-1:0.5\n", "line 2: expected 'class:score"),
    "a class twice": ("2 5\n0:1\n3:0.5 2:0.1 3:0.4\n", "line 3: class 3 comes twice"),
    "NaN": ("1 5\n4:nan\n", "line 2: a score is NaN or infinite"),
    "infinity": ("1 5\n4:-inf\n", "line 2: a score is NaN or infinite"),
    "too large a number": ("1 5\n4:1e999\n", "line 2: a score is NaN or infinite"),
    "a word": ("1 5\n4:much\n", "line 2: a score is no number"),
    "bytes": (b"1 5\n4:\xff\xfe\n", "line 2: a score is no number"),
    "zero bytes": (b"1 5\n\x00\x00\x00\n", "line 2: expected 'class:score"),
    "no class": ("1 5\n0.5 0.25\n", "line 2: expected 'class:score"),
    "two colons": ("1 5\n1:2:3 4\n", "line 2: expected 'class:score"),
    "an underscore": ("1 5\n1:1_0\n", "line 2: expected 'class:score"),
    "a cut archive": (gzip.compress(TEXT.encode() * 99)[:-20], "truncated or damaged"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.fault(
    "a file of scores that is empty, truncated, damaged or made up; NaN, infinity, a class twice in it",
    happens="it is refused, whole",
    user="`error: …, line …: …`, with what is expected there",
)
def test_a_damaged_file_is_refused(name, tmp_path):
    text, message = BAD[name]
    with pytest.raises(InputError, match=r"scores\.txt") as error:
        read(tmp_path, text)
    assert message in str(error.value)


def test_sizes_are_read_from_the_first_line_alone(tmp_path):
    (tmp_path / "scores.txt").write_text("3 5\nnothing that is read")
    assert sizes_of(tmp_path / "scores.txt") == (3, 5)
