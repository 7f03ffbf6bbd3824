"""Accuracy against confidence, in bins of equal count: against numpy, and in what `evaluate` and reports say."""

import json

import numpy as np
import pytest
from scipy.special import softmax

import naive
from lab.report.fake_fits import write_fits
from training.problems import D, K, rows
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.metrics import RowScores
from xsoftmax.evaluation.reliability import BINS, reliability
from xsoftmax.lab.report.compare import compare
from xsoftmax.lab.report.reliability import draw_reliability
from xsoftmax.model import Model, save_model
from xsoftmax.training.folders import read_fits


@pytest.mark.parametrize("link", ["softmax", "logistic"])
@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 3, "rows_at_a_time": 40}], ids=["whole", "blocks"])
def test_they_are_those_of_all_probabilities(link, blocks):
    rng = np.random.default_rng(0)
    X, y, W = rng.standard_normal((217, 5)).astype(np.float32), rng.integers(0, 9, 217), rng.standard_normal((9, 6))
    model = Model.of_rows(W.astype(np.float32), [str(k) for k in range(9)], 5, link=link)
    scores = score_rows(model, X, y.astype(np.int32), confident=True, **({} if link == "logistic" else blocks))
    s = naive.scores(X, model.rows)
    if link == "softmax":
        p = softmax(s, axis=1)
    else:
        p = np.array([np.exp(score_rows(model, X, np.full(217, k, np.int32)).log_likelihood) for k in range(9)]).T
    assert np.allclose(scores.confidence, p.max(axis=1), rtol=1e-4)
    found, (bins, error) = reliability(scores), naive.bins_of_confidence(p.max(axis=1), p.argmax(axis=1) == y, BINS)
    assert found.n.tolist() == [n for _, _, n in bins]
    assert np.allclose(found.confidence, [sure for sure, _, _ in bins], rtol=1e-4)
    assert np.allclose(found.accuracy, [accuracy for _, accuracy, _ in bins])
    assert found.error == pytest.approx(error, rel=1e-3)


def test_there_are_no_more_bins_than_rows():
    few = RowScores(np.zeros(3), np.array([0, 2, 0]), np.array([0.9, 0.2, 0.4]))
    found = reliability(few)
    assert found.confidence.tolist() == [0.2, 0.4, 0.9]
    assert found.accuracy.tolist() == [0, 1, 1]
    assert np.isnan(reliability(RowScores(*(np.empty(0) for _ in range(3)))).error)


def evaluated(folder, error):
    """Give a made-up fit a reliability curve."""
    metrics = json.loads((folder / "metrics.json").read_text())
    bins = {"confidence": [0.2, 0.6], "accuracy": [0.2 - error, 0.6 - error], "n": [5, 5]}
    metrics["test"]["expected_calibration_error"] = error
    (folder / "metrics.json").write_text(json.dumps(metrics | {"reliability": {"test": bins}}))


def test_a_report_draws_a_line_per_method(tmp_path):
    folders = write_fits(tmp_path, seeds=(0, 1), methods=("softmax", "u-max"))
    for folder in folders:
        evaluated(folder, 0.1 if "u-max" in str(folder) else 0.02)
    figure = draw_reliability(read_fits(folders), "title")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert {"softmax (0.020)", "u-max (0.100)"} <= lines.keys()
    assert np.allclose(lines["u-max (0.100)"].get_ydata(), [0.1, 0.5])
    compare(folders, tmp_path / "results")
    assert (tmp_path / "results/figures/icd10_reliability_by_confidence.svg").exists()
    assert "test_expected_calibration_error" in (tmp_path / "results/summary.csv").read_text()


def test_evaluate_says_them(prepare, tmp_path):
    path = prepare(*rows(), K, n_validation=50, n_test=110)
    with open_prepared(path) as data:
        W, attributes = np.random.default_rng(2).standard_normal((K, D)).astype(np.float32), {"status": "finished"}
        model, test = (
            Model(W, data.class_names, D, transform=data.transform, attributes=attributes),
            data.split("test"),
        )
        expected = reliability(score_rows(model, test.X, test.y))
    save_model(model, tmp_path / "model.h5")
    assert main(["evaluate", str(tmp_path / "model.h5"), str(path), "-o", str(tmp_path / "metrics.json")]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["reliability"]["test"] == expected.as_json()
    assert metrics["test"]["expected_calibration_error"] == expected.error
    assert metrics["reliability"]["validation"]["n"] == [4] * 5 + [3] * 10
