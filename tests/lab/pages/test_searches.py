"""What a page tells of a search is what its trials say."""

import json
import math

import pytest

from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.metrics import Metric
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.pages.searches import FOLDER, regrets, regrets_markdown

KEY = "optimizer.initial_accumulator"


def search(method, values, by="validation_log_likelihood"):
    trials = [
        {"settings": {"optimizer": {"initial_accumulator": a, "learning_rate": rate}}, "value": value}
        for (a, rate), value in values.items()
    ]
    return {"method": method, "by": by, "trials": trials}


SEARCHES = [
    search("a", {(0.1, 1): -2.0, (0.1, 3): -1.5, (0.01, 1): -1.0, (0.01, 3): -4.0}),
    search("a", {(0.1, 1): -3.0, (0.1, 3): None, (0.01, 1): -3.5, (0.01, 3): None}),
    search("b", {(0.1, 1): -1.0, (0.01, 1): None}),
    {"method": "c", "by": "train_accuracy", "trials": [{"settings": {"l2": 1}, "value": 0.5}]},
]


def test_the_best_of_a_value_is_held_against_the_best_of_all():
    assert regrets(SEARCHES, KEY) == {
        "a": {0.1: [0.5, 0.0], 0.01: [0.0, 0.5]},
        "b": {0.1: [0.0], 0.01: [math.inf]},
    }


def test_of_an_error_the_least_is_best(monkeypatch):
    error = Metric("error", "error", ["rank"], lambda rows: (rows.rank > 0).mean(), 0, 1, higher_is_better=False)
    monkeypatch.setattr(metrics, "known", lambda: {"error": error})
    found = regrets([search("a", {(0.1, 1): 0.5, (0.01, 1): 0.25}, by="validation_error")], KEY)
    assert found == {"a": {0.1: [0.25], 0.01: [0.0]}}


def test_the_table_has_the_mean_and_the_most(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FOLDER.mkdir(parents=True)
    (FOLDER / "mine.json").write_text(json.dumps(SEARCHES))
    assert regrets_markdown(f"mine:{KEY}").splitlines() == [
        "|  | 0.01 | 0.1 |",
        "| --- | --: | --: |",
        "| a | 0.250, 0.500 | 0.250, 0.500 |",
        "| b | inf, inf | 0.000, 0.000 |",
    ]
    for wrong, message in (
        ("none", "copy results/none/searches.json there"),
        ("mine", "nothing of 'x' was searched"),
    ):
        with pytest.raises(InputError, match=message):
            regrets_markdown(f"{wrong}:x")
