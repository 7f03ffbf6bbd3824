"""Which trial of a search is taken, by the histories that trials left."""

import pandas as pd
import pytest

from lab.report.fake_fits import write_search
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.metrics import Metric
from xsoftmax.internal.errors import InputError
from xsoftmax.training.search import choose, read_search

GRID = {"slow": {"optimizer": {"learning_rate": 0.1}}, "swift": {"optimizer": {"learning_rate": 1.0}}}


@pytest.fixture
def folder(tmp_path):
    write_search(tmp_path / "search")
    return tmp_path / "search"


def test_the_highest_likelihood_is_taken(folder):
    assert read_search(folder).chosen["name"] == "swift"
    assert choose(folder, GRID, "validation_log_likelihood")["value"] == -1.0


def test_a_column_without_a_value_is_named_with_the_reason(folder):
    for name in ("slow", "swift"):
        path = folder / name / "history.csv"
        pd.read_csv(path).assign(validation_p_at_3="").to_csv(path, index=False)
    with pytest.raises(
        InputError, match=r"validation_p_at_3 is empty \(p_at_3 needs label_ranks: rows have one label"
    ):
        choose(folder, GRID, "validation_p_at_3")


def test_of_a_metric_whose_lower_values_are_better_the_lowest(folder, monkeypatch):
    error = Metric("error", "error", ["rank"], lambda rows: (rows.rank > 0).mean(), 0, 1, higher_is_better=False)
    monkeypatch.setattr(metrics, "known", lambda: {"error": error})
    for name, value in (("slow", 0.25), ("swift", 0.5)):
        path = folder / name / "history.csv"
        pd.read_csv(path).assign(validation_error=value).to_csv(path, index=False)
    found = choose(folder, GRID, "validation_error")
    assert (found["name"], found["value"]) == ("slow", 0.25)


def test_the_lowest_objective_is_taken(folder):
    for name, value in (("slow", 0.25), ("swift", 0.5)):
        path = folder / name / "history.csv"
        pd.read_csv(path).assign(objective=value).to_csv(path, index=False)
    found = choose(folder, GRID, "objective")
    assert (found["name"], found["value"]) == ("slow", 0.25)


def test_an_objective_without_a_value_is_named(folder):
    for name in ("slow", "swift"):
        path = folder / name / "history.csv"
        pd.read_csv(path).assign(objective="").to_csv(path, index=False)
    with pytest.raises(InputError, match="column objective is empty; choose by another"):
        choose(folder, GRID, "objective")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("validation_top_3_accuracy", "no column validation_top_3_accuracy; prepare the data with validation rows"),
        ("validation_nothing", "unknown column 'validation_nothing'; known: validation_log_likelihood, "),
    ],
)
def test_a_column_that_is_not_there_is_named(folder, by, message):
    with pytest.raises(InputError, match=message):
        choose(folder, GRID, by)
