"""From a user's own table of texts to predictions, by the command line."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import forked
from xsoftmax.cli import main
from xsoftmax.model import load_model

CONFIG = """
name: pets
format: table
files: [{path: pets.csv}]
options: {text: comment, label: animal}
text: {min_df: 1}
normalize: l2
split: {validation: 6, test: 6}
"""
WORDS = {"cat, house": "meow purr", "dog": "woof fetch", 'bird "wild"': "tweet fly", "fish": "bubble swim"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pets")
    rng = np.random.default_rng(0)
    with (folder / "pets.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["comment", "animal"])
        for _ in range(30):
            rows.writerows([f"{words}, the {rng.choice(['a', 'b', 'c'])}", name] for name, words in WORDS.items())
    (folder / "pets.yaml").write_text(CONFIG)
    calls = [
        ["download", folder / "pets.yaml", "-o", folder / "raw"],
        ["prepare", folder / "pets.yaml", "--raw", folder / "raw", "-o", folder / "pets.h5"],
        ["train", folder / "pets.h5", "--method", "implicit-sgd", "--epochs", 5, "-o", folder / "fit"],
    ]
    for call in calls:
        assert main([str(word) for word in call]) == 0
    return folder / "fit" / "model.h5"


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text('id,comment\n1,"meow, purr!"\n2,fetch\n3,"a\nbubble"\n4,zebra\n')
    return path


def predict(*arguments):
    return main(["predict", *map(str, arguments)])


def table(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_likeliest_classes_are_printed(model, new, capsys):
    assert predict(model, new, "--top", 2) == 0
    lines = table(capsys.readouterr().out)
    assert list(lines[0]) == ["row", "rank", "class", "probability", "text"]
    assert [(int(line["row"]), int(line["rank"])) for line in lines] == [
        (i, rank) for i in range(4) for rank in (1, 2)
    ]
    assert [line["class"] for line in lines[:6:2]] == ["cat, house", "dog", "fish"]
    for first, second in zip(lines[::2], lines[1::2], strict=True):
        assert float(first["probability"]) >= float(second["probability"]) > 0


def test_probabilities_of_all_classes_fall_and_sum_to_one(model, new, tmp_path, capsys):
    assert predict(model, new, "-o", tmp_path / "out.csv") == 0
    assert capsys.readouterr().out == ""
    written = (tmp_path / "out.csv").read_bytes().decode()
    lines = table(written)
    for row in range(4):
        of_row = [line for line in lines if line["row"] == str(row)]
        probabilities = [float(line["probability"]) for line in of_row]
        assert {line["class"] for line in of_row} == set(WORDS)
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1, abs=1e-5)
    assert predict(model, new) == 0
    assert capsys.readouterr().out == written


def test_probabilities_are_the_softmax_of_the_scores(model, new, capsys):
    assert predict(model, new) == 0
    found = table(capsys.readouterr().out)
    loaded = load_model(model)
    X = loaded.transform.features_of(new).toarray().astype(np.float64)
    shares = np.exp(X @ loaded.rows[:, :-1].T + loaded.rows[:, -1])
    shares /= shares.sum(axis=1, keepdims=True)
    for line in found:
        expected = shares[int(line["row"]), loaded.class_names.index(line["class"])]
        assert float(line["probability"]) == pytest.approx(expected, rel=1e-4)


def test_one_text_per_line(model, tmp_path, capsys):
    (tmp_path / "new.txt").write_text("meow\nwoof\n")
    assert predict(model, tmp_path / "new.txt", "--top", 1) == 0
    assert [line["class"] for line in table(capsys.readouterr().out)] == ["cat, house", "dog"]


def test_rows_come_from_standard_input(model, new, capsys, monkeypatch):
    assert predict(model, new, "--top", 2) == 0
    expected = table(capsys.readouterr().out)
    assert predict(model, "-", "--form", "csv", "--top", 2) == 1  # pytest has closed it
    assert capsys.readouterr().err.startswith("error: ")
    for content, form in ((new.read_bytes(), ["--form", "csv"]), (b"meow, purr!\nfetch\n", [])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert predict(model, "-", *form, "--top", 2) == 0
        found = table(capsys.readouterr().out)
        assert found == expected[: len(found)]
        assert len(found) == (8 if form else 4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"qq\n")))
    assert predict(model, "-") == 0
    assert "warning: standard input: 1 of 1 rows have no feature" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert predict(model, "-") == 1
    assert "error: standard input: the file is empty" in capsys.readouterr().err
    assert predict(model, new, "--form", "csv") == 1
    assert f"--form is csv, and rows are in {new}; leave it out, or name -" in capsys.readouterr().err


def test_parquet_comes_from_standard_input(model, new, tmp_path, capsys, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pandas.read_csv(new).to_parquet(tmp_path / "new.parquet")
    assert predict(model, tmp_path / "new.parquet") == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "new.parquet").read_bytes())))
    assert predict(model, "-", "--form", "parquet") == 0
    assert capsys.readouterr().out == expected


def test_json_lines_are_read(model, new, tmp_path, capsys, monkeypatch):
    assert predict(model, new) == 0
    expected = capsys.readouterr().out
    with new.open(newline="") as file:
        (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in csv.DictReader(file)))
    assert predict(model, tmp_path / "new.jsonl") == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "new.jsonl").read_bytes())))
    assert predict(model, "-", "--form", "jsonl") == 0
    assert capsys.readouterr().out == expected


def test_in_a_pipe_nothing_is_printed_but_predictions(model, new):
    for form in ([], ["--json-lines"]):
        ended = forked.run(forked.xsoftmax("predict", model, new, "--top", 1, *form))
        said = "1 of 4 rows have no feature that the model knows; they get what is likeliest of any"
        assert (ended.returncode, ended.stderr) == (0, f"warning: {new}: {said}\n")
        assert len(ended.stdout.splitlines()) >= 4


def test_a_json_object_per_row_says_the_same(model, new, tmp_path, capsys):
    assert predict(model, new, "--top", 2) == 0
    expected = table(capsys.readouterr().out)
    assert predict(model, new, "--top", 2, "--json-lines", "-o", tmp_path / "found.jsonl") == 0
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["row"] for each in found] == [0, 1, 2, 3]
    flat = [(row["row"], rank, each) for row in found for rank, each in enumerate(row["classes"], start=1)]
    assert [(int(line["row"]), int(line["rank"])) for line in expected] == [each[:2] for each in flat]
    assert [line["class"] for line in expected] == [each["class"] for _, _, each in flat]
    assert [float(line["probability"]) for line in expected] == [each["probability"] for _, _, each in flat]
    assert [each["text"] for each in found] == ["meow, purr!", "fetch", "a\nbubble", "zebra"]


def test_a_carriage_return_within_a_text_is_quoted(model, tmp_path, capsys):
    """A text of new rows may have one; unquoted it ends a line for most programs."""
    (tmp_path / "new.csv").write_bytes(b'comment\n"meow\rpurr"\nwoof\n')
    assert predict(model, tmp_path / "new.csv", "--top", 1, "-o", tmp_path / "out.csv") == 0
    written = (tmp_path / "out.csv").read_bytes()
    assert b"\r\n" not in written
    assert [line["text"] for line in table(written.decode())] == ["meow\rpurr", "woof"]
    assert predict(model, tmp_path / "new.csv", "--top", 1) == 0
    assert capsys.readouterr().out.encode() == written


WRONG = [
    ("none.csv", None, "none.csv: no such file"),
    ("empty.csv", "", "empty.csv: the file is empty"),
    ("other.csv", "text,id\nmeow,1\n", "no column 'comment'; columns: text, id; rename one"),
    ("ragged.csv", "comment,id\nmeow\n", "ragged.csv, line 2: 1 cells, the first line has 2"),
    ("binary.txt", b"\xff\xfe", "binary.txt, line 1: not utf-8"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG, ids=[name for name, *_ in WRONG])
def test_wrong_rows_are_errors(model, tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert predict(model, tmp_path / name, "-o", tmp_path / "out.csv") == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.out == ""
    assert not (tmp_path / "out.csv").exists()


def test_wrong_models_and_numbers_are_errors(model, new, tmp_path, capsys):
    for file in (tmp_path / "none.h5", new, model.parents[1] / "pets.h5"):
        assert predict(file, new) == 1
        assert str(file) in capsys.readouterr().err
    assert predict(model, new, "--top", 0) == 1
    assert "--top is 0; set it to 1 or more" in capsys.readouterr().err


def test_threads_change_nothing(model, new, capsys):
    for verb, rows in (("predict", new), ("evaluate", model.parents[1] / "pets.h5")):
        told = []
        for n_threads in (1, 2):
            assert main([verb, str(model), str(rows), "--threads", str(n_threads)]) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1] != ""
        assert main([verb, str(model), str(rows), "--threads", "0"]) == 1
        assert "threads is 0; set it to 1 or more" in capsys.readouterr().err


def test_a_device_says_the_same(model, new, capsys):
    pytest.importorskip("torch", reason="torch is not installed: nothing is scored on its devices here")
    outputs = []
    for arguments in ((), ("--device", "cpu"), ("--device", "auto")):
        assert predict(model, new, "--top", 3, *arguments) == 0
        outputs.append(table(capsys.readouterr().out))
    expected, *others = outputs
    for found in others:
        for one, other in zip(found, expected, strict=True):
            assert {**one, "probability": ""} == {**other, "probability": ""}
            assert float(one["probability"]) == pytest.approx(float(other["probability"]), rel=1e-5)


@pytest.mark.fault(
    "`evaluate` or `predict` with `--device cuda`, and PyTorch finds no card",
    happens="refused before the model is read; nothing is written",
    user="one line: which PyTorch it is, and what to do",
)
def test_a_device_that_is_not_there_is_named(model, new, tmp_path, capsys):
    torch = pytest.importorskip("torch", reason="torch is not installed: its absence is another message")
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    for arguments in (["predict", model, new], ["evaluate", model, new]):
        assert main([*map(str, arguments), "--device", "cuda", "-o", str(tmp_path / "out")]) != 0
        assert "--device is cuda, and PyTorch" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.fault(
    "eight predictions at once from one model",
    happens="each gives the same bytes",
    user="nothing",
)
@pytest.mark.slow
def test_eight_at_once_say_the_same(prepare, tmp_path, capsys):
    """Nothing that one reads or keeps, such as compiled code, disturbs another."""
    rng, n = np.random.default_rng(0), 60
    data = prepare(rng.random((n, 5)), np.arange(n) % 3, 3, n_validation=6, sparse=True)
    train = ["train", data, "--method", "implicit-sgd", "--epochs", 1, "-o", tmp_path / "fit"]
    assert main([str(word) for word in train]) == 0
    (tmp_path / "new.svm").write_text("".join(f"0 1:{x:.3f} 4:1\n" for x in rng.random(50)))
    call = ["predict", str(tmp_path / "fit" / "model.h5"), str(tmp_path / "new.svm")]
    capsys.readouterr()
    assert main(call) == 0
    alone = capsys.readouterr().out.encode()
    command = [sys.executable, "-m", "xsoftmax", *call]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    told = [program.communicate() for program in programs]
    assert [program.returncode for program in programs] == [0] * 8, told
    assert {out for out, _ in told} == {alone}
