import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import forked
from edited import edited
from xsoftmax import __version__
from xsoftmax.cli import _parser, main
from xsoftmax.commands import evaluate, verbs
from xsoftmax.internal.errors import EXTRAS
from xsoftmax.internal.hdf5 import put
from xsoftmax.training.callbacks import Callback

ROOT = Path(__file__).parents[1]


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


SMALL = json.dumps({"proposal": {"n_sampled": 2}})


def test_an_unknown_verb_is_a_wrong_call(capsys):
    assert status_of("fly") == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err
    assert status_of() == 2


def test_version_and_help(capsys):
    assert status_of("--version") == 0
    assert __version__ in capsys.readouterr().out
    assert status_of("--help") == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in verbs())


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_explains_itself(verb, capsys):
    assert status_of(verb, "--help") == 0
    shown = capsys.readouterr().out
    assert len(shown) > 100
    (example,) = re.findall(rf"^ *xsoftmax ({verb}\b.*)$", shown, re.MULTILINE)
    _parser(example.split()).parse_args(example.replace("@grid.json", "{}").split())


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


class Forbidden(Callback):
    """A fit that begins fails the test."""

    def begin(self, fit):
        pytest.fail(f"a budget of {fit.plan.budget} is taken")


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
        monkeypatch.setattr("xsoftmax.commands.train.observers", lambda options: [Forbidden()])
    assert training(data, tmp_path, *arguments) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(("budget", "status"), [([], 1), (["--epochs", 1, "--seconds", 1], 2)])
def test_one_budget_must_be_given(data, tmp_path, budget, status):
    assert training(data, tmp_path, *budget) == status
    assert not (tmp_path / "fit").exists()


def test_the_verb_may_be_in_a_file(data, tmp_path, capsys):
    (tmp_path / "words").write_text(f"train\n{data}\n--method\nsoftmax\n--epochs\n1\n-o\n{tmp_path / 'fit'}\n")
    assert main([f"@{tmp_path / 'words'}"]) == 0
    assert (tmp_path / "fit" / "model.h5").exists()
    with pytest.raises(SystemExit):
        main([f"@{tmp_path / 'nothing'}"])
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["auto", "softmax"])
def test_a_fit_that_is_done_removes_its_checkpoint(data, tmp_path, capsys, method):
    kept = ("--checkpoint", tmp_path / "kept.h5", "--checkpoint-seconds", 0)
    assert status_of("train", data, "--method", method, "--epochs", 2, *kept, "-o", tmp_path / "fit") == 0
    assert [path.name for path in tmp_path.glob("*kept*")] == []
    capsys.readouterr()
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", data, "--delimiter", ";") == 1
    assert "--delimiter is for .csv and .tsv, and rows are in" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["auto", "softmax"])
def test_no_seconds_are_no_steps(data, tmp_path, method):
    assert status_of("train", data, "--method", method, "--seconds", 0, "-o", tmp_path / "fit") == 0
    assert json.loads((tmp_path / "fit" / "status.json").read_text())["step"] == 0


