"""The page of vectors of words: it builds, and its verdicts follow the numbers."""

import pytest
from matplotlib.figure import Figure

from lab.reproduction.made_up import results_of, write_fit
from xsoftmax.lab.papers import _yen2018_word_tables
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Verdict

DATA = {"n_classes": 500, "n_words": 40_000, "n_pairs": 9000, "frequencies_objective": 5.5}
SETTINGS = {"learning_rate": 1.0, "missing": "none", "found_by": "all", "negatives": 5, "least_slope": 0.001}
TRIALS = [SETTINGS | {"value": -7.5}, SETTINGS | {"learning_rate": 3.0, "value": None}]
# Objective, and seconds per epoch.
AS_IN_THE_PAPER = {
    "neg": (8.0, 0.5), "hs": (7.9, 0.5), "gd": (6.0, 2.0), "mips": (7.0, 0.3), "decomposed": (6.01, 0.4),
    "mips-bound": (5.9, 0.3), "decomposed-bound": (5.9, 0.4), "implicit": (7.0, 0.5), "u-max": (7.5, 0.5),
}  # fmt: skip
OTHERWISE = {
    "neg": (6.0, 0.5), "hs": (6.1, 0.5), "gd": (6.5, 2.0), "mips": (7.0, 0.3), "decomposed": (7.9, 1.9),
    "mips-bound": (8.0, 0.3), "decomposed-bound": (7.9, 0.4), "implicit": (7.0, 0.5), "u-max": (7.5, 0.5),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch, request):
    """Draw figures where it is asked whether the page builds, as that takes longer than the rest."""
    if "it_builds" not in request.node.name:
        monkeypatch.setattr(_yen2018_word_tables, "figure_of", lambda panels: Figure())


def made_up(folder, methods, datasets=("books", "gcide")):
    """All are alike after the first of two epochs."""
    results = results_of(folder, {
        (dataset, method): {"end.objective": objective, "end.test_log_likelihood": -objective, "fit.data": DATA,
                            "fit.seconds_per_epoch": seconds, "fit.parameters": SETTINGS, "fit.trials": TRIALS}
        for dataset in datasets
        for method, (objective, seconds) in methods.items()
    })  # fmt: skip
    for fit in results.fits:
        fit.history["objective"] = [9.1, 9.0, fit.history["objective"].iloc[-1]]
        fit.history["objective_with_noise"] = fit.history["objective"]
    return results


@pytest.mark.parametrize(
    ("methods", "verdict"), [(AS_IN_THE_PAPER, Verdict.REPRODUCED), (OTHERWISE, Verdict.NOT)], ids=["paper", "other"]
)
def test_verdicts_follow_the_numbers(methods, verdict, tmp_path):
    page = page_of("yen2018-words", made_up(tmp_path, methods))
    judged = [claim for claim in page.claims if claim.finding.verdict != Verdict.OPEN]
    assert {claim.says: claim.finding.verdict for claim in judged if claim.finding.verdict != verdict} == {}
    assert [claim.ours for claim in judged] == [False] * 8 + [True] * 7
    assert len(page.claims) == len(judged) + 5
    assert set(page.figures) == {"objective-books", "objective-gcide"}
    text = page.markdown()
    assert "Made by `make words TEXTS='books=FILE gcide=FILE'` from 54 fits" in text
    assert "| books | GD | 1 | – | – | – | −7.500 (chosen) |" in text
    assert "| books | GD | 3 | – | – | – | diverged |" in text
    assert all(each not in text for each in ("nan", "inf"))


@pytest.mark.parametrize(
    ("objective", "verdict"), [(6.02, Verdict.REPRODUCED), (6.3, Verdict.IN_SHAPE), (6.9, Verdict.NOT)]
)
def test_progress_is_a_share_of_the_way_from_the_first_epoch(objective, verdict, tmp_path):
    """Epochs are 0, 1 and 2: GD goes down by 2.8 from 8.8."""
    fits = {"decomposed": {"end.objective": [9.0, 8.8, objective]}, "gd": {"end.objective": [9.0, 8.8, 6.0]}}
    page = page_of("yen2018-words", of_histories(tmp_path, fits))
    claim = next(each for each in page.claims if each.says.startswith("Per epoch GD-Decomp-MIPS"))
    assert claim.finding.verdict == verdict
    assert f"GD goes down: books {(8.8 - objective) / 2.8:.2f}" in claim.here


