"""The benchmark of texts: a whole one of few classes, who is given up, and what a report says of it."""

import argparse
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.cli import main
from xsoftmax.data.dataset import Split
from xsoftmax.data.store import open_prepared
from xsoftmax.lab.benchmark import documents
from xsoftmax.lab.benchmark.documents import ours, programs, recall, texts, worker
from xsoftmax.lab.report.suites import documents as report
from xsoftmax.methods import build_method


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "ROWS_TO_LOOK_AT", 100)
        meta = texts.written(30, made, n_features=800)
    assert (meta["n_train"], meta["n_test"], meta["n_classes"], meta["n_features"]) == (69, 100, 30, 800)
    return made


@pytest.mark.slow
def test_ours_is_measured(folder):
    with open_prepared(folder / "exported/data.h5") as data:
        found = worker.measured(data, build_method("ours", ours.settings()), epochs=2)
    assert found["epochs"] == 2
    assert found["accuracy"] > 5 / 30
    assert found["recall"] == 1  # lists so short are walked whole
    assert 0 < found["setup_seconds"] < found["seconds"] < 20
    assert 0 < found["n_weights"] < 30 * 800
    assert found["peak_bytes"] > 2**20


def test_ours_have_a_shortlist_and_sparse_weights_from_class_means():
    method = build_method("ours", ours.settings())
    assert (method.proposal.shortlist, method.weights) == (20, "sparse")
    assert method.settings["start"]["name"] == "class-means"


@pytest.fixture
def many():
    """Rows and weights of 1,000 classes, of which 40 % of the weights are not zero."""
    rng = np.random.default_rng(0)
    X, W = (csr_array(rng.random((n, 50), np.float32) * (rng.random((n, 50)) < 0.4)) for n in (60, 1000))
    return Split(X, rng.integers(1000, size=60).astype(np.int32)), W


def test_recall_is_the_share_of_the_highest_classes_that_a_search_finds(many, monkeypatch):
    rows, W = many
    assert 0.4 < recall.recall_of(rows, W, 20) < 0.8  # half of a row's lists are within the budget of a search
    scores = (rows.X @ W.T).toarray()
    scores[np.arange(60), rows.y] = 0
    order = np.argsort(-scores, axis=1).astype(np.int32)
    for found, share in ((order[:, :20], 1), (order[:, 10:30], 0.5), (order[:, 20:40], 0)):
        monkeypatch.setattr(recall, "nearest_classes", lambda *arguments, found=found: found)
        assert recall.recall_of(rows, W, 20) == pytest.approx(share, abs=0.01)  # scores may be alike
    with_gaps = np.where(np.arange(20) < 5, order[:, :20], -1)
    monkeypatch.setattr(recall, "nearest_classes", lambda *arguments: with_gaps)
    assert recall.recall_of(rows, W, 20) == pytest.approx(0.25)


def test_recall_counts_no_classes_that_share_no_word():
    X = csr_array(np.eye(3, 6, dtype=np.float32))
    W = csr_array(np.repeat(np.eye(3, 6, dtype=np.float32), 2, axis=0))
    assert recall.recall_of(Split(X, np.array([0, 2, 4], np.int32)), W, 4) == 1


class Fake:
    """A program that does not get beyond 20 classes."""

    name = "pecos-xlinear"

    def train(self, folder, seconds, memory_gb):
        if int(folder.name) > 20:
            return {"status": "stopped", "message": "ended after 9 s"}
        measured = {"seconds": 4.6, "accuracy": 0.25, "peak_bytes": 2**30, "settings": {}}
        return {"status": "finished", "message": ""} | measured


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "written", lambda *arguments: None)
    monkeypatch.setattr(documents, "_programs", lambda options: [Fake()])
    words = {"classes": [100, 20, 50], "seconds": 9.0, "memory": 1.0, "clock": "wall", "scratch": tmp_path}
    return documents.run(argparse.Namespace(**words))


def test_who_does_not_finish_is_not_tried_with_more_classes(results):
    assert [found["status"] for found in results["results"]] == ["finished", "stopped", "not tried"]
    assert results["results"][0]["seconds_per_row"] == pytest.approx(4.6 / 46)
    assert results["results"][2]["message"] == "stopped with 50 classes"


def test_the_report_tells_all_of_it(results):
    block = report.blocks(results)["documents"]
    assert "| 20 | 46 | pecos-xlinear | 4.6 s | 100 ms | 1,024 MB | 0.250 | – | – |" in block
    assert "| 50 | 115 | pecos-xlinear | stopped: ended after 9 s | – | – | – | – | – |" in block
    assert list(report.points(results["results"]).classes) == [20]
    assert len(report.figures(results)["documents"].axes) == 4
    assert report.figures({"results": []}) == {}


def test_a_run_that_fails_says_why(folder, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="Traceback\nMemoryError: none left\n", stdout="")
    monkeypatch.setattr(programs.subprocess, "run", lambda *command, **options: failed)
    assert programs.Ours().train(folder, 1.0, 1.0) == {"status": "failed", "message": "MemoryError: none left"}
    done = SimpleNamespace(returncode=0, stderr="", stdout=json.dumps({"accuracy": 0.5}))
    monkeypatch.setattr(programs.subprocess, "run", lambda *command, **options: done)
    assert programs.Ours().train(folder, 1.0, 1.0)["accuracy"] == 0.5
    monkeypatch.setattr(programs.subprocess, "run", lambda *command, **options: failed)
    assert programs.Ours().train(folder, 1.0, 1.0)["accuracy"] == 0.5  # which is not done again


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--classes", "1"], "--classes has 1; give numbers of 2 or more"),
        (["--seconds", "0"], "--seconds is 0, --memory 4; give numbers above 0"),
        (["--programs", "pecos"], "unknown program 'pecos'; known: xsoftmax, pecos-xlinear, omikuji-parabel"),
    ],
)
def test_arguments_that_make_no_sense(words, says, capsys):
    assert main(["benchmark", "documents", *words]) == 1
    assert says in capsys.readouterr().err


def test_shipped_peers_are_known():
    options = argparse.ArgumentParser()
    documents.add_arguments(options)
    made = documents._programs(options.parse_args([]))
    assert [program.name for program in made] == ["xsoftmax", *documents.PEERS]
