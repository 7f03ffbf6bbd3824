"""`xsoftmax inspect`: what a model's file says of itself."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from training.problems import method
from xsoftmax import SoftmaxClassifier
from xsoftmax.cli import main
from xsoftmax.data.dataset import Dataset
from xsoftmax.model import save_model
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

ATTRIBUTES = {"dataset": "here", "method": "mine", "seed": 0, "status": "finished"}


def said(path, capsys):
    assert main(["inspect", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_estimators_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.array([f"kind {k}" for k in rng.integers(0, 9, 200)])
    SoftmaxClassifier("softmax", epochs=1).fit(rng.normal(5, 3, (200, 4)), y).save(tmp_path / "model.h5")
    found = said(tmp_path / "model.h5", capsys)
    assert found["classes"] == 9
    assert found["class_names"] == [f"kind {k}" for k in range(5)] + ["..."]
    assert (found["features"], found["rows"]) == (4, {"kind": "dense", "steps": ["standardize"]})
    assert found["weights"] == {"form": "dense", "biases": True}
    assert (found["method"], found["status"], found["probabilities"]) == ("softmax", "finished", "softmax")
    assert found["settings"]["objective"]["name"] == "softmax"
    assert found["bytes"] == (tmp_path / "model.h5").stat().st_size


def test_weights_behind_a_table_and_weights_that_are_sparse(tmp_path, capsys):
    X, y = csr_array(np.eye(6, dtype=np.float32)), np.arange(6) % 3
    data = Dataset.from_arrays(X, y)
    for others in ({"encoder": {"dimension": 2}}, {"weights": "sparse"}):
        model = fit(data, method("one-vs-each", "uniform", "sgd", **others), 0, Plan(epochs=1)).model
        save_model(replace(model, attributes=ATTRIBUTES), tmp_path / "m.h5")
        weights = said(tmp_path / "m.h5", capsys)["weights"]
        assert weights == ({"form": "dense", "biases": True, "encoder_dimension": 2} if "encoder" in others else
                           {"form": "sparse", "biases": True, "stored": weights["stored"]})  # fmt: skip


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_what_is_no_model_is_told(content, tmp_path, capsys):
    if content is not None:
        (tmp_path / "model.h5").write_bytes(content)
    assert main(["inspect", str(tmp_path / "model.h5")]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {tmp_path / 'model.h5'}: ")
    assert len(shown.err.splitlines()) == 1
