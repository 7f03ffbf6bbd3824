"""Classes that a row moves, against naive slopes."""

import numpy as np
import pytest

import naive_bounds
from xsoftmax.evaluation.moved_classes import moved_classes, shares_of_highest
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model
from xsoftmax.objectives.max_margin import MaxMargin
from xsoftmax.objectives.softmax import Softmax


def problem(n_classes=7, n_features=3, n=20):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((n_classes, n_features + 1)).astype(np.float32)
    X = rng.standard_normal((n, n_features)).astype(np.float32)
    model = Model.of_rows(W, [str(k) for k in range(n_classes)], n_features)
    return model, X, rng.integers(n_classes, size=n).astype(np.int32), X @ W[:, :-1].T + W[:, -1]


@pytest.mark.parametrize("threads", [1, 2])
def test_classes_of_the_margin_are_those_of_the_sorted_projection(threads):
    model, X, y, scores = problem()
    found = moved_classes(model, MaxMargin(), X, y, pool=ThreadPool(threads))
    slopes = [naive_bounds.max_margin(s.astype(float), k, 1.0)[1] for s, k in zip(scores, y, strict=True)]
    assert found.tolist() == [np.count_nonzero(np.delete(s, k)) for s, k in zip(slopes, y, strict=True)]
    assert len(set(found)) > 2


def test_classes_of_the_softmax_are_those_that_are_likely_enough():
    model, X, y, scores = problem()
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    p[np.arange(len(y)), y] = 0
    assert moved_classes(model, Softmax(), X, y, above=0.1).tolist() == (p > 0.1).sum(1).tolist()


def test_the_largest_slopes_hold_a_share_of_all():
    model, X, y, scores = problem()
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    p[np.arange(len(y)), y] = 0
    found = shares_of_highest(model, Softmax(), X, y, 2)
    assert found == pytest.approx(np.sort(p)[:, -2:].sum(1) / p.sum(1), rel=1e-5)
    assert shares_of_highest(model, Softmax(), X, y, 7) == pytest.approx(1.0)
    assert found.max() < 1


def test_where_no_other_class_has_a_slope_there_is_no_share():
    model, X, _, scores = problem()
    found = shares_of_highest(model, MaxMargin(), X, scores.argmax(1).astype(np.int32), 1)
    ahead = np.diff(np.sort(scores)[:, -2:])[:, 0] >= 1
    assert np.isnan(found).tolist() == ahead.tolist()
    assert 0 < ahead.sum() < len(ahead)
