"""The page of one-vs-each: it builds, with what is there, and each claim's verdict follows the numbers."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lab.reproduction.made_up import results_of, write_fit
from workflow.checkout import REPOSITORY
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.lab.papers._titsias2016_large import HALVED, STAND_INS
from xsoftmax.lab.papers._titsias2016_toys import BOUCHARD, CLOUDS, MANY, METHODS, OVE, SCALED, SGD, SOFT, VALUES
from xsoftmax.lab.reproduction import numbers_of, page_of
from xsoftmax.lab.reproduction.estimates import Difference
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Verdict
from xsoftmax.model import Model, save_model

TABLE = numbers_of("titsias2016")["table_2"]
LOSSES = {SOFT: 0.2, OVE: 0.3, SGD: 0.3003, BOUCHARD: 0.9}
ENDS = {"end.train_log_likelihood": -0.2, "end.test_log_likelihood": -0.5}
OPTIMUM = {"fit.message": "converged after 3 epochs"}
MNIST, NEWS, BIBTEX = TABLE
OTHERS = (SOFT, OVE, SGD)


def real(folder, changes=None):
    """Fits of Table 2 whose numbers are the paper's own, but for changes by method, or data set and method."""
    of_optima, drawn = {}, {}
    for dataset, rows in TABLE.items():
        for method, row in rows.items():
            measures = {"test.accuracy": 1 - row["error"], "test.log_likelihood": -row["nlpd"]}
            measures |= {"end.objective": LOSSES[method]} | {k: row[k] for k in ("weight_distance",) if k in row}
            measures |= ENDS | ({"end.test_log_likelihood": -0.9} if method == BOUCHARD else {})
            measures |= {} if method == SGD else OPTIMUM
            for key in (method, (dataset, method)):
                measures |= (changes or {}).get(key, {})
            (drawn if method == SGD else of_optima)[dataset, method] = measures
    results_of(folder, of_optima, seeds=1)
    return results_of(folder, drawn)


def verdicts(results):
    return {claim.says: claim.finding.verdict for claim in page_of("titsias2016", results).claims}


def verdict(results, begins):
    (found,) = [found for says, found in verdicts(results).items() if says.startswith(begins)]
    return found


@pytest.fixture
def interval(monkeypatch):
    """Means of fits in place of rows of models, and the interval of their differences, which may be set."""
    interval = {"half_width": 1e-4}

    def difference(results, dataset, first, second, measure):
        a, b = (results.estimate(dataset, method, f"test.{measure}").mean for method in (first, second))
        return Difference(a - b, interval["half_width"])

    monkeypatch.setattr(Results, "difference", difference)
    return interval


def test_the_papers_own_numbers_are_reproduced(tmp_path, interval):
    found = verdicts(real(tmp_path))
    assert len(found) == 12
    assert set(found.values()) == {Verdict.REPRODUCED}


def accuracy(value, *methods):
    return {method: {"test.accuracy": value} for method in methods}


def nlpd(value, *methods):
    return {method: {"test.log_likelihood": -value} for method in methods}


def norm(value, *methods):
    return {method: {"weight_distance": value} for method in methods}


def bound(loss, *methods):
    return {method: {"end.objective": loss} for method in methods}


def of(dataset, changes):
    return {(dataset, method): measures for method, measures in changes.items()}


WRONG = {method: {"test.accuracy": 0.99, "test.log_likelihood": -9.0, "weight_distance": 9.0} for method in METHODS}
NOT_CONVERGED = {method: {"fit.message": ""} for method in (SOFT, OVE, BOUCHARD)}
GAPS = {"end.test_log_likelihood": -0.3}
OPEN, CLOSE, IN_SHAPE, NOT = Verdict.OPEN, Verdict.CLOSE, Verdict.IN_SHAPE, Verdict.NOT


