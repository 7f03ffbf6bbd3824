"""What every combination of objective, proposal and optimizer must do; a new file is tested when it exists."""

from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

import naive
import xsoftmax.training.fit as fit_module
from covering import covering
from kernels.layouts import laid_out
from kernels.loops import run_steps
from objectives import one_step
from training.interruptions import CountChunks, KillAfter, KilledError
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.likelihood import evaluate, score_rows
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.full_softmax import loss_block
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import AXES, build_method
from xsoftmax.model import load_model, save_model
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.sampled import solves_batches
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

K, D, EPOCHS = 6, 10, 12
PARAMETERS = {
    # A tree that finds the true class by itself leaves nothing to learn, and 1 / q of the others without bound.
    "tree": {"dimension": 2, "regularizer": 10.0},
    "all": {"batch_size": 16},
    "head": {"n_head": 2},
    "found-and-uniform": {"n_found": 2},
    # A class whose score is about 0 is drawn once in K alpha s^2 draws, and weighs as much.
    "quadratic-kernel": {"alpha": 1.0},
    "one-vs-each-joint": {"n_joint": 2},
    # Its rate is for gradients of the sum over all samples.
    "advi": {"learning_rate": 1.0, "gradient_scale": 10.0},
}


# What learns little from a single draw.
N_SAMPLED = {"sampled-softmax": 5, "importance-sampling": 5}


def method_of(names, **changes):
    settings = {axis: {"name": name} | PARAMETERS.get(name, {}) for axis, name in zip(AXES, names, strict=True)}
    if names[0] in N_SAMPLED and names[1] != "all":
        settings["proposal"]["n_sampled"] = N_SAMPLED[names[0]]
    for axis, parameters in changes.items():
        settings[axis] |= parameters
    return build_method("-".join(names), settings)


def fits_together(names):
    try:
        method_of(names)
    except InputError:
        return False
    return True


# Those come first, and so are chosen first, of which the other tests compile the most.
COMBINATIONS = sorted(
    (names for names in product(*(registry.names(package) for package in AXES.values())) if fits_together(names)),
    key=lambda names: (names[2] != "sgd", names[1] != "frequency"),
)
FEW = covering(COMBINATIONS, 1)
# Rows are nothing to an objective: of the few, those whose proposals and optimizers are all there are.
LOOPS = [next(n for n in FEW if n[1:] == loop) for loop in covering([names[1:] for names in FEW], 1)]
SOONER = [*((*names, "dense") for names in FEW), *((*names, "csr") for names in LOOPS[:2])]
LATER = covering([(*names, storage) for names in COMBINATIONS for storage in ("dense", "csr")], 2, SOONER)
every_case = pytest.mark.parametrize(
    ("names", "storage"),
    [pytest.param(case[:3], case[3], id=" ".join(case)) for case in SOONER]
    + [pytest.param(case[:3], case[3], id=" ".join(case), marks=pytest.mark.slow) for case in LATER],
)


def in_both_storages():
    """Combinations of all members; those of every proposal and optimizer that go together."""
    of_loop = {case[1:3]: case[:3] for case in (*LATER, *SOONER)}
    later = [of_loop[loop] for loop in covering(list(of_loop), 2, [names[1:] for names in FEW])]
    return [pytest.param(n, marks=[pytest.mark.slow] * (n not in LOOPS), id=" ".join(n)) for n in (*FEW, *later)]


def test_there_are_combinations_of_every_member():
    for axis, package in enumerate(AXES.values()):
        assert {names[axis] for names in COMBINATIONS} == set(registry.names(package))
        assert {names[axis] for names in FEW} == set(registry.names(package))


def test_every_two_members_that_go_together_are_trained():
    for axes in combinations(range(3), 2):
        assert {tuple(n[axis] for axis in axes) for n in COMBINATIONS} == {
            tuple(case[axis] for axis in axes) for case in (*SOONER, *LATER)
        }