def of_histories(folder, fits):
    """Fits as in the paper, but for columns of history that are given whole."""
    results = made_up(folder, AS_IN_THE_PAPER, ["books"])
    for fit in results.fits:
        for key, values in fits.get(fit.method, {}).items():
            fit.history[key.removeprefix("end.")] = values
    return results


def test_a_method_that_is_slow_loses_in_equal_time(tmp_path):
    """Decomposed search has half the epochs of plain search behind it when that ends."""
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["books"])
    for fit in results.fits:
        if fit.method == "decomposed":
            fit.history["seconds"] *= 100
    claim = next(each for each in page_of("yen2018-words", results).claims if "same training time" in each.says)
    assert claim.finding.verdict == Verdict.NOT


def test_a_method_that_diverges_with_a_seed_is_not_better(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["books"])
    results.of("books", "u-max")[0].status["status"] = "diverged"
    claims = {claim.says.split(" has ")[0]: claim for claim in page_of("yen2018-words", results).claims}
    assert claims["U-max"].finding.verdict == Verdict.NOT
    assert (
        "; U-max diverged with 1 of 3 seeds on books, at a rate that one seed chose on fewer sentences"
        in claims["U-max"].why
    )
    assert claims["implicit SGD"].finding.verdict == Verdict.REPRODUCED
    assert "diverged" not in claims["implicit SGD"].why
    assert claims["implicit SGD"].here.startswith("objective: books ")


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(0.4, Verdict.REPRODUCED), (0.8, Verdict.IN_SHAPE), (1.5, Verdict.NOT)]
)
def test_iterations_are_so_many_times_faster_on_every_corpus(seconds, verdict, tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER)
    for fit in results.of("gcide", "decomposed"):
        fit.status["seconds_per_epoch"] = seconds
    claim = next(each for each in page_of("yen2018-words", results).claims if "5 times faster" in each.says)
    assert claim.finding.verdict == verdict


def test_equal_methods_are_too_close_and_one_seed_tells_nothing(tmp_path):
    equal = made_up(tmp_path / "equal", dict.fromkeys(AS_IN_THE_PAPER, (6.0, 0.5)), ["books"])
    orders = [claim for claim in page_of("yen2018-words", equal).claims if "objective" in claim.here]
    others = ("large margin", "orders of magnitude")  # which are a level, and not judged
    orders = [claim for claim in orders if all(words not in claim.says for words in others)]
    assert len(orders) == 10
    assert {claim.finding.verdict for claim in orders} == {Verdict.CLOSE}
    one = Results(
        "one", [fit for fit in made_up(tmp_path / "one", AS_IN_THE_PAPER, ["books"]).fits if fit.seed == 0], [], {}
    )
    found = {claim.finding.verdict for claim in page_of("yen2018-words", one).claims}
    assert found == {Verdict.CLOSE, Verdict.OPEN}


@pytest.mark.parametrize(("hs", "verdict"), [(5.0, Verdict.NOT), (6.5, Verdict.NOT), (7.5, Verdict.REPRODUCED)])
def test_searches_are_compared_with_each_rival_apart(hs, verdict, tmp_path):
    """Both searches are behind hierarchical softmax, one of them, and none."""
    results = made_up(tmp_path, AS_IN_THE_PAPER | {"hs": (hs, 0.5)}, ["books"])
    found = {claim.says: claim.finding.verdict for claim in page_of("yen2018-words", results).claims}
    assert found["GD-MIPS and GD-Decomp-MIPS, too, converge faster per epoch than HS"] == verdict
    assert found["GD-MIPS and GD-Decomp-MIPS, too, converge faster per epoch than NEG"] == Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("objective", "verdict"), [(7.85, Verdict.REPRODUCED), (7.95, Verdict.IN_SHAPE), (8.0, Verdict.NOT)]
)
def test_a_large_margin_is_a_tenth_of_a_nat_where_each_ends(objective, verdict, tmp_path):
    """Which negative sampling does later, after ten times as long at least."""
    histories = {"neg": {"end.objective": [9.0, 9.0, 8.0]}, "decomposed": {"end.objective": [9.0, 9.0, objective]}}
    results = of_histories(tmp_path, histories)
    for fit in results.of("books", "neg"):
        fit.history["seconds"] *= 10 * (1 + fit.seed)
    claim = next(each for each in page_of("yen2018-words", results).claims if "large margin" in each.says)
    assert claim.finding.verdict == verdict


