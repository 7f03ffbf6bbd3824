"""Whole fits on PyTorch: the same files, curves and checkpoints, and the optimum of compiled code."""

import json

import numpy as np
import pytest
import yaml

from gpu.problems import DEVICE, method_of
from training.interruptions import KillAfter, KilledError
from training.problems import K, curve, rows
from training.same_fit import fit_of
from xsoftmax.cli import main
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.model import load_model
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

SOFTMAX = ("softmax", "all", "adagrad")
METHODS = {
    "softmax": (SOFTMAX, {}),
    "averaged": (SOFTMAX, {"average": "half", "decay": 0.5}),
    "one-vs-each": (("one-vs-each", "uniform", "adagrad"), {"average": "all"}),
    "shared": (("nce", "frequency", "sgd"), {"batch": {"size": 16, "shared": True}}),
    "u-max": (("double-sum", "uniform", "u-max"), {"batch": {"size": 1}}),
    "augment-reduce": (("augment-reduce", "head", "sgd"), {"start": "class-means"}),
}
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(scope="session")
def files(prepare):
    return {kind: prepare(*rows(), K, n_validation=50, n_test=50, sparse=kind == "csr") for kind in ("dense", "csr")}


def chosen(name, device):
    names, others = METHODS[name]
    return method_of(names, device, **others)


def trained(path, method, callbacks=(), **plan):
    with open_prepared(path) as data:
        return fit(data, method, 3, Plan(**({"epochs": 6, "keep": "last"} | plan)), callbacks=callbacks)


@pytest.mark.long_cases
@every_method
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_its_curve_is_that_of_compiled_code(name, kind, files):
    ours, theirs = (trained(files[kind], chosen(name, device)) for device in (DEVICE, "numba"))
    assert ours.state.status == theirs.state.status == "finished"
    for mine, other in zip(curve(ours), curve(theirs), strict=True):
        assert mine.keys() == other.keys()
        assert mine["step"] == other["step"]
        assert mine["validation_log_likelihood"] == pytest.approx(other["validation_log_likelihood"], abs=1e-4)
    first, last = (ours.state.history[at]["validation_log_likelihood"] for at in (0, -1))
    assert last > first + 0.01
    assert np.allclose(ours.model.W, theirs.model.W, atol=1e-3)


@pytest.mark.slow
def test_it_reaches_the_optimum(files):
    """That of L-BFGS, with an L2 penalty: within 0.001 nats."""
    l2 = {"l2": 1.0}
    best = trained(files["dense"], method_of(("softmax", "all", "lbfgs"), "numba", **l2), epochs=200)
    optimizer = {"name": "sgd", "learning_rate": 2.0}
    method = method_of(("softmax", "all", "sgd"), DEVICE, **l2, optimizer=optimizer, schedule={"name": "linear"})
    ours = trained(files["dense"], method, epochs=300)
    found, expected = (each.state.history[-1]["train_log_likelihood"] for each in (ours, best))
    assert found == pytest.approx(expected, abs=1e-3)


@every_method
def test_killed_and_resumed_it_ends_with_the_same_bits(name, files, tmp_path):
    method = chosen(name, DEVICE)
    whole = trained(files["dense"], method)
    checkpoint = tmp_path / "checkpoint.h5"
    with pytest.raises(KilledError):
        trained(files["dense"], method, [KillAfter(3, save=True)], checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = trained(files["dense"], method, checkpoint=checkpoint)
    assert np.array_equal(resumed.model.W, whole.model.W)
    assert curve(resumed) == curve(whole)


def test_a_checkpoint_of_compiled_code_is_not_gone_on_from(files, tmp_path):
    checkpoint = tmp_path / "checkpoint.h5"
    with pytest.raises(KilledError):
        trained(files["dense"], chosen("softmax", "numba"), [KillAfter(2, save=True)], checkpoint=checkpoint)
    resumed = trained(files["dense"], chosen("softmax", DEVICE), checkpoint=checkpoint)
    assert np.array_equal(resumed.model.W, trained(files["dense"], chosen("softmax", DEVICE)).model.W)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_that_stay_in_their_file_are_trained_on(kind, files):
    method = chosen("softmax", DEVICE)
    first, second = (trained(files[kind], method, stream=True) for _ in range(2))
    assert first.streamed
    assert np.array_equal(first.model.W, second.model.W)
    held = trained(files[kind], method)
    likelihoods = [each.state.history[-1]["train_log_likelihood"] for each in (first, held)]
    assert likelihoods[0] == pytest.approx(likelihoods[1], abs=0.05)


@pytest.mark.parametrize("positives", ["mean", "sum"])
def test_softmax_takes_rows_with_several_labels(positives):
    X, y = rows()
    labels = [sorted({int(k), int(k + i) % K}) for i, k in enumerate(y)]
    data = Dataset.from_arrays(X.astype(np.float32), labels)
    ours, theirs = (
        fit(data, method_of(SOFTMAX, device, positives=positives), 0, Plan(epochs=3, keep="last"))
        for device in (DEVICE, "numba")
    )
    assert np.allclose(ours.model.W, theirs.model.W, atol=1e-4)
    single = method_of(("nce", "frequency", "sgd"), batch={"size": 1})
    with pytest.raises(InputError, match="rows have several labels, and objective nce with proposal frequency meets"):
        fit(data, single, 0, Plan(epochs=1))


def test_a_device_that_is_not_there_is_one_line_and_no_file(files, tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a card here")
    changes = json.dumps({"device": "cuda"})
    words = ["train", str(files["dense"]), "--method", "softmax", "--set", changes, "--epochs", "1"]
    assert main([*words, "-o", str(tmp_path / "fit")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: method softmax: device is cuda, and PyTorch ")
    assert said.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_the_command_writes_the_same_files(files, tmp_path):
    settings = {
        "softmax": {key: value for key, value in chosen("softmax", DEVICE).settings.items() if key != "encoder"}
    }
    methods = tmp_path / "methods.yaml"
    methods.write_text(yaml.safe_dump(settings))
    made = []
    for out in ("first", "second"):
        folder = tmp_path / out
        words = ["train", str(files["dense"]), "--methods", str(methods), "--method", "softmax", "--epochs", "2"]
        assert main([*words, "-o", str(folder)]) == 0
        made.append(fit_of(folder))
    assert made[0] == made[1]
    status = json.loads((tmp_path / "first" / "status.json").read_text())
    assert (status["device"]["asked"], status["device"]["used"]) == (DEVICE, DEVICE)
    assert load_model(tmp_path / "first" / "model.h5").W.shape[0] == K