def separable():
    """Rows of unit length around centres far apart, with many zeros."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(K), rng.choice(K, 354, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])])
    X = (3 * np.eye(K, D)[y] + 0.3 * rng.standard_normal((y.size, D))) * (rng.random((y.size, D)) < 0.7)
    X[np.arange(y.size), y] = 3
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y.astype(np.int32)


@pytest.fixture(scope="session")
def files(prepare):
    rows = {"n_validation": 40, "n_test": 60}
    return {storage: prepare(*separable(), K, **rows, sparse=storage == "csr") for storage in ("dense", "csr")}


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 17 steps, or of two minibatches, so that an epoch has several."""

    def make(method, *arguments):
        solver = make_solver(method, *arguments)
        if method.proposal.draws:
            solver.chunk = 17
        elif method.optimizer.needs != "full_gradient":
            solver.chunk = 2 * method.proposal.batch_size
        return solver

    monkeypatch.setattr(fit_module, "make_solver", make)


def trained(path, method, seed=0, proposal=None, callbacks=(), **plan):
    with open_prepared(path) as data:
        return fit(data, method, seed, Plan(**({"epochs": EPOCHS} | plan)), proposal, callbacks=callbacks)


@pytest.fixture(scope="session")
def once(files):
    """Fits with seed 0, by combination and storage."""
    return cache(lambda names, storage: trained(files[storage], method_of(names)))


