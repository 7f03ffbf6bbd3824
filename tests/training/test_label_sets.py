"""Fits on rows with several labels: unbiased steps, labels that are no negatives, the same bits after a kill."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from training.interruptions import KillAfter, KilledError
from xsoftmax.data.dataset import ArrayDataset, Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.encoded import encode_rows
from xsoftmax.kernels.full_softmax import loss_block
from xsoftmax.kernels.label_sets import LabelLists
from xsoftmax.methods import build_method
from xsoftmax.proposals import TrainingSet, fitted
from xsoftmax.solvers import make_solver
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

K, D = 6, 10
# Together they have every batch type, layout and driver that takes sets, and every way in which labels are met.
METHODS = {
    "softmax all": {"objective": "softmax", "proposal": {"name": "all", "batch_size": 4}, "optimizer": "adagrad"},
    "one-vs-rest all": {"objective": "one-vs-rest", "proposal": {"name": "all", "batch_size": 4}, "optimizer": "sgd"},
    "one-vs-rest lbfgs": {"objective": "one-vs-rest", "proposal": "all", "optimizer": "lbfgs", "l2": 0.01},
    "one-vs-each uniform": {"objective": "one-vs-each", "proposal": "uniform", "optimizer": "adagrad"},
    "double-sum u-max": {"objective": "double-sum", "proposal": "uniform", "optimizer": "u-max"},
    "negative-sampling": {"objective": "negative-sampling", "proposal": "frequency", "optimizer": "adagrad"},
    "max-margin search": {
        "objective": "max-margin",
        "proposal": {"name": "search", "n_sampled": 3},
        "optimizer": "sgd",
    },
    "hinge sparse": {
        "objective": {"name": "hinge", "margin": 0.3},
        "proposal": "search",
        "optimizer": {"name": "implicit", "learning_rate": 0.1},
        "start": {"name": "class-means", "scale": 2.0},
        "weights": "sparse",
        "average": "all",
        "bias": False,
    },
    "softmax drawn behind a table": {
        "objective": "sampled-softmax",
        "proposal": {"name": "uniform", "n_sampled": 4},
        "optimizer": {"name": "adagrad", "learning_rate": 0.3},
        "encoder": {"dimension": 8},
    },
    "margin found behind a table": {
        "objective": {"name": "max-margin", "smoothing": 5.0},
        "proposal": {"name": "clustered-search", "n_clusters": 2, "budget": 4, "n_sampled": 4, "refresh": 60},
        "optimizer": {"name": "sgd", "learning_rate": 0.3},
        "encoder": {"dimension": 8},
        "positives": "sum",
    },
    "margin found in blocks behind a table": {
        "objective": {"name": "max-margin", "smoothing": 5.0},
        "proposal": {
            **{"name": "decomposed-search", "n_blocks": 2, "n_clusters": 2, "budget": 4, "n_sampled": 4},
            **{"refresh": 60, "eta": "paper", "smoothing": 5.0},
        },
        "optimizer": {"name": "sgd", "learning_rate": 0.3},
        "encoder": {"dimension": 8},
        "positives": "sum",
    },
}


SOONER = ("softmax all", "one-vs-each uniform")
in_tiers = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in SOONER)) for name in METHODS]
)


def method_of(settings):
    axes = {axis: settings[axis] for axis in ("objective", "proposal", "optimizer")}
    named = {axis: {"name": part} if isinstance(part, str) else part for axis, part in axes.items()}
    return build_method("of-sets", settings | named)


def rows(n, rng):
    """Rows of one to three labels; each label brings a feature, and all rows have some noise."""
    classes = [np.sort(rng.choice(K, rng.integers(1, 4), replace=False)) for _ in range(n)]
    X = np.where(rng.random((n, D)) < 0.2, rng.random((n, D)) * 0.3, 0)
    for i, own in enumerate(classes):
        X[i, own] = 1
    starts = np.concatenate([[0], np.cumsum([len(own) for own in classes])])
    sets = LabelSets(starts, np.concatenate(classes).astype(np.int32))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    return Split(csr_array(X), sets.classes[starts[:-1]], label_sets=sets)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    splits = {name: rows(n, rng) for name, n in (("train", 240), ("validation", 40), ("test", 60))}
    return ArrayDataset("tags", splits, np.arange(K))


def dense(data):
    splits = {name: data.split(name) for name in ("train", "validation", "test")}
    return ArrayDataset(
        "tags",
        {
            name: Split(np.asarray(each.X.toarray()), each.y, label_sets=each.label_sets)
            for name, each in splits.items()
        },
        np.arange(K),
    )


def precision(model, split):
    """The share of right classes among as many of the highest as the row has labels."""
    rows = split.X if model.encoder is None else encode_rows(split.X, model.encoder)
    scores, hits = rows @ np.asarray(model.to_dense().W).T + (0 if model.b is None else model.b), 0
    for i, row in enumerate(scores):
        own = split.label_sets.of_rows(slice(i, i + 1)).classes
        hits += np.isin(np.argsort(-row)[: len(own)], own).sum()
    return hits / len(split.label_sets.classes)


@in_tiers
def test_all_labels_of_a_row_are_learned(data, name):
    found = fit(data, method_of(METHODS[name]), 0, Plan(epochs=20))
    assert precision(found.model, data.split("test")) > 0.9


@in_tiers
def test_a_fit_that_was_killed_ends_with_the_same_bits(data, name, tmp_path):
    method, plan = (
        method_of(METHODS[name]),
        Plan(epochs=3, checkpoint=tmp_path / "checkpoint.h5", checkpoint_seconds=0),
    )
    whole = fit(data, method, 0, Plan(epochs=3))
    with pytest.raises(KilledError):
        fit(data, method, 0, plan, callbacks=[KillAfter(2)])
    again = fit(data, method, 0, plan)
    assert again.state.step == whole.state.step
    assert again.state.history[-1]["objective"] == whole.state.history[-1]["objective"]
    np.testing.assert_array_equal(again.model.to_dense().W, whole.model.to_dense().W)


@pytest.mark.long_cases
@pytest.mark.parametrize("name", [name for name, settings in METHODS.items() if "weights" not in settings])
def test_dense_rows_equal_sparse_rows(data, name):
    models = [
        fit(each, method_of(METHODS[name]), 0, Plan(epochs=2, keep="last")).model for each in (data, dense(data))
    ]
    np.testing.assert_allclose(models[0].W, models[1].W, atol=2e-4)


def expected_move(method, data, n_steps):
    """Mean move of the weights in one step on the first row, over draws, and its standard error."""
    split = data.split("train")
    training_set = TrainingSet(split.X, split.y, K, label_sets=split.label_sets, n_sampled=method.n_sampled)
    objective, proposal = method.objective.fit(training_set), fitted(method.proposal, training_set)
    solver = make_solver(method, objective, proposal, training_set, ThreadPool())
    W = np.random.default_rng(1).normal(0, 1, (K, D + 1)).astype(np.float32)
    begin = {name: array.copy() for name, array in solver.arrays().items()} | {"W": W}
    moves = np.empty((n_steps, K, D + 1))
    for position in range(n_steps):
        solver.restore(begin)
        solver.advance(np.zeros(1, np.int64), 0, position, 1.0)
        moves[position] = W - solver.weights()
    log_q = proposal.log_q(split.X[:1], 0, K)
    return W, moves.mean(axis=0), moves.std(axis=0) / np.sqrt(n_steps), objective, log_q


@pytest.mark.long_cases
@pytest.mark.parametrize("positives", ["mean", "sum"])
@pytest.mark.parametrize(
    ("objective", "proposal"),
    [
        ("one-vs-each", "uniform"),
        ("one-vs-rest", "frequency"),
        ("one-vs-rest", "found-and-uniform"),
        ("hinge", "head"),
        ("negative-sampling", "frequency"),
    ],
)
def test_the_expected_step_is_the_gradient_of_the_loss_of_the_set(data, objective, proposal, positives):
    parts = {"objective": objective, "optimizer": "sgd", "positives": positives}
    parts["proposal"] = {"name": proposal, "n_sampled": 3} | ({"n_head": 2} if proposal == "head" else {})
    parts["proposal"] |= {"n_found": 2} if proposal == "found-and-uniform" else {}
    W, mean, error, fitted_objective, log_q = expected_move(method_of(parts), data, 3000)
    split = data.split("train")
    x = np.append(split.X[:1].toarray()[0], 1)
    own = split.label_sets.of_rows(slice(0, 1))
    lists = LabelLists(own.starts, own.classes, positives == "mean")
    q = np.zeros((1, K)) if log_q is None else np.asarray(log_q, float)

    def loss(scores):
        samples = np.zeros(1, np.int64)
        return loss_block(fitted_objective, lists, np.zeros((own.classes.size, 0)), samples, scores[None].copy(), q)[
            0
        ]

    scores, step = (W @ x).astype(float), 1e-5 * np.eye(K)
    slopes = np.array([(loss(scores + e) - loss(scores - e)) / 2e-5 for e in step])
    exact = slopes[:, None] * x
    assert (np.abs(mean - exact) <= 5 * error + 1e-3 * np.abs(exact).max()).all()


@pytest.mark.long_cases
@pytest.mark.parametrize("proposal", ["search", "clustered-search", "found-and-uniform"])
def test_a_label_of_the_row_is_never_a_negative(data, proposal):
    settings = {"objective": "hinge", "optimizer": "sgd", "proposal": {"name": proposal, "n_sampled": 2}}
    method, split = method_of(settings), data.split("train")
    training_set = TrainingSet(split.X, split.y, K, label_sets=split.label_sets, n_sampled=method.n_sampled)
    solver = make_solver(method, method.objective, fitted(method.proposal, training_set), training_set, ThreadPool())
    for i in range(40):
        before = solver.weights().copy()
        solver.advance(np.array([i]), 0, i, 0.1)
        change = (solver.weights() - before)[:, -1]  # of biases: up for labels, down for others
        own = split.label_sets.of_rows(slice(i, i + 1)).classes
        assert (change[own] >= 0).all()
        assert (np.delete(change, own) <= 0).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": {"size": 4}}, "batch has size 4"),
        (
            {
                "objective": "double-sum",
                "optimizer": "implicit",
                "proposal": {"name": "uniform", "n_sampled": 3},
            },
            "one drawn class",
        ),
    ],
)
def test_what_takes_one_label_only_is_refused(data, change, said):
    with pytest.raises(InputError, match=said):
        fit(data, method_of(METHODS["one-vs-each uniform"] | change), 0, Plan(epochs=1))
