"""Fits behind a table: gradients against differences of a loss written here, steps against numpy, files, resuming."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp

from training.problems import curve, method
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model, load_model, save_model
from xsoftmax.proposals import TrainingSet, fitted
from xsoftmax.solvers import make_solver
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import estimate
from xsoftmax.training.plan import Plan

K, D, H = 5, 12, 3
STORAGES = {"dense": np.asarray, "csr": csr_array}
PLAN = Plan(epochs=3, at=(1, 2))
# Uniform draws of all other classes are all of them: steps along exact gradients.
EXACT = {"name": "uniform", "n_sampled": K - 1}
ALL = {"name": "all", "batch_size": 1}
BEHIND = {"dimension": H}


def rows(n, seed=0, signs=False):
    """Rows with zeros among their entries, the last without any other."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, D)) * (rng.random((n, D)) < 0.5)
    X = X * rng.choice([-1, 1], X.shape) if signs else X
    X[-1] = 0
    return X.astype(np.float32), rng.integers(0, K, n).astype(np.int32)


def bags(n, seed=0):
    """Texts of which each has words of its class, and words of none."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    own = 2 * y[:, None] + rng.integers(0, 2, (n, 3))
    X = np.zeros((n, 4 * K))
    for i in range(n):
        np.add.at(X[i], np.concatenate([own[i], rng.integers(2 * K, 4 * K, 3)]), 1)
    return X.astype(np.float32), y


def dataset(storage="csr"):
    store, (X, y), (X_test, y_test) = STORAGES[storage], bags(300), bags(100, seed=1)
    held = (store(X_test[:50]), y_test[:50]), (store(X_test[50:]), y_test[50:])
    return Dataset.from_arrays(store(X), y, classes=range(K), validation=held[0], test=held[1])


def solver_of(chosen, X, y, pool=None, label_sets=None):
    """A solver of which weights and table begin at random."""
    data = TrainingSet(X, y, K, 3, chosen.n_sampled, label_sets=label_sets)
    solver = make_solver(chosen, chosen.objective.fit(data), fitted(chosen.proposal, data), data, pool)
    rng = np.random.default_rng(1)
    for part in solver.weights():
        part[:] = rng.standard_normal(part.shape)
    return solver


def numbers(solver):
    """W, b and the table, float64 copies."""
    W, table = (part.astype(np.float64) for part in solver.weights())
    return W[:, :-1], W[:, -1], table


def hidden(x, table):
    """The mean by a loop."""
    total, h = sum(abs(v) for v in x), np.zeros(table.shape[1])
    for d, value in enumerate(x):
        if value:
            h += value / total * table[d]
    return h


def softmax(scores, y):
    return logsumexp(scores) - scores[y]


def one_vs_each(scores, y):
    return sum(np.logaddexp(0, scores[k] - scores[y]) for k in range(K) if k != y)


LOSSES = {
    "softmax all": (softmax, "softmax", ALL),
    "softmax drawn": (softmax, "sampled-softmax", EXACT),
    "one-vs-each drawn": (one_vs_each, "one-vs-each", EXACT),
}


def differences(loss, X, y, parameters, size=1e-5):
    """Derivatives of the mean loss by each number of W, b and the table, by central differences."""

    def value():
        W, b, table = parameters
        return np.mean([loss(W @ hidden(x, table) + b, k) for x, k in zip(X, y, strict=True)])

    found = []
    for part in parameters:
        gradient = np.zeros(part.shape)
        for place in np.ndindex(part.shape):
            middle = part[place]
            part[place] = middle + size
            above = value()
            part[place] = middle - size
            gradient[place] = (above - value()) / (2 * size)
            part[place] = middle
        found.append(gradient)
    return found


@pytest.mark.long_cases
@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize(("name", "storage"), [*((name, "csr") for name in LOSSES), ("softmax drawn", "dense")])
def test_a_step_is_along_the_gradient_by_weights_biases_and_table(name, storage, signs):
    loss, objective, proposal = LOSSES[name]
    X, y = rows(4, signs=signs)
    chosen = method(objective, proposal, "sgd", encoder=BEHIND)
    for i in range(4):
        solver = solver_of(chosen, STORAGES[storage](X), y)
        before = numbers(solver)
        assert solver.advance(np.array([i]), 0, i, 0.125) == 1
        expected = differences(loss, X[i : i + 1], y[i : i + 1], before)
        for old, new, gradient in zip(before, numbers(solver), expected, strict=True):
            assert np.allclose((old - new) / 0.125, gradient, rtol=1e-4, atol=1e-5)
        assert np.abs(expected[2]).max() > 1e-3 or not X[i].any()


SETS = {
    "one-vs-each": lambda own, others: sum(np.logaddexp(0, others - s).sum() for s in own),
    "hinge": lambda own, others: sum(np.maximum(0, 1 + others - s).sum() for s in own),
    "one-vs-rest": lambda own, others: np.logaddexp(0, -own).sum() + np.logaddexp(0, others).sum(),
}


@pytest.mark.long_cases
@pytest.mark.parametrize("positives", ["mean", "sum"])
@pytest.mark.parametrize("objective", SETS)
def test_a_step_of_several_labels_is_along_the_gradient_of_all_their_losses(objective, positives):
    """Every class is looked at for certain, and labels are no negatives."""
    labels, every = np.array([1, 3]), {"name": "head", "n_head": K, "n_sampled": 1}
    share = 1 if positives == "sum" or objective == "one-vs-rest" else 1 / labels.size
    X, _ = rows(3, signs=True)
    sets = LabelSets(np.array([0, 2, 4, 6]), np.tile(labels, 3).astype(np.int32))
    chosen = method(objective, every, "sgd", encoder=BEHIND, positives=positives)
    solver = solver_of(chosen, csr_array(X), np.full(3, labels[0], np.int32), label_sets=sets)

    def loss(scores, _):
        return share * SETS[objective](scores[labels], np.delete(scores, labels))

    for i in range(3):
        before = numbers(solver)
        assert solver.advance(np.array([i]), 0, i, 0.125) == 1
        expected = differences(loss, X[i : i + 1], [None], before)
        for old, new, gradient in zip(before, numbers(solver), expected, strict=True):
            assert np.allclose((old - new) / 0.125, gradient, rtol=1e-4, atol=1e-5)
        assert np.abs(expected[2]).max() > 1e-3 or not X[i].any()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_minibatch_moves_each_row_once_along_the_mean_gradient(storage):
    X, y = rows(9, signs=True)
    chosen = method("softmax", {"name": "all", "batch_size": 9}, "sgd", encoder=BEHIND)
    solver = solver_of(chosen, STORAGES[storage](X), y)
    before = numbers(solver)
    assert solver.advance(np.arange(9), 0, 0, 0.125) == 9
    expected = differences(softmax, X, y, before)
    for old, new, gradient in zip(before, numbers(solver), expected, strict=True):
        assert np.allclose((old - new) / 0.125, gradient, rtol=1e-4, atol=1e-5)


def adagrad_by_numpy(X, y, W, b, table, rate, initial):
    """Softmax steps one by one, each number beside its own sum of squares."""
    sums = [np.full(part.shape, initial) for part in (W, b, table)]
    for x, k in zip(X, y, strict=True):
        h, total = hidden(x, table), np.abs(x).sum()
        slopes = np.exp(W @ h + b - logsumexp(W @ h + b)) - np.eye(K)[k]
        of_h = slopes @ W
        gradients = np.outer(slopes, h), slopes, np.outer(x / total if total else x, of_h)
        for part, squares, gradient in zip((W, b, table), sums, gradients, strict=True):
            squares += gradient**2
            part -= rate * gradient / np.sqrt(squares)
    return W, b, table


@pytest.mark.long_cases
@pytest.mark.parametrize("name", ["softmax all", "softmax drawn"])
def test_steps_of_adagrad_are_those_of_numpy(name):
    _, objective, proposal = LOSSES[name]
    X, y = rows(20)
    optimizer = {"name": "adagrad", "initial_accumulator": 0.5}
    solver = solver_of(method(objective, proposal, optimizer, encoder=BEHIND), csr_array(X), y)
    expected = adagrad_by_numpy(X, y, *numbers(solver), 0.25, 0.5)
    assert solver.advance(np.arange(20), 0, 0, 0.25) == 20
    for found, wanted in zip(numbers(solver), expected, strict=True):
        assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_a_row_of_one_id_moves_that_row_of_the_table_alone():
    """The case of skip-gram: h is the row itself."""
    ids = np.array([7, 2, 7])
    X, y = csr_array(np.eye(D, dtype=np.float32)[ids] * 3), np.array([0, 1, 2], np.int32)
    solver = solver_of(method("sampled-softmax", EXACT, "sgd", encoder=BEHIND), X, y)
    W, b, table = numbers(solver)
    solver.advance(np.array([0]), 0, 0, 0.5)
    scores = W @ table[7] + b
    slopes = np.exp(scores - logsumexp(scores)) - np.eye(K)[0]
    moved = numbers(solver)[2]
    assert np.allclose(moved[7], table[7] - 0.5 * slopes @ W, rtol=1e-4, atol=1e-5)
    assert np.array_equal(np.delete(moved, 7, 0), np.delete(table, 7, 0))


def test_a_frozen_identity_leaves_the_linear_model(tmp_path):
    """Rows whose entries add up to one are their own mean; draws are the same ones, too."""
    X, y = bags(60)
    X /= X.sum(axis=1, keepdims=True)
    data = Dataset.from_arrays(csr_array(X), y, classes=range(K))
    np.save(tmp_path / "identity.npy", np.eye(4 * K))
    encoder = {"dimension": 4 * K, "table": str(tmp_path / "identity.npy"), "frozen": True}
    plain, behind = (
        fit(data, method("one-vs-each", "uniform", "sgd", **others), 0, Plan(epochs=2))
        for others in ({}, {"encoder": encoder})
    )
    assert np.array_equal(behind.model.encoder, np.eye(4 * K))
    assert np.allclose(behind.model.rows, plain.model.rows, rtol=1e-3, atol=1e-4)
    for found, expected in zip(curve(behind), curve(plain), strict=True):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


SGD = {"name": "sgd", "learning_rate": 0.5}
DRAWN = {"name": "uniform", "n_sampled": 3}
CLUSTERS = {"name": "clustered-search", "n_clusters": 3, "budget": 4, "refresh": 70}
METHODS = {
    "all": ("softmax", {"name": "all", "batch_size": 16}, "adagrad", {}),
    "all, averaged": ("softmax", {"name": "all", "batch_size": 7}, SGD, {"average": "half"}),
    "drawn": ("sampled-softmax", DRAWN, "adagrad", {"calibration": "temperature"}),
    "averaged": ("one-vs-each", DRAWN, SGD, {"average": "all"}),
    "by row": (
        *("negative-sampling", {"name": "tree", "dimension": 2, "regularizer": 10.0}, "adagrad"),
        {"bias_start": "minus-log-q"},
    ),
    "a variable per sample": ("double-sum", "uniform", {"name": "u-max", "learning_rate": 0.5}, {"bias": False}),
    "implicit": ("double-sum", "uniform", {"name": "implicit", "learning_rate": 0.5}, {}),
    "found": ("hinge", "search", {"name": "sgd", "learning_rate": 0.1}, {"calibration": "temperature"}),
    "found in clusters": (
        *("sampled-softmax", {"name": "found-and-uniform", "search": CLUSTERS, "n_found": 2}, "adagrad"),
        {"average": "half"},
    ),
}


def chosen(name, **changes):
    objective, proposal, optimizer, others = METHODS[name]
    return method(objective, proposal, optimizer, **{"encoder": {"dimension": 8}} | others | changes)


@pytest.mark.long_cases
@pytest.mark.parametrize("name", METHODS)
def test_learns_from_words(name):
    result = fit(dataset(), chosen(name), 0, Plan(epochs=20))
    first, last = result.state.history[0], result.state.history[-1]
    assert result.state.status == "finished"
    assert last["test_accuracy"] >= 0.95
    assert last["test_log_likelihood"] > first["test_log_likelihood"] + 0.3
    recalls = [row["search_recall"] for row in result.state.history if "search_recall" in row]
    if name == "found":  # it looks at all classes, by the scores of rows behind the table
        assert set(recalls) == {1.0}
    if name == "found in clusters":
        assert max(recalls[1:]) > 0.9


@pytest.mark.long_cases
@pytest.mark.parametrize("name", METHODS)
def test_the_model_is_what_its_numbers_say(name, tmp_path):
    """Likelihoods and the best classes, before and after a file, against numpy."""
    data = dataset()
    model, test = fit(data, chosen(name), 0, PLAN).model, data.split("test")
    model.attributes["status"] = "finished"
    save_model(model, tmp_path / "model.h5")
    loaded = load_model(tmp_path / "model.h5")
    assert np.array_equal(loaded.encoder, model.encoder)
    assert np.array_equal(loaded.rows, model.rows)
    X = test.X.toarray()
    means = X / np.abs(X).sum(axis=1, keepdims=True)
    scores = means @ model.encoder.astype(np.float64) @ model.rows[:, :-1].T + model.rows[:, -1]
    if model.correction is not None and (log_q := model.correction.log_q(test.X, 0, K)) is not None:
        scores += log_q
    scores *= 1 if model.calibration is None else model.calibration.inverse_temperature
    expected = (scores - logsumexp(scores, axis=1, keepdims=True))[np.arange(len(test.y)), test.y]
    for rows_of in (test.X, X):
        for blocks in ({}, {"classes_at_a_time": 2, "rows_at_a_time": 7}):
            found = score_rows(loaded, rows_of, test.y, **blocks)
            assert np.allclose(found.log_likelihood, expected, atol=1e-4)
    best = np.sort(np.take_along_axis(scores, top_k(loaded, test.X, 2).classes, 1), axis=1)
    assert np.allclose(best, np.sort(scores, axis=1)[:, -2:], atol=1e-4)


@pytest.mark.long_cases
@pytest.mark.fault(
    "a killed fit with an encoder",
    happens="the table, what the optimizer keeps for it, its average and the best table come back as they were",
    user="starts it again",
    lost="nothing but the time since the last checkpoint",
)
@pytest.mark.parametrize("name", METHODS)
def test_a_stopped_fit_resumes_with_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr("xsoftmax.solvers.sampled.DEFAULT_CHUNK", 70)
    monkeypatch.setattr("xsoftmax.proposals.Adaptive.refresh_steps", 70)
    whole, stop = fit(dataset(), chosen(name), 0, PLAN), threading.Event()
    stop.set()
    broken = Plan(epochs=3, at=(1, 2), checkpoint=tmp_path / "checkpoint.h5")
    for _ in range(2):
        with pytest.raises(StoppedError):
            fit(dataset(), chosen(name), 0, broken, stop=stop)
    resumed = fit(dataset(), chosen(name), 0, broken)
    assert curve(resumed) == curve(whole)
    assert np.array_equal(resumed.model.rows, whole.model.rows)
    assert np.array_equal(resumed.model.encoder, whole.model.encoder)


def test_the_table_depends_on_the_seed_alone():
    one, same, other = (fit(dataset(), chosen("drawn"), seed, PLAN).model for seed in (0, 0, 1))
    assert np.array_equal(one.encoder, same.encoder)
    assert np.array_equal(one.rows, same.rows)
    assert not np.array_equal(one.encoder, other.encoder)


def test_all_classes_by_several_threads_give_the_same_bits():
    """More classes than a block has, so that threads share them."""
    rng = np.random.default_rng(4)
    X, y = csr_array(rows(64)[0]), rng.integers(0, 1500, 64).astype(np.int32)
    found = []
    for n_threads in (1, 3):
        data, of_all = (
            TrainingSet(X, y, 1500),
            method("softmax", {"name": "all", "batch_size": 32}, "adagrad", encoder=BEHIND),
        )
        pool = ThreadPool(n_threads)
        solver = make_solver(of_all, of_all.objective.fit(data), fitted(of_all.proposal, data), data, pool)
        assert solver.advance(np.arange(64), 0, 0, 0.5) == 64
        found.append(solver.weights())
        pool.close()
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def test_scores_that_are_not_finite_end_the_fit():
    for proposal in (EXACT, {"name": "all", "batch_size": 8}):
        objective = "sampled-softmax" if proposal is EXACT else "softmax"
        optimizer = {"name": "sgd", "learning_rate": 1e38}
        result = fit(dataset(), method(objective, proposal, optimizer, encoder=BEHIND), 0, PLAN)
        assert result.state.status == "diverged"
        assert result.model is None


def test_pruned_weights_are_behind_the_same_table():
    model = fit(dataset(), chosen("drawn", prune=0.5), 0, PLAN).model
    X, y = bags(20, seed=2)
    whole = Model(model.W.toarray(), model.class_names, model.n_features, model.b, encoder=model.encoder)
    found = score_rows(Model(model.W, model.class_names, model.n_features, model.b, encoder=model.encoder), X, y)
    assert model.W.nnz <= K * 8 // 2
    assert np.allclose(found.log_likelihood, score_rows(whole, X, y).log_likelihood, atol=1e-5)


def test_weights_behind_a_table_are_at_no_distance_from_others():
    behind = fit(dataset(), chosen("drawn"), 0, PLAN).model
    plain = fit(dataset(), method("softmax", "all", "adagrad"), 0, PLAN).model
    assert np.isnan(weight_distance(behind, plain))
    with pytest.raises(InputError, match="the reference has no weights to be compared with"):
        weight_distance(plain, behind)


def test_memory_is_that_of_the_table_and_of_weights_behind_it():
    """A million features and a million classes: 4 TB without an encoder, 0.8 GB a copy behind 100 columns."""
    X = csr_array((np.ones(50, np.float32), np.arange(50), np.arange(51)), shape=(50, 10**6))
    data = Dataset.from_arrays(X, np.arange(50), classes=range(10**6))
    for given, copies in (("adagrad", 3), ("sgd", 2)):
        needed = estimate(method("sampled-softmax", "uniform", given, encoder={"dimension": 100}), data, True)
        one = 4 * (10**6 * 101 + 10**6 * 100)
        held = needed["weights and what the optimizer keeps"] + needed["the best weights so far"]
        assert held == copies * one
        assert sum(needed.values()) < (copies + 1) * one


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": 100}, r"encoder is 100; write it as encoder: \{dimension: 100\}"),
        ({"encoder": {"dimension": 0}}, "encoder: dimension is 0; set it to 1 or more"),
        ({"encoder": {"size": 3}}, "encoder: unknown parameter 'size'"),
        ({"encoder": {"table": 7}}, "encoder: table is 7; set it to the name of a file"),
        ({"weights": "sparse"}, "encoder has dimension 3, .* and weights are sparse"),
        ({"start": "class-means"}, "encoder has dimension 3, and start is class-means"),
        ({"l2": 1.0, "optimizer": "sgd"}, "encoder has dimension 3, and l2 is 1, which would shrink"),
        ({"decay": 1.0}, "encoder has dimension 3, and decay is 1, which would shrink"),
        ({"frequency_power": 0.5}, "encoder has dimension 3, and frequency_power is 0.5"),
        ({"batch": {"size": 4}}, "encoder has dimension 3, whose table moves sample by sample, and batch has size 4"),
        (
            {"proposal": {"name": "search", "shortlist": 5}, "objective": "hinge"},
            "encoder has dimension 3, and proposal search has a shortlist",
        ),
        (
            {
                "objective": "sampled-softmax",
                "proposal": {"name": "mixture", "first": {"name": "tree"}, "second": {"name": "quadratic-kernel"}},
            },
            "encoder has dimension 3, and proposal mixture has a part that knows rows by themselves",
        ),
        (
            {"objective": "double-sum", "proposal": {"name": "uniform", "n_sampled": 2}, "optimizer": "implicit"},
            "encoder has dimension 3, and optimizer implicit solves for one drawn class",
        ),
        (
            {"objective": "softmax", "proposal": "all", "optimizer": "lbfgs"},
            "encoder has dimension 3, and optimizer lbfgs needs the gradient of all rows",
        ),
        ({"objective": "softmax", "proposal": "all", "optimizer": "u-max"}, "optimizer u-max takes single steps"),
        ({"solver": "sampled"}, "solver sampled does not train .*; take solver encoded"),
    ],
)
def test_what_does_not_go_with_an_encoder_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        method(
            **{"objective": "one-vs-each", "proposal": "uniform", "optimizer": "adagrad", "encoder": BEHIND} | changes
        )


def test_a_method_without_one_is_as_it_was():
    assert "encoder" not in method("one-vs-each", "uniform", "sgd").settings
    assert method("one-vs-each", "uniform", "sgd", encoder=None).encoder is None
    filled = method("one-vs-each", "uniform", "sgd", encoder={}).settings["encoder"]
    assert filled == {"dimension": 100, "table": "", "frozen": False}
