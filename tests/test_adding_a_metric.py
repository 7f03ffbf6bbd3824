"""The example of docs/adding-a-metric.md, taken from the page and found by all that a copy of the package does."""

import csv
import json

import numpy as np
import pytest
import yaml

from pages import ROOT, Page, ended, run

PAGE = Page("adding-a-metric.md")
OTHERS = '''"""Metrics that need more."""

from xsoftmax.evaluation.metrics import Metric, RowScores


def rare_accuracy(rows: RowScores) -> float:
    """Weigh rows by how rare their classes are."""
    weights = 1 / rows.class_counts[rows.classes]
    return ((rows.rank == 0) * weights).sum() / weights.sum()


MEMBERS = [
    Metric("rare_accuracy", "rare accuracy", ["rank", "classes", "class_counts"], rare_accuracy, 0, 1),
    Metric("n_labels", "labels", ["label_sets"], lambda rows: rows.label_sets.classes.size, 0, float("inf")),
    Metric("undefined", "undefined", [], lambda rows: float("nan"), 0, 1),
    Metric("surest", "surest", ["confidence"], lambda rows: rows.confidence.max(), 0, 1, at="end"),
]
'''
PROGRAM = """
import sys
import yaml

from xsoftmax.lab.workflow.experiment import Experiment
task = Experiment.from_config(yaml.safe_load(open(sys.argv[1]))).tasks["icd10"]
print(task.evaluate["by"], task.search["by"])
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A copy of the sources with the page's file, one of metrics with needs, and a program that reads a config."""
    folder = PAGE.scratch(tmp_path_factory.mktemp("adding"))
    (folder / "src/xsoftmax/evaluation/metrics/of_others.py").write_text(OTHERS)
    (folder / "src/asked.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def data(prepare):
    """Few rows with much noise: a fit of them soon overfits."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=400)
    return prepare(np.eye(5)[y] + rng.standard_normal((400, 5)), y, 5, n_validation=150, n_test=100, name="noisy")


@pytest.fixture(scope="module")
def judged(scratch, data):
    """The folder of a fit that its mean rank stopped."""
    settings = ["--set", '{"optimizer": {"learning_rate": 0.5}}', "--epochs", 50, "--points", 50, "--patience", 3]
    run(scratch, "xsoftmax", *train(data, scratch / "fit", *settings, "--by", "mean_rank"))
    run(scratch, "xsoftmax", "evaluate", scratch / "fit/model.h5", data, "-o", scratch / "fit/metrics.json")
    return scratch / "fit"


def train(data, folder, *others):
    return ["train", data, "--methods", ROOT / "config/methods.yaml", "--method", "softmax", *others, "-o", folder]


def column(folder, name):
    with (folder / "history.csv").open() as file:
        return [row[name] and float(row[name]) for row in csv.DictReader(file)]


def test_every_evaluation_of_a_fit_has_it(judged):
    assert all(
        1 <= value <= 5 for split in ("train", "validation", "test") for value in column(judged, f"{split}_mean_rank")
    )
    assert column(judged, "test_mean_rank")[0] == 5  # at zero weights, all classes score alike
    assert column(judged, "test_mean_rank")[-1] < 3


def test_it_judges_a_fit_the_lowest_value_being_best(judged):
    status, values = json.loads((judged / "status.json").read_text()), column(judged, "validation_mean_rank")
    assert (status["status"], status["judge"]) == ("stopped early", "mean_rank")
    assert status["message"] == f"best validation mean rank at epoch {status['kept']['epoch']:g}"
    assert values.index(min(values)) == len(values) - 4
    assert status["kept"] == {
        "epoch": column(judged, "epoch")[-4], "by": "validation_mean_rank", "value": pytest.approx(min(values))
    }  # fmt: skip


def test_the_model_kept_is_measured_at_the_end(judged):
    metrics = json.loads((judged / "metrics.json").read_text())
    for split in ("validation", "test"):
        for name in ("mean_rank", "rare_accuracy", "log_likelihood"):
            assert metrics[split][name] == pytest.approx(column(judged, f"{split}_{name}")[-4])
        assert 0.2 < metrics[split]["surest"] <= 1
        assert metrics[split]["n_labels"] is None


def test_what_a_metric_needs_is_there_or_its_column_is_empty(judged):
    assert all(0 <= value <= 1 for value in column(judged, "validation_rare_accuracy"))
    assert set(column(judged, "validation_n_labels")) == {""}
    assert "validation_surest" not in (judged / "history.csv").read_text()


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("n_labels", "validation_n_labels is nan, which cannot judge weights (n_labels needs label_sets: rows have"),
        ("surest", "metric surest is measured by `evaluate` alone; take one of log_likelihood, accuracy, mean_rank"),
        ("undefined", "validation_undefined is nan, which cannot judge weights; take another --by"),
        ("mean_ranks", "unknown metric 'mean_ranks'; known: log_likelihood"),
    ],
)
def test_what_cannot_judge_is_refused_with_the_reason(scratch, data, by, message):
    done = ended(scratch, "xsoftmax", *train(data, scratch / "none", "--epochs", 1, "--by", by))
    assert done.returncode == 1
    assert message in done.stderr
    assert not (scratch / "none").exists()


def test_a_search_takes_the_lowest(scratch, data):
    grid = {name: {"optimizer": {"learning_rate": rate}} for name, rate in (("fast", 0.5), ("none", 1e-30))}
    for name, settings in grid.items():
        more = ["--set", json.dumps(settings), "--epochs", 5, "--points", 1, "--trial", name, "--keep", "last"]
        run(scratch, "xsoftmax", *train(data, scratch / "search" / name, *more))
    options = ["--grid", json.dumps(grid), "--by", "validation_mean_rank", "-o", scratch / "search/chosen.json"]
    said = run(scratch, "xsoftmax", "choose", scratch / "search", *options)
    found = json.loads((scratch / "search/chosen.json").read_text())
    values = {trial["name"]: trial["value"] for trial in found["trials"]}
    assert values["fast"] < values["none"]
    assert (found["name"], found["value"]) == ("fast", values["fast"])
    assert said == f"* fast: {values['fast']:.6g}\n  none: {values['none']:.6g}\n"


def test_a_report_has_its_column(scratch, judged):
    run(scratch, "xsoftmax", "compare", judged, "-o", scratch / "results")
    (scratch / "mine.yaml").write_text("experiment: mine\n")
    page = scratch / "report.html"
    run(scratch, "xsoftmax", "report", scratch / "results", "--config", scratch / "mine.yaml", "-o", page)
    value = json.loads((judged / "metrics.json").read_text())["test"]["mean_rank"]
    assert "| accuracy | mean rank | rare accuracy |" in (scratch / "results/summary.md").read_text()
    assert f"| {value:.1f} |" in (scratch / "results/summary.md").read_text()
    assert "<th>mean rank</th>" in page.read_text()
    assert f"<td>{value:.1f}</td>" in page.read_text()


def test_mlflow_has_its_curve(scratch, judged, monkeypatch):
    from mlflow import MlflowClient

    value = json.loads((judged / "metrics.json").read_text())["test"]["mean_rank"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{scratch / 'mlflow.db'}")
    run(scratch, "xsoftmax", "track", judged, "--experiment", "mine", "-o", scratch / "tracking.json")
    client = MlflowClient(f"sqlite:///{scratch / 'mlflow.db'}")
    logged = client.search_runs([client.get_experiment_by_name("mine").experiment_id])[0]
    assert logged.data.metrics["final_test_mean_rank"] == pytest.approx(value)
    curve = client.get_metric_history(logged.info.run_id, "validation_mean_rank")
    assert [point.value for point in curve] == pytest.approx(column(judged, "validation_mean_rank"))


def test_a_config_may_name_it(scratch):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | yaml.safe_load(PAGE.block("yaml"))
    (scratch / "asked.yaml").write_text(yaml.safe_dump(config))
    assert run(scratch, "asked", scratch / "asked.yaml") == "mean_rank validation_mean_rank\n"


def test_the_tests_that_the_page_names_find_it(scratch):
    PAGE.check(scratch, "tests/evaluation/test_metrics.py", "mean_rank")
