"""Where classes are found, slopes are those of the objective over these, and what is found is as asked for."""

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from skip_gram.made_up import COUNTS, D, N, in_float64, vectors_of
from skip_gram.naive_skip_gram import slopes, softmax_objective
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.skip_gram.collapsed import CollapsedDescent
from xsoftmax.skip_gram.counts import counted
from xsoftmax.skip_gram.found import (
    Finder,
    gradient_by_inputs,
    gradient_by_outputs,
    missing_of,
    new_workspace,
    slopes_of,
)
from xsoftmax.skip_gram.settings import MISSING, Settings
from xsoftmax.skip_gram.vectors import by_cache_lines

WHO = [("search", 0.34), ("clusters", 0.34), ("blocks", 0.17), ("search", 1.0)]


@njit
def found_for(finder, vectors, of, missing, x, workspace):
    n = slopes_of(finder, vectors, of, missing, x, x, workspace).n
    return workspace.classes[:n].copy()


def prepared(vectors, missing="none", **settings):
    """What kernels are told, and the classes found for each word."""
    of = counted(csr_array(COUNTS))
    finder = Finder(Settings(loss="softmax", dimension=D, n_blocks=2, **settings), vectors).of(np.arange(N), 0)
    given = finder, vectors, of, missing_of(missing, vectors, of.of_outputs)
    return (*given, np.arange(N)), [found_for(*given, x, new_workspace(N)).tolist() for x in range(N)]


def both_gradients(given):
    """By inputs and by outputs, with their bounds on curvature, and the value."""
    squares = [np.square(table).sum(axis=1) for table in given[1]]
    found = [by_cache_lines(N, 16) for _ in range(2)], [np.zeros(N, np.float32) for _ in range(2)]
    value = gradient_by_inputs(*given, squares[1], found[0][0], found[1][0], new_workspace(N))
    gradient_by_outputs(*given, squares[0], found[0][1], found[1][1], new_workspace(N))
    return *found, value


@pytest.mark.long_cases
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize(("found_by", "share"), WHO)
def test_gradients_are_those_of_the_objective_over_what_is_found(found_by, share, missing):
    vectors = vectors_of(1)
    inputs, outputs = in_float64(vectors)
    given, allowed = prepared(vectors, missing, found_by=found_by, share=share, least_slope=0.1)
    for x in range(N):
        assert set(allowed[x]) >= set(np.flatnonzero(COUNTS[x]))
        assert len(set(allowed[x])) == len(allowed[x])
    assert share == 1 or any(0 < len(some) < N for some in allowed)
    (by_inputs, by_outputs), _, value = both_gradients(given)
    assert value == pytest.approx(softmax_objective(inputs, outputs, COUNTS, allowed, missing), rel=1e-5)
    for table, gradient in ((inputs, by_inputs), (outputs, by_outputs)):
        expected = slopes(lambda: softmax_objective(inputs, outputs, COUNTS, allowed, missing), table)
        assert abs(expected).max() > 0.05
        np.testing.assert_allclose(gradient[:, :D], expected, atol=1e-5)


def test_the_bound_on_curvature_is_the_slopes_of_all_classes_times_their_squares():
    vectors = vectors_of(1)
    inputs, outputs = in_float64(vectors)
    given, _ = prepared(vectors, "mean", found_by="search", share=1.0)
    p = np.exp(inputs @ outputs.T)
    shares = COUNTS / COUNTS.sum()
    weights = shares.sum(axis=1, keepdims=True) * p / p.sum(axis=1, keepdims=True) + shares
    _, (of_inputs, of_outputs), _ = both_gradients(given)
    np.testing.assert_allclose(of_inputs, weights @ np.square(outputs).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(of_outputs, weights.T @ np.square(inputs).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("share", [0.34, 0.51, 1.0])
def test_search_finds_the_highest_scores(share):
    vectors = vectors_of(2)
    inputs, outputs = in_float64(vectors)
    n = int(share * N)
    highest = np.argsort(-(inputs @ outputs.T), axis=1)[:, :n]
    for x, found in enumerate(prepared(vectors, found_by="search", share=share)[1]):
        expected = set(highest[x]) | set(np.flatnonzero(COUNTS[x])) if COUNTS[x].any() else set()
        assert set(found) == expected


@pytest.mark.parametrize("least_slope", [0.05, 0.2, 0.5])
def test_one_round_of_messages_chooses_what_has_a_probability_in_some_block(least_slope):
    """Algorithm 2: the softmax of B z_j, z_j being the scores by the columns of block j, all retrieved."""
    vectors = vectors_of(3, 0.6)
    inputs, outputs = in_float64(vectors)
    n_chosen = 0
    found = prepared(vectors, found_by="blocks", share=1.0, least_slope=least_slope)[1]
    for x in range(N):
        expected = set(np.flatnonzero(COUNTS[x]))
        for columns in (slice(0, 2), slice(2, 5)):
            scores = 2 * outputs[:, columns] @ inputs[x, columns]
            chances = np.exp(scores) / np.exp(scores).sum()
            expected |= set(np.flatnonzero(chances > least_slope))
        assert set(found[x]) == (expected if COUNTS[x].any() else set())
        n_chosen += len(found[x])
    assert COUNTS.astype(bool).sum() <= n_chosen < N * (N - 1)


def test_more_rounds_find_what_has_a_probability_as_a_whole():
    """With eta 1 scores of those chosen are whole, so that in the end no class above the limit is left out."""
    n_more = 0
    for seed in range(30):
        vectors = vectors_of(seed)
        inputs, outputs = in_float64(vectors)
        one, many = (
            prepared(vectors, found_by="blocks", share=1.0, least_slope=0.15, rounds=rounds)[1] for rounds in (1, 20)
        )
        p = np.exp(inputs @ outputs.T)
        for x in np.flatnonzero(COUNTS.any(axis=1)):
            assert set(many[x]) >= set(np.flatnonzero(p[x] / p[x].sum() > 0.15)) | set(one[x])
            n_more += len(many[x]) - len(one[x])
    assert n_more > 0


@pytest.mark.parametrize("found_by", ["search", "clusters", "blocks"])
@pytest.mark.parametrize("missing", MISSING)
def test_whoever_finds_all_classes_goes_where_the_exact_gradient_does(found_by, missing):
    tables = []
    for each in ("all", found_by):
        vectors = vectors_of(2)
        settings = Settings(loss="softmax", dimension=D, found_by=each, share=1.0, least_slope=0.0, missing=missing)
        method = CollapsedDescent(csr_array(COUNTS), settings, vectors)
        for epoch in range(3):
            method.run(epoch, 0, method.n_units, ThreadPool())
        tables.append(in_float64(vectors))
    np.testing.assert_allclose(tables[0], tables[1], atol=2e-5)


def test_what_is_missing_by_the_mean_is_no_more_than_it_is():
    for seed in range(10):
        vectors = vectors_of(seed)
        inputs, outputs = in_float64(vectors)
        given, _ = prepared(vectors, "mean", found_by="search", share=0.17)
        exact = softmax_objective(inputs, outputs, COUNTS)
        assert both_gradients(given)[2] < exact
