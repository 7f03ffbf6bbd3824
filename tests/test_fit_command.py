"""`xsoftmax fit`: from a file of labelled rows to a model, in one call, and what is said of it."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.internal.files import folder_aside
from xsoftmax.model import load_model

ANIMALS = ("cats", "cows", "dogs", "hens")


def reviews(path, n=400, delimiter=","):
    """Texts of which most words are of their class, and columns that no one asked for."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        lines = csv.writer(file, delimiter=delimiter)
        lines.writerow(["id", "comment", "product", "count"])
        for i in range(n):
            own, other = rng.choice(ANIMALS, 2)
            words = [f"{own}{k}" for k in rng.integers(0, 6, 3)] + [f"{other}{k}" for k in rng.integers(0, 6, 2)]
            lines.writerow([i, " ".join(words), own, 1 + i % 2])
    return path


def run(capsys, *words):
    """Exit status, and what was printed to standard output and standard error."""
    status = main(["fit", *map(str, words)])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_of_texts_becomes_a_model(ending, tmp_path, capsys):
    rows = reviews(tmp_path / f"reviews.{ending}", delimiter="\t" if ending == "tsv" else ",")
    asked = ["--text", "comment", "--label", "product", "--method", "softmax", "--epochs", 5, "--weight", "count"]
    status, out, _ = run(capsys, rows, *asked, "-o", tmp_path / "model.h5")
    assert status == 0
    assert f"{rows}: rows 400, classes 4, features 24" in out
    assert float(re.search(r"^test accuracy (\S+)$", out, re.MULTILINE)[1]) > 0.8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.h5", rows.name]
    assert load_model(tmp_path / "model.h5").class_names[:] == list(ANIMALS)
    assert main(["predict", str(tmp_path / "model.h5"), str(rows), "--top", "1"]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    with rows.open() as file:
        true = [row["product"] for row in csv.DictReader(file, delimiter="\t" if ending == "tsv" else ",")]
    assert np.mean([row["class"] == label for row, label in zip(found, true, strict=True)]) > 0.8


def test_a_table_of_another_delimiter_and_encoding(tmp_path, capsys):
    lines = [f"{word} à la carte {k};{label}" for k in range(40) for word, label in (("thé", "à"), ("café", "é"))]
    (tmp_path / "rows.csv").write_bytes("\n".join(["text;label", *lines]).encode("latin-1"))
    asked = ["--text", "text", "--delimiter", ";", "--encoding", "latin-1", "--method", "softmax", "--epochs", 3]
    status, out, _ = run(capsys, tmp_path / "rows.csv", *asked, "-o", tmp_path / "model.h5")
    assert status == 0
    assert "test accuracy 1.0000" in out
    assert load_model(tmp_path / "model.h5").class_names[:] == ["à", "é"]


def test_rows_without_a_label_are_counted(tmp_path, capsys):
    lines = [f"soft and red {k},{label}" for k in range(20) for label in ("plum", "rose", "")]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *lines]))
    asked = ["--text", "text", "--method", "softmax", "--epochs", 1, "-o", tmp_path / "model.h5"]
    status, out, _ = run(capsys, tmp_path / "rows.csv", *asked)
    assert status == 0
    assert "rows.csv: rows 60, classes 2, features 16\nrows left out: 20 without a label\n" in out


MINE = """
mine:
  objective: {name: softmax}
  proposal: {name: all, batch_size: 8}
  optimizer: {name: adagrad, learning_rate: 0.5}
"""


def test_a_method_of_ones_own_is_trained(tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text(MINE)
    rows = reviews(tmp_path / "rows.csv")
    asked = ["--text", "comment", "--label", "product", "--methods", tmp_path / "mine.yaml", "--epochs", 3]
    assert run(capsys, rows, *asked, "--method", "mine", "-o", tmp_path / "model.h5")[0] == 0
    assert load_model(tmp_path / "model.h5").attributes["method"] == "mine"
    status, out, err = run(capsys, rows, *asked, "--method", "mien", "-o", tmp_path / "other.h5")
    assert status == 1
    assert "unknown method 'mien'; known: softmax, " in err
    assert not out, "rows are not read before that"
    assert "did you mean 'mine'" in err


def test_confusions_are_counted_by_name(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal() + k % 2:.3f},{rng.normal():.3f},{'hen' if k % 2 else 'cow'}" for k in range(400)]
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "\n".join(lines) + "\n")
    status, out, _ = run(capsys, tmp_path / "rows.csv", "--method", "softmax", "--epochs", 5, "-o", tmp_path / "m.h5")
    assert status == 0
    told = re.findall(r"^(\d+) x (hen|cow) taken for (hen|cow)$", out, re.MULTILINE)
    accuracy = float(re.search(r"^test accuracy (\S+)$", out, re.MULTILINE)[1])
    assert sum(int(n) for n, _, _ in told) == round(40 * (1 - accuracy)) > 0
    assert "wrong rows" not in out
    assert [step.kind for step in load_model(tmp_path / "m.h5").transform.steps] == ["standardize"]