def curve(result):
    """History without times."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in result.state.history]


def assert_same(one, other):
    assert one.model is not None
    assert np.array_equal(one.model.rows, other.model.rows)
    assert curve(one) == curve(other)
    assert one.state.step == other.state.step


@every_case
def test_learns_separable_data(names, storage, once, files):
    result = once(names, storage)
    assert result.state.status == "finished"
    first, last = result.state.history[0], result.state.history[-1]
    assert first["epoch"] == 0
    assert last["test_accuracy"] >= 0.95
    assert last["test_log_likelihood"] > first["test_log_likelihood"] + 0.3
    assert last["objective"] < first["objective"]
    with open_prepared(files[storage]) as data:
        test = data.split("test")
    found = evaluate(result.model, test.X, test.y)
    assert {key: last[f"test_{key}"] for key in found} == found
    if result.model.link != "softmax":  # its likelihood is for tests/evaluation/test_links.py
        return
    s = naive.scores(
        np.asarray(test.X if storage == "dense" else test.X.todense()), result.model.rows, result.model.bias
    )
    if result.model.correction is not None and (log_q := result.model.correction.log_q(test.X, 0, K)) is not None:
        s = s + log_q
    assert found["log_likelihood"] == pytest.approx(naive.log_likelihood(s, test.y), abs=1e-5)


@pytest.mark.long_cases
@pytest.mark.parametrize("names", in_both_storages())
def test_dense_rows_equal_sparse_rows(names, files):
    """Up to the order of float32 sums, which grows with the steps; Adagrad amplifies it where gradients vanish.

    One tree for both: features of sparse rows are not standardised before a tree looks at them.
    """
    method = method_of(names)
    with open_prepared(files["dense"]) as data:
        rows = data.split("train")
    tree = method.proposal.fit(TrainingSet(rows.X, rows.y, K)) if names[1] == "tree" else None
    dense, sparse = (trained(files[storage], method, epochs=1, proposal=tree) for storage in ("dense", "csr"))
    assert np.allclose(sparse.model.rows, dense.model.rows, rtol=1e-3, atol=1e-3)
    for one, other in zip(curve(dense), curve(sparse), strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3)


@every_case
def test_same_seed_same_bits_other_seed_other_bits(names, storage, files, once):
    result, path = once(names, storage), files[storage]
    assert_same(result, trained(path, method_of(names)))
    if method_of(names).optimizer.needs != "full_gradient":  # a full gradient has no randomness
        assert not np.array_equal(result.model.rows, trained(path, method_of(names), seed=1, epochs=1).model.rows)
        assert not np.array_equal(result.model.rows, trained(path, method_of(names), seed=1).model.rows)


@every_case
def test_interrupted_and_resumed_equals_uninterrupted(names, storage, files, tmp_path, small_chunks):
    """Killed twice at a random chunk, before it is checkpointed, with early stopping's best weights kept."""
    method, plan = method_of(names), {"epochs": 4, "patience": 50, "at": (1.0, 2.5, 3.0)}
    path = files[storage]
    whole = trained(path, method, **plan)
    rng = np.random.default_rng(sum(map(ord, "".join(names))))
    kept = {"checkpoint": tmp_path / "kept.h5", "checkpoint_seconds": 0.0}
    n_chunks = 4 if method.optimizer.needs == "full_gradient" else 12
    for _ in range(2):
        killing = [KillAfter(int(rng.integers(2, n_chunks // 2 + 1)))]
        with pytest.raises(KilledError):
            trained(path, method, callbacks=killing, **plan, **kept)
    of_resumed, of_whole = CountChunks(), CountChunks()
    resumed = trained(path, method, callbacks=[of_resumed], **plan, **kept)
    assert_same(whole, trained(path, method, callbacks=[of_whole], **plan))
    assert 0 < of_resumed.n_chunks < of_whole.n_chunks  # it did not begin anew
    assert_same(whole, resumed)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.h5"]  # nothing half written


@every_case
def test_survives_save_and_load(names, storage, once, tmp_path):
    result = once(names, storage)
    save_model(replace(result.model, attributes={"status": "finished"}), tmp_path / "model.h5")
    loaded = load_model(tmp_path / "model.h5")
    X = separable()[0][-60:]
    y = separable()[1][-60:]
    before, after = score_rows(result.model, X, y), score_rows(loaded, X, y)
    assert np.array_equal(before.log_likelihood, after.log_likelihood)
    assert np.array_equal(before.rank, after.rank)
    assert (loaded.correction is not None) == method_of(names).objective.adds_log_q


@every_case
def test_two_classes_and_one_row(names, storage, dataset):
    """The smallest problems there are."""
    two = dataset([[1, 0], [0, 1], [1, 0.5]], [0, 1, 0], 2, sparse=storage == "csr")
    one = dataset([[1, 0]], [1], 2, sparse=storage == "csr")
    for data in (two, one):
        result = fit(data, method_of(names), 0, Plan(epochs=2))
        assert result.state.status == "finished"
        assert np.isfinite(result.model.rows).all()


@every_case
def test_rows_without_features_give_class_frequencies(names, storage, dataset):
    """Biases alone: the softmax's optimum is the frequencies."""
    y = np.repeat(np.arange(4), [40, 20, 10, 10])
    data = dataset(np.zeros((80, 0)), y, 4, sparse=storage == "csr")
    method = method_of(names)
    result = fit(data, method, 0, Plan(epochs=30))
    entropy, even = -naive.log_likelihood(np.tile(np.log([40, 20, 10, 10]), (80, 1)), y), np.log(4)
    if method.objective.link == "sigmoid":  # four yes-or-no questions
        entropy, even = (
            sum(-p * np.log(p) - (1 - p) * np.log(1 - p) for p in (0.5, 0.25, 0.125, 0.125)),
            4 * np.log(2),
        )
    found = -result.state.history[-1]["train_log_likelihood"]
    assert entropy - 1e-6 <= found < even + 0.1


@every_case
def test_a_model_without_biases_has_none(names, storage, files):
    settings = method_of(names).settings | {"bias": False}
    result = trained(files[storage], build_method("no-bias", settings), epochs=1)
    assert not result.model.rows[:, -1].any()
    assert result.model.rows[:, :-1].any()


# What claims to be unbiased is.

DRAWING = list(dict.fromkeys(names[:2] for names in COMBINATIONS if method_of(names).proposal.draws))
N_DRAWS = 100_000
KEY = np.uint64(stream(7, 0))
# Objectives whose variables follow the draws of the step itself are unbiased as these follow slowly.
UNBIASED_WITH = {
    "negative-sampling": {"regularizer": 0.05},
    "nce": {"regularizer": 0.05, "noise_ratio": 2.0},
    "sox": {"averaging": 1e-3},
    "scent": {"averaging": 1e-3},
    "augment-reduce": {"local_rate": 1e-6},
    "augment-reduce-probit": {"local_rate": 0.0},
    "augment-reduce-logistic": {"local_rate": 0.0},
}


def adapted(member, X, y, W):
    """The kernel of a proposal that has looked at these weights, if it is one that does."""
    fitted = member.proposal.fit(TrainingSet(X, y, K))
    if member.proposal.adaptive:
        fitted.refresh(laid_out(Sgd(), W))
    return fitted.kernel(X)


def for_copies(member, X, y, i, W):
    """The kernel for copies of row i, as ``mean_coefficients`` has them, with a constant feature at their end."""
    if member.proposal.adaptive:
        wide = np.column_stack([X, np.ones_like(y)]).astype(np.float32)
        return adapted(member, wide, y, np.column_stack([W, np.zeros(K)]))
    return member.proposal.fit(TrainingSet(X, y, K)).kernel(one_step.copies_of(X[i]))


def settled(objective, kernel, X, y, i, W, n_sampled):
    """What the objective keeps per sample, once row i was visited often; weights do not move."""
    auxiliary = objective.initial_auxiliary(len(y), K) if objective.n_auxiliary else np.zeros((len(y), 0))
    order, layout = np.full(5000, i), laid_out(Sgd(), W)
    arguments = (auxiliary, layout, order, Clock(KEY, 0, 0), one_step.RATE, n_sampled)
    run_steps(objective, kernel, Sgd(), features_of(X, True), y, *arguments)
    return auxiliary


def exact_coefficients(objective, s, y, state, log_q):
    """Slopes by all scores of the objective's own loss over all classes, by finite differences in float64.

    That the loss is what its paper says is for tests/objectives.
    """

    def value(scores):
        labels, samples = np.array([y], np.int32), np.zeros(1, np.int64)
        return loss_block(objective, labels, state[None].copy(), samples, scores[None].copy(), log_q[None])[0]

    step = 1e-5 * np.eye(len(s))
    return np.array([(value(s + e) - value(s - e)) / 2e-5 for e in step])


CLAIMING = [
    pair
    for pair in DRAWING
    if method_of((*pair, "sgd")).objective.target != "nothing" and not method_of((*pair, "sgd")).proposal.finds
]
CLAIMING_SOONER = covering(CLAIMING, 1)


@pytest.mark.long_cases
@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, marks=[pytest.mark.slow] * (pair not in CLAIMING_SOONER), id=" ".join(pair))
        for pair in CLAIMING
    ],
)
def test_expected_steps_are_exact_gradients(pair):
    """Over all other classes, or for a mean under the proposal, over all classes, the true one included."""
    objective, proposal = pair
    X, y = separable()
    W = (0.7 * np.random.default_rng(5).standard_normal((K, D + 1))).astype(np.float32)
    for n_sampled in (1, 3):
        changes = {"objective": UNBIASED_WITH.get(objective, {}), "proposal": {"n_sampled": n_sampled}}
        member = method_of((objective, proposal, "sgd"), **changes)
        fitted, of = member.proposal.fit(TrainingSet(X, y, K)), member.objective.fit(TrainingSet(X, y, K))
        kernel, log_q = adapted(member, X, y, W), fitted.log_q(X, 0, K) if member.proposal.distribution else None
        for i in (int(np.flatnonzero(y == 0)[3]), int(np.flatnonzero(y == 5)[2])):
            s = naive.scores(X, W)[i]
            row_q = np.full(K, -np.log(K)) if log_q is None else np.broadcast_to(log_q, (len(y), K))[i].astype(float)
            auxiliary = settled(of, kernel, X, y, i, W, n_sampled)
            drawn_from = for_copies(member, X, y, i, W)
            arguments = (Sgd(), X[i], y[i], auxiliary[i], W, N_DRAWS, n_sampled)
            mean, error = one_step.mean_coefficients(of, drawn_from, *arguments)
            exact = exact_coefficients(of, s, y[i], auxiliary[i], row_q)
            assert (np.abs(mean - exact) <= 5 * error + 1e-4).all(), (mean - exact) / error
            assert error.max() < 0.1


def best_state(objective, s, y):
    """The state, the first of its variables at its best for these scores of all classes."""
    state = objective.initial_auxiliary(1, K)[0]

    def value(u):
        moved, labels = np.concatenate([[u], state[1:]])[None], np.array([y], np.int32)
        return loss_block(objective, labels, moved, np.zeros(1, np.int64), s[None].copy(), np.zeros((1, K)))[0]

    state[0] = minimize_scalar(value, bracket=(0.0, 5.0), tol=1e-10).x
    return state


OWN_OPTIMIZERS = [
    names
    for names in COMBINATIONS
    if method_of(names).optimizer.needs in ("raise_bound", "proximal") and not method_of(names).proposal.finds
]


@pytest.mark.long_cases
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n not in covering(OWN_OPTIMIZERS, 1)), id=" ".join(n))
        for n in OWN_OPTIMIZERS
    ],
)
def test_expected_steps_of_guarded_and_implicit_steps(names):
    """At the best u, where no guard lifts it, and at a low rate for implicit steps: the gradient of the target."""
    X, y = separable()
    W = (0.7 * np.random.default_rng(5).standard_normal((K, D + 1))).astype(np.float32)
    member, data = method_of(names), TrainingSet(X, y, K)
    if solves_batches(member):  # has a loop of its own: tests/kernels/test_implicit_batch.py
        return
    of, i = member.objective.fit(data), int(np.flatnonzero(y == 5)[2])
    kernel, s = for_copies(member, X, y, i, W), naive.scores(X, W)[i]
    state = best_state(of, s, y[i]) if of.n_auxiliary else np.zeros(0)
    mean, error = one_step.mean_coefficients(of, kernel, member.optimizer, X[i], y[i], state, W, N_DRAWS)
    exact = exact_coefficients(of, s, y[i], state, np.zeros(K))
    assert of.target != "softmax" or np.allclose(exact, naive.softmax(s, y[i])[1], atol=1e-5)
    assert (np.abs(mean - exact) <= 5 * error + 1e-4).all()
    assert error.max() < 0.05


