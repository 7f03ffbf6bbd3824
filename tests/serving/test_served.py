"""Answers are those of `predict`, alone or in a batch, from weights that stay in their file."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

from serving.models import CALIBRATION, KINDS, model_of, rows_of
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.model import load_model, save_model
from xsoftmax.serving.request_rows import RequestError
from xsoftmax.serving.requests import Limits, read_request
from xsoftmax.serving.served import Served


def asked(served, content):
    return read_request(json.dumps(content).encode(), served.form, Limits())


def flat(answer):
    return [[(each["class"], each["probability"]) for each in row["classes"]] for row in answer["rows"]]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_likeliest_classes(kind, saved):
    served = Served(saved(kind, calibration=CALIBRATION))
    content, X = rows_of(kind)
    expected = top_k(model_of(kind, calibration=CALIBRATION), X, 3)
    requests = [asked(served, content | {"top": 3}), asked(served, rows_of(kind, 1)[0] | {"top": 1})]
    answers = served.answers(requests)
    for answer, n_rows, top in ((answers[0], 3, 3), (answers[1], 1, 1)):
        assert answer["normaliser"] == "all classes"
        found = flat(answer)
        assert [[name for name, _ in row] for row in found] == [
            [served.model.class_names[k] for k in row[:top]] for row in expected.classes[:n_rows]
        ]
        probabilities = [[p for _, p in row] for row in found]
        np.testing.assert_allclose(probabilities, expected.probabilities[:n_rows, :top], rtol=1e-5)


def test_rows_of_a_sparse_model_are_made_sparse(saved):
    """Dense ones would make the weights dense, a block after the other, for each request."""
    path = saved("features")
    save_model(model_of("features").to_sparse(), path)
    served = Served(path)
    content, X = rows_of("features")
    assert issparse(served._features(asked(served, content).rows))
    expected = top_k(model_of("features"), X, 2)
    found = flat(served.answers([asked(served, content | {"top": 2})])[0])
    np.testing.assert_allclose([[p for _, p in row] for row in found], expected.probabilities, rtol=1e-5)


def test_a_mapped_model_is_the_same_and_is_not_read_into_memory(saved):
    path = saved("dense", n_classes=500)
    mapped, read = load_model(path, mapped=True), load_model(path)
    np.testing.assert_array_equal(mapped.W, read.W)
    X = rows_of("dense")[1]
    np.testing.assert_array_equal(top_k(mapped, X, 9).probabilities, top_k(read, X, 9).probabilities)
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))]
    bounds = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in maps]
    assert any(start <= mapped.W.ctypes.data < stop for start, stop in bounds)


def test_a_row_that_cannot_be_scored_fails_no_other(saved):
    served = Served(saved("texts"))
    good = asked(served, {"texts": ["red"]})
    bad = good._replace(rows=[7])
    answers = served.answers([good, bad, good])
    assert isinstance(answers[1], Exception)
    assert flat(answers[0]) == flat(answers[2]) == flat(served.answers([good])[0])


@pytest.mark.fault(
    "a model's file replaced, or removed, while it is served",
    happens="answers come from the file that was loaded, whose bytes the server holds; `/model` says `replaced`",
    user="the old model's answers, until the server is started again",
)
def test_a_replaced_model_is_served_on(saved):
    path = saved("dense")
    served = Served(path)
    request = asked(served, rows_of("dense")[0])
    before = served.answers([request])
    save_model(model_of("dense", n_classes=3), path)
    assert served.is_replaced()
    assert served.problem() == ""
    assert served.answers([request]) == before
    path.unlink()
    assert served.is_replaced()
    assert served.answers([request]) == before


@pytest.mark.fault(
    "a model's file written to in place, or cut short, while it is served",
    happens="nothing is answered from it any more: each batch looks at the file's size and time before",
    user='status 503, `{"error": "model.h5 was changed in place while it is served; …"}`, at `/ready`, too',
)
def test_a_model_changed_in_place_answers_nothing(saved):
    path = saved("dense")
    served = Served(path)
    request = asked(served, rows_of("dense")[0])
    with path.open("r+b") as file:
        file.seek(-200, os.SEEK_END)
        file.write(b"\0" * 100)
    os.utime(path, ns=(1, 1))  # the clock of files may be too coarse for a test
    (answer,) = served.answers([request])
    assert isinstance(answer, RequestError)
    assert answer.status == 503
    assert "model.h5 was changed in place" in str(answer)


def test_sparse_weights_and_weights_by_feature_are_copied_once(saved, monkeypatch):
    """Of more weights than a small model has, which scoring copies each time otherwise."""
    monkeypatch.setattr("xsoftmax.kernels.scores.SMALL_MODEL", 10_000)
    monkeypatch.setattr("xsoftmax.kernels.scores.FEWEST_WEIGHTS", 10_000)
    served = Served(saved("sparse", n_classes=4000))
    content, X = rows_of("sparse")
    expected = top_k(model_of("sparse", n_classes=4000), X, 4)
    kept = dict(served.model._kept[-1])
    assert len(kept) > 1
    assert sum(len(stretch) for stretch in kept) == 4000
    found = flat(served.answers([asked(served, content | {"top": 4})])[0])
    np.testing.assert_allclose([[p for _, p in row] for row in found], expected.probabilities, rtol=1e-5)
    assert all(served.model._kept[-1][stretch] is copy for stretch, copy in kept.items())