def test_confusions_of_many_wrong_rows_say_how_many_were_looked_at(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("xsoftmax.evaluation.confusions.ROWS", 3)
    lines = [f"{k % 7},{('cow', 'hen', 'dog')[k * k % 5 % 3]}" for k in range(300)]
    (tmp_path / "rows.csv").write_text("a,label\n" + "\n".join(lines) + "\n")
    status, out, _ = run(capsys, tmp_path / "rows.csv", "--method", "softmax", "--epochs", 1, "-o", tmp_path / "m.h5")
    assert status == 0
    assert sum(int(n) for n in re.findall(r"^(\d+) x ", out, re.MULTILINE)) == 3
    assert re.search(r"^these are 3 of \d+ wrong rows; the others were not looked at$", out, re.MULTILINE)


def test_no_epochs_of_several_labels_are_none(tmp_path, capsys):
    lines = [f"{a} {b} and others,{a};{b}" for a in ANIMALS for b in ANIMALS if a < b for _ in range(20)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    asked = ["--text", "text", "--label-separator", ";", "-o", tmp_path / "model.h5"]
    for budget in ("--epochs", "--seconds"):
        status, out, err = run(capsys, tmp_path / "rows.csv", *asked, budget, 0)
        assert status == 0, err
        assert "one-vs-rest: finished after 0 epochs" in out + err


def test_a_separator_that_no_label_has_is_said(tmp_path, capsys):
    rows = reviews(tmp_path / "rows.csv")
    asked = ["--text", "comment", "--label", "product", "--label-separator", "|", "--epochs", 1]
    status, _, err = run(capsys, rows, *asked, "-o", tmp_path / "model.h5")
    assert status == 0
    assert "warning: rows: no row has several labels; if a table has them, look at options.label_sep" in err


def test_a_link_stays_and_a_pipe_gets_the_model(tmp_path, capsys):
    rows = reviews(tmp_path / "rows.csv", 50)
    asked = ["--text", "comment", "--label", "product", "--method", "softmax", "--epochs", 1]
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.h5").symlink_to(tmp_path / "folder" / "real.h5")
    (tmp_path / "folder" / "real.h5").write_text("of before")
    assert run(capsys, rows, *asked, "-o", tmp_path / "link.h5")[0] == 0
    assert (tmp_path / "link.h5").is_symlink()
    model = load_model(tmp_path / "folder" / "real.h5")
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cp", tmp_path / "pipe", tmp_path / "copy.h5"])
    try:
        assert run(capsys, rows, *asked, "-o", tmp_path / "pipe")[0] == 0
        assert reader.wait(60) == 0
    finally:
        reader.kill()
    assert np.array_equal(load_model(tmp_path / "copy.h5").rows, model.rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.h5", "folder", "link.h5", "pipe", "rows.csv"]


@pytest.mark.fault(
    "`fit` is ended by SIGTERM, or killed",
    happens="nothing is written; what was made on the way is removed, of a killed one by the next `fit` to that file",
    user="`stopped: nothing was written, and what was there is still there`, status 143",
)
def test_what_ends_a_fit_leaves_nothing(tmp_path, capsys):
    rows = reviews(tmp_path / "rows.csv", 2000)
    asked = ["--text", "comment", "--label", "product", "--method", "softmax", "--epochs", 10**6]
    words = [sys.executable, "-m", "xsoftmax", "fit", rows, *asked, "-o", tmp_path / "model.h5"]
    for number, status in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        end = time.monotonic() + 240
        program = subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True)
        try:
            while not list(tmp_path.glob(".model.h5.*.folder/data.h5")):
                assert program.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            program.send_signal(number)
            said = program.communicate(timeout=60)[1]
        finally:
            program.kill()
        assert program.returncode == status, said
        if number == signal.SIGTERM:
            assert "stopped: nothing was written" in said
            assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert list(tmp_path.glob(".model.h5.*.folder"))
    (tmp_path / ".model.h5.of-mine.folder").mkdir()
    assert run(capsys, rows, *asked[:-1], 1, "-o", tmp_path / "model.h5")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.h5.of-mine.folder", "model.h5", "rows.csv"]


def test_a_fit_is_ended_while_nobody_reads_its_model(tmp_path):
    rows = reviews(tmp_path / "rows.csv", 50)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "temporary").mkdir()
    words = ["fit", rows, "--text", "comment", "--label", "product", "--method", "softmax", "--epochs", 1]
    program = subprocess.Popen(
        [sys.executable, "-u", "-m", "xsoftmax", *map(str, words), "-o", tmp_path / "pipe"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    try:
        while "test accuracy" not in program.stdout.readline():
            assert program.poll() is None
        time.sleep(1)
        program.terminate()
        said = program.communicate(timeout=60)[1]
    finally:
        program.kill()
    assert program.returncode == 143
    assert "stopped: nothing was written" in said
    assert not list((tmp_path / "temporary").iterdir())


def test_a_mistake_in_a_method_is_said_before_that_there_is_no_budget(tmp_path, capsys):
    rows = reviews(tmp_path / "rows.csv", 50)
    asked = ["--text", "comment", "--label", "product", "-o", tmp_path / "model.h5"]
    assert "unknown method 'sofmax'" in run(capsys, rows, *asked, "--method", "sofmax")[2]
    status, out, err = run(capsys, rows, *asked, "--method", "softmax")
    assert (status, out) == (1, "")
    assert "no budget; give --epochs or --seconds" in err


def test_a_report_and_a_model_do_not_go_to_the_same_place(tmp_path):
    rows = reviews(tmp_path / "rows.csv", 50)
    words = ["fit", rows, "--text", "comment", "--label", "product", "-o", "/dev/stdout"]
    done = subprocess.run([sys.executable, "-m", "xsoftmax", *map(str, words)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"-o is /dev/stdout, standard output, where the report goes; name another file" in done.stderr


def test_a_fit_may_run_in_a_thread(tmp_path, capsys):
    rows = reviews(tmp_path / "rows.csv", 50)
    asked = ["--text", "comment", "--label", "product", "--method", "softmax", "--epochs", 1]
    status = []
    thread = threading.Thread(target=lambda: status.append(run(capsys, rows, *asked, "-o", tmp_path / "m.h5")[0]))
    thread.start()
    thread.join(240)
    assert status == [0]


def test_the_folder_of_a_running_fit_is_left_alone(tmp_path):
    with folder_aside(tmp_path / "model.h5") as first, folder_aside(tmp_path / "model.h5") as second:
        assert first.is_dir()
        assert second.is_dir()
        assert first != second
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", ["1.5", "1.0", "many"])
def test_a_share_is_below_one(tmp_path, capsys, share):
    with pytest.raises(SystemExit):
        run(capsys, reviews(tmp_path / "rows.csv", 50), "--label", "product", "--validation", share)
    assert f"{share} is neither a share below 1 nor a whole number of rows" in capsys.readouterr().err


def test_an_empty_cell_of_a_column_of_numbers_is_said_with_its_column(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,price,label\n1,2,x\n3,,y\n5,6,x\n")
    err = run(capsys, tmp_path / "rows.csv", "--method", "softmax", "--epochs", 1, "-o", tmp_path / "model.h5")[2]
    assert "rows.csv, line 3: column 'price' is empty; give a number, or leave the row out" in err


def test_classes_that_no_training_row_has_are_said(tmp_path, capsys):
    lines = [f"{word} {k},{word}" for k in range(30) for word in ANIMALS] + [f"rare {k},r{k}" for k in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *lines]))
    asked = ["--text", "text", "--method", "softmax", "--epochs", 1, "-o", tmp_path / "model.h5"]
    out = run(capsys, tmp_path / "rows.csv", *asked)[1]
    said = r"^rows left out: \d+ for the test, of classes that no training row has, which no model can learn$"
    assert re.search(said, out, re.MULTILINE)


def test_new_rows_may_be_written_in_another_way(tmp_path, capsys, monkeypatch):
    lines = [f"{word} à la carte {k};{label}" for k in range(40) for word, label in (("thé", "a"), ("crème", "b"))]
    (tmp_path / "rows.csv").write_bytes("\n".join(["text;label", *lines]).encode("latin-1"))
    asked = ["--text", "text", "--delimiter", ";", "--encoding", "latin-1", "--method", "softmax", "--epochs", 3]
    assert run(capsys, tmp_path / "rows.csv", *asked, "-o", tmp_path / "model.h5")[0] == 0
    (tmp_path / "new.csv").write_text("label,text\nb,crème\na,thé\n", encoding="utf-8")
    otherwise = ["--delimiter", ",", "--encoding", "utf-8"]
    words = [str(tmp_path / "model.h5"), str(tmp_path / "new.csv")]
    assert main(["predict", *words, "--top", "1", *otherwise]) == 0
    shown = capsys.readouterr()
    assert [row["class"] for row in csv.DictReader(shown.out.splitlines())] == ["b", "a"]
    assert "warning" not in shown.err
    assert main(["evaluate", *words, *otherwise]) == 0
    assert json.loads(capsys.readouterr().out)["new"]["accuracy"] == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "new.csv").read_bytes())))
    assert main(["predict", words[0], "-", "--top", "1", *otherwise]) == 0
    assert [row["class"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == ["b", "a"]
    assert main(["predict", *words, "--delimiter", ","]) == 0, "read as latin-1, whose words are others"
    said = "new.csv: 2 of 2 rows have no feature that the model knows; they get what is likeliest of any"
    assert said in capsys.readouterr().err
    assert main(["predict", *words, "--delimiter", ",", "--encoding", "utf-16"]) == 1
    assert "cannot read on" in capsys.readouterr().err
    assert main(["predict", *words, "--delimiter", ""]) == 1
    assert "--delimiter is empty; name one, or leave it out" in capsys.readouterr().err
    (tmp_path / "new.txt").write_text("crème\n")
    assert main(["predict", words[0], str(tmp_path / "new.txt"), "--encoding", "latin-1"]) == 1
    assert "--encoding is for .csv and .tsv, and rows are in" in capsys.readouterr().err


def test_rows_may_have_several_labels(tmp_path, capsys):
    lines = [f"{a} {b} and others,{a};{b}" for a in ANIMALS for b in ANIMALS if a < b for _ in range(20)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    asked = ["--text", "text", "--label-separator", ";", "-o", tmp_path / "model.h5"]
    status, out, _ = run(capsys, tmp_path / "rows.csv", *asked)
    assert status == 0
    assert float(re.search(r"^test p_at_1 (\S+)$", out, re.MULTILINE)[1]) == 1
    assert load_model(tmp_path / "model.h5").link == "sigmoid"


def goods(path, n=300):
    """Rows of which no column alone tells the class, and with a separator all labels of a row."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["title", "comment", "price", "brand", "product", "all"])
        for i in range(n):
            own = rng.integers(4)
            words = " ".join(rng.choice(["not", "at", "all"], 3))
            price = f"{rng.normal(10 * (own % 2), 1):.2f}"
            lines.writerow(
                [f"an {ANIMALS[own // 2]}", words, price, "xy"[i % 2], ANIMALS[own], f"{own // 2};{own % 2}"]
            )
    return path


COLUMNS = ["--text", "title", "--text", "comment", "--numeric", "price", "--categorical", "brand"]


def test_columns_of_several_kinds_become_a_model_that_reads_them(tmp_path, capsys):
    rows, model = goods(tmp_path / "goods.csv"), tmp_path / "model.h5"
    cut = ["--ngram-range", 1, 2, "--sublinear-tf"]
    asked = [*COLUMNS, *cut, "--label", "product", "--method", "softmax", "--epochs", 8, "-o", model]
    status, out, _ = run(capsys, rows, *asked)
    assert status == 0
    assert "test accuracy 1.0000" in out
    transform = load_model(model).transform
    assert (transform.parts[0].ngram_range, transform.parts[1].sublinear_tf) == ((1, 2), True)
    assert [step.kind for step in transform.steps] == ["divide"]
    assert main(["predict", str(model), str(rows), "--top", "1"]) == 0
    found = [row["class"] for row in csv.DictReader(capsys.readouterr().out.splitlines())]
    with rows.open() as file:
        assert np.mean([row["product"] == k for row, k in zip(csv.DictReader(file), found, strict=True)]) == 1
    assert main(["evaluate", str(model), str(rows)]) == 0
    assert json.loads(capsys.readouterr().out)["new"]["accuracy"] == 1
    assert main(["inspect", str(model)]) == 0
    said = json.loads(capsys.readouterr().out)["rows"]
    assert (said["numeric"], said["categorical"]) == (["price"], ["brand"])
    assert [part["kind"] for part in said["parts"]] == ["texts", "texts", "dense", "categories"]
    assert said["parts"][0]["ngram_range"] == [1, 2]


def test_columns_of_several_kinds_may_have_several_labels(tmp_path, capsys):
    rows, model = goods(tmp_path / "goods.csv"), tmp_path / "model.h5"
    asked = [*COLUMNS[:6], "--analyzer", "char_wb", "--label", "all", "--label-separator", ";", "-o", model]
    assert run(capsys, rows, *asked)[0] == 0
    assert main(["evaluate", str(model), str(rows)]) == 0
    assert json.loads(capsys.readouterr().out)["new"]["p_at_1"] > 0.95


def test_svmlight_is_known_by_its_name(tmp_path, capsys):
    lines = [f"{k % 3} {1 + k % 3}:1 {4 + k % 5}:0.5" for k in range(90)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    status, out, _ = run(capsys, tmp_path / "rows.svm", "--method", "softmax", "--epochs", 9, "-o", tmp_path / "m.h5")
    assert status == 0
    assert "test accuracy 1.0000" in out


@pytest.mark.slow
def test_auto_chooses_if_nothing_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(
        capsys, reviews(tmp_path / "r.csv", 3000), "--text", "comment", "--label", "product", "--seconds", 20
    )
    assert status == 0
    assert "auto: " in err
    assert "model.h5: written" in out


@pytest.mark.fault(
    "a fit to a file that is missing, of another form, or has no such column",
    happens="nothing is written",
    user="`error: …`, with what to do",
)
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["rows.doc"], "rows.doc: its form is not known by its name, which ends in none of .csv"),
        (["rows.csv", "--label", "prodct"],
         "no column 'prodct'; columns: id, comment, product, count; did you mean 'product'?"),
        (["rows.svm", "--text", "comment"], "rows.svm: --text is for tables; leave it out"),
        (["rows.csv", "--text", "comment", "--label", "product", "--method", "sofmax", "--epochs", "1"],
         "unknown method 'sofmax'"),
        (["rows.csv", "--text", "comment", "--label", "product", "--validation", "-1"], "--validation is -1; set it"),
        (["rows.csv", "--text", "comment", "--label", "product", "-o", "rows.csv"], "rows.csv"),
        (["rows.csv", "--text", "comment", "--seed", "-1"], "--seed is -1; set it to 0 or more"),
        (["rows.csv", "-o", "none/m.h5"], "-o is none/m.h5, and there is no such folder; make it, or name another"),
        (["rows.svm", "--ngram-range", "1", "2"], "rows.svm: --ngram-range is of texts; name their column (--text)"),
        (["rows.csv", "--label", "product", "--sublinear-tf"], "--sublinear-tf is of texts; name their column"),
        (["rows.csv", "--text", "comment", "--label", "product", "--ngram-range", "2", "1"],
         "text.ngram_range is [2, 1]; give two rising numbers from 1 to 10"),
        (["rows.csv", "--label", "product", "--text", "comment", "--categorical", "product"],
         "column 'product' is named twice among label, text, numeric, categorical and weight; name it once"),
        (["rows.csv", "--label", "product", "--numeric", "comment"], "where a column has texts, name it (--text of"),
        (["rows.csv", "--label", "product"], "where a column has texts, name it (--text of `fit`"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_leave_nothing(asked, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = reviews(tmp_path / "rows.csv", 50).read_bytes()
    for name in ("rows.doc", "rows.svm"):
        (tmp_path / name).write_text("1 1:1\n2 2:1\n")
    (tmp_path / "model.h5").write_text("of before")
    status, _, err = run(capsys, *asked)
    assert status == 1
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.h5", "rows.csv", "rows.doc", "rows.svm"]
    assert (tmp_path / "model.h5").read_text() == "of before"
    assert (tmp_path / "rows.csv").read_bytes() == before
