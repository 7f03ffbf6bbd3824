"""What MLflow makes of a fit's model: it ranks it, loads it, serves it, and takes it into the registry."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from faults.between import free_port
from lab.report.fake_fits import write_fits, write_model
from xsoftmax.cli import main
from xsoftmax.data.transform import Transform
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.lab.tracking import SETTINGS, models, track
from xsoftmax.model import Model, load_model, save_model


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The folder of an experiment whose fits are logged, and MLflow with its store."""
    import mlflow

    folder = tmp_path_factory.mktemp("logged")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        fits = write_fits(
            folder, methods=("u-max", "softmax", "implicit-sgd"), diverged=(("icd10", "implicit-sgd", 0),)
        )
        assert not track(fits, "models")["pending"]
        mlflow.set_experiment("models")
        yield folder, mlflow
        mlflow.set_tracking_uri(before)


def by_accuracy(mlflow):
    order = [{"field_name": "metrics.final_test_accuracy", "ascending": False}]
    return mlflow.search_logged_models(order_by=order, output_format="list")


def files_of(model):
    return Path(url2pathname(urlsplit(model.artifact_location).path))


def test_models_are_ranked_by_a_measure_on_a_data_set(logged):
    _, mlflow = logged
    best, second = by_accuracy(mlflow)  # the diverged fit has none
    assert (best.name, second.name) == ("softmax-icd10-seed-0", "u-max-icd10-seed-0")
    assert best.status == "READY"
    assert best.params["optimizer.learning_rate"] == "0.1"
    run = mlflow.get_run(best.source_run_id)
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name == "icd10"
    assert json.loads(used.dataset.profile)["n_train"] == int(run.data.params["data.n_train"])
    assert run.data.params.items() >= best.params.items()
    measures = {metric.key: metric for metric in best.metrics}
    assert measures["final_test_accuracy"].dataset_digest == used.dataset.digest
    assert measures["final_test_accuracy"].value == run.data.metrics["final_test_accuracy"]
    assert [output.model_id for output in run.outputs.model_outputs] == [best.model_id]


def test_a_model_that_is_loaded_predicts_texts(logged):
    folder, mlflow = logged
    loaded = mlflow.pyfunc.load_model(by_accuracy(mlflow)[0].model_uri)
    texts, ours = ["a broken arm", "arm of"], load_model(folder / "fits/icd10/softmax/seed-0/model.h5")
    expected = top_k(ours, ours.transform.apply(texts), 2)
    for rows in (texts, pd.DataFrame({"text": texts}), pd.Series(texts)):
        found = loaded.predict(rows)
        assert list(found["class"]) == [ours.class_names[k] for k in expected.classes[:, 0]]
        np.testing.assert_allclose(np.stack(found.probabilities), expected.probabilities, rtol=1e-5)
    assert [len(row) for row in loaded.predict(texts, params={"top": 1}).classes] == [1, 1]
    assert len(loaded.predict(loaded.input_example)) == 1
    with pytest.raises(mlflow.MlflowException, match="top is 0; give a whole number above 0") as raised:
        loaded.predict(texts, params={"top": 0})
    assert raised.value.get_http_status_code() == 400  # as `mlflow models serve` answers, with this message


def test_no_file_is_doubled(logged):
    folder, mlflow = logged
    for model in by_accuracy(mlflow):
        method = model.tags["method"]
        assert (files_of(model) / "model.h5").samefile(folder / f"fits/icd10/{method}/seed-0/model.h5")
        assert (
            f"model_size_bytes: {(files_of(model) / 'model.h5').stat().st_size}\n"
            in (files_of(model) / "MLmodel").read_text()
        )
    assert len(list((folder / "mlartifacts").rglob("model.h5"))) == 2


