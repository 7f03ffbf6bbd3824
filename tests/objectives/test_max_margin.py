"""The smoothed max-margin loss: its projection, value and slopes, and what it learns."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import naive_bounds
from objectives.one_sample import evaluate
from training.problems import method, rows
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.objectives.max_margin import MaxMargin
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan


def wild(n, seed=0, largest=4.0):
    """Scores of 2 to 40 classes, some equal, up to 10^largest apart; a class; a smoothing."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_classes = int(rng.integers(2, 41))
        s = rng.standard_normal(n_classes) * 10 ** rng.uniform(-3, largest)
        if rng.random() < 0.3:
            s = np.round(s)
        yield s, int(rng.integers(n_classes)), 10 ** rng.uniform(-2, 1.5)


def kind(slopes, y):
    """None, some, or all of the positive class's share."""
    return "none" if slopes[y] == 0 else "all" if slopes[y] < -1 + 1e-9 else "some"


def test_loss_and_slopes_are_the_sorted_projection():
    kinds, sizes = set(), set()
    for s, y, mu in wild(2000):
        found = evaluate(MaxMargin(mu), s, y)
        value, slopes = naive_bounds.max_margin(s, y, mu)
        digits = 1e-13 * (1 + np.abs(s).max()) * (1 + 1 / mu)
        assert np.allclose(found.slopes, slopes, rtol=1e-9, atol=digits)
        assert found.loss == pytest.approx(value, rel=1e-9, abs=digits * (1 + mu))
        assert (np.delete(found.slopes, y) >= 0).all()
        assert found.slopes.sum() == pytest.approx(0, abs=1e-12)
        assert found.slopes[y] >= -1 - 1e-12
        kinds.add(kind(slopes, y))
        sizes.add(np.count_nonzero(np.delete(slopes, y)))
    assert kinds == {"none", "some", "all"}
    assert {0, 1, 2, 5, 10} < sizes


def test_slopes_are_the_projection_that_slsqp_finds():
    """Distance to the point at most 1e-9 above scipy's, and never far from its point."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        n_classes = int(rng.integers(2, 12))
        s, mu = 2 * rng.standard_normal(n_classes), 10 ** rng.uniform(-1, 1)
        slopes = evaluate(MaxMargin(mu), s, 0).slopes
        b, c = (s[1:] + 1.0) / mu, -s[0] / mu
        x, distance = naive_bounds.bi_simplex_by_minimizing(b, c)
        assert np.sum((slopes[1:] - b) ** 2) + (slopes[0] + c) ** 2 <= distance + 1e-9 * (1 + distance)
        assert np.allclose(slopes[1:], x, atol=1e-5)


def test_it_lies_below_the_hinge_by_at_most_its_smoothing():
    gaps = []
    for s, y, mu in wild(2000, seed=2, largest=2.0):
        gap = naive_bounds.hinge(s, y) - evaluate(MaxMargin(mu), s, y).loss
        gaps.append(gap / mu)
    assert min(gaps) >= -1e-10
    assert max(gaps) <= 1 + 1e-10
    assert max(gaps) > 0.9


def test_the_sign_of_the_margin_is_that_of_a_loss():
    """Zero where the true class is 1 above all others, which the printed eq. 3 has the other way round."""
    s = np.array([3.0, 1.9, -4.0])
    assert evaluate(MaxMargin(0.1), s, 0).loss == 0
    assert not evaluate(MaxMargin(0.1), s, 0).slopes.any()
    assert evaluate(MaxMargin(0.1), s, 1).loss == pytest.approx(2.1 - 0.1, abs=1e-12)
    assert np.allclose(evaluate(MaxMargin(0.1), s, 1).slopes, [1, -1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [0, 1, 2])
def test_scores_far_apart_are_safe(dtype, y):
    s = np.array([1e4, 0.0, -1e4])
    found = evaluate(MaxMargin(), s, y, dtype=dtype)
    value, slopes = naive_bounds.max_margin(s, y, 1.0)
    assert found.loss == pytest.approx(value, rel=1e-6)
    assert np.allclose(found.slopes, slopes, atol=1e-12)


def test_float32_scores_give_slopes_to_float32():
    for s, y, mu in wild(1000, seed=3, largest=1.0):
        s, mu = s.astype(np.float32), max(mu, 0.1)
        found = evaluate(MaxMargin(mu), s, y, dtype=np.float32)
        value, slopes = naive_bounds.max_margin(s.astype(float), y, mu)
        assert found.slopes.dtype == np.float32
        assert np.allclose(found.slopes, slopes, rtol=1e-4, atol=1e-4)
        assert found.loss == pytest.approx(value, rel=1e-4, abs=1e-4)


def test_all_scores_equal_spread_the_slope_over_all_classes():
    """With many classes at zero, all of them are pushed; and no sort is needed to see it."""
    found = evaluate(MaxMargin(), np.zeros(100_001, np.float32), 7, dtype=np.float32)
    assert np.allclose(np.delete(found.slopes, 7), 1e-5, rtol=1e-5)
    assert found.slopes[7] == pytest.approx(-1, rel=1e-4)


def test_a_smoothing_of_nothing_is_refused():
    with pytest.raises(InputError, match="smoothing is 0; set it above 0"):
        method({"name": "max-margin", "smoothing": 0}, "all", "sgd")


# In training.


def test_lbfgs_separates_digits_with_margins_where_it_can(prepare):
    """Its own value falls near nothing without an L2 penalty: hardly a row is left inside the margin."""
    X, y = load_digits(return_X_y=True)
    with open_prepared(prepare((X / 16).astype(np.float32), y, 10, n_test=400)) as data:
        chosen = method("max-margin", "all", {"name": "lbfgs", "tolerance": 1e-6})
        result, train = fit(data, chosen, 0, Plan(epochs=500)), data.split("train")
    last = result.state.history[-1]
    scores = train.X.astype(float) @ result.model.rows[:, :-1].T + result.model.rows[:, -1]
    values = [naive_bounds.max_margin(s, k, 1.0)[0] for s, k in zip(scores, train.y, strict=True)]
    assert last["objective"] == pytest.approx(np.mean(values), rel=1e-4, abs=1e-7)
    assert last["objective"] < 0.005 < result.state.history[0]["objective"]
    assert last["test_accuracy"] > 0.85


@pytest.mark.parametrize(
    ("optimizer", "rate", "sparse"),
    [("sgd", 10.0, False), pytest.param("adagrad", 1.0, True, marks=pytest.mark.slow)],
)
def test_minibatches_come_near_the_optimum(optimizer, rate, sparse, prepare):
    X, y = rows(1500)
    with open_prepared(prepare(X, y, 8, n_test=300, sparse=sparse)) as data:
        chosen = method(
            "max-margin", "all", {"name": optimizer, "learning_rate": rate},
            schedule={"name": "exponential", "decay": 0.97},
        )  # fmt: skip
        result = fit(data, chosen, 0, Plan(epochs=100))
        best = fit(data, method("max-margin", "all", {"name": "lbfgs", "tolerance": 1e-6}), 0, Plan(epochs=1000))
    first, last = result.state.history[0], result.state.history[-1]
    assert last["test_accuracy"] > first["test_accuracy"] + 0.3
    optimum = best.state.history[-1]["objective"]
    assert optimum - 1e-6 < last["objective"] < 1.01 * optimum < first["objective"] / 2
