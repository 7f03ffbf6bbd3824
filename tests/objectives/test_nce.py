import numpy as np
import pytest
from scipy.sparse import csr_array

import naive_sampled
from edited import edited
from objectives import one_step
from objectives.array_forms import compiled_loss, problem
from training.interruptions import KillAfter, KilledError
from training.problems import K, method, rows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.methods import build_method
from xsoftmax.objectives.nce import Nce, NceWithNormalizer
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver, sampled
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

LOG_Q = np.log([0.35, 0.3, 0.15, 0.1, 0.1])
parameters = pytest.mark.parametrize(("ratio", "regularizer"), [(1.0, 0.0), (5.0, 0.0), (1.0, 0.3), (3.0, 0.02)])


@parameters
def test_its_loss_and_slopes_are_the_equations(rng, ratio, regularizer):
    s, objective = 2 * rng.standard_normal(5), Nce(ratio, regularizer)
    loss, slopes = naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer)
    draws = one_step.every_class(objective, s, 2, LOG_Q)
    of_true = one_step.gradient_of(objective, 0.0, np.empty(0), s[2], LOG_Q[2], draws)
    assert one_step.full_loss(objective, s, 2, LOG_Q) == pytest.approx(loss, rel=1e-12)
    assert np.allclose(one_step.slopes_by_scores(draws, of_true, 2, 5), slopes, rtol=1e-11, atol=1e-13)


@parameters
@pytest.mark.parametrize("n_sampled", [1, 3])
def test_its_mean_over_all_draws_is_its_gradient(rng, ratio, regularizer, n_sampled):
    s, objective = 2 * rng.standard_normal(5), Nce(ratio, regularizer)
    draws = naive_sampled.ordered_draws(np.exp(LOG_Q), n_sampled)
    mean = naive_sampled.expected(lambda drawn: one_step.step(objective, s, 2, drawn, LOG_Q)[0], draws)
    assert np.allclose(mean, naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer)[1], rtol=1e-11, atol=1e-13)


