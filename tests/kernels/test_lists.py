"""Weights listed by feature, or by class: the same numbers as in an array, whatever room there is."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from kernels.layouts import laid_out
from kernels.loops import run_steps
from problems import sparse_problem
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.kernels import lists
from xsoftmax.kernels.class_lists import empty_class_lists
from xsoftmax.kernels.layout import averaged
from xsoftmax.kernels.lists import add_scores, checked, empty_lists
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.scores import columns_of
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals.uniform import UniformDraws

N, D, K = 60, 30, 17
KEY = np.uint64(stream(3, 0))
OPTIMIZERS = {"sgd": Sgd(), "adagrad": Adagrad(initial_accumulator=0.1)}


def problem(filled=0.15):
    X, y, W = sparse_problem(np.random.default_rng(2), N, D, K, filled=filled)
    return csr_array(X), y, W * (np.random.default_rng(3).random(W.shape) < 0.2)


KINDS = pytest.mark.parametrize("empty", [empty_lists, empty_class_lists], ids=["by feature", "by class"])


def listed(optimizer, W, average=False, empty=empty_lists):
    """Lists of weights (K, D + 1), the biases last."""
    initial = getattr(optimizer, "initial_accumulator", 0.0)
    none = empty(len(W), W.shape[1] - 1, optimizer.accumulates, average, initial)
    found = none.load(csc_array(W[:, :-1]))
    found.biases[0] = W[:, -1]
    return found


def stepped(optimizer, weights, X, y, order, first=0, n_sampled=3):
    """Take steps, in larger rooms whenever there is none; give the weights, and how often they grew."""
    used = n_grown = 0
    while True:
        clock = Clock(KEY, first + used, first + used)
        arguments = (np.zeros((N, 0)), weights, order[used:], clock, np.float32(0.5), n_sampled)
        used += run_steps(OneVsEach(), UniformDraws(K), optimizer, features_of(X, True), y, *arguments)
        if used == order.size:
            return weights, n_grown
        assert weights.full[0]
        weights, n_grown = lists.grown([weights]), n_grown + 1


@pytest.mark.long_cases
@KINDS
@pytest.mark.parametrize("spare", [(0.0, 0), (0.5, 8)], ids=["no room", "room"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps_are_those_of_an_array(optimizer, spare, empty, monkeypatch):
    monkeypatch.setattr(lists, "SPARE_SHARE", spare[0])
    monkeypatch.setattr(lists, "SPARE", spare[1])
    X, y, W = problem()
    order = np.random.default_rng(0).integers(0, N, 200)
    found, n_grown = stepped(optimizer, listed(optimizer, W, empty=empty), X, y, order)
    dense = laid_out(optimizer, W, dense=False)
    clock = Clock(KEY, 0, 0)
    arguments = (np.zeros((N, 0)), dense, order, clock, np.float32(0.5), 3)
    assert run_steps(OneVsEach(), UniformDraws(K), optimizer, features_of(X, True), y, *arguments) == order.size
    assert np.allclose(found.weights().toarray(), dense.weights(), atol=1e-6)
    assert np.abs(dense.weights() - W).max() > 0.1
    assert n_grown > (5 if spare == (0.0, 0) else 0)


@KINDS
def test_memory_is_what_is_not_zero(empty):
    X, y, W = problem(filled=0.05)
    before = listed(Sgd(), 0 * W, empty=empty)
    assert before.weights().nnz == 0
    after, _ = stepped(Sgd(), before, X, y, np.arange(5))
    touched = {d for i in range(5) for d in X.indices[X.indptr[i] : X.indptr[i + 1]]}
    columns = after.weights()
    assert {d for d in range(D) if np.diff(columns.indptr)[d]} <= touched
    assert 0 < columns[:, :-1].nnz < K * len(touched)


@pytest.mark.long_cases
@KINDS
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_average_is_that_of_the_weights_after_every_step(optimizer, empty):
    X, y, W = problem()
    found, seen = listed(optimizer, W, True, empty), []
    order = np.random.default_rng(1).integers(0, N, 40)
    for first in range(40):
        found, _ = stepped(optimizer, found, X, y, order[first : first + 1], first)
        seen.append(found.weights().toarray())
    found.period[1] = 40
    assert np.allclose(found.average().toarray(), np.mean(seen, axis=0), atol=1e-5)
    found.start_again(40)
    assert np.array_equal(found.average().toarray(), seen[-1])
    later = []
    for first in range(40, 50):
        found, _ = stepped(optimizer, found, X, y, order[first - 40 : first - 39], first)
        later.append(found.weights().toarray())
    found.period[1] = 50
    assert np.allclose(found.average().toarray(), np.mean(later, axis=0), atol=1e-5)
    like = averaged(laid_out(optimizer, W, dense=False))
    assert like.totals.shape == W.shape


@KINDS
def test_what_is_loaded_is_there_and_accumulators_begin_anew(empty):
    _, _, W = problem()
    found = listed(Adagrad(initial_accumulator=0.25), W, empty=empty)
    assert np.array_equal(found.weights().toarray(), W)
    assert (found.accumulators == 0.25).all()
    assert (found.biases[1] == 0.25).all()
    grown = lists.grown([found])
    assert np.array_equal(grown.weights().toarray(), W)
    assert (grown.rooms - grown.sizes).min() >= lists.SPARE
    assert grown.members.size > grown.free[0]


@pytest.mark.parametrize("first", [0, 5])
def test_scores_are_those_of_an_array(first):
    X, _, W = problem()
    scores = np.full((N - 7, 9), 2.0, np.float32)
    add_scores(columns_of(csc_array(W[:, :-1])), features_of(X, False), 7, first, scores)
    assert np.allclose(scores - 2, X.toarray()[7:] @ W[first : first + 9, :-1].T, atol=1e-5)


@pytest.mark.fault(
    "too little memory for sparse weights that grow",
    happens="what is needed is asked for before it is taken; the last checkpoint stays",
    user="`error: the weights that are not zero: … MB of memory, … MB are free`",
    lost="the time since the last checkpoint",
)
def test_memory_is_asked_for_before_they_grow(monkeypatch):
    _, _, W = problem()
    found = listed(Sgd(), W)
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 100)
    with pytest.raises(InputError, match=r"the weights that are not zero: .* MB of memory"):
        lists.grown([found])


def crafted(found, name):
    arrays = {key: value.copy() for key, value in found._asdict().items() if isinstance(value, np.ndarray)}
    arrays["auxiliary"] = np.zeros((N, 0))
    if name == "missing":
        del arrays["values"]
    elif name == "more":
        arrays["colour"] = np.zeros(1)
    elif name == "shorter values":
        arrays["values"] = arrays["values"][:-1]
    elif name == "before the first":
        arrays["starts"][0] = -1
    elif name == "beyond the end":
        arrays["starts"][-1] += 10
    elif name == "in another's room":
        arrays["starts"][3] = arrays["starts"][5] + 1
    elif name == "negative room":
        arrays["rooms"][2] = -1
    elif name == "free beyond the end":
        arrays["free"][0] = arrays["members"].size + 1
    elif name == "longer than its room":
        arrays["sizes"][2] = arrays["rooms"][2] + 1
    elif name == "negative size":
        arrays["sizes"][2] = -1
    elif name in ("member too high", "member negative", "member twice"):
        longest = int(np.argmax(arrays["sizes"]))
        place = arrays["starts"][longest]
        assert arrays["sizes"][longest] > 1
        arrays["members"][place + (name == "member too high") * (arrays["sizes"][longest] - 1)] = {
            "member too high": max(D, K),
            "member negative": -1,
            "member twice": arrays["members"][place + 1],
        }[name]
    elif name == "float64":
        arrays["values"] = arrays["values"].astype(float)
    return arrays


CRAFTED = [
    *("missing", "more", "shorter values", "before the first", "beyond the end", "in another's room", "float64"),
    *("negative room", "free beyond the end", "longer than its room", "negative size", "member too high"),
    *("member negative", "member twice"),
]


@pytest.mark.fault(
    "a checkpoint whose lists of weights point outside of themselves",
    happens="it is refused before anything is changed, as a damaged checkpoint is",
    user="`warning: …`; the fit begins anew",
    lost="what the checkpoint held",
)
@KINDS
@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_lists_are_refused_and_change_nothing(name, empty):
    _, _, W = problem()
    own, auxiliary = listed(Sgd(), 0 * W, empty=empty), np.full((N, 0), 1.0)
    with pytest.raises(ContentError):
        checked(own, auxiliary, crafted(listed(Sgd(), W, empty=empty), name))
    assert own.weights().nnz == 0


def test_members_of_a_feature_rise():
    _, _, W = problem()
    arrays = crafted(listed(Sgd(), W), "nothing")
    longest = int(np.argmax(arrays["sizes"]))
    place = arrays["starts"][longest]
    arrays["members"][place : place + 2] = arrays["members"][place : place + 2][::-1]
    with pytest.raises(ContentError, match="rise"):
        checked(listed(Sgd(), 0 * W), np.zeros((N, 0)), arrays)


@KINDS
def test_lists_of_any_length_are_taken(empty):
    X, y, W = problem()
    after, _ = stepped(Sgd(), listed(Sgd(), W, empty=empty), X, y, np.arange(N))
    auxiliary = np.zeros((N, 0))
    found = checked(listed(Sgd(), 0 * W, empty=empty), auxiliary, crafted(after, "nothing"))
    assert np.array_equal(found.weights().toarray(), after.weights().toarray())
