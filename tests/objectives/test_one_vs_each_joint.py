"""One-vs-each with joint classes: from one-vs-each to the softmax, its classes, its draws, its optima."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import naive
import naive_bounds
from objectives.one_sample import evaluate, slopes_of
from training.problems import method, rows
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.objectives.one_vs_each_joint import JointClasses, OneVsEachJoint
from xsoftmax.proposals import TrainingSet
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan


def joint_of(together, n_classes):
    mask = np.zeros(n_classes, np.bool_)
    mask[list(together)] = True
    return JointClasses(mask)


def wild(n, seed=0, largest=2.0):
    """Scores of 2 to 20 classes, a class, and a set of classes that may hold it."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_classes = int(rng.integers(2, 21))
        s = rng.standard_normal(n_classes) * 10 ** rng.uniform(-2, largest)
        together = set(np.flatnonzero(rng.random(n_classes) < rng.random()).tolist())
        yield s, int(rng.integers(n_classes)), together


def test_loss_and_slopes_are_equation_6():
    with_true = 0
    for s, y, together in wild(1000):
        found = evaluate(joint_of(together, len(s)), s, y)
        value, slopes = naive_bounds.joint(s, y, together)
        assert found.loss == pytest.approx(value, rel=1e-11, abs=1e-12)
        assert np.allclose(found.slopes, slopes, rtol=1e-9, atol=1e-12)
        with_true += y in together
    assert 100 < with_true < 900


def test_float32_scores_give_slopes_to_float32():
    for s, y, together in wild(1000, seed=1, largest=1.0):
        s = s.astype(np.float32)
        found = evaluate(joint_of(together, len(s)), s, y, dtype=np.float32)
        value, slopes = naive_bounds.joint(s.astype(float), y, together)
        assert found.slopes.dtype == np.float32
        assert found.loss == pytest.approx(value, rel=1e-5, abs=1e-5)
        assert np.allclose(found.slopes, slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [0, 1, 2])
@pytest.mark.parametrize("together", [(), (0, 1), (1, 2), (0, 1, 2)])
def test_scores_far_apart_are_safe(dtype, y, together):
    s = np.array([1e4, 0.0, -1e4])
    found = evaluate(joint_of(together, 3), s, y, dtype=dtype)
    value, slopes = naive_bounds.joint(s, y, together)
    assert found.loss == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert np.allclose(found.slopes, slopes, atol=1e-12)


def training_set(counts):
    y = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    return TrainingSet(np.zeros((len(y), 0), np.float32), y, len(counts))


def test_the_classes_are_the_most_frequent_the_lower_first_among_equals():
    counts = [3, 5, 1, 5, 0, 3, 5]
    for n_joint in range(9):
        joint = OneVsEachJoint(float(n_joint)).fit(training_set(counts))
        assert set(np.flatnonzero(joint.joint).tolist()) == naive_bounds.most_frequent(counts, n_joint)


def test_the_bound_tightens_from_one_vs_each_to_the_softmax():
    """With every class that joins; never above the likelihood; equal to both ends at the ends."""
    rng, counts = np.random.default_rng(2), [3, 5, 1, 5, 2, 3, 5]
    objectives = [OneVsEachJoint(float(n)).fit(training_set(counts)) for n in (*range(8), 1000)]
    tighter = 0
    for _ in range(300):
        s, y = rng.standard_normal(7) * 10 ** rng.uniform(-2, 2), int(rng.integers(7))
        losses = [evaluate(objective, s, y).loss for objective in objectives]
        exact = naive.softmax(s, y)[0]
        slack = 1e-11 * (1 + losses[0])
        assert losses[0] == pytest.approx(naive.one_vs_each(s, y)[0], rel=1e-12, abs=1e-14)
        assert losses[7] == pytest.approx(exact, rel=1e-10, abs=1e-12)
        assert losses[8] == losses[7]
        assert min(losses) >= exact - slack
        assert (np.diff(losses) <= slack).all()
        tighter += (np.diff(losses[:8]) < -1e-6 * losses[0]).sum() >= 4
    assert tighter > 100


def test_one_class_of_two_says_nothing_new():
    """K = 2: one-vs-each, the softmax, and all between are one."""
    for together in ((), (0,), (1,), (0, 1)):
        found = evaluate(joint_of(together, 2), [0.3, -1.2], 0)
        assert found.loss == pytest.approx(naive.softmax([0.3, -1.2], 0)[0], rel=1e-13)


@pytest.mark.parametrize("y", [1, 4])
def test_draws_of_the_rest_give_the_exact_slopes_in_the_mean(y):
    """All of C for certain, one of the others drawn: the mean over every draw, weighted by its probability."""
    rng, together, n_classes = np.random.default_rng(3), {1, 3, 6}, 8
    s, objective = 2 * rng.standard_normal(n_classes), joint_of(together, n_classes)
    others = [k for k in range(n_classes) if k not in together]
    q = rng.dirichlet(np.ones(len(others)))
    mean = np.zeros(n_classes)
    for k, probability in zip(others, q, strict=True):
        classes = [*sorted(together), k]
        weights = [float(c != y) for c in sorted(together)] + [(k != y) / probability]
        found = slopes_of(objective, s, y, classes, weights)
        mean += probability * found
    assert np.allclose(mean, naive_bounds.joint(s, y, together)[1], rtol=1e-9, atol=1e-12)


