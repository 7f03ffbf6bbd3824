import json
import subprocess
import sys

import numpy as np
import pytest

from edited import edited
from xsoftmax import __version__, registry
from xsoftmax.cli import main


def status_of(*arguments):
    """Exit status, also where the parser itself ends the program."""
    try:
        return main([str(word) for word in arguments])
    except SystemExit as end:
        return end.code


@pytest.fixture
def data(prepare):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return prepare(np.eye(3)[y] + 0.1 * rng.standard_normal((60, 3)), y, 3, n_validation=10, n_test=10)


def training(data, folder, *others):
    return status_of("train", data, "--method", "negative-uniform", "--set", SMALL, "-o", folder / "fit", *others)


SMALL = json.dumps({"objective": {"n_sampled": 2}})


def test_an_unknown_verb_is_a_wrong_call(capsys):
    assert status_of("fly") == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err
    assert status_of() == 2


def test_version_and_help(capsys):
    assert status_of("--version") == 0
    assert __version__ in capsys.readouterr().out
    assert status_of("--help") == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in registry.names("xsoftmax.commands"))


@pytest.mark.parametrize("verb", registry.names("xsoftmax.commands"))
def test_every_verb_explains_itself(verb, capsys):
    assert status_of(verb, "--help") == 0
    assert len(capsys.readouterr().out) > 100


def test_an_input_error_is_one_line_on_stderr(tmp_path, capsys):
    assert training(tmp_path / "none.h5", tmp_path, "--epochs", 1) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert "none.h5: no such file; make it with `python -m xsoftmax prepare`" in shown.err
    assert "Traceback" not in shown.err


def test_the_exit_status_of_the_real_program(tmp_path):
    command = [sys.executable, "-m", "xsoftmax", "evaluate", str(tmp_path / "none.h5"), "none.h5"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", -1], "budget is -1; set it to 0 or more"),
        (["--seconds", -0.5], "budget is -0.5; set it to 0 or more"),
        (["--seconds", "nan"], "nan"),
        (["--epochs", 1, "--points", 0], "points is 0; set it to 1 or more"),
        (["--epochs", 1, "--patience", -1], "patience is -1"),
        (["--epochs", 1, "--seed", -1], "seed is -1"),
        (["--epochs", 1, "--method", "none"], "unknown method 'none'"),
        (["--epochs", 1, "--methods", "none.yaml"], "none.yaml: no such file"),
        (["--epochs", 1, "--set", "{"], "--set '{' is not JSON"),
        (["--epochs", 1, "--set", "[1]"], "--set"),
        (["--epochs", 1, "--set", "null"], "--set"),
    ],
)
def test_wrong_options_of_train(data, tmp_path, capsys, arguments, message, monkeypatch):
    if "nan" in arguments:  # it would train for ever
        monkeypatch.setattr("xsoftmax.training.fit._Fit.run", lambda self: pytest.fail("a budget of nan is taken"))
    assert training(data, tmp_path, *arguments) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("budget", [[], ["--epochs", 1, "--seconds", 1]])
def test_one_budget_must_be_given(data, tmp_path, budget):
    assert training(data, tmp_path, *budget) == 2


def test_train_and_evaluate(data, tmp_path, capsys):
    assert training(data, tmp_path, "--epochs", 3, "--points", 3) == 0
    assert sorted(path.name for path in (tmp_path / "fit").iterdir()) == ["history.csv", "model.h5", "status.json"]
    capsys.readouterr()
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", data) == 0
    printed = json.loads(capsys.readouterr().out)
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", data, "-o", tmp_path / "metrics.json") == 0
    assert json.loads((tmp_path / "metrics.json").read_text()) == printed
    assert printed["status"] == "finished"
    last = (tmp_path / "fit" / "history.csv").read_text().splitlines()
    last = dict(zip(last[0].split(","), last[-1].split(","), strict=True))
    assert float(last["test_log_likelihood"]) == pytest.approx(printed["test"]["log_likelihood"], rel=1e-12)
    assert float(last["validation_p_at_3"]) == pytest.approx(printed["validation"]["p_at_3"], rel=1e-12)


def test_evaluating_on_other_data_is_refused(data, prepare, tmp_path, capsys):
    assert training(data, tmp_path, "--epochs", 0) == 0
    other = prepare(np.eye(4), np.arange(4), 4, name="other")
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", other) == 1
    assert "other classes than other; train it on this data set" in capsys.readouterr().err


def test_a_damaged_model_is_an_input_error(tmp_path, data, capsys):
    (tmp_path / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert status_of("evaluate", tmp_path / "model.h5", data) == 1
    assert "model.h5: no seal at its end" in capsys.readouterr().err
    (tmp_path / "model.h5").unlink()
    with edited(tmp_path / "model.h5") as file:
        file.attrs["kind"] = "picture"
    assert status_of("evaluate", tmp_path / "model.h5", data) == 1
    assert "holds 'picture', not a model or a tree" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m xsoftmax --help | head -c 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr


def test_a_mirror_may_be_named_by_the_environment(tmp_path, monkeypatch):
    (tmp_path / "mirror" / "mine").mkdir(parents=True)
    (tmp_path / "mirror" / "mine" / "mine.svm").write_text("1 1:2\n")
    source = '{name: mine.svm, urls: ["https://nowhere.invalid/mine.svm"]}'
    (tmp_path / "mine.yaml").write_text(f"name: mine\nformat: svmlight\nfiles: [{source}]\n")
    monkeypatch.setenv("XSOFTMAX_MIRROR", str(tmp_path / "mirror"))
    assert status_of("download", tmp_path / "mine.yaml", "-o", tmp_path / "raw") == 0
    assert (tmp_path / "raw" / "mine.svm").read_text() == "1 1:2\n"