def test_it_builds_without_all_methods_and_then_judges_nothing(tmp_path):
    write_fit(tmp_path, "books", "gd", 0, {"fit.data": DATA})
    page = page_of("yen2018-words", Results.read("made-up", tmp_path.glob("*/*/seed-*"), [], []))
    assert not page.claims
    assert all(text not in page.markdown() for text in ("nan", "inf"))


def test_where_a_method_ends_is_told_of_seeds_that_did_not_diverge(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["books"])
    first, *others = results.of("books", "u-max")
    first.status.update(status="diverged", epoch=1, seconds=1.0, seconds_per_epoch=1.0)
    for fit in others:
        fit.status.update(epoch=3, seconds=9.0, seconds_per_epoch=3.0)
    assert _yen2018_word_tables._where_it_ends(results, "books", "u-max") == ["3", "9.00", "3.00"]


@pytest.mark.parametrize(("first", "verdict"), [(9.0, Verdict.REPRODUCED), (6.3, Verdict.NOT)])
def test_who_converges_faster_goes_further_from_the_first_epoch_on(first, verdict, tmp_path):
    """Hierarchical softmax begins low, goes down by 0.6, and ends below GD."""
    histories = {"hs": {"end.objective": [9.0, 6.5, 5.9]}, "gd": {"end.objective": [9.1, first, 6.0]}}
    claims = page_of("yen2018-words", of_histories(tmp_path, histories)).claims
    claim = next(
        each for each in claims if each.says == "After the first epoch, GD converges faster per epoch than HS"
    )
    assert claim.finding.verdict == verdict
    assert "by the objective there, of which less is better, the verdict would be *not reproduced*" in claim.why


def test_what_noise_in_scores_of_negative_sampling_would_change_is_told(tmp_path):
    """With it negative sampling ends below all others."""
    histories = {"neg": {"end.objective_with_noise": [9.0, 9.0, 5.0]}}
    claims = {each.says: each for each in page_of("yen2018-words", of_histories(tmp_path, histories)).claims}
    told = "with the noise's frequency in NEG's scores the verdict"
    by_levels = claims["After the first epoch, GD converges faster per epoch than NEG"]
    assert by_levels.finding.verdict == Verdict.REPRODUCED
    assert f"{told} by levels would be *not reproduced*" in by_levels.why
    margin = next(each for says, each in claims.items() if "large margin" in says)
    assert margin.finding.verdict == Verdict.REPRODUCED
    assert f"{told} would be *not reproduced*" in margin.why
    implicit = claims["implicit SGD has a better objective than NEG for the same training time"]
    assert f"{told} would be *not reproduced*" in implicit.why
    assert all(told not in each.why for says, each in claims.items() if "HS" in says)


def test_ends_of_grids_thresholds_and_levels_are_told(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["books"])
    for fit in results.of("books", "hs"):
        fit.status["trials"] = [SETTINGS | {"learning_rate": rate, "value": -7.5} for rate in (0.3, 1.0, 3.0)]
    page = page_of("yen2018-words", results)
    text = page.markdown()
    ends = next(line for line in text.splitlines() if line.startswith("At an end of their grids"))
    assert "GD on books the least, 1" in ends  # of 1 and 3
    assert "HS on books" not in ends
    assert "Above the objective of frequencies, 5.50, which takes no vectors, end NEG, HS, GD, GD-MIPS" in text
    assert "| objective where GD begins | not given | 9.10 |" in text
    assert "| NEG, the noise's frequency in its scores | – | – | – | 8.000" in text
    why = {claim.says: claim.why for claim in page.claims}
    assert "not by time: books 0.001, of which 0" in why["Iterations of GD-Decomp-MIPS are 5 times faster than GD's"]
    late = [says for says, each in why.items() if "this rule was written after the run that it judges" in each]
    assert len(late) == 4
    assert all("faster per epoch than" in says for says in late)
