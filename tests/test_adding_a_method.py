"""The example of docs/adding-a-method.md, taken from the page and run in a copy of the package."""

import csv

import numpy as np
import pytest

from pages import Page, run

PAGE = Page("adding-a-method.md")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return PAGE.scratch(tmp_path_factory.mktemp("adding"))


def test_it_is_found_by_its_name(scratch):
    assert " squared-hinge " in run(scratch, "xsoftmax", "methods", "--members")


@pytest.mark.slow
def test_it_is_listed_with_what_it_claims(scratch):
    printed = run(scratch, "xsoftmax", "methods", "--methods", scratch / "mine.yaml")
    assert "squared hinge" in printed
    assert " 6 " in printed


def test_it_trains(scratch, prepare):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=400)
    data = prepare(np.eye(5)[y] + 0.2 * rng.standard_normal((400, 5)), y, 5, n_validation=50, n_test=100)
    options = ["--methods", scratch / "mine.yaml", "--method", "squared-hinge", "--epochs", 5, "-o", scratch / "fit"]
    run(scratch, "xsoftmax", "train", data, *options)
    with (scratch / "fit" / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert float(history[-1]["test_accuracy"]) > 0.95
    assert float(history[-1]["objective"]) < 0.5 * float(history[0]["objective"])


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("file", "name", "also"),
    [
        ("tests/objectives/test_array_forms.py", "SquaredHinge", "not torch"),
        ("tests/objectives/test_gradients.py", "SquaredHinge", ""),
        pytest.param(  # all would take minutes
            "tests/test_contracts.py", "squared-hinge", "expected_steps and uniform", marks=pytest.mark.slow
        ),
    ],
)
def test_the_tests_that_the_page_names_find_it(scratch, file, name, also):
    PAGE.check(scratch, file, name, also)