@pytest.mark.parametrize("name", registry.names(AXES["objective"]))
def test_what_is_unbiased_for_the_softmax_has_its_value_and_slopes(name):
    """Over all classes, and at the best value of its variable, the first if there are several."""
    objective = next(method_of(names).objective for names in COMBINATIONS if names[0] == name)
    if objective.target != "softmax":
        return
    rng, log_q = np.random.default_rng(3), np.full(K, -np.log(K))
    for y in range(K):
        s = 2 * rng.standard_normal(K)
        state = best_state(objective, s, y) if objective.n_auxiliary else np.zeros(0)
        loss, slopes = naive.softmax(s, y)
        arguments = (np.array([y], np.int32), state[None].copy(), np.zeros(1, np.int64), s[None].copy(), log_q[None])
        assert loss_block(objective, *arguments)[0] == pytest.approx(loss, rel=1e-7)
        assert np.allclose(exact_coefficients(objective, s, y, state, log_q), slopes, atol=1e-5)


@pytest.mark.parametrize(
    "proposal",
    [
        pytest.param(proposal, marks=[pytest.mark.slow] * (proposal != "frequency"))
        for proposal in sorted({proposal for objective, proposal in DRAWING if objective == "double-sum"})
    ],
)
def test_the_expected_move_of_u_is_exact(proposal):
    X, y = separable()
    W = (0.7 * np.random.default_rng(5).standard_normal((K, D + 1))).astype(np.float32)
    member = method_of(("double-sum", proposal, "sgd"), proposal={"n_sampled": 3})
    features, kernel = features_of(X, True), adapted(member, X, y, W)
    i, u, moves = 11, 1.3, []
    for position in range(30_000):
        auxiliary = np.full((len(y), 1), u)
        clock = Clock(np.uint64(stream(7, 0)), position, 0)
        arguments = (auxiliary, laid_out(Sgd(), W), np.array([i]), clock, np.float32(1e-3), 3)
        run_steps(member.objective, kernel, Sgd(), features, y, *arguments)
        moves.append((u - auxiliary[i, 0]) / 1e-3)
    exact = naive.double_sum(naive.scores(X, W)[i], y[i], u)[2]
    assert abs(np.mean(moves) - exact) <= 5 * np.std(moves) / np.sqrt(30_000) + 1e-5