def test_train_and_evaluate(data, tmp_path, capsys):
    assert training(data, tmp_path, "--epochs", 3, "--points", 3) == 0
    assert sorted(path.name for path in (tmp_path / "fit").iterdir()) == ["history.csv", "model.h5", "status.json"]
    capsys.readouterr()
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", data) == 0
    printed = json.loads(capsys.readouterr().out)
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", data, "-o", tmp_path / "metrics.json") == 0
    assert json.loads((tmp_path / "metrics.json").read_text()) == printed
    assert printed["status"] == "finished"
    with (tmp_path / "fit" / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    best = max(rows, key=lambda row: float(row["validation_log_likelihood"]))
    assert float(best["test_log_likelihood"]) == pytest.approx(printed["test"]["log_likelihood"], rel=1e-12)
    assert float(best["validation_top_3_accuracy"]) == pytest.approx(
        printed["validation"]["top_3_accuracy"], rel=1e-12
    )
    assert json.loads((tmp_path / "fit" / "status.json").read_text())["kept"]["epoch"] == float(best["epoch"])


def test_evaluating_on_other_data_is_refused(data, prepare, tmp_path, capsys):
    assert training(data, tmp_path, "--epochs", 0) == 0
    other = prepare(np.eye(4), np.arange(4), 4, name="other")
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", other) == 1
    assert "other classes than other; train it on this data set" in capsys.readouterr().err


@pytest.mark.slow
def test_evaluating_on_other_features_is_refused(tmp_path, capsys):
    """Such as other words: as many, and the same classes, but what a column means differs."""
    for name, words in (("one", "abcd"), ("two", "cdef")):
        rows = "".join(f"{words[k % 4]}{words[k % 4]} and {words[k % 2]}x,{k % 4}\n" for k in range(80))
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{rows}")
        told = "format: table\noptions: {text: text, label: label}\nsplit: {validation: 0.2, test: 0.2, seed: 0}\n"
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\n{told}files: [{{path: {name}.csv}}]\n")
        assert status_of("download", tmp_path / f"{name}.yaml", "-o", tmp_path / name) == 0
        prepared = tmp_path / f"{name}.h5"
        assert status_of("prepare", tmp_path / f"{name}.yaml", "--raw", tmp_path / name, "-o", prepared) == 0
    one, two, tree = tmp_path / "one.h5", tmp_path / "two.h5", tmp_path / "tree.h5"
    assert training(one, tmp_path, "--epochs", 1) == 0
    assert status_of("proposal", one, "--kind", "tree", "--set", '{"dimension": 2}', "-o", tree) == 0
    capsys.readouterr()
    for model in (tmp_path / "fit" / "model.h5", tree):
        assert status_of("evaluate", model, one) == 0
        assert status_of("evaluate", model, two) == 1
        assert "has other features than" in capsys.readouterr().err
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", tmp_path / "two.csv") == 0
    assert "rows have no feature that the model knows; they count" not in capsys.readouterr().err
    (tmp_path / "unknown.csv").write_text("text,label\nqq,1\naa,0\nqq,2\n")
    assert status_of("evaluate", tmp_path / "fit" / "model.h5", tmp_path / "unknown.csv") == 0
    assert "2 of 3 rows have no feature that the model knows; they count" in capsys.readouterr().err
    changes = [
        "--set",
        '{"proposal": {"dimension": 2}}',
        "--epochs",
        "1",
        "--proposal",
        tree,
        "-o",
        tmp_path / "other",
    ]
    assert status_of("train", two, "--method", "adversarial", *changes) == 1
    assert "a proposal that was fitted to other data" in capsys.readouterr().err


def test_a_damaged_model_is_an_input_error(tmp_path, data, capsys):
    (tmp_path / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert status_of("evaluate", tmp_path / "model.h5", data) == 1
    assert "model.h5: no checksum at its end" in capsys.readouterr().err
    (tmp_path / "model.h5").unlink()
    with edited(tmp_path / "model.h5") as file:
        put(file, kind="picture")
    assert status_of("evaluate", tmp_path / "model.h5", data) == 1
    assert "holds 'picture', not a model or a proposal" in capsys.readouterr().err


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


@pytest.mark.fault(
    "an error that nobody thought of",
    happens="a line on standard error, status 1; with `--traceback` where in the code it was",
    user="`error: ValueError: …; this should not happen: run it again with --traceback …`",
)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such thing\nat all"), "ValueError: no such thing; this should not happen: run it again with"),
        (KeyError("name"), "KeyError: 'name'; this should not happen"),
        (
            MemoryError("Unable to allocate 8 TiB"),
            "not enough memory (MemoryError: Unable to allocate 8 TiB); free some",
        ),
        (RecursionError("maximum"), "nested too deeply; make it flatter"),
        (OSError(28, "No space left on device", "x"), "x: No space left on device; make room on the disk"),
        (OSError(5, "Input/output error"), "Input/output error; the disk or the network's file system has failed"),
        (
            OSError(12, "Cannot allocate memory"),
            "not enough memory (OSError: [Errno 12] Cannot allocate memory); free",
        ),
        (ImportError("x.so: failed to map segment from shared object"), "not enough memory (ImportError: x.so"),
        (OSError("nothing known"), "OSError: nothing known; this should not happen"),
    ],
)
def test_any_exception_is_a_line_at_the_door(error, said, data, capsys, monkeypatch):
    def fail(options):
        raise error

    monkeypatch.setattr(evaluate, "run", fail)
    assert status_of("evaluate", "model.h5", data) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert said in shown
    assert shown.count("\n") == 1
    for words in (["--traceback", "evaluate", "model.h5", data], ["evaluate", "model.h5", data, "--traceback"]):
        with pytest.raises(type(error)):
            main([str(word) for word in words])


def test_ctrl_c_is_no_traceback(data, capsys, monkeypatch):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "run", interrupted)
    assert status_of("evaluate", "model.h5", data) == 130
    assert capsys.readouterr().err == "stopped: interrupted; what was there is still there\n"


def test_closed_standard_output_is_an_error_where_it_would_get_the_results(data):
    command = f"{sys.executable} -m xsoftmax evaluate none.h5 {data} >&-"
    ended = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: standard output is closed; name a file with -o, or send it somewhere: > FILE\n"


