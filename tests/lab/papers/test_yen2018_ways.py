"""The ways in which claims of loss decomposition are judged, and what is left out of them."""

from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from lab.papers.yen2018_made_up import (
    AS_IN_THE_PAPER,
    SOONER,
    SPARSE,
    growing,
    made_up,
    of_means,
    verdicts,
    with_kinds,
    with_models,
)
from xsoftmax.lab.papers import _yen2018_methods
from xsoftmax.lab.papers._yen2018_methods import judge_least, kinds
from xsoftmax.lab.papers._yen2018_sparsity import _too_few
from xsoftmax.lab.papers._yen2018_ways import alone, each_way, lasting, tally, with_best
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Verdict


@pytest.fixture(autouse=True)
def _of_means(monkeypatch):
    monkeypatch.setattr(Results, "difference", of_means)


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch):
    """Draw no figures, as that takes longer than the rest."""
    monkeypatch.setattr(_yen2018_methods, "figure_of", lambda panels: Figure())


def with_searches(results, values):
    """Searches by validation rows, of rates that are not told apart."""
    searches = [
        SimpleNamespace(dataset="faces", method=method, chosen={"trials": [{"value": value}]}, trials=[])
        for method, value in values.items()
    ]
    return Results(results.name, results.fits, searches, {})


def test_the_best_rates_are_those_that_validation_rows_prefer(tmp_path):
    methods = {
        f"{loss}-{kind}": (0.5, 1.0, 1) for loss in ("softmax", "margin", "mips") for kind in ("epochs", "large")
    }
    values = {"softmax-epochs": 0.1, "softmax-large": 0.3, "margin-epochs": 0.4, "margin-large": 0.2,
              "mips-epochs": 0.2, "mips-large": 0.2}  # fmt: skip
    results = with_best(with_searches(made_up(tmp_path, methods), values))
    sources = {
        loss: results.of("faces", f"{loss}-best")[0].folder.parent.name for loss in ("softmax", "margin", "mips")
    }
    assert sources == {"softmax": "softmax-large", "margin": "margin-epochs", "mips": "mips-epochs"}
    assert kinds(results, "faces", "softmax", "margin") == ["epochs", "best"]
    assert kinds(results, "faces", "margin", "mips") == ["epochs"]  # these would be the same fits again
    assert not results.has("faces", "sampled-best")


def test_whether_a_lead_lasts_is_told_of_leads_only():
    assert lasting({"paper": None, "epochs": True, "best": True}, "A").endswith("rates lasts at the best ones")
    assert lasting({"epochs": True, "best": None}, "A").endswith("is too close to tell at the best ones")
    assert lasting({"paper": False, "best": True}, "A") == "A is behind with t in iterations, ahead with best rates"


def test_an_epoch_that_is_not_finished_is_one_at_most(tmp_path):
    """Margin is ahead after one epoch, and behind after the second."""
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))
    for fit in results.fits:
        if fit.method.startswith(("softmax", "margin")):
            fit.history["train_accuracy"] = [0, 0.1, 0.9] if fit.method.startswith("softmax") else [0, 0.5, 0.6]
    claim = next(c for c in page_of("yen2018", results).claims if c.says.startswith("Within an unfinished epoch"))
    assert claim.finding.verdict == Verdict.REPRODUCED
    assert "after 1 epoch: t in iterations 0.100, 0.500" in claim.here


def test_where_searches_make_no_epoch_nothing_has_converged(tmp_path):
    """On one data set of two decomposed search is behind, and not one of its seeds made an epoch."""
    results = made_up(tmp_path, with_kinds(AS_IN_THE_PAPER), ("debian-pca", "faces"))
    for fit in results.fits:
        if (fit.dataset, fit.method.split("-")[0]) == ("debian-pca", "decomposed"):
            fit.status["epoch"] = 0.5
            fit.history["test_accuracy"] *= 0.1
    claims = {claim.says: claim for claim in page_of("yen2018", results).claims}
    converged = claims["MIPS converges at an accuracy much lower than Decomp-MIPS"]
    assert converged.finding.verdict == Verdict.REPRODUCED
    assert converged.why.startswith("left out, as not all fits of both made an epoch: debian-pca, t in iterations;")
    consistently = next(claim for says, claim in claims.items() if says.startswith("The technique consistently"))
    assert consistently.finding.n.endswith("3 as claimed, 0 too close, 3 reversed")


def test_searches_that_are_ahead_of_the_exact_method_are_named(tmp_path):
    methods = with_kinds(AS_IN_THE_PAPER) | {"mips-epochs": (0.9, 0.1, 0.2)}
    claim = next(c for c in page_of("yen2018", made_up(tmp_path, methods)).claims if "often sacrifices" in c.says)
    assert claim.finding.verdict == Verdict.IN_SHAPE
    assert claim.finding.n.endswith("2 as claimed, 0 too close, 1 reversed")
    ahead = "a search is ahead of Margin in equal time: MIPS on faces, t in epochs; of MIPS and Decomp-MIPS together"
    assert f"{ahead} *reproduced in shape*" in claim.why


def test_times_of_first_looks_are_no_factor(tmp_path):
    results = growing(made_up(tmp_path, with_kinds(AS_IN_THE_PAPER)))
    results.of("faces", "sampled-paper")[0].history["test_accuracy"] = [0.0, 0.1, 0.1]
    claim = next(claim for claim in page_of("yen2018", results).claims if claim.says == SOONER)
    assert claim.finding.n.startswith("the least of 2 factors")
    assert "both are there at their first looks: faces, t in iterations;" in claim.why


def test_slopes_of_early_models_are_left_out_and_named(tmp_path, monkeypatch):
    methods = with_kinds(AS_IN_THE_PAPER) | {"margin-epochs": (0.099, 1.2, 1)}
    page = page_of("yen2018", with_models(made_up(tmp_path / "some", methods), monkeypatch, spread=10.0))
    claim = next(claim for claim in page.claims if claim.says == SPARSE)
    assert claim.finding.n.startswith("the greatest of 2 shares")
    assert "left out: Margin, t in epochs, 0.000 (right in 9.9%); with these the verdict would be *rep" in claim.why
    early = with_kinds(AS_IN_THE_PAPER | {"margin": (0.01, 1.2, 1)})
    page = page_of("yen2018", with_models(made_up(tmp_path / "none", early), monkeypatch, spread=10.0))
    assert verdicts(page)[SPARSE] == Verdict.OPEN


def test_fewer_classes_than_the_papers_rule_asks_for_are_told():
    assert "these are 50, fewer than the root of K, 71" in _too_few(5000, 100)
    assert _too_few(10_000, 100) == ""


def test_what_the_projection_costs_is_computed(tmp_path):
    text = page_of("yen2018", made_up(tmp_path, with_kinds(AS_IN_THE_PAPER))).markdown()
    assert "seconds: t in iterations −0.80; t in epochs −0.80; larger rates −0.80." in text


def test_what_the_papers_rates_say_alone_leaves_the_best_ones_out():
    orders = [("paper", True), ("epochs", True), ("best", False), ("best", None)]
    assert alone(orders) == "at the paper's rates alone the verdict would be *reproduced*"
    assert tally(orders).endswith("t in iterations 1, 0, 0; t in epochs 1, 0, 0; best rates 0, 1, 1")
    values = [(way, Estimate.exact(value)) for way, value in (("paper", 3.0), ("epochs", 2.0), ("best", 0.5))]
    told = each_way(values, lambda found: judge_least(found, "quotients", 2.0, 1.0))
    assert told.endswith("best rates *not reproduced*; at the paper's rates alone: *reproduced*")