@pytest.mark.parametrize(
    ("claim", "changes", "found"),
    [
        ("The numbers of Table 2", of(BIBTEX, WRONG), IN_SHAPE),
        ("The numbers of Table 2", WRONG, NOT),
        ("OVE's weights", of(MNIST, norm(0.7, OVE)), IN_SHAPE),
        ("OVE's weights", norm(0.7, OVE), NOT),
        ("OVE's weights", NOT_CONVERGED, CLOSE),
        ("OVE-SGD's weights", of(MNIST, norm(0.7, SGD)), IN_SHAPE),
        ("OVE-SGD's weights", norm(0.7, SGD), NOT),
        ("OVE-SGD's weights", NOT_CONVERGED, CLOSE),
        ("Errors and nlpd", of(NEWS, accuracy(0.5, OVE)), IN_SHAPE),
        ("Errors and nlpd", nlpd(9.0, OVE, SGD) | of(NEWS, accuracy(0.5, OVE)), NOT),
        ("They tend to be slightly worse", of(NEWS, nlpd(1.0, OVE)), Verdict.REPRODUCED),
        ("They tend to be slightly worse", nlpd(0.1, OVE, SGD), IN_SHAPE),
        ("They tend to be slightly worse", nlpd(0.1, OVE, SGD) | of(NEWS, accuracy(0.99, OVE)), NOT),
        ("BOUCHARD gives the best error", accuracy(0.99, SOFT), Verdict.REPRODUCED),
        ("BOUCHARD gives the best error", of(NEWS, accuracy(0.99, SGD)), IN_SHAPE),
        ("BOUCHARD gives the best error", accuracy(0.01, BOUCHARD), NOT),
        ("BOUCHARD gives the best error", accuracy(0.99, SGD), NOT),
        ("BOUCHARD's error is even better", of(NEWS, accuracy(0.99, SOFT)), IN_SHAPE),
        ("BOUCHARD's error is even better", accuracy(0.01, BOUCHARD), NOT),
        ("BOUCHARD always gives the worst nlpd", of(NEWS, nlpd(9.0, SGD)), IN_SHAPE),
        ("BOUCHARD always gives the worst nlpd", nlpd(0.1, BOUCHARD), NOT),
        ("BOUCHARD always gives the worst nlpd", nlpd(9.0, SGD), NOT),
        ("BOUCHARD's worse nlpd suggests", {(BIBTEX, BOUCHARD): GAPS}, IN_SHAPE),
        ("BOUCHARD's worse nlpd suggests", {BOUCHARD: GAPS}, NOT),
        ("BOUCHARD's worse nlpd suggests", NOT_CONVERGED, CLOSE),
        ("OVE's bound gets much closer", of(BIBTEX, bound(0.35, BOUCHARD)), IN_SHAPE),
        ("OVE's bound gets much closer", of(BIBTEX, bound(0.25, BOUCHARD)), NOT),
        ("OVE's bound gets much closer", NOT_CONVERGED, OPEN),
        ("OVE tends to give a tighter bound", of(BIBTEX, bound(0.95, OVE)), IN_SHAPE),
        ("OVE tends to give a tighter bound", bound(0.95, OVE), NOT),
        ("OVE tends to give a tighter bound", NOT_CONVERGED, CLOSE),
        ("OVE-SGD approaches", of(BIBTEX, bound(0.315, SGD)), CLOSE),
        ("OVE-SGD approaches", of(BIBTEX, bound(0.35, SGD)), IN_SHAPE),
        ("OVE-SGD approaches", of(BIBTEX, bound(0.5, SGD)), NOT),
        ("OVE-SGD approaches", of(BIBTEX, NOT_CONVERGED), OPEN),
    ],
)
def test_a_claim_of_table_2_and_figure_3_follows_its_numbers(claim, changes, found, tmp_path, interval):
    assert verdict(real(tmp_path, changes), claim) == found


@pytest.mark.parametrize(
    "claim",
    [
        "BOUCHARD gives the best error",
        "BOUCHARD's error is even better",
        "BOUCHARD always gives the worst nlpd",
    ],
)
def test_what_the_rows_do_not_tell_apart_is_too_close(claim, tmp_path, interval):
    interval["half_width"] = 1.0
    assert verdict(real(tmp_path), claim) == CLOSE


def test_what_the_rows_do_not_tell_apart_is_no_tendency(tmp_path, interval):
    interval["half_width"] = 1.0
    assert verdict(real(tmp_path), "They tend to be slightly worse") == NOT


def test_bounds_are_drawn_near_their_ends(tmp_path, interval):
    """SOFT's cost is 0.2 and BOUCHARD's bound 0.9 below 0; a bound that ends otherwise is not cut to nothing."""
    figure = page_of("titsias2016", real(tmp_path / "a")).figures["bounds"]
    assert figure.axes[0].get_ylim() == pytest.approx((-1.6, -0.13), rel=1e-3)
    turned = page_of("titsias2016", real(tmp_path / "b", bound(0.1, BOUCHARD))).figures["bounds"]
    assert turned.axes[0].get_ylim()[0] < -0.2


