"""The page of vectors of words: it builds, and its verdicts follow the numbers."""

import pytest

from lab.reproduction.made_up import results_of, write_fit
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.page import Verdict
from xsoftmax.lab.reproduction.results import Results

DATA = {"n_classes": 500, "n_words": 40_000, "n_pairs": 9000}
SETTINGS = {"learning_rate": 1.0, "missing": "none", "found_by": "all"}
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


def made_up(folder, methods, datasets=("books", "gcide")):
    return results_of(folder, {
        (dataset, method): {"end.objective": objective, "end.test_log_likelihood": -objective, "fit.data": DATA,
                            "fit.seconds_per_epoch": seconds, "fit.parameters": SETTINGS, "fit.trials": TRIALS}
        for dataset in datasets
        for method, (objective, seconds) in methods.items()
    })  # fmt: skip


@pytest.mark.parametrize(
    ("methods", "verdict"), [(AS_IN_THE_PAPER, Verdict.REPRODUCED), (OTHERWISE, Verdict.NOT)], ids=["paper", "other"]
)
def test_verdicts_follow_the_numbers(methods, verdict, tmp_path):
    page = page_of("yen2018-words", made_up(tmp_path, methods))
    assert {claim.says: claim.verdict for claim in page.claims if claim.verdict != verdict} == {}
    assert len(page.claims) == 11
    assert set(page.figures) == {"objective-books", "objective-gcide"}
    text = page.markdown()
    assert "Made by `make words TEXTS='books=FILE gcide=FILE'` from 54 fits" in text
    assert "| books | GD | 1 | – | −7.500 (chosen) |" in text
    assert "| books | GD | 3 | – | diverged |" in text
    assert all(each not in text for each in ("nan", "inf"))


@pytest.mark.parametrize(
    ("objective", "verdict"), [(6.02, Verdict.REPRODUCED), (6.3, Verdict.IN_SHAPE), (6.9, Verdict.NOT)]
)
def test_progress_is_a_share_of_the_way_from_the_first_epoch(objective, verdict, tmp_path):
    """Epochs are 0, 1 and 2, objectives 1.2, 1.1 and 1 times the last: GD goes down by .8 from 8.8."""
    fits = {"decomposed": {"end.objective": [9.0, 8.8, objective]}, "gd": {"end.objective": [9.0, 8.8, 6.0]}}
    page = page_of("yen2018-words", of_histories(tmp_path, fits))
    claim = next(each for each in page.claims if each.says.startswith("Per epoch GD-Decomp-MIPS"))
    assert claim.verdict == verdict
    assert f"books {(8.8 - objective) / 2.8:.0%} of the way" in claim.here


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
    assert claim.verdict == Verdict.NOT


def test_a_method_that_diverges_with_a_seed_is_not_better(tmp_path):
    results = made_up(tmp_path, AS_IN_THE_PAPER, ["books"])
    results.of("books", "u-max")[0].status["status"] = "diverged"
    verdicts = {claim.says.split(" has ")[0]: claim.verdict for claim in page_of("yen2018-words", results).claims}
    assert verdicts["(ours) U-max"] == Verdict.NOT
    assert verdicts["(ours) implicit SGD"] == Verdict.REPRODUCED


def test_it_builds_without_all_methods_and_then_judges_nothing(tmp_path):
    write_fit(tmp_path, "books", "gd", 0, {"fit.data": DATA})
    page = page_of("yen2018-words", Results.read("made-up", tmp_path.glob("*/*/seed-*"), [], []))
    assert not page.claims
    assert all(text not in page.markdown() for text in ("nan", "inf"))
