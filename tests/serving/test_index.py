"""An index finds nearly all of the best classes, scores them exactly, and says what it divides by."""

from dataclasses import replace

import numpy as np
import pytest

from serving.models import model_of
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import Model
from xsoftmax.serving.index import KINDS, ClassIndex

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def model():
    """4,000 classes around 40 centres, with biases and lengths of their own, calibrated by frequency."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 16))
    W = (centres[np.arange(4000) % 40] + 0.5 * rng.standard_normal((4000, 16))) * rng.uniform(0.5, 1.5, (4000, 1))
    b, log_counts = rng.standard_normal(4000), np.log(rng.integers(1, 50, 4000))
    calibration = Calibration(0.8, 0.5, log_counts.astype(np.float32))
    names = [str(k) for k in range(4000)]
    return Model(W.astype(np.float32), names, 16, b.astype(np.float32), calibration=calibration)


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_finds_the_best(kind, model, rng):
    X = rng.standard_normal((200, 16)).astype(np.float32)
    exact, found = top_k(model, X, 10), ClassIndex.of(model, kind).top_k(X, 10)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(exact.classes, found.classes, strict=True)])
    assert recall > 0.97
    same = exact.classes[:, 0] == found.classes[:, 0]
    assert same.mean() > 0.98
    # half of the classes are drawn, so that sums are off by a little
    error = np.abs(np.log(found.probabilities[same, 0] / exact.probabilities[same, 0]))
    assert error.mean() < 0.02
    assert (np.diff(found.probabilities, axis=1) <= 0).all()


def test_where_all_classes_are_looked_at_all_is_exact(model, rng):
    small = replace(model, W=model.W[:90], b=model.b[:90], class_names=model.class_names[:90])
    small = replace(small, calibration=Calibration(0.8, 0.5, model.calibration.log_counts[:90]))
    X = rng.standard_normal((20, 16)).astype(np.float32)
    index, exact = ClassIndex.of(small, "ivf"), top_k(small, X, 90)
    index.look(1000)
    found = index.top_k(X, 90)
    np.testing.assert_array_equal(found.classes, exact.classes)
    np.testing.assert_allclose(found.probabilities, exact.probabilities, rtol=1e-4)
    assert index.normaliser.startswith("estimated: ")


def test_a_sigmoid_needs_no_sum(model, rng):
    X = rng.standard_normal((20, 16)).astype(np.float32)
    sigmoid = replace(model, link="sigmoid", calibration=None)
    index, exact = ClassIndex.of(sigmoid, "ivf"), top_k(sigmoid, X, 3)
    index.look(1000)
    np.testing.assert_allclose(index.top_k(X, 3).probabilities, exact.probabilities, rtol=1e-5)
    assert index.normaliser.startswith("none: ")


def test_rows_go_through_an_encoder(rng):
    model = model_of("encoded", n_classes=300)
    X = rng.standard_normal((20, 5)).astype(np.float32)
    found, exact = ClassIndex.of(model, "hnsw").top_k(X, 3), top_k(model, X, 3)
    np.testing.assert_array_equal(found.classes[:, 0], exact.classes[:, 0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda: model_of("sparse"), "rows of this model are sparse"),
        (lambda: model_of("features").to_sparse(), "those of this model are sparse"),
        (lambda: model_of("features", link="probit"), "take the scores of all classes"),
    ],
)
def test_what_cannot_be_indexed_is_told(changed, message):
    with pytest.raises(InputError, match=f"an index is for weights of dense rows, and .*{message}"):
        ClassIndex.of(changed(), "ivf")


@pytest.mark.fault(
    "an index for which there is no memory",
    happens="the server does not begin",
    user="`error: an index of … classes: … MB of memory, … MB are free; leave --index out`",
)
def test_memory_is_asked_for_first(model, monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 2**19)
    with pytest.raises(InputError, match=r"an index of 4000 classes: .* MB of memory, 0 MB are free; leave --index"):
        ClassIndex.of(model, "ivf")