def test_a_norm_agrees_as_the_paper_rounds_it(tmp_path, interval):
    def of_norm(value):
        return page_of(
            "titsias2016", real(tmp_path / str(value), {(NEWS, OVE): {"weight_distance": value}})
        ).markdown()

    assert "20NEWS 11 of 11 agree" in of_norm(0.0549)
    assert "20NEWS 10 of 11 agree" in of_norm(0.0551)


def test_the_page_names_norms_that_differ(tmp_path, interval):
    changes = {(MNIST, BOUCHARD): {"weight_distance": 0.4}}
    assert "BOUCHARD's norms on MNIST differ" in page_of("titsias2016", real(tmp_path / "a", changes)).markdown()
    assert "BOUCHARD's norms on" not in page_of("titsias2016", real(tmp_path / "b")).markdown()


def test_the_page_says_what_has_not_converged_and_what_did_not_agree(tmp_path, interval):
    changes = {(MNIST, SOFT): {"fit.message": ""}, (MNIST, OVE): {"weight_distance": 0.6}}
    text = page_of("titsias2016", real(tmp_path, changes)).markdown()
    assert "errors of its numbers are not known, after these: SOFT on MNIST 4." in text
    assert "MNIST 10 of 11 agree; 20NEWS 11 of 11 agree" in text


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The two toys that are small, as the experiment has them."""
    folder = tmp_path_factory.mktemp("toys")
    for name in (VALUES, CLOUDS):
        config = str(REPOSITORY / f"config/datasets/{name}.yaml")
        main(["download", config, "-o", str(folder / "raw" / name)])
        main(["prepare", config, "--raw", str(folder / "raw" / name), "-o", str(folder / f"{name}.h5")])
    return folder


def with_model(folder, data, method, W, seed=0, bias=True, **measures):
    """Write a fit on prepared data with these weights."""
    fit = write_fit(folder, data.name, method, seed, measures)
    status = json.loads((fit / "status.json").read_text())
    attributes = {key: status.get(key) for key in ("dataset", "method", "seed", "status", "parameters")}
    given = np.asarray(W, np.float32), data.class_names, data.n_features
    model = Model.of_rows(*given, bias=bias, attributes=attributes)
    save_model(model, fit / "model.h5")
    return fit


TOYS = {
    "powers": {SOFT: 1.0, OVE: 1.0, BOUCHARD: 1.5},
    "losses": {SOFT: 0.5, OVE: 0.7, BOUCHARD: 1.1, SGD: 0.7007},
    "norms": {OVE: 0.05, BOUCHARD: 0.55},
    "errors": {SGD: 0.02, SCALED: 1.1},
    "message": "converged after 3 epochs",
}
BAD_TOYS = {
    "powers": {SOFT: 1.0, OVE: 1.5, BOUCHARD: 0.7},
    "losses": {SOFT: 0.5, OVE: 1.1, BOUCHARD: 0.7, SGD: 5.0},
    "norms": {OVE: 0.55, BOUCHARD: 0.05},
    "errors": {SGD: 0.9, SCALED: 0.02},
}
SHAPES = {
    "losses": {SOFT: 0.5, OVE: 0.7, BOUCHARD: 1.1, SGD: 0.8},
    "norms": {OVE: 0.15, BOUCHARD: 0.55},
    "errors": {SGD: 0.2, SCALED: 1.1},
}
LEVELS = {
    "losses": {SOFT: 0.5, OVE: 0.7, BOUCHARD: 1.1, SGD: 0.735},
    "powers": {SOFT: 1.0, OVE: 1.0, BOUCHARD: 1.0},
    "errors": {SGD: 0.07, SCALED: 0.07},
}


def toys(folder, prepared, changes):
    """Fits of the toys: one of each optimum, three seeds of what draws."""
    given, rng = TOYS | changes, np.random.default_rng(0)
    optimum, fits = {"fit.message": given["message"]}, []
    with open_prepared(prepared / f"{VALUES}.h5") as data:
        logs = np.log(data.class_counts)
        for method, power in given["powers"].items():
            fits.append(with_model(folder, data, method, power * logs[:, None], **optimum))
    with open_prepared(prepared / f"{CLOUDS}.h5") as data:
        for method, loss in given["losses"].items():
            W = np.c_[rng.standard_normal((5, 2)), np.zeros(5)]
            measures = {"weight_distance": given["norms"].get(method, 0.1)} | ({} if method == SGD else optimum)
            for seed in range(3 if method == SGD else 1):
                of_seed = {"end.objective": loss * (1 + 1e-4 * seed)}
                fits.append(with_model(folder, data, method, W, seed, bias=False, **measures, **of_seed))
    for method, error in given["errors"].items():
        for seed in range(3):
            fit = write_fit(folder, MANY, method, seed, {"fit.step": 2000})
            errors = [0.7, 0.5, error * (1 + 1e-3 * (seed - 1))]
            pd.read_csv(fit / "history.csv").assign(frequency_error=errors).to_csv(fit / "history.csv")
            fits.append(fit)
    return Results.read("made-up", fits, [], [prepared / f"{name}.h5" for name in (VALUES, CLOUDS)])


def test_a_page_of_toys_has_their_figures_and_a_claim_of_ours(tmp_path, prepared):
    page = page_of("titsias2016", toys(tmp_path, prepared, {}))
    assert set(page.figures) == {"toys", "many"}
    assert [claim.says[:8] for claim in page.claims if claim.ours] == ["A rate o"]
    assert page.markdown()


EXACT, OVER = "Without features OVE gives", "Bouchard's bound tends"
TIGHTER, COMES, NORM = "In the plane OVE's bound", "In the plane OVE-SGD", "In the plane OVE's weights"
MANY_VALUES, RATE, SLOW = "Doubly stochastic steps", "A rate of 0.5/b", "Bouchard's bound can become very slow"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, dict.fromkeys((EXACT, OVER, TIGHTER, COMES, NORM, MANY_VALUES, RATE), Verdict.REPRODUCED)),
        (BAD_TOYS, dict.fromkeys((EXACT, OVER, TIGHTER, COMES, NORM, MANY_VALUES, RATE), NOT)),
        (SHAPES, dict.fromkeys((COMES, NORM, MANY_VALUES), IN_SHAPE)),
        (LEVELS, dict.fromkeys((OVER, COMES, MANY_VALUES, RATE), CLOSE)),
        ({"message": ""}, {EXACT: OPEN, OVER: CLOSE, TIGHTER: CLOSE, COMES: OPEN, NORM: OPEN, SLOW: OPEN}),
    ],
)
def test_the_toys_verdicts_follow_their_models(changes, expected, tmp_path, prepared):
    found = verdicts(toys(tmp_path, prepared, changes))
    for begins, one in expected.items():
        assert [verdict for says, verdict in found.items() if says.startswith(begins)] == [one], begins


@pytest.mark.parametrize(
    ("accuracies", "found"),
    [((0.5, 0.5), Verdict.REPRODUCED), ((0.5, 0.01), NOT), ((0.5, 0.22), IN_SHAPE), ((0.2, 0.2), CLOSE)],
)
def test_the_large_experiment_is_compared_with_guesses(accuracies, found, tmp_path, prepared):
    """The plane's data stand for the large ones': the commonest of five classes is right in a fifth of the rows."""
    results = large(tmp_path, prepared, [{"test.accuracy": accuracy} for accuracy in accuracies])
    assert verdict(results, "On AmazonCat OVE-SGD's error") == found


@pytest.mark.parametrize(
    ("change", "found"), [(0.01, Verdict.REPRODUCED), (0.05, CLOSE), (0.1, IN_SHAPE), (0.5, NOT), (-0.5, NOT)]
)
def test_a_bound_that_still_changes_has_not_converged(change, found, tmp_path, prepared):
    results = large(tmp_path, prepared, [{}, {}])
    for seed, fit in enumerate(results.of(STAND_INS[1], HALVED)):
        fit.history["objective"] = [9.0, 1 + change * (1 + 0.01 * (seed - 1)), 1.0]
    for fit in results.of(STAND_INS[0], HALVED):
        fit.history["objective"] = [9.0, 1.0, 1.0]
    assert verdict(results, "The evolution of the bound") == found


def test_what_needs_amazoncat_is_not_tested(tmp_path, prepared):
    results = large(tmp_path, prepared, [{"test.accuracy": 0.5}, {"test.accuracy": 0.5}])
    assert verdict(results, "AmazonCat's error of 53.11%, in 26 minutes") == OPEN
    assert verdict(results, "All methods but OVE-SGD") == OPEN
    assert "AmazonCat-13K, paper" in page_of("titsias2016", results).markdown()


def large(folder, prepared, measures):
    data = {name: shutil.copy(prepared / f"{CLOUDS}.h5", folder / f"{name}.h5") for name in STAND_INS}
    fits = {(name, HALVED): each for name, each in zip(STAND_INS, measures, strict=True)}
    return replace(results_of(folder / "fits", fits), prepared=data)


def test_every_number_of_the_paper_is_of_a_method_with_a_name():
    assert all(set(rows) == set(METHODS) for rows in TABLE.values())