def test_its_mean_step_in_the_loop_is_its_gradient(rng):
    s, uniform = rng.standard_normal(6), np.full(6, -np.log(6))
    mean, error = one_step.mean_step(Nce(2.0, 0.1), one_step.even_draws(6), s, 4, 100_000, n_sampled=2)
    assert (np.abs(mean - naive_sampled.nce(s, 4, uniform, 2.0, 0.1)[1]) <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("ratio", [1.0, 5.0])
@pytest.mark.parametrize("log_q", [LOG_Q, np.full(5, -np.log(5))], ids=["unequal", "uniform"])
def test_a_flexible_models_optimum_is_the_log_probability_itself(ratio, log_q):
    """Whatever the proposal and the ratio; with a constant added it is not."""
    p = np.array([0.5, 0.2, 0.15, 0.1, 0.05])

    def slopes(s):
        draws = [(one_step.every_class(Nce(ratio), s, y, log_q), y) for y in range(5)]
        return sum(
            p[y]
            * one_step.slopes_by_scores(
                d, one_step.gradient_of(Nce(ratio), 0.0, np.empty(0), s[y], log_q[y], d), y, 5
            )
            for d, y in draws
        )

    assert np.allclose(slopes(np.log(p)), 0, atol=1e-13)
    assert np.abs(slopes(np.log(p) + 0.1)).max() > 1e-3


def test_no_noise_is_refused():
    settings = {"proposal": {"name": "uniform"}, "optimizer": {"name": "sgd"}}
    with pytest.raises(InputError, match="noise_ratio is 0"):
        build_method("nce", settings | {"objective": {"name": "nce", "noise_ratio": 0.0}})


def test_a_class_that_is_never_drawn_counts_nothing():
    s, log_q = np.array([0.4, -1.1, 1.7, 0.2, -0.6, 3.0]), np.append(LOG_Q, -np.inf)
    assert one_step.full_loss(Nce(), s, 2, log_q) == one_step.full_loss(Nce(), s[:5], 2, LOG_Q)


@pytest.mark.parametrize("gap", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_apart_have_bounded_slopes(gap, dtype):
    s, objective = np.array([-gap, gap, gap / 2, 0.0, 0.0]), Nce(3.0)
    slopes, _ = one_step.step(objective, s, 0, [1, 2], LOG_Q, dtype=dtype)
    assert np.allclose(slopes, [-1, 1.5, 1.5, 0, 0] if gap > 0 else 0, atol=1e-6)
    assert np.isfinite(one_step.full_loss(objective, s, 0, LOG_Q))


@pytest.mark.parametrize("rate", [1.0, 1e5])
def test_two_classes_far_apart_at_a_high_rate_stay_finite(rate):
    W = np.array([[0, 1e4], [0, 0]], np.float32)
    X, y, order = np.linspace(-1, 1, 10)[:, None], np.arange(10) % 2, np.arange(100) % 10
    found, _, taken = one_step.run(Nce(), one_step.even_draws(2), Sgd(), X, y, W, order, rate)
    assert taken == 100
    assert np.isfinite(found).all()


# With a log-normaliser that is learned: z = 10 v.


def with_normalizer(v=-0.2, squares=0.7, ratio=1.0, regularizer=0.0):
    return NceWithNormalizer(ratio, regularizer, np.array([v, squares]))


@parameters
@pytest.mark.parametrize("n_sampled", [1, 2])
def test_its_normalizer_is_in_its_loss_and_slopes(rng, ratio, regularizer, n_sampled):
    s, v, squares, rate = 2 * rng.standard_normal(5), -0.2, 0.7, 0.3
    loss, slopes = naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer, 10 * v)
    by_v = [naive_sampled.nce(s, 2, LOG_Q, ratio, regularizer, 10 * (v + h))[0] for h in (1e-5, -1e-5)]
    found = with_normalizer(v, squares, ratio, regularizer)
    assert one_step.full_loss(found, s, 2, LOG_Q) == pytest.approx(loss, rel=1e-12)

    def stepped(drawn):
        of = with_normalizer(v, squares, ratio, regularizer)
        by_scores, _ = one_step.step(of, s, 2, drawn, LOG_Q, rate=rate)
        slope = np.sign(v - of.normalizer[0]) * np.sqrt(of.normalizer[1] - squares)
        assert of.normalizer[0] == pytest.approx(v - rate * slope / np.sqrt(of.normalizer[1]), rel=1e-12)
        return np.append(by_scores, slope)

    draws = naive_sampled.ordered_draws(np.exp(LOG_Q), n_sampled)
    mean = naive_sampled.expected(stepped, draws)
    assert np.allclose(mean[:5], slopes, rtol=1e-11, atol=1e-13)
    assert mean[5] == pytest.approx((by_v[0] - by_v[1]) / 2e-5, rel=1e-6)


def test_its_array_form_with_a_normalizer_is_the_compiled_loss(rng):
    objective = with_normalizer(ratio=3.0, regularizer=0.1)
    draws, auxiliary = problem(objective, rng)
    value = objective.value(np, auxiliary, draws)
    assert np.allclose(value, compiled_loss(objective, auxiliary, draws), rtol=1e-12)


def test_scores_that_are_off_by_the_normalizer_are_its_optimum():
    p = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    slopes = sum(p[y] * naive_sampled.nce(np.log(p) + 1.5, y, LOG_Q, 1.0, 0.0, 1.5)[1] for y in range(5))
    assert np.allclose(slopes, 0, atol=1e-13)


LEARNED = {"name": "nce", "learns_normalizer": True}


@pytest.mark.slow
def test_a_killed_fit_goes_on_with_its_normalizer(dataset, monkeypatch, tmp_path):
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 100)
    data, chosen, kept = dataset(*rows(), K, sparse=True), method(LEARNED, "frequency", "adagrad"), tmp_path / "k.h5"
    plan = Plan(epochs=3, checkpoint=kept, checkpoint_seconds=0.0)
    whole = fit(data, chosen, 0, Plan(epochs=3))
    with pytest.raises(KilledError):
        fit(data, chosen, 0, plan, callbacks=[KillAfter(7)])
    with edited(kept) as file:
        v, squares = file["arrays/normalizer"]
    assert abs(v) > 0.01
    assert squares > 1
    assert np.array_equal(fit(data, chosen, 0, plan).model.rows, whole.model.rows)


@pytest.mark.slow
def test_dense_and_sparse_rows_learn_one_normalizer(dataset):
    chosen = method(LEARNED, "frequency", "adagrad")
    found = [
        fit(dataset(*rows(), K, sparse=sparse), chosen, 0, Plan(epochs=3)).model.rows for sparse in (True, False)
    ]
    assert np.allclose(*found, rtol=1e-3, atol=1e-3)


def test_sparse_weights_have_it_in_their_checkpoints(rng):
    X, y = rows()
    data = TrainingSet(csr_array(X.astype(np.float32)), y.astype(np.int32), K)
    chosen = method(LEARNED, "uniform", "adagrad", weights="sparse")
    solvers = [make_solver(chosen, chosen.objective.fit(data), chosen.proposal.fit(data), data) for _ in range(2)]
    solvers[0].arrays()["normalizer"][:] = 0.5, 3.0
    solvers[1].restore(dict(solvers[0].arrays()))
    assert list(solvers[1].arrays()["normalizer"]) == [0.5, 3.0]
    with pytest.raises(ContentError, match="normalizer"):
        solvers[1].restore({name: each for name, each in solvers[0].arrays().items() if name != "normalizer"})


def test_no_device_learns_it():
    with pytest.raises(
        InputError, match="learns_normalizer of objective nce is for compiled code, and device is cpu"
    ):
        method(LEARNED, "frequency", "adagrad", device="cpu")