def test_on_another_disk_there_is_one_copy(logged, monkeypatch):
    folder, mlflow = logged

    def link(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    fits = write_fits(folder / "other", methods=("softmax",))
    assert not track(fits, "other disk")["pending"]
    experiment = mlflow.get_experiment_by_name("other disk")
    (model,) = mlflow.search_logged_models([experiment.experiment_id], output_format="list")
    there = files_of(model) / "model.h5"
    assert there.read_bytes() == (fits[0] / "model.h5").read_bytes()
    assert not there.samefile(fits[0] / "model.h5")


def test_a_fit_that_is_replaced_leaves_only_a_model_of_the_registry(logged):
    folder, mlflow = logged
    fits = write_fits(folder / "replaced", methods=("u-max", "softmax"))
    track(fits, "replaced")
    experiment = [mlflow.get_experiment_by_name("replaced").experiment_id]
    before = {model.tags["method"]: model for model in mlflow.search_logged_models(experiment, output_format="list")}
    version = mlflow.register_model(before["softmax"].model_uri, "diagnoses")
    mlflow.MlflowClient().set_registered_model_alias("diagnoses", "best", version.version)
    for fit in fits:
        write_model(fit / "model.h5", "trained again")
    assert not track(fits, "replaced")["pending"]
    after = mlflow.search_logged_models(experiment, output_format="list")
    assert sorted(model.tags["method"] for model in after) == ["softmax", "softmax", "u-max"]
    assert before["u-max"].model_id not in {model.model_id for model in after}
    loaded = mlflow.pyfunc.load_model("models:/diagnoses@best")
    assert loaded.predict(["broken"])["class"][0] == "icd10 softmax 0"


FORMS = {
    "dense": (None, np.ones((2, 3))),
    "named": (("a", "b", "c"), pd.DataFrame(np.ones((2, 3)), columns=["c", "a", "b"])),
    "sparse": (None, csr_matrix(np.ones((2, 3)))),
}


@pytest.mark.parametrize("form", FORMS)
def test_features_have_a_signature_and_an_example(tmp_path, form):
    import mlflow.pyfunc

    names, rows = FORMS[form]
    kind = "sparse" if form == "sparse" else "dense"
    transform = Transform(kind, n_columns=3, feature_names=names or ())
    W = np.array([[1, 2, 3], [0, 0, 1]], np.float32)
    model = Model(W, ["yes", "no"], 3, transform=transform, attributes={"status": "finished"})
    save_model(model, tmp_path / "model.h5")
    found = models.rows_of(tmp_path / "model.h5")
    models.write_description(tmp_path / "mlflow", found, "m-0", "run", 1)
    shutil.copy(tmp_path / "model.h5", tmp_path / "mlflow")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))
    assert list(loaded.predict(rows)["class"]) == ["yes", "yes"]
    assert len(loaded.predict(loaded.input_example)) == 1
    with pytest.raises(mlflow.MlflowException):
        loaded.predict(np.ones((2, 2)))


@pytest.mark.slow
def test_a_table_of_texts_numbers_and_categories(tmp_path, capsys):
    import mlflow.pyfunc

    lines = [f"{word} and {k % 3},{k % 7},{'' if k % 5 else 4},{word}" for k in range(60) for word in ("owl", "hen")]
    (tmp_path / "rows.csv").write_text("\n".join(["text,price,shop,label", *lines]))
    words = ["--text", "text", "--numeric", "price", "--categorical", "shop", "--method", "softmax", "--epochs", "9"]
    assert main(["fit", str(tmp_path / "rows.csv"), *words, "-o", str(tmp_path / "model.h5")]) == 0
    models.write_description(tmp_path / "mlflow", models.rows_of(tmp_path / "model.h5"), "m-0", "run", 1)
    shutil.copy(tmp_path / "model.h5", tmp_path / "mlflow")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))
    table = pd.DataFrame({"shop": ["4", ""], "price": [1.0, 2.0], "text": ["an owl", "a hen"]})
    assert list(loaded.predict(table)["class"]) == ["owl", "hen"]
    assert len(loaded.predict(loaded.input_example)) == 1
    kinds = {column.name: column.type.name for column in loaded.metadata.signature.inputs}
    assert kinds == {"text": "string", "price": "double", "shop": "string"}
    with pytest.raises(mlflow.MlflowException, match="price"):
        loaded.predict(table.assign(price=[np.nan, 1.0]))


def test_columns_are_found_by_their_names(tmp_path):
    import mlflow.pyfunc

    transform = Transform("dense", n_columns=2, feature_names=("a", "b"))
    model = Model(np.eye(2, dtype=np.float32), ["A", "B"], 2, transform=transform, attributes={"status": "finished"})
    save_model(model, tmp_path / "model.h5")
    models.write_description(tmp_path / "mlflow", models.rows_of(tmp_path / "model.h5"), "m-0", "run", 1)
    shutil.copy(tmp_path / "model.h5", tmp_path / "mlflow")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))
    assert list(loaded.predict(pd.DataFrame({"b": [1.0], "a": [0.0]}))["class"]) == ["B"]


@pytest.mark.slow
def test_models_serve_answers(logged):
    folder, mlflow = logged
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", by_accuracy(mlflow)[0].model_uri]
    with (folder / "served").open("w") as log:
        program = subprocess.Popen(
            [*command, "--env-manager", "local", "--port", str(port)], cwd=folder, stdout=log, stderr=log
        )
    try:
        answer = asked(port, {"inputs": ["a broken arm"], "params": {"top": 1}}, program)
        refused = json.loads(asked(port, {"inputs": ["a broken arm"], "params": {"top": 0}}, program))
    finally:
        program.terminate()
        program.wait(30)
    (row,) = json.loads(answer)["predictions"]
    assert row["class"] == row["classes"][0] == "icd10 softmax 0"
    assert len(row["probabilities"]) == 1
    assert "top is 0; give a whole number above 0" in refused["message"]


def asked(port, request, program):
    """What the server answers, once it does."""
    end = time.monotonic() + 240
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/invocations", json.dumps(request), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.read()
        except OSError:
            assert program.poll() is None
            assert time.monotonic() < end
            time.sleep(0.5)
