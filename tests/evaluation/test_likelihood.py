from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
from xsoftmax.evaluation.likelihood import evaluate, score_rows
from xsoftmax.evaluation.metrics import measure
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import FittedFrequency, Frequency
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import FittedUniform

# Scores are float32 sums, exponentials are good to 4 units in the last place, their sums are float64.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}


def model_of(W, bias=True, correction=None):
    W = np.asarray(W, np.float32)
    return Model.of_rows(W, [f"class {k}" for k in range(len(W))], W.shape[1] - 1, bias=bias, correction=correction)


def by_biases(*scores):
    """A model without features: these are its scores of all classes."""
    return model_of(np.array(scores, float)[:, None])


def no_features(n_samples):
    return np.zeros((n_samples, 0), np.float32)


def problem(n_samples=37, n_features=12, n_classes=23, spread=2.0, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.5)).astype(
        np.float32
    )
    W = (spread * rng.standard_normal((n_classes, n_features + 1))).astype(np.float32)
    return X, rng.integers(n_classes, size=n_samples).astype(np.int32), W


def expected_metrics(s, y):
    ranks = [naive.rank(row, k) for row, k in zip(s, y, strict=True)]
    return {
        "log_likelihood": naive.log_likelihood(s, y),
        "accuracy": naive.top_k_accuracy(1, ranks),
        **{f"top_{k}_accuracy": naive.top_k_accuracy(k, ranks) for k in (3, 5)},
    }


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("spread", [0.01, 2.0, 100.0])
def test_metrics_are_exact(storage, bias, spread):
    X, y, W = problem(spread=spread)
    found = evaluate(model_of(W, bias), storage(X), y)
    expected = expected_metrics(naive.scores(X, W, bias), y)
    assert {name: found.pop(name) for name in expected} == pytest.approx(expected, rel=2e-6, abs=2e-6)
    assert np.isnan(list(found.values())).all()  # those of several labels


@pytest.mark.parametrize("rows", [1, 7, 36, 37, 1000])
@pytest.mark.parametrize("classes", [1, 2, 7, 22, 23, 1000])
def test_blocks_of_any_size_give_the_same(classes, rows):
    X, y, W = problem()
    correction = Frequency().fit(TrainingSet(X, np.arange(23), 23))
    found = score_rows(model_of(W, correction=correction), X, y, classes_at_a_time=classes, rows_at_a_time=rows)
    whole = score_rows(model_of(W, correction=correction), X, y)
    assert np.allclose(found.log_likelihood, whole.log_likelihood, rtol=1e-6, atol=1e-6)
    assert np.array_equal(found.rank, whole.rank)


def test_a_uniform_correction_changes_nothing_in_blocks_either():
    X, y, W = problem()
    found = score_rows(model_of(W, correction=FittedUniform(23)), X, y, classes_at_a_time=5)
    expected = score_rows(model_of(W), X, y, classes_at_a_time=5)
    assert np.array_equal(found.log_likelihood, expected.log_likelihood)
    assert np.array_equal(found.rank, expected.rank)


def test_blocks_with_rising_and_falling_scores():
    for scores in (np.linspace(-300, 300, 50), np.linspace(300, -300, 50)):
        X, y = no_features(50), np.arange(50, dtype=np.int32)
        found = score_rows(by_biases(*scores), X, y, classes_at_a_time=4)
        expected = naive.log_probabilities(scores.astype(np.float32))
        assert np.allclose(found.log_likelihood, expected, **CLOSE)
        assert np.array_equal(found.rank, [naive.rank(scores, k) for k in range(50)])


def test_ties_count_against_the_model():
    found = score_rows(by_biases(1, 3, 3, 0, 3), no_features(5), np.arange(5, dtype=np.int32))
    assert found.rank.tolist() == [3, 2, 2, 4, 2]
    equal = score_rows(by_biases(*np.zeros(7)), no_features(7), np.arange(7, dtype=np.int32))
    assert equal.rank.tolist() == [6] * 7
    assert measure(equal, "fit")["accuracy"] == 0
    assert measure(equal, "fit")["log_likelihood"] == pytest.approx(-np.log(7), rel=1e-7)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 2}])