@pytest.mark.parametrize("names", in_both_storages())
def test_sparse_and_dense_rows_draw_the_same_classes(names):
    """One step from zero weights has no sums to reorder: the same bits in all but the tree's projection."""
    X, y = separable()
    method = method_of(names)
    if not method.proposal.draws or names[1] == "tree":
        return
    after = []
    for rows in (X, csr_array(X)):
        data = TrainingSet(rows, y, K)
        solver = make_solver(method, method.objective.fit(data), method.proposal.fit(data), data)
        solver.advance(np.array([3]), 0, 5, 0.1)
        after.append(solver.weights())
    assert np.array_equal(*after)


# Bounds are bounds, and nothing breaks.


@pytest.mark.parametrize("name", registry.names(AXES["objective"]))
def test_bounds_never_exceed_the_exact_log_likelihood(name):
    """Objectives that are unbiased for the softmax, or for a bound of it, at any value of their variables."""
    objective = next(method_of(names).objective for names in COMBINATIONS if names[0] == name)
    if objective.target not in ("softmax", "bound") or objective.link != "softmax":
        return
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=200).astype(np.int32)
    objective = objective.fit(TrainingSet(np.zeros((200, 0), np.float32), y, K))
    s = rng.standard_normal((200, K)) * 10 ** rng.uniform(-2, 2, (200, 1))
    auxiliary = objective.initial_auxiliary(200, K) if objective.n_auxiliary else np.zeros((200, 0))
    auxiliary = auxiliary + 2 * rng.standard_normal(auxiliary.shape)
    losses = loss_block(objective, y, auxiliary, np.arange(200), s.copy(), np.zeros((1, 1)))
    exact = -naive.log_probabilities(s)[np.arange(200), y]
    assert (losses >= exact - 1e-9 * np.abs(exact) - 1e-9).all()


