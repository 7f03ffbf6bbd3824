"""The benchmark of a served model: what it measures, and the page as its file has it."""

from pathlib import Path

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.lab.benchmark.serve import _line, load, models, recall
from xsoftmax.lab.marked_blocks import renewed
from xsoftmax.lab.report.benchmark import read_results, writers
from xsoftmax.lab.report.suites import serve as report
from xsoftmax.model import load_model

ROOT = Path(__file__).parents[3]
MEASURED = ROOT / "docs" / "serving" / "serve.json"


@pytest.mark.parametrize("kind", models.KINDS)
def test_models_of_any_size(kind, tmp_path):
    path, requests = models.written(tmp_path, 50, kind)
    assert load_model(path).n_classes == 50
    assert len(set(requests)) == models.N_REQUESTS


def test_load_is_measured_over_http(tmp_path):
    path, requests = models.written(tmp_path, 50, "dense")
    one, three = load.measured(path, requests, ["--workers", 1], [1, 3], 0.5)
    for found, n_clients in ((one, 1), (three, 3)):
        assert found["clients"] == n_clients
        assert 0 < found["p50"] <= found["p99"]
        assert found["per_second"] == pytest.approx(found["answers"] / 0.5)
        assert found["cpu_seconds"] > 0
        assert found["memory_bytes"] > 2**20
    content = {"workers": 1, "recall": [], "load": [{"classes": 50, "rows": "dense", "batches": "waiting"} | one]}
    assert "50 classes, dense, waiting, 1 clients: p50 " in _line(content["load"][0])
    assert "| 50 | dense | waiting | 1 | " in report.blocks(content)["serving"]
    assert report.figures(content) == {}


def test_recall_is_measured_on_test_rows(prepare, tmp_path, capsys):
    pytest.importorskip("faiss")
    rng, n = np.random.default_rng(0), 400
    y = np.arange(n) % 40
    data = prepare(rng.standard_normal((40, 6))[y] + 0.1 * rng.standard_normal((n, 6)), y, 40, n_test=60)
    train = ["train", data, "--method", "softmax", "--epochs", 3, "-o", tmp_path / "fit"]
    assert main([str(word) for word in train]) == 0
    found = recall.measured(tmp_path / "fit" / "model.h5", data, 50)
    assert found[0]["index"] == "none"
    assert found[0]["recall_10"] == 1
    by_index = {(each["index"], each.get("probes")): each for each in found}
    assert by_index["hnsw", 400]["recall_10"] > 0.9
    assert by_index["hnsw", 400]["log_probability_error"] < 1e-4  # all classes are drawn
    content = {"workers": 1, "load": [], "recall": found}
    assert "50 test rows of synthetic: 40 classes, 6 features." in report.blocks(content)["recall"]
    assert set(report.figures(content)) == {"recall"}


def test_wrong_calls_are_told(capsys):
    assert main(["benchmark", "serve", "--model", "model.h5"]) == 1
    assert "--model and --data belong together" in capsys.readouterr().err
    assert main(["benchmark", "serve", "--seconds", "0"]) == 1
    assert "must be above 0" in capsys.readouterr().err


def test_the_page_is_current():
    """If this fails, run the second command of docs/serving.md."""
    text = (ROOT / "docs" / "serving.md").read_text()
    assert renewed(text, writers(read_results([MEASURED]), "serving"), "serving.md") == text