@pytest.mark.parametrize("where", range(4))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_punished(where, value, blocks):
    scores = [0.0, 1.0, 2.0, 3.0]
    scores[where] = value
    found = score_rows(by_biases(*scores), no_features(4), np.arange(4, dtype=np.int32), **blocks)
    assert np.isnan(found.log_likelihood).all()
    if np.isnan(value):
        assert found.rank[where] == 3
        assert all(found.rank[k] == naive.rank(scores, k) for k in range(4))


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 2}])
def test_a_class_of_probability_zero_takes_nothing(blocks):
    """Frequencies give log 0 to a class without training rows; the other classes' likelihoods stay finite."""
    correction = FittedFrequency(np.log(np.array([0.5, 1e-45, 0.5, 1e-45])).astype(np.float32))
    correction.log_probabilities[[1, 3]] = -np.inf
    model = model_of(np.zeros((4, 1)), correction=correction)
    found = score_rows(model, no_features(2), np.array([0, 2], np.int32), **blocks)
    assert np.allclose(found.log_likelihood, np.log(0.5))
    assert found.rank.tolist() == [1, 1]
    assert np.allclose(top_k(model, no_features(1), 4).probabilities, [[0.5, 0.5, 0, 0]])


def test_the_softmax_is_taken_once():
    """A log-loss below log(K - 1 + e) - 1, the least that a softmax of probabilities can reach."""
    found = evaluate(by_biases(30, *np.zeros(99)), no_features(10), np.zeros(10, np.int32))
    assert 0 <= -found["log_likelihood"] < 1e-9
    assert -found["log_likelihood"] < np.log(99 + np.e) - 1


def test_log_likelihoods_are_never_above_zero():
    X, y, W = problem(spread=30.0)
    assert (score_rows(model_of(W), X, y).log_likelihood <= 0).all()


def test_many_equal_scores_do_not_lose_the_sum():
    """A float32 sum of a hundred thousand ones and a few hundredths would be visibly wrong."""
    scores = np.concatenate([[0.0], np.full(100_000, -3.0)])
    found = evaluate(by_biases(*scores), no_features(1), np.zeros(1, np.int32))
    assert found["log_likelihood"] == pytest.approx(-np.log(1 + 1e5 * np.exp(-3)), rel=1e-7)


def test_no_rows_give_nan():
    found = evaluate(by_biases(0, 1), no_features(0), np.zeros(0, np.int32))
    assert np.isnan(list(found.values())).all()


# The correction of methods whose scores lack the proposal's log-probabilities: once, with a plus.


def test_the_frequency_correction_is_added_once():
    counts = np.array([1, 3, 6])
    correction = Frequency().fit(TrainingSet(None, np.repeat(np.arange(3), counts), 3))
    rows, y = no_features(3), np.arange(3, dtype=np.int32)
    found = score_rows(model_of(np.zeros((3, 1)), correction=correction), rows, y)
    assert np.allclose(np.exp(found.log_likelihood), counts / 10, rtol=1e-6)
    scores = np.array([2.0, 0.0, -1.0])
    found = score_rows(model_of(scores[:, None], correction=correction), rows, y)
    expected = np.exp(scores) * counts
    assert np.allclose(np.exp(found.log_likelihood), expected / expected.sum(), rtol=1e-6)
    prediction = top_k(model_of(scores[:, None], correction=correction), no_features(1), 3)
    assert np.allclose(prediction.probabilities[0], np.sort(expected / expected.sum())[::-1], rtol=1e-6)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 5, "rows_at_a_time": 10}])
def test_the_tree_correction_is_added_once(blocks):
    X, _, W = problem(n_samples=120, n_classes=11, spread=0.5)
    y = (np.arange(120) % 11).astype(np.int32)
    tree = Tree(dimension=4).fit(TrainingSet(X, y, 11))
    log_q = tree.tree.log_probability(tree.tree.project(X), 0, 11).astype(float)
    assert np.allclose(np.exp(log_q).sum(axis=1), 1, atol=1e-5)
    found = score_rows(model_of(W, correction=tree), X, y, **blocks)
    expected = naive.log_probabilities(naive.scores(X, W) + log_q)[np.arange(120), y]
    assert np.allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    alone = score_rows(Model(None, model_of(W).class_names, 12, correction=tree), X, y, **blocks)
    assert np.allclose(alone.log_likelihood, log_q[np.arange(120), y], rtol=1e-5, atol=1e-5)


# The best classes of a row.


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 3, "rows_at_a_time": 2}, {"classes_at_a_time": 1}])
@pytest.mark.parametrize("k", [1, 2, 5, 23, 100])
def test_top_k_is_a_full_sort(k, blocks):
    rng = np.random.default_rng(0)
    X, _, W = problem()
    W = np.round(W)  # so that scores are often equal
    X = rng.integers(-1, 2, X.shape).astype(np.float32)
    found = top_k(model_of(W), X, k, **blocks)
    s = naive.scores(X, W)
    assert found.classes.tolist() == [naive.best(row, k) for row in s]
    expected = np.take_along_axis(np.exp(naive.log_probabilities(s)), found.classes, axis=1)
    assert np.allclose(found.probabilities, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 40}])
