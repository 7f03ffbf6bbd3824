"""The page of adversarial softmax approximation: it builds with what is there; verdicts follow the numbers."""

import json

import numpy as np
import pandas as pd
import pytest

from lab.reproduction.made_up import write_fit
from xsoftmax.lab.papers import _bamler2020_ablations as ablations
from xsoftmax.lab.papers import _bamler2020_names as names
from xsoftmax.lab.reproduction import numbers_of, page_of
from xsoftmax.lab.reproduction.page import Verdict
from xsoftmax.lab.reproduction.results import Results

LARGE, SMALL = "icd10-subcategory-pca", "icd10-pca"
METHODS = [*names.METHODS, *names.ADAGRAD, names.NOT_RESPLIT]
# Log-likelihood and accuracy at the end, and the seconds of the first look at which they are there.
GOOD = {
    "adversarial": (-3.0, 0.5, 1.0),
    "adversarial-no-resplit": (-3.5, 0.4, 1.0),
    "negative-uniform": (-2.9, 0.4, 50.0),
    "negative-frequency": (-2.9, 0.4, 50.0),
    "augment-reduce": (-4.0, 0.3, 50.0),
    "one-vs-each": (-4.0, 0.3, 50.0),
}
BAD = {
    "adversarial": (-5.0, 0.1, 50.0),
    "adversarial-no-resplit": (-3.0, 0.5, 1.0),
    "negative-uniform": (-5.5, 0.2, 1.0),
    "negative-frequency": (-5.5, 0.2, 1.0),
    "augment-reduce": (-6.0, 0.1, 1.0),
    "one-vs-each": (-6.0, 0.1, 1.0),
}


def write(folder, dataset, method, likelihood, accuracy, reached, setup):
    """Three fits that differ by a little, whose curves are at their end after ``reached`` of 100 seconds."""
    for seed in range(3):
        factor = 1 + 1e-4 * (seed - 1)
        measures = {"test.log_likelihood": likelihood * factor, "test.accuracy": accuracy * factor}
        fit = write_fit(folder, dataset, method, seed, measures)
        status = json.loads((fit / "status.json").read_text())
        parameters = {"objective": {"regularizer": 1e-3}, "optimizer": {"learning_rate": 0.3}}
        sizes = {"n_train": 50_000, "n_classes": 20_000, "n_features": 512}
        status |= {"seconds": 100.0, "setup_seconds": setup, "data": sizes, "parameters": parameters}
        (fit / "status.json").write_text(json.dumps(status))
        seconds = np.array([0.0, reached, 100.0])
        history = pd.DataFrame({"epoch": seconds, "step": seconds, "seconds": seconds})
        history["test_log_likelihood"] = [-9.0, likelihood, likelihood]
        history["test_accuracy"] = [0.0, accuracy, accuracy]
        history.to_csv(fit / "history.csv", index=False)


def made_up(folder, numbers, setup, softmax, datasets=(LARGE, SMALL), methods=METHODS):
    if LARGE in datasets:
        for method in methods:
            write(folder, LARGE, method, *numbers.get(method, (-6.0, 0.15, 60.0)), setup)
    if SMALL in datasets:
        write(folder, SMALL, "softmax", -1.0, softmax, 1.0, 0.0)
        write(folder, SMALL, "negative-uniform", -1.1, 0.7, 1.0, 0.0)
    return Results.read("made-up", sorted(folder.glob("*/*/seed-*")), [], [])


@pytest.fixture
def trees(monkeypatch):
    """What the trees would say of rows, by method."""
    likelihoods = {}

    def found(results, dataset, method):
        return {"train": likelihoods[method], "test": likelihoods[method]}

    monkeypatch.setattr(ablations, "_tree_likelihoods", found)
    return likelihoods


def verdicts(results):
    return {claim.says: claim.verdict for claim in page_of("bamler2020", results).claims}


def test_what_the_paper_says_is_reproduced(tmp_path, trees):
    trees.update({"adversarial": -6.0, "adversarial-no-resplit": -6.3})
    found = verdicts(made_up(tmp_path, GOOD, setup=2.0, softmax=0.8))
    assert len(found) == 10
    assert set(found.values()) == {Verdict.REPRODUCED}


def test_the_opposite_is_not(tmp_path, trees):
    trees.update({"adversarial": -6.3, "adversarial-no-resplit": -6.0})
    found = verdicts(made_up(tmp_path, BAD, setup=60.0, softmax=0.6))
    assert len(found) == 10
    assert set(found.values()) == {Verdict.NOT}


@pytest.mark.parametrize(
    ("datasets", "methods"),
    [((LARGE,), ["adversarial", "negative-uniform"]), ((LARGE,), ["softmax"]), ((SMALL,), [])],
)
def test_the_page_builds_with_what_is_there(tmp_path, datasets, methods):
    page = page_of("bamler2020", made_up(tmp_path, GOOD, 2.0, 0.8, datasets, methods))
    page.write(tmp_path / "page")
    assert (tmp_path / "page" / "bamler2020.md").read_text().startswith("# Extreme classification")


def test_every_method_of_the_papers_table_is_known():
    numbers = numbers_of("bamler2020")
    assert all(list(rows) == list(names.METHODS) for rows in numbers["table_1"].values())
    assert list(numbers["appendix_a_2"]) == [names.SOFTMAX, names.UNIFORM]
