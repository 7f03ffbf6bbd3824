"""Search in clusters finds most of what all scores tell, and all of it if its budget is all classes."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

import naive_bounds
from kernels.layouts import laid_out
from kernels.loops import run_steps
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.protocol import Clock, View, draw
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.objectives.hinge import Hinge
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.clustered_search import ClusteredSearch
from xsoftmax.proposals.decomposed_search import DecomposedSearch
from xsoftmax.solvers import make_solver
from xsoftmax.training.checkpoint import read_checkpoint, write_checkpoint

N, D, K = 300, 16, 400
ALL = {
    "clustered": ClusteredSearch(n_clusters=20, budget=K),
    "decomposed": DecomposedSearch(n_blocks=4, n_clusters=20, budget=K, rounds=K, least_slope=0.0),
}
FEW = {
    "clustered": ClusteredSearch(n_clusters=20, budget=80, refresh=500),
    "decomposed": DecomposedSearch(n_blocks=2, n_clusters=20, budget=100, refresh=500),
}


@njit(**OPTIONS)
def searched(kernel, view, i, excluded, lowest, n):
    draws = empty_draws(n)
    draw(kernel, view, i, excluded, lowest, np.uint64(0), draws)
    return draws.classes, draws.weights


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    W: np.ndarray


def problem():
    """Rows and weights around the same 25 directions."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((25, D))
    group = rng.integers(25, size=K)
    W = np.column_stack([centres[group] + 0.4 * rng.standard_normal((K, D)), 0.1 * rng.standard_normal(K)])
    y = rng.integers(K, size=N).astype(np.int32)
    X = W[y, :-1] + 0.4 * rng.standard_normal((N, D))
    return Problem((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y, W.astype(np.float32))


def ready(member, storage="dense"):
    of = problem()
    X = of.X if storage == "dense" else csr_array(of.X)
    fitted = member.fit(TrainingSet(X, of.y, K))
    view = View(laid_out(Sgd(), of.W, storage == "dense"), features_of(X, True))
    fitted.refresh(view.weights)
    return fitted, view, of


def trained(fitted, view, of, n_steps):
    """Take steps as the solver does, a refresh before each chunk."""
    order = np.random.default_rng(3).integers(0, N, n_steps)
    for first in range(0, n_steps, fitted.refresh_steps):
        fitted.refresh(view.weights)
        some = order[first : first + fitted.refresh_steps]
        where = (view.weights, some, Clock(np.uint64(1), first, first), np.float32(0.2), 1)
        run_steps(Hinge(0.5), fitted.kernel(of.X), Sgd(), view.features, of.y, np.zeros((N, 0)), *where)


@pytest.mark.long_cases
@pytest.mark.parametrize(("name", "storage"), [("clustered", "dense"), ("clustered", "csr"), ("decomposed", "dense")])
def test_with_a_budget_of_all_classes_it_is_brute_force(name, storage):
    """Of a decomposed search where a class is left out as true: those that a smoothed margin moves, see below."""
    fitted, view, of = ready(ALL[name], storage)
    kernel = fitted.kernel(of.X)
    for i in range(0, N, 11):
        s = of.W[:, :-1].astype(float) @ of.X[i] + of.W[:, -1]
        for lowest, excluded in ((-np.inf, -1), (0.3, -1), (-np.inf, of.y[i]), (0.3, of.y[i])):
            if excluded >= 0 and name == "decomposed":
                continue
            for n in (1, 5, K):
                classes, weights = searched(kernel, view, i, np.int64(excluded), np.float32(lowest), n)
                expected = np.sort(s[(s > lowest) & (np.arange(K) != excluded)])[::-1][:n]
                n_found = int(weights.sum())
                assert n_found == expected.size
                assert np.allclose(s[classes[:n_found]], expected, atol=1e-5)
                assert len(set(classes[:n_found])) == n_found
                assert (classes[n_found:] == max(excluded, 0)).all()


@pytest.mark.slow
def test_messages_until_nothing_is_new_find_all_that_a_margin_moves():
    fitted, view, of = ready(ALL["decomposed"])
    kernel, n_moved = fitted.kernel(of.X), 0
    for i in range(0, N, 3):
        s, y = of.W[:, :-1].astype(float) @ of.X[i] + of.W[:, -1], of.y[i]
        classes, weights = searched(kernel, view, i, np.int64(y), np.float32(-np.inf), K)
        slopes = naive_bounds.max_margin(s, y, 1.0)[1]
        moved = {k for k in np.flatnonzero(slopes > 1e-5) if k != y}
        assert moved <= set(classes[weights > 0])
        n_moved += len(moved)
    assert n_moved > 200


@pytest.mark.long_cases
@pytest.mark.parametrize("name", FEW)
def test_it_finds_as_much_as_it_says_after_thousands_of_steps(name):
    """Of a decomposed search, where a margin of 1 is not met."""
    fitted, view, of = ready(FEW[name])
    assert fitted.counts[3] == 1
    trained(fitted, view, of, 3000)
    fitted.refresh(view.weights)
    W, found = view.weights.weights(), []
    assert np.abs(W - of.W).max() > 0.1
    for i in range(N):
        s = W[:, :-1].astype(float) @ of.X[i] + W[:, -1]
        lowest, s[of.y[i]] = s[of.y[i]] - fitted.margin, -np.inf
        classes, weights = searched(fitted.kernel(of.X), view, i, np.int64(of.y[i]), np.float32(-np.inf), 1)
        if s.max() > lowest:
            found.append(weights[0] > 0 and s[classes[0]] >= s.max() - 1e-5)
    assert len(found) > 50
    assert np.mean(found) >= FEW[name].recall - 0.05


def test_moved_classes_are_put_where_they_belong_and_others_stay():
    fitted, view, _ = ready(FEW["clustered"])
    clusters, before = fitted.blocks[0], fitted.blocks[0].assigned.copy()
    W = view.weights.weights()
    W[7] = W[11] = -W[7]  # class 11 is not marked
    fitted.moved[7] = 1
    fitted.counts[1] = 100  # no measure now
    fitted.refresh(view.weights)
    direction = np.argmax(clusters.centroids @ W[7] + clusters.lifts * np.sqrt(clusters.radius[0] ** 2 - W[7] @ W[7]))
    assert clusters.assigned[7] == direction != before[7]
    assert np.array_equal(np.delete(clusters.assigned, 7), np.delete(before, 7))
    assert sorted(clusters.members) == list(range(K))
    for j in range(20):
        assert (clusters.assigned[clusters.members[clusters.starts[j] : clusters.starts[j + 1]]] == j).all()


def test_clusters_are_found_anew_when_recall_falls_and_rarer_if_that_does_not_help():
    fitted, view, _ = ready(FEW["clustered"])
    assert fitted.measured_recall(view.weights) >= 0.9
    W = view.weights.weights()
    W[:] = W[np.random.default_rng(0).permutation(K)]  # nothing is marked
    assert fitted.measured_recall(view.weights) < 0.9
    fitted.counts[1] = 0
    fitted.refresh(view.weights)
    assert fitted.counts[3] == 2
    assert fitted.measured_recall(view.weights) >= 0.9
    hopeless, view, _ = ready(ClusteredSearch(n_clusters=20, budget=2, recall=1.0))
    for _ in range(40):
        hopeless.refresh(view.weights)
    assert hopeless.counts[3] == 8  # after 0, 1, 3, 7, 15, 23, 31, 39 refreshes


def test_the_same_seed_makes_the_same_clusters():
    def centroids(seed):
        of = problem()
        fitted = ClusteredSearch(n_clusters=20).fit(TrainingSet(of.X, of.y, K, seed))
        fitted.refresh(laid_out(Sgd(), of.W))
        return fitted.blocks[0].centroids

    assert np.array_equal(centroids(1), centroids(1))
    assert not np.array_equal(centroids(1), centroids(2))


def test_at_weights_of_zero_classes_lie_in_clusters_in_turn():
    of = problem()
    fitted = ClusteredSearch(n_clusters=20, budget=40).fit(TrainingSet(of.X, of.y, K))
    fitted.refresh(laid_out(Sgd(), np.zeros_like(of.W)))
    assert fitted.counts[3] == 0
    assert (np.bincount(fitted.blocks[0].assigned) == K // 20).all()


def method(name, **parameters):
    axes = {"objective": {"name": "hinge"}, "optimizer": {"name": "sgd"}}
    return build_method("mine", axes | {"proposal": {"name": name} | parameters})


@pytest.mark.parametrize("proposal", ["clustered-search", "decomposed-search"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"recall": 1.5}, "recall is 1.5; set it to 1 or less"),
        ({"budget": 3, "n_sampled": 5}, "budget is 3, n_sampled 5; set budget to 5 or more"),
    ],
)
def test_what_cannot_be_is_refused(proposal, parameters, message):
    with pytest.raises(InputError, match=message):
        method(proposal, **parameters)


