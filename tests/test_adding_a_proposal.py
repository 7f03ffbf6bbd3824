"""The example of docs/adding-a-proposal.md: a proposal that is fitted beforehand is one file."""

import csv

import numpy as np
import pytest

from pages import Page, run

PAGE = Page("adding-a-proposal.md")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return PAGE.scratch(tmp_path_factory.mktemp("adding"))


@pytest.fixture(scope="module")
def prepared(prepare):
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=400)
    return prepare(np.eye(8)[y] + 0.2 * rng.standard_normal((400, 8)), y, 8, n_validation=50, n_test=100)


@pytest.mark.slow
def test_it_is_fitted_shared_and_trained_with(scratch, prepared):
    fit = ["proposal", prepared, "--kind", "local-frequency", "--set", '{"n_planes": 4}', "-o", scratch / "local.h5"]
    printed = run(scratch, "xsoftmax", *fit)
    likelihood = float(printed.split("train_log_likelihood: ")[1])
    assert -np.log(8) < likelihood < 0
    evaluated = run(scratch, "xsoftmax", "evaluate", scratch / "local.h5", prepared)
    assert '"status": "finished"' in evaluated
    options = ["--methods", scratch / "mine.yaml", "--method", "local", "--epochs", 20, "-o", scratch / "fit"]
    changed = ["--set", '{"proposal": {"n_planes": 4}}', "--proposal", scratch / "local.h5"]
    run(scratch, "xsoftmax", "train", prepared, *options, *changed)
    with (scratch / "fit" / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert float(history[-1]["test_accuracy"]) > 0.95


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("file", "name", "also"),
    [
        ("tests/proposals/test_all_proposals.py", "local-frequency", ""),
        ("tests/proposals/test_file.py", "local-frequency", ""),
        pytest.param("tests/test_contracts.py", "local-frequency", "sampled-softmax", marks=pytest.mark.slow),
    ],
)
def test_the_tests_that_the_page_names_find_it(scratch, file, name, also):
    PAGE.check(scratch, file, name, also)
