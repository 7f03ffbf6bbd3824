"""A tree's fit on PyTorch: that of compiled code, up to rounding."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch", reason="torch is not installed: nothing is fitted on its devices here")

from gpu.problems import DEVICE, method_of
from tree.clusters import clustered
from tree.naive_tree import node_objective
from xsoftmax.cli import main
from xsoftmax.gpu import device, segments, tree_levels, tree_rows
from xsoftmax.gpu.tree_engine import TreeEngine, engine_on
from xsoftmax.internal.errors import InputError
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals._file import fit_beforehand, read_proposal
from xsoftmax.proposals.tree import Tree
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.tree import projection
from xsoftmax.tree.cross_validation import choose_regularizer
from xsoftmax.tree.fit import fit_tree
from xsoftmax.tree.projection import principal_components

THERE = TreeEngine(DEVICE)


def in_small_blocks(monkeypatch):
    """Let a block have few rows, a group few nodes, and let no rows stay on the device."""
    monkeypatch.setattr(tree_rows, "ROWS_AT_A_TIME", 70)
    monkeypatch.setattr(tree_rows, "HELD_ON_CPU", 0)
    monkeypatch.setattr(tree_levels, "NODES_TOGETHER", 5)
    monkeypatch.setattr(segments, "ROWS_TOGETHER", 100)


def objective(tree, X, y, regularizer):
    """Sum the objectives of all nodes of two or more classes."""
    Z, leaves, total = tree.project(X).astype(np.float64), tree.leaf_of_class, 0.0
    for node in range(1, tree.class_of_leaf.size):
        depth = node.bit_length() - 1
        below = (leaves >> (tree.depth - depth)) == node - (1 << depth)
        if below.sum() > 1 and abs(tree.weights[node, -1]) < 1000:
            right = ((leaves >> (tree.depth - depth - 1)) & 1).astype(bool)
            rows, w = below[y], tree.weights[node].astype(np.float64)
            total += node_objective(Z[rows], y[rows], right, w[:-1], w[-1], regularizer * below.sum())
    return total


PROBLEMS = {
    "dense": (2000, 50, 12, {}),
    "few rows per class": (900, 300, 8, {}),
    "no re-splits": (2000, 37, 12, {"resplit": False}),
    "frequencies": (300, 11, 3, {"dimension": 0}),
    "two classes": (50, 2, 3, {}),
}


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_tree_is_that_of_compiled_code(name, small, monkeypatch):
    n_samples, n_classes, n_features, settings = PROBLEMS[name]
    X, y = clustered(n_samples, n_classes, n_features, noise=0.1)
    if small:
        in_small_blocks(monkeypatch)
    expected = fit_tree(X, y, n_classes, **settings)
    found = fit_tree(X, y, n_classes, **settings, engine=THERE)
    np.testing.assert_array_equal(found.class_of_leaf, expected.class_of_leaf)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-2, atol=1e-2)
    assert objective(found, X, y, 0.1) == pytest.approx(objective(expected, X, y, 0.1), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_of_random_rows_the_objective_is_that_of_compiled_code(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((600, 6)).astype(np.float32), rng.integers(20, size=600).astype(np.int32)
    expected, found = (fit_tree(X, y, 23, 4, engine=engine) for engine in (None, THERE))
    assert objective(found, X, y, 0.1) == pytest.approx(objective(expected, X, y, 0.1), rel=1e-5)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "wide", "csr", "wide csr"])
def test_components_are_those_of_the_host(storage, kept, monkeypatch):
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((400, 90)) * (rng.random((400, 90)) < 0.3) * np.linspace(3, 1, 90)).astype(np.float32)
    X[:, 7], X[3] = 0.5, 0
    X[:, -2:] += 100
    if storage == "wide":
        monkeypatch.setattr(projection, "DENSE_LIMIT", 50)
    if "csr" in storage:
        X = csr_array(X)
    if not kept:
        in_small_blocks(monkeypatch)
    dimension = 8 if "wide" in storage else 40
    expected, found = (principal_components(X, dimension, engine=engine) for engine in (None, THERE))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6)
    np.testing.assert_allclose(found.components, expected.components, atol=2e-3 * abs(expected.components).max())


def test_same_bits_each_time():
    X, y = clustered(700, 40, 9)
    first, second = (fit_tree(csr_array(X), y, 40, 5, engine=THERE) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.projection.components, second.projection.components)


@pytest.mark.parametrize(
    "X", [np.zeros((6, 0), np.float32), np.ones((6, 3), np.float32), np.zeros((0, 2), np.float32)]
)
def test_rows_that_say_nothing_give_a_tree_of_frequencies(X):
    y = np.array([0, 0, 2, 2, 2, 4], np.int32)[: len(X)]
    expected, found = (fit_tree(X, y, 7, engine=engine) for engine in (None, THERE))
    np.testing.assert_array_equal(found.class_of_leaf, expected.class_of_leaf)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-5)


def test_cross_validation_chooses_as_compiled_code():
    X, y = clustered(300, 8, 5)
    expected, found = (choose_regularizer(X, y, 8, 3, 2, engine=engine) for engine in (None, THERE))
    assert found.regularizer == expected.regularizer
    np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, rtol=1e-4)


def test_compiled_code_fits_unless_a_device_is_asked_for(monkeypatch):
    assert engine_on("numba") is None
    X, y = clustered(100, 5, 3)
    monkeypatch.setattr(TreeEngine, "rows", lambda *_: pytest.fail("a device was asked for"))
    Tree(dimension=2).fit(TrainingSet(X, y, 5))


@pytest.mark.parametrize("inside", [False, True])
def test_a_method_on_a_device_has_its_tree_fitted_there(inside, dataset, monkeypatch):
    fitted_on, levels = [], TreeEngine.levels
    monkeypatch.setattr(TreeEngine, "levels", lambda self, *given: fitted_on.append(self) or levels(self, *given))
    tree = {"name": "tree", "dimension": 2}
    proposal = {"name": "mixture", "first": {"name": "uniform"}, "second": tree} if inside else tree
    method = method_of(("nce", "tree", "sgd"), proposal=proposal | {"n_sampled": 2})
    fit(dataset(*clustered(200, 9, 5), 9), method, 0, Plan(epochs=1, keep="last"))
    assert fitted_on


def test_the_verb_proposal_fits_on_a_device(prepare, tmp_path, capsys):
    X, y = clustered(400, 9, 5)
    prepared = str(prepare(X, y, 9))
    for name in ("numba", DEVICE):
        main(["proposal", prepared, "--kind", "tree", "--device", name, "-o", str(tmp_path / f"{name}.h5")])
    assert "proposal tree for 9 classes" in capsys.readouterr().out
    expected, found = (read_proposal(tmp_path / f"{name}.h5").proposal for name in ("numba", DEVICE))
    np.testing.assert_allclose(found.log_q(X, 0, 9), expected.log_q(X, 0, 9), atol=1e-2)


def test_what_devices_do_not_fit_is_refused(dataset, monkeypatch):
    monkeypatch.setattr(Tree, "on_device", False)
    with pytest.raises(InputError, match="proposal tree is fitted on the host only; leave --device out"):
        fit_beforehand(dataset(*clustered(50, 5, 3), 5), Tree(), engine=THERE)


@pytest.mark.fault(
    "a tree is fitted on a device that has too little memory",
    happens="refused before anything is allocated there, for its projection and its nodes each",
    user="one line: the megabytes needed, of what, and those that are free",
)
@pytest.mark.parametrize(
    ("asks", "what"), [(tree_rows, "the projection of a tree"), (tree_levels, "the fit of a tree")]
)
def test_memory_is_asked_for_before_it_is_taken(asks, what, monkeypatch):
    X, y = clustered(400, 9, 5)
    ask = asks.ask_for_room

    def with_little(*given):
        monkeypatch.setattr(device, "free_on", lambda place: 10)
        ask(*given)

    monkeypatch.setattr(asks, "ask_for_room", with_little)
    with pytest.raises(
        InputError, match=rf"device is {DEVICE}, which has 0 MB free, and {what} takes .*; leave device out"
    ):
        fit_tree(X, y, 9, engine=THERE)