@pytest.mark.parametrize("proposal", ["clustered-search", "decomposed-search"])
def test_weights_that_are_lists_are_refused(proposal):
    sparse = {"weights": "sparse", "bias": False, "start": "class-means"}
    with pytest.raises(
        InputError, match="clusters rows of weights, which are dense; take proposal search, or weights"
    ):
        build_method("mine", method(proposal).settings | sparse)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"eta": 1.5}, "eta is 1.5; set it to paper, or to a number above 0"),
        ({"eta": "quick"}, "eta is 'quick'; set it to a number"),
        ({"smoothing": 0}, "smoothing is 0; set it above 0"),
    ],
)
def test_what_a_decomposed_search_cannot_be(parameters, message):
    with pytest.raises(InputError, match=message):
        method("decomposed-search", **parameters)
    assert method("decomposed-search", eta="paper").settings["proposal"]["eta"] == "paper"


def solver_of(name, seed=0):
    """A solver that looks at its clusters every 100 steps."""
    of, chosen = problem(), method(name, n_clusters=20, budget=60, refresh=100)
    data = TrainingSet(of.X, of.y, K, seed)
    return make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)


def advanced(solver, first, stop):
    order = np.random.default_rng(3).integers(0, N, 1000)
    for begin in range(first, stop, 100):
        solver.advance(order[begin : begin + 100], 0, begin, 0.2)
    return solver