# With other parts.


def joint_method(n_joint, proposal="all", optimizer="lbfgs", **others):
    return method({"name": "one-vs-each-joint", "n_joint": n_joint}, proposal, optimizer, **others)


def test_a_fraction_of_a_class_is_refused():
    with pytest.raises(InputError, match=r"n_joint is 1\.5; set it to a whole number of classes, 0 for one-vs-each"):
        joint_method(1.5)


def test_draws_that_may_miss_a_joint_class_are_refused():
    message = (
        "one-vs-each-joint has n_joint 10, proposal {} is sure to look at {} classes; take proposal head with n_head"
    )
    for proposal in ("uniform", "frequency", "tree"):
        with pytest.raises(InputError, match=message.format(proposal, 0)):
            joint_method(10, proposal, "sgd")
        joint_method(0, proposal, "sgd")  # one-vs-each
    with pytest.raises(InputError, match=message.format("head", 9)):
        joint_method(10, {"name": "head", "n_head": 9}, "sgd")
    assert joint_method(10, {"name": "head", "n_head": 10}, "sgd").objective.n_joint == 10


# In training.


@pytest.fixture(scope="module")
def digits(prepare):
    X, y = load_digits(return_X_y=True)
    return prepare((X / 16).astype(np.float32), y, 10)


@pytest.mark.slow
def test_lbfgs_meets_one_vs_eachs_optimum_found_elsewhere(digits):
    """scipy's minimizer on the naive objective; to 1e-5 of the value."""
    l2 = 1.0
    with open_prepared(digits) as data:
        train, results = data.split("train"), []
        for objective in ("one-vs-each", {"name": "one-vs-each-joint", "n_joint": 0}):
            chosen = method(objective, "all", {"name": "lbfgs", "tolerance": 1e-7}, l2=l2)
            results.append(fit(data, chosen, 0, Plan(epochs=3000)))
    X, y = train.X.astype(float), train.y
    W, best = naive_bounds.one_vs_each_optimum(X, y, 10, l2)
    for result in results:
        assert result.state.message.startswith("converged")
        found = naive_bounds.one_vs_each_objective(X, y, result.model.rows.astype(float), l2)[0]
        assert found == pytest.approx(best, rel=1e-5)
        assert result.state.history[-1]["objective"] == pytest.approx(best, rel=1e-5)
        assert np.allclose(centred_scores(X, W), centred_scores(X, result.model.rows), atol=0.01)


def centred_scores(X, W):
    W = np.asarray(W, float)
    return naive.scores(X, W - W.mean(axis=0))


def test_optima_go_from_one_vs_each_to_the_softmax(digits):
    """The likelihood at the optimum comes near the softmax's as classes join, and meets it with all."""
    values = {}
    with open_prepared(digits) as data:
        softmax = fit(data, method("softmax", "all", "lbfgs", l2=1.0), 0, Plan(epochs=1000))
        for n_joint in (0, 5, 10):
            result = fit(data, joint_method(n_joint, l2=1.0), 0, Plan(epochs=1000))
            values[n_joint] = result.state.history[-1]["objective"]
    exact = softmax.state.history[-1]["objective"]
    assert values[0] > 1.01 * values[5] > 1.01**2 * values[10]
    assert values[10] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "rate", "sparse"),
    [("sgd", 10.0, False), pytest.param("adagrad", 1.0, True, marks=pytest.mark.slow)],
)
def test_minibatches_come_near_the_optimum(optimizer, rate, sparse, prepare):
    X, y = rows(1500)
    with open_prepared(prepare(X, y, 8, n_test=300, sparse=sparse)) as data:
        schedule = {"name": "exponential", "decay": 0.97}
        chosen = joint_method(3, "all", {"name": optimizer, "learning_rate": rate}, schedule=schedule)
        result = fit(data, chosen, 0, Plan(epochs=100))
        best = fit(data, joint_method(3), 0, Plan(epochs=1000))
    first, last = result.state.history[0], result.state.history[-1]
    assert last["test_accuracy"] > first["test_accuracy"] + 0.3
    optimum = best.state.history[-1]["objective"]
    assert optimum - 1e-6 < last["objective"] < 1.01 * optimum < first["objective"] / 2


@pytest.mark.slow
def test_draws_with_a_head_come_near_the_same_optimum(prepare):
    X, y = rows(1500)
    with open_prepared(prepare(X, y, 8)) as data:
        chosen = joint_method(
            3, {"name": "head", "n_head": 4}, {"name": "adagrad", "learning_rate": 1.0},
            schedule={"name": "exponential", "decay": 0.97},
        )  # fmt: skip
        result = fit(data, chosen, 0, Plan(epochs=150))
        best = fit(data, joint_method(3), 0, Plan(epochs=1000))
    optimum = best.state.history[-1]["objective"]
    assert optimum - 1e-6 < result.state.history[-1]["objective"] < 1.02 * optimum
