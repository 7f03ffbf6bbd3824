"""Probabilities of models with additive noise, against integrals over dense grids."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import softmax

import naive
import naive_augment_reduce as slow
from xsoftmax.cli import main
from xsoftmax.evaluation import likelihood, links
from xsoftmax.evaluation.legacy_metrics import KINDS, log_likelihoods, normalised_twice
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.model import Model, load_model, save_model

NOISE = {"probit": "normal", "logistic": "logistic"}
every_noise = pytest.mark.parametrize("link", NOISE)


def log_p(link, s, *classes):
    s = np.atleast_2d(np.asarray(s, float))
    return links.load(link).log_probabilities(s, np.array([classes]))[0]


def model_of(*scores, link="probit", n_rows=1):
    """A model without features, of these scores."""
    W = np.array(scores, np.float32)[:, None]
    return Model.of_rows(W, [f"class {k}" for k in range(len(W))], 0, link=link, attributes={"status": "finished"})


def test_every_link_is_found_by_its_name():
    assert registry.names("xsoftmax.evaluation.links") == ["logistic", "probit", "sigmoid", "softmax"]
    with pytest.raises(InputError, match="unknown link 'cauchy'; known: logistic, probit, sigmoid, softmax"):
        links.load("cauchy")


@every_noise
def test_integrals_are_those_of_a_dense_grid(link, rng):
    """Scores of any spread, clusters of them, and a true class from 20 above to 25 below the highest."""
    for trial in range(60):
        n = int(rng.choice([2, 3, 10, 100]))
        s = rng.standard_normal(n) * 10 ** rng.uniform(-2, 1)
        s[: n // 2] -= (trial % 2) * rng.uniform(0, 10)
        s[-1] += (trial % 4 == 3) * rng.uniform(0, 25)
        y = int(rng.integers(n))
        if trial % 3 == 0:
            s[y] = s.max() + (-25 if trial % 2 else rng.uniform(-1, 20))
        assert log_p(link, s, y)[0] == pytest.approx(slow.log_probability(NOISE[link], s, y), rel=1e-9, abs=1e-9)


@every_noise
@pytest.mark.parametrize("gap", [3.0, 0.0, -10.0, -25.0])
def test_integrals_with_ten_thousand_classes(link, gap):
    s = np.random.default_rng(0).standard_normal(10_000)
    s[17] = s.max() + gap
    expected = slow.log_probability(NOISE[link], s, 17)
    assert log_p(link, s, 17)[0] == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_noise
def test_integrals_are_those_of_quadpack(link):
    s, y = np.array([0.3, -1.2, 2.0, 0.9]), 1
    expected = quad(lambda e: np.exp(slow.log_joint(NOISE[link], s, y, e)), -30, 30, epsabs=1e-13, limit=200)[0]
    assert np.exp(log_p(link, s, y)[0]) == pytest.approx(expected, rel=1e-9)


@every_noise
def test_two_classes_have_closed_forms(link):
    """The difference of two normal numbers is normal; of two logistic ones, p = e^d (e^d - 1 - d) / (e^d - 1)^2."""
    for d in (-25.0, -3.0, -0.2, 0.7, 6.0, 20.0):
        if link == "probit":
            expected = slow.log_ndtr(d / np.sqrt(2))
        else:
            expected = d + np.log(np.expm1(d) - d) - 2 * np.log(abs(np.expm1(d)))
        assert log_p(link, [d, 0.0], 0)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("link", ["softmax", *NOISE])
def test_probabilities_of_all_classes_sum_to_one(link, rng):
    for spread in (0.01, 1.0, 8.0):
        s = spread * rng.standard_normal(40)
        found = np.exp(log_p(link, s, *range(40)))
        assert found.sum() == pytest.approx(1, abs=1e-9)
        assert (np.diff(found[np.argsort(s)]) >= 0).all()


@every_noise
def test_extreme_scores_stay_finite(link):
    for s in ([0.0, 1e4], [1e4, 0.0, -1e4], [0.0] * 5 + [1e4] * 1000, [3e38, 0.0]):
        found = log_p(link, s, 0)[0]
        assert np.isfinite(found)
        assert found <= 0
    assert log_p(link, [0.0, 1e4], 1)[0] == pytest.approx(0, abs=1e-9)
    # far behind, its rate is that of the two-class closed forms
    assert log_p(link, [0.0, 1e4], 0)[0] == pytest.approx(-2.5e7 if link == "probit" else -1e4, rel=1e-2)
    for bad in (np.nan, np.inf, -np.inf):
        assert np.isnan(log_p(link, [0.0, bad, 1.0], 0)[0])


def test_the_gumbel_integral_is_the_softmax(rng):
    """Eq. 5 with Gumbel noise is eq. 1: on a grid, and so what the link softmax gives."""
    for spread in (0.1, 3.0):
        s = spread * rng.standard_normal(7)
        expected = [slow.log_probability("gumbel", s, y) for y in range(7)]
        assert np.allclose(naive.log_probabilities(s), expected, atol=1e-9)
        assert np.allclose(log_p("softmax", s, *range(7)), expected, atol=1e-9)


# Through models.


@every_noise
@pytest.mark.parametrize("block_scores", [1, 50, 10**6])
def test_rows_of_models(link, block_scores, rng, monkeypatch):
    monkeypatch.setattr(likelihood, "BLOCK_SCORES", block_scores)
    X, y = rng.standard_normal((23, 4)).astype(np.float32), rng.integers(9, size=23).astype(np.int32)
    W = rng.standard_normal((9, 5)).astype(np.float32)
    model = Model.of_rows(W, [str(k) for k in range(9)], 4, link=link)
    s = naive.scores(X, W)
    found = score_rows(model, X, y)
    expected = [slow.log_probability(NOISE[link], row, k) for row, k in zip(s, y, strict=True)]
    assert np.allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)  # scores are float32
    assert found.rank.tolist() == [naive.rank(row, k) for row, k in zip(s, y, strict=True)]
    best = top_k(model, X, 3)
    assert best.classes.tolist() == [naive.best(row, 3) for row in s]
    by_hand = [[np.exp(slow.log_probability(NOISE[link], row, k)) for k in naive.best(row, 3)] for row in s]
    assert np.allclose(best.probabilities, by_hand, rtol=1e-5)
    assert np.allclose(top_k(model, X, 99).probabilities.sum(axis=1), 1, atol=1e-9)


@every_noise
def test_models_keep_their_link(link, tmp_path):
    save_model(model_of(0, 1, 2, link=link), tmp_path / "model.h5")
    model, row = load_model(tmp_path / "model.h5"), np.zeros((1, 0), np.float32)
    assert model.link == link
    assert score_rows(model, row, np.array([0])).log_likelihood[0] == pytest.approx(
        slow.log_probability(NOISE[link], [0, 1, 2], 0), abs=1e-9
    )


# What the paper reports.


@every_noise
def test_the_papers_sampling_estimates_the_integral(link):
    """Where the true class is ahead; 400 rows of the same scores, their mean within 5 standard errors."""
    s = np.tile(np.append(np.random.default_rng(1).standard_normal(99), 5.0), (400, 1))
    y = np.full(400, 99)
    found = links.load(link).sampled_log_probabilities(s, y, np.random.default_rng(2))
    exact, p = log_p(link, s[0], 99)[0], np.exp(found)
    assert abs(p.mean() - np.exp(exact)) < 5 * p.std() / np.sqrt(400)
    assert p.std() > 0


@every_noise
def test_the_papers_likelihoods_stand_beside_the_exact_one(link):
    """Far behind, the exact value is finite and the paper's is floored."""
    model, rows = model_of(0, 60, 61, link=link), np.zeros((2, 0), np.float32)
    found = log_likelihoods(model, rows, np.array([0, 2]), list(KINDS))
    assert "log_likelihood_normalised_twice" not in found
    exact = score_rows(model, rows, np.array([0, 2])).log_likelihood
    assert exact[0] < -50
    assert found["log_likelihood_floored"] == pytest.approx((-26 + exact[1]) / 2, rel=1e-9)
    assert found["log_likelihood_sampled"] == pytest.approx((-26 + exact[1]) / 2, rel=0.1)