def test_among_equals_the_lower_class_comes_first(blocks):
    scores = np.zeros(200)
    scores[[150, 20, 60]] = 1
    found = top_k(by_biases(*scores), no_features(2), 6, **blocks)
    assert found.classes.tolist() == [[20, 60, 150, 0, 1, 2]] * 2


def test_all_probabilities_sum_to_one():
    X, _, W = problem(spread=5)
    assert np.allclose(top_k(model_of(W), X, 23).probabilities.sum(axis=1), 1, atol=1e-12)


# Threads, and more classes than a block has.


def many_classes(n_samples=150, n_classes=2600, n_features=20):
    X, y, W = problem(n_samples, n_features, n_classes)
    model = model_of(W)
    return {
        "softmax": model,
        "frequency": replace(model, correction=Frequency().fit(TrainingSet(X, y, n_classes))),
        "tree": replace(model, correction=Tree(dimension=4).fit(TrainingSet(X, y, n_classes))),
    }, (X, y, W)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("name", ["softmax", "frequency", "tree"])
def test_threads_change_no_bit(name, storage):
    (models, (X, y, _)), rows = many_classes(), {"rows_at_a_time": 40}
    one, best = score_rows(models[name], storage(X), y, **rows), top_k(models[name], storage(X), 3, **rows)
    for n_threads in (2, 3):
        found = score_rows(models[name], storage(X), y, ThreadPool(n_threads), **rows)
        assert np.array_equal(found.log_likelihood, one.log_likelihood)
        assert np.array_equal(found.rank, one.rank)
        found = top_k(models[name], storage(X), 3, ThreadPool(n_threads), **rows)
        assert np.array_equal(found.classes, best.classes)
        assert np.array_equal(found.probabilities, best.probabilities)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("name", ["softmax", "frequency", "tree"])
def test_several_blocks_are_exact(name, storage):
    models, (X, y, W) = many_classes()
    s = naive.scores(X, W)
    if name != "softmax":
        s = s + models[name].correction.log_q(X, 0, 2600)
    found = score_rows(models[name], storage(X), y)
    assert np.allclose(found.log_likelihood, naive.log_probabilities(s)[np.arange(150), y], rtol=1e-5, atol=1e-5)
    assert np.array_equal(found.rank, [naive.rank(row, k) for row, k in zip(s, y, strict=True)])
    assert np.array_equal(top_k(models[name], storage(X), 4).classes, [naive.best(row, 4) for row in s])


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_a_true_class_is_no_lower_than_itself(storage):
    """Its score is a sum of its own: where it is the highest by far, it must be seen as one and the same score."""
    _, (X, _, W) = many_classes(n_features=300)
    s = naive.scores(X, 100 * W)
    found = score_rows(model_of(100 * W), storage(X), s.argmax(axis=1).astype(np.int32))
    assert (found.rank == 0).all()
    assert (found.log_likelihood <= 0).all()
    assert found.log_likelihood.max() > -1e-6


def test_classes_that_were_never_trained_are_ties():
    _, (X, y, W) = many_classes()
    W[:, :] = 0
    W[5, -1] = 1
    found = score_rows(model_of(W), X, y)
    assert np.array_equal(found.rank, np.where(y == 5, 0, 2599))


@pytest.mark.parametrize("k", [1, 7, 500, 2600])
def test_many_best_are_a_full_sort(k):
    rng = np.random.default_rng(2)
    scores = rng.integers(-300, 300, 2600).astype(float)  # of many ties
    scores[rng.permutation(2600)[:40]] = -np.inf
    model = model_of(np.zeros((2600, 1)), correction=FittedFrequency(scores.astype(np.float32)))
    found = top_k(model, no_features(2), k)
    assert found.classes.tolist() == [naive.best(scores, k)] * 2
    assert np.allclose(found.probabilities[0], np.exp(naive.log_probabilities(scores))[found.classes[0]], rtol=1e-5)


def test_what_is_no_number_comes_last():
    found = top_k(by_biases(0.0, np.nan, 2.0, -1.0), no_features(1), 4)
    assert found.classes.tolist() == [[2, 0, 3, 1]]
    assert np.isnan(found.probabilities).all()


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf])
@pytest.mark.parametrize("where", [0, 1023, 1024, 2599])
def test_one_score_that_is_not_finite_is_found_among_many(where, value):
    scores = np.zeros(2600)
    scores[where] = value
    found = score_rows(by_biases(*scores), no_features(3), np.array([0, 1500, where], np.int32))
    assert np.isnan(found.log_likelihood).all()