def hard():
    """Rows a thousand times longer than others, a row of zeros, and a class with one row."""
    X, y = separable()
    X[20:30] *= 1000
    X[30] = 0
    y[y == 5], y[40] = 4, 5
    return X, y


@every_case
@pytest.mark.parametrize("rate", [1.0, 1e5])
def test_hard_data_and_high_rates_give_finite_weights_or_divergence(names, storage, rate, dataset):
    method = method_of(names)
    if method.optimizer.needs != "full_gradient":  # L-BFGS finds the length of its steps
        method = method_of(names, optimizer={"learning_rate": rate})
    result = fit(dataset(*hard(), K, n_test=30, sparse=storage == "csr"), method, 0, Plan(epochs=2))
    if result.state.status == "diverged":
        assert result.model is None
        assert "lower learning_rate" in result.state.message
    else:
        assert np.isfinite(result.model.rows).all()


@every_case
def test_one_class_in_the_training_rows(names, storage, dataset):
    """All rows of one class, of three: nothing to learn from, and nothing breaks."""
    result = fit(dataset(np.eye(5, 4), np.ones(5), 3, sparse=storage == "csr"), method_of(names), 0, Plan(epochs=2))
    assert result.state.status in ("finished", "diverged")
    assert result.model is None or np.isfinite(result.model.rows).all()
