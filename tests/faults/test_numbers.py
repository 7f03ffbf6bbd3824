"""Numbers that are none, and steps far too long: a fit says so and ends, and the others go on."""

import json

import h5py
import numpy as np
import pytest

from faults.programs import N_CLASSES, clustered
from forked import run, xsoftmax
from workflow.checkout import REPOSITORY
from xsoftmax.cli import main
from xsoftmax.methods import read_methods

METHODS = read_methods(REPOSITORY / "config" / "methods.yaml")
RATES = [1e3, 1e30]
HOLDS = {"lbfgs"}  # searches along a line, so that no rate is too large: it has none


@pytest.fixture
def train(capsys):
    """A function that trains for two epochs in this process, and gives its status and what it said."""

    def run_here(data, method, folder, *more):
        words = ["train", data, "--methods", REPOSITORY / "config/methods.yaml", "--method", method]
        status = main([str(word) for word in (*words, "--epochs", 2, "--points", 2, *more, "-o", folder)])
        return status, capsys.readouterr().err

    return run_here


@pytest.fixture(scope="module")
def data(prepare):
    return prepare(*clustered(600), N_CLASSES, n_validation=50, n_test=50)


@pytest.mark.slow
@pytest.mark.fault(
    "an enormous learning rate, each method",
    happens="the fit ends as `diverged`, with its step; its job succeeds, tables rank it last, the sweep goes on",
    user="`… diverged at step … ; lower learning_rate (now …)`",
)
@pytest.mark.parametrize("method", METHODS)
def test_a_rate_far_too_large_is_a_result(method, data, tmp_path, train):
    """Or the method holds, as implicit steps do; what is never there is a model with numbers that are none."""
    rates = [None] if METHODS[method]["optimizer"]["name"] in HOLDS else RATES
    for rate in rates:
        changes = {"weights": "dense"} | ({} if rate is None else {"optimizer": {"learning_rate": rate}})
        ended, said = train(data, method, tmp_path / "fit", "--set", json.dumps(changes))
        assert ended == 0, said
        status = json.loads((tmp_path / "fit" / "status.json").read_text())
        if status["status"] == "diverged":
            assert f"diverged at step {status['step']}" in status["message"]
            assert "lower learning_rate" in status["message"]
            words = ["evaluate", tmp_path / "fit" / "model.h5", data, "-o", tmp_path / "metrics.json"]
            assert main([str(word) for word in words]) == 0
        else:
            with h5py.File(tmp_path / "fit" / "model.h5") as file:
                assert np.all(np.isfinite((file["encoded/W"] if "encoded" in file else file["W"])[:]))


@pytest.mark.slow
@pytest.mark.fault(
    "NaN or infinity among prepared data, each method",
    happens="`diverged`, or an error that names the place; never a model",
    user="`… diverged at step …`, or `error: …`",
)
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("method", METHODS)
def test_numbers_that_are_none_among_features(method, value, prepare, tmp_path, train):
    """`prepare` lets none through (test below); a file of someone else's might have them."""
    X, y = clustered(600)
    X = X.astype(np.float32)
    X[123, 3] = value
    data = prepare(X, y, N_CLASSES, n_validation=50, n_test=50)
    ended, said = train(data, method, tmp_path / "fit")
    if ended == 0:
        status = json.loads((tmp_path / "fit" / "status.json").read_text())
        finite = abs(value) < np.inf and status["status"] == "finished"
        assert finite or status["status"] == "diverged", status["status"]
    else:
        assert ended == 1
        assert said.splitlines()[-1].startswith("error: ")


@pytest.mark.fault(
    "NaN or infinity in a data file",
    happens="`prepare` refuses the file",
    user="`error: …`, with file and place",
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e39"])
@pytest.mark.parametrize("kind", ["svmlight", "arrays"])
def test_no_such_number_is_prepared(kind, value, tmp_path):
    if kind == "svmlight":
        (tmp_path / "mine.svm").write_text(f"0 1:1 2:2\n1 1:{value}\n0 2:1\n")
        files, parts = "{path: mine.svm}", "{all: {data: mine.svm}}"
    else:
        with np.errstate(over="ignore"):
            np.save(tmp_path / "x.npy", np.array([[1, 2], [float(value), 1], [0, 1]]))
        np.save(tmp_path / "y.npy", np.array([0, 1, 0]))
        files, parts = "{path: x.npy}, {path: y.npy}", "{all: {data: x.npy, labels: y.npy}}"
    config = tmp_path / "mine.yaml"
    config.write_text(f"name: mine\nformat: {kind}\nfiles: [{files}]\nparts: {parts}\n")
    assert run(xsoftmax("download", config, "-o", tmp_path / "raw")).returncode == 0
    done = run(xsoftmax("prepare", config, "--raw", tmp_path / "raw", "-o", tmp_path / "mine.h5"))
    assert done.returncode == 1, done.stderr
    assert str(tmp_path / ("mine.svm" if kind == "svmlight" else "x.npy")) in done.stderr
    assert not (tmp_path / "mine.h5").exists()