def test_the_softmax_is_floored_and_not_sampled():
    model = model_of(0, 60, link="softmax")
    found = log_likelihoods(model, np.zeros((1, 0), np.float32), np.array([0]), ["floored", "sampled"])
    assert found == {"log_likelihood_floored": -26.0}


def test_normalised_twice_is_the_softmax_of_the_softmax_and_has_a_ceiling():
    model, y = model_of(0.0, 2.0, 80.0, link="softmax"), np.array([0, 1, 2])
    p = softmax([0.0, 2.0, 80.0])
    found = normalised_twice(model, np.zeros((3, 0), np.float32), y)
    np.testing.assert_allclose(found, np.log(softmax(p)), rtol=1e-6)
    assert found[2] == pytest.approx(1 - np.log(3 - 1 + np.e))  # a perfect prediction, and no higher
    assert score_rows(model, np.zeros((3, 0), np.float32), y).log_likelihood[2] == pytest.approx(0)


def test_the_command_adds_them_on_request(prepare, tmp_path, capsys):
    data = prepare(np.zeros((9, 0)), np.arange(9) % 3, 3, n_validation=3, n_test=3)
    save_model(model_of(0.0, 0.5, 1.0), tmp_path / "model.h5")
    found = {}
    for kind, options in (("exact", ["--train"]), ("paper", ["--as-published", "floored", "sampled"])):
        assert main(["evaluate", str(tmp_path / "model.h5"), str(data), *options]) == 0
        found[kind] = json.loads(capsys.readouterr().out)
    assert found["exact"].keys() - found["paper"].keys() == {"train"}
    assert found["exact"]["train"]["n_samples"] == 3
    found = {kind: metrics["test"] for kind, metrics in found.items()}
    assert found["paper"].keys() - found["exact"].keys() == {"log_likelihood_floored", "log_likelihood_sampled"}
    assert found["paper"]["log_likelihood"] == found["exact"]["log_likelihood"]
    assert found["paper"]["log_likelihood_sampled"] == pytest.approx(found["exact"]["log_likelihood"], abs=0.2)