def under(data, **environment):
    words = [sys.executable, "-m", "xsoftmax", "evaluate", "none.h5", str(data)]
    return subprocess.run(words, env={**os.environ, **environment}, capture_output=True, check=False)


@pytest.mark.parametrize(("value", "taken"), [("4,2", True), (" 2 ", True), ("", True), ("x", False), ("-1", False)])
def test_threads_of_the_environment(value, taken, data):
    said = under(data, OMP_NUM_THREADS=value).stderr.decode()
    assert ("none.h5: no such file" in said) == taken
    assert taken or f"OMP_NUM_THREADS is '{value}'; set it to a number of threads" in said
    assert "Traceback" not in said


@pytest.mark.fault(
    "a locale that knows no letters but those of ASCII",
    happens="files are read and written in UTF-8 all the same, and so is what is printed",
    user="nothing",
)
def test_an_ascii_locale(tmp_path):
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    rows = "".join(f"Zoë isst {'Äpfel' if k % 2 else 'Nüsse'},{'Ä' if k % 2 else '汉字'}\n" for k in range(60))
    (tmp_path / "rows.csv").write_bytes(("text,label\n" + rows).encode())
    (tmp_path / "mine.yaml").write_bytes(
        "name: mine\ntitle: Zoë\nformat: table\nfiles: [{path: rows.csv}]\noptions: {text: text}\n".encode()
    )
    (tmp_path / "methods.yaml").write_bytes(f"softmax: {METHOD}  # Zoë\n".encode())
    steps = [
        ["download", "mine.yaml", "-o", "raw"],
        ["prepare", "mine.yaml", "--raw", "raw", "-o", "mine.h5"],
        ["train", "mine.h5", "--methods", "methods.yaml", "--method", "softmax", "--epochs", "30", "-o", "fit"],
        ["evaluate", "fit/model.h5", "mine.h5"],
        ["predict", "fit/model.h5", "rows.csv", "--top", "1"],
        ["predict", "fit/model.h5", "rows.csv", "--top", "1", "-o", "out.csv"],
    ]
    for step in steps:
        done = forked.run(forked.xsoftmax(*step), cwd=tmp_path, env={**os.environ, **environment})
        assert done.returncode == 0, done.stderr
        if step[0] == "predict" and "-o" not in step:
            assert "0,1,汉字," in done.stdout
    assert "0,1,汉字," in (tmp_path / "out.csv").read_text(encoding="utf-8")


METHOD = "{objective: {name: softmax}, proposal: {name: all}, optimizer: {name: adagrad, learning_rate: 1}}"


HEAVY = ("PIL", "jinja2", "matplotlib", "mlflow", "pandas", "pyarrow", "seaborn", "simple_icd_10_cm", "sklearn")


def test_help_imports_nothing_that_an_installation_may_lack():
    program = f"""
import contextlib, sys
from xsoftmax import cli
from xsoftmax.commands import verbs
light = not {{"numpy", "scipy", "numba", "h5py"}} & set(sys.modules)
for words in [["--help"], *([verb, "--help"] for verb in verbs())]:
    with contextlib.suppress(SystemExit):
        cli.main(words)
    if found := set(sys.modules) & set({HEAVY}):
        sys.exit(f"{{words}} imports {{found}}")
sys.exit(not light)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.count("usage: ") == 1 + len(verbs())


@pytest.mark.parametrize(
    ("module", "extra", "arguments"),
    [
        ("pandas", "report", ["compare", "none", "-o", "out"]),
        ("pandas", "report", ["snr", "none.h5", "-o", "out.csv"]),
        ("matplotlib", "report", ["figures", "none", "-o", "out"]),
        ("jinja2", "report", ["report", "none", "--config", "none.yaml", "-o", "out.html"]),
        ("seaborn", "report", ["paper", "none", "--paper", "ruiz2018", "-o", "out"]),
        ("pandas", "report", ["benchmark", "peers"]),
        ("torch", "gpu", ["benchmark", "gpu"]),
    ],
)
def test_what_is_not_installed_is_named_with_what_to_type(module, extra, arguments, tmp_path):
    """As a program of its own: here the modules are imported already."""
    hidden = f"import sys; sys.modules['{module}'] = None; from xsoftmax.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", hidden, *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    said = f"error: {module} is not installed, which this needs; type: pip install 'xsoftmax[{extra}]'\n"
    assert ended.stderr == said
    assert not any(tmp_path.iterdir())


def test_extras_bring_what_the_message_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {"PIL": "pillow", "faiss": "faiss-cpu", "sqlalchemy": "mlflow"}
    for module, extra in EXTRAS.items():
        assert any(
            entry.startswith(brought.get(module, module.replace("_", "-")) + ">") for entry in project[extra]
        ), module