@pytest.mark.fault(
    "a fit killed whose search keeps clusters of classes, made of weights as they were long before",
    happens="the checkpoint holds centroids and members; the fit goes on from these, and ends with the same bits",
    user="`resumed … at epoch …` in the log",
)
@pytest.mark.parametrize("name", ["clustered-search", "decomposed-search"])
def test_a_fit_goes_on_with_the_clusters_that_it_had(name, tmp_path):
    whole = advanced(solver_of(name), 0, 1000)
    half = advanced(solver_of(name), 0, 700)
    kept = {key: array.copy() for key, array in half.arrays().items()}
    assert kept["index_counts"][3] >= 1
    resumed = solver_of(name)
    resumed.advance(np.empty(0, np.int64), 0, 0, 0.0)
    write_checkpoint(tmp_path / "kept.h5", "me", kept, {})
    read_checkpoint(tmp_path / "kept.h5", "me", resumed.restore)
    advanced(resumed, 700, 1000)
    for key, array in whole.arrays().items():
        assert np.array_equal(array, resumed.arrays()[key]), key
    assert np.array_equal(whole.weights(), resumed.weights())
    fresh = solver_of(name)  # the weights alone are not enough
    fresh.restore(kept | {key: fresh.arrays()[key] for key in kept if key.startswith("index_")})
    assert not np.array_equal(advanced(fresh, 700, 1000).weights(), whole.weights())
