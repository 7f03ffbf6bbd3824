"""New rows of a user's own: each keeps its number, with labels or without, in whatever form a program wrote them."""

import csv
import dataclasses
import gzip
import io
import json

import h5py
import numpy as np
import pandas as pd
import pytest

from data.toy import run
from xsoftmax.cli import main
from xsoftmax.data import sparse_text
from xsoftmax.data.new_rows import read_labelled_rows, read_new_rows
from xsoftmax.data.store import open_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.data.transform_file import put_transform, transform_of
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.model import load_model

TEXTS = Transform("texts", words=("meow", "woof"), token=r"\w+", source={"format": "table", "options": {"text": "t"}})
SPARSE = Transform("sparse", n_columns=4, source={"format": "svmlight", "options": {}})
NUMBERS = Transform(
    "dense", n_columns=3, source={"format": "table", "options": {"label": "y"}}, feature_names=(*"abc",)
)


def texts(path, transform=TEXTS):
    return list(read_new_rows(path, transform))


@pytest.mark.fault(
    "a form feed, U+2028 or a carriage return within a line of new texts; a blank line of a table with one column",
    happens="a row ends where its line does, so that predictions stand in the rows that they are of",
    user="nothing",
)
def test_every_line_is_a_row(tmp_path):
    lines = ["one", "two\x0cpages", "three\u2028parts", "", "five\x85", "six\x1e", "seven\vup"]
    (tmp_path / "new.txt").write_bytes("\n".join(lines).encode())
    assert texts(tmp_path / "new.txt") == lines
    (tmp_path / "dos.txt").write_bytes("\r\n".join(lines).encode() + b"\r\n")
    assert texts(tmp_path / "dos.txt") == lines
    (tmp_path / "new.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert texts(tmp_path / "new.txt.gz") == lines


@pytest.mark.fault(
    "a quote in a CSV file that never closes, and swallows all rows after it",
    happens="the file is refused, for training and as new rows",
    user="`error: …, line …: a quote opens in this row and is not closed`",
)
def test_an_open_quote_swallows_no_rows(tmp_path):
    (tmp_path / "new.csv").write_text('t,id\nmeow,1\n"woof,2\nmeow,3\nmeow,4\n')
    with pytest.raises(InputError, match=r"new\.csv, line 3: a quote opens in this row and is not closed"):
        texts(tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text('t,id\nmeow,1\n2,"woof')
    with pytest.raises(InputError, match=r"new\.csv, line 3: a quote opens in this row and is not closed"):
        texts(tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text('t,id\nmeow,1\n"woof,2\nmeow,3\n"meow,4\n')
    with pytest.raises(InputError, match=r"new\.csv, line 3: a quote opens in this row and is not closed"):
        texts(tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text('t,id\n"me\now",1\nwo"of,"2"')
    assert texts(tmp_path / "new.csv") == ["me\now", 'wo"of']


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_of_a_single_column_is_a_row_without_text(end, tmp_path):
    (tmp_path / "new.csv").write_bytes(end.join(["t", "meow", "", "woof", '""', "meow"]).encode() + end.encode())
    assert texts(tmp_path / "new.csv") == ["meow", "", "woof", "", "meow"]
    (tmp_path / "two.csv").write_bytes(end.join(["t,id", "meow,1", "", "woof,2"]).encode())
    assert texts(tmp_path / "two.csv") == ["meow", "woof"]


@pytest.mark.parametrize("ending", [".csv", ".TSV", ".Parquet"])
@pytest.mark.fault(
    "a table of new numbers with its columns in another order, with others among them, or without one",
    happens="columns are found by the names that they had in training; one that is missing is named",
    user="`error: …: no column …`, with the columns that there are",
)
def test_columns_of_numbers_are_found_by_name(ending, tmp_path):
    path = tmp_path / f"new{ending}"

    def write(**columns):
        frame = pd.DataFrame(columns)
        if ending == ".Parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if ending == ".TSV" else ",")

    a, b, c, y = [1, 2], [3, 4], [5, 6], ["u", "v"]
    for columns in (
        {"c": c, "b": b, "a": a},
        {"id": ["#1", "#2"], "y": y, "c": c, "a": a, "more": ["", "x"], "b": b},
    ):
        write(**columns)
        assert read_new_rows(path, NUMBERS).tolist() == [[1, 3, 5], [2, 4, 6]]
    rows = read_labelled_rows(path, NUMBERS)
    assert rows.features.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert rows.label_names == ("u", "v")
    write(a=a, b=b, y=[1, 2])
    for read in (read_new_rows, read_labelled_rows):
        with pytest.raises(InputError, match=r"no column 'c'; columns: a, b, y"):
            read(path, NUMBERS)
    write(a=a, b=b, c=c)
    with pytest.raises(InputError, match=r"no column 'y'; columns: a, b, c"):
        read_labelled_rows(path, NUMBERS)


def test_a_table_of_numbers_without_names(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("1,2.5,3\n4,5,6\n")
    with pytest.raises(
        InputError, match=r"no column 'a'; columns: 1, 2.5, 3; the first line should name the columns"
    ):
        read_new_rows(path, NUMBERS)
    without = dataclasses.replace(NUMBERS, feature_names=())
    with pytest.raises(InputError, match=r"the first line is a row of numbers, .*: '1,2.5,3'; write them above it"):
        read_new_rows(path, without)
    path.write_text("0,1,2\n4,5,6\n")
    assert read_new_rows(path, without).tolist() == [[4, 5, 6]]
    path.write_text("a,b,c,a\n1,2,3,4\n")
    with pytest.raises(InputError, match=r"several columns are named 'a'; rename all but one"):
        read_new_rows(path, NUMBERS)
    path.write_text("a,b,c,more,more\n1,2,3,4,5\n")
    assert read_new_rows(path, NUMBERS).tolist() == [[1, 2, 3]]


@pytest.mark.slow
@pytest.mark.fault(
    "new rows in a file whose ending is in upper case, or unknown",
    happens="an ending counts in any case; a file with an unknown one is not read",
    user="`error: …: unknown ending …`, with the known ones",
)
def test_endings_in_upper_case_and_unknown_ones(tmp_path):
    for name in ("NEW.CSV", "new.Csv", "NEW.CSV.GZ"):
        content = b"id,t\n1,meow\n"
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
        assert texts(tmp_path / name) == ["meow"]
    (tmp_path / "NEW.TXT").write_text("meow\nwoof\n")
    assert texts(tmp_path / "NEW.TXT") == ["meow", "woof"]
    for name, said in (
        ("new.dat", "unknown ending '.dat'"),
        ("new.csv.bak", "unknown ending '.bak'"),
        ("new", "no ending"),
    ):
        (tmp_path / name).write_text("t\nmeow\n")
        known = r"known: \.csv, \.json, \.jsonl, \.ndjson, \.npy, \.npz, \.parquet, \.tsv, \.txt"
        with pytest.raises(InputError, match=f"{said}, which says how rows are to be read; {known}"):
            read_new_rows(tmp_path / name, TEXTS)
        with pytest.raises(InputError, match=f"{said}, .* \\.libsvm"):
            read_labelled_rows(tmp_path / name, NUMBERS)
    (tmp_path / "new.dat").write_text("1:2\n")
    assert read_new_rows(tmp_path / "new.dat", SPARSE).toarray().tolist() == [[2, 0, 0, 0]]


def rows_of_text(path, content, transform):
    path.write_text(content)
    return read_new_rows(path, transform).toarray()[:, 1].tolist()


@pytest.mark.parametrize("block", [3, 2**22])
@pytest.mark.parametrize(("name", "first"), [("svmlight", 2), ("xc", 1)])
@pytest.mark.fault(
    "a blank line among new rows in svmlight or Extreme Classification text",
    happens="it is a row without features, so that predictions stand in their rows; blank lines at the "
    "end of the file are none",
    user="nothing",
)
def test_blank_lines_of_sparse_text(name, first, block, tmp_path, monkeypatch):
    monkeypatch.setattr(sparse_text.line_blocks, "__defaults__", (block,))
    transform = dataclasses.replace(SPARSE, source={"format": name, "options": {}})
    path = tmp_path / "new.svm"
    assert rows_of_text(path, f"{first}:1\n\n{first}:7\n", transform) == [1, 0, 7]
    assert rows_of_text(path, f"\n\n0 {first}:1\n \r\n5\n\n \n\n", transform) == [0, 0, 1, 0, 0]
    with pytest.raises(InputError, match="no row in it"):
        rows_of_text(path, "\n\n", transform)
    assert rows_of_text(path, "3 4 1\n 1:1\n\n 1:7\n", transform) == [1, 0, 7]
    if name == "svmlight":
        assert rows_of_text(path, "# of today\n2:1\n\n# the end\n", transform) == [1, 0]


@pytest.mark.fault(
    "a table that Excel wrote, with a byte order mark before its header",
    happens="the mark is no part of the first column's name, nor of a first line of text or numbers",
    user="nothing",
)
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    (tmp_path / "new.csv").write_bytes("\ufefft,id\nmeow,1\n".encode())
    assert texts(tmp_path / "new.csv") == ["meow"]
    (tmp_path / "new.txt").write_bytes("\ufeffmeow\n".encode())
    assert texts(tmp_path / "new.txt") == ["meow"]
    (tmp_path / "new.svm").write_bytes("\ufeff1:2 3:4\n".encode())
    assert read_new_rows(tmp_path / "new.svm", SPARSE).toarray().tolist() == [[2, 0, 4, 0]]


@pytest.mark.parametrize("name", ["new.csv", "new.txt", "new.svm", "new.npz", "new.parquet"])
def test_an_empty_file_says_that_there_are_no_rows(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=rf"{name}: the file is empty: there are no rows in it"):
        read_new_rows(tmp_path / name, SPARSE if name == "new.svm" else TEXTS)
    (tmp_path / "head.csv").write_text("t\n")
    with pytest.raises(InputError, match=r"head\.csv: no row in it"):
        read_new_rows(tmp_path / "head.csv", TEXTS)


def parquet(path, **columns):
    pd.DataFrame(columns).to_parquet(path, index=False)
    return path


def test_cells_of_parquet_are_what_csv_would_have(tmp_path):
    path = parquet(tmp_path / "a.parquet", t=[b"meow", b"wo\xc3\xa9f", b""], label=[3.0, None, float("nan")])
    rows = read_labelled_rows(path, TEXTS)
    assert list(rows.features) == ["meow", "woéf", ""]
    assert rows.label_names == ("3",)
    assert np.diff(rows.label_starts).tolist() == [1, 0, 0]
    for column, said in (([b"\xff", b"", b""], "not utf-8"), ([[1], [2], [3]], "a cell with several values")):
        path = parquet(tmp_path / "b.parquet", t=["a", "b", "c"], label=column)
        with pytest.raises(InputError, match=said):
            read_labelled_rows(path, TEXTS)


def test_rows_that_can_have_no_labels(tmp_path):
    (tmp_path / "new.txt").write_text("meow\n")
    with pytest.raises(InputError, match="rows of this form have no labels; give a table, svmlight or npz"):
        read_labelled_rows(tmp_path / "new.txt", TEXTS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of texts in a table, of svmlight, and of arrays."""
    folder, rng = tmp_path_factory.mktemp("models"), np.random.default_rng(0)
    y = rng.integers(3, size=120)
    X = np.eye(3)[y] + 0.05 * rng.random((120, 3))
    words = np.array(["meow purr", "woof fetch", "tweet fly"])[y]
    names = np.array(["cat", "dog", "bird"])[y]
    pd.DataFrame({"comment": words, "animal": names}).to_csv(folder / "table.csv", index=False)
    lines = [
        f"{k + 10} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for k, row in zip(y, X, strict=True)
    ]
    (folder / "svmlight.svm").write_text("\n".join(lines) + "\n")
    np.savez(folder / "arrays.npz", X=X.astype(np.float32), y=names)
    files = {"table": ("table.csv", "{text: comment, label: animal}"), "svmlight": ("svmlight.svm", "{}")}
    found = {}
    for name, (file, options) in {**files, "arrays": ("arrays.npz", "{}")}.items():
        parts = "parts: {all: {data: arrays.npz}}\n" if name == "arrays" else ""
        config = folder / f"{name}.yaml"
        config.write_text(f"name: {name}\nformat: {name}\nfiles: [{{path: {file}}}]\noptions: {options}\n{parts}")
        for call in (
            ["download", config, "-o", folder / f"raw-{name}"],
            ["prepare", config, "--raw", folder / f"raw-{name}", "-o", folder / f"{name}.h5"],
            ["train", folder / f"{name}.h5", "--method", "softmax", "--epochs", 30, "-o", folder / name],
        ):
            assert main([str(word) for word in call]) == 0
        found[name] = folder / name / "model.h5"
    return folder, found


@pytest.mark.parametrize("kind", ["table", "svmlight", "arrays"])
def test_a_file_of_new_rows_with_labels_is_evaluated(kind, models, capsys):
    """On the very rows that the prepared file has, by the same numbers."""
    folder, found = models
    file = {"table": "table.csv", "svmlight": "svmlight.svm", "arrays": "arrays.npz"}[kind]
    assert main(["evaluate", str(found[kind]), str(folder / file)]) == 0
    new = json.loads(capsys.readouterr().out)
    assert new["dataset"] == file
    assert main(["evaluate", str(found[kind]), str(folder / f"{kind}.h5"), "--train"]) == 0
    prepared = json.loads(capsys.readouterr().out)
    parts = [prepared[name] for name in ("train", "validation", "test")]
    n = [part["n_samples"] for part in parts]
    for key in ("accuracy", "log_likelihood"):
        assert new["new"][key] == pytest.approx(np.average([part[key] for part in parts], weights=n), rel=1e-5)
    assert new["new"]["n_samples"] == sum(n) == 120


def test_labels_that_a_model_cannot_know_are_left_out_and_said(models, tmp_path, capsys):
    _, found = models
    (tmp_path / "new.csv").write_text("comment,animal\nmeow,cat\nwoof,dog\nmoo,cow\ntweet,\n")
    assert main(["evaluate", str(found["table"]), str(tmp_path / "new.csv"), "-o", str(tmp_path / "m.json")]) == 0
    said = capsys.readouterr().err
    assert "1 of 4 rows without a label are left out" in said
    assert "1 of 4 rows of classes that the model does not know are left out" in said
    assert json.loads((tmp_path / "m.json").read_text())["new"]["n_samples"] == 2
    (tmp_path / "new.csv").write_text("comment,animal\nmoo,cow\n")
    assert main(["evaluate", str(found["table"]), str(tmp_path / "new.csv")]) == 1
    assert "no row has a label that the model knows, such as 'cow'" in capsys.readouterr().err
    (tmp_path / "new.csv").write_text("comment,kind\nmeow,cat\n")
    assert main(["evaluate", str(found["table"]), str(tmp_path / "new.csv")]) == 1
    assert "no column 'animal'; columns: comment, kind" in capsys.readouterr().err


def test_predictions_show_the_texts_that_they_are_of(models, tmp_path, capsys):
    _, found = models
    content = 'comment\n"meow, ""purr"""\n\n"woof\nfetch"\n'
    (tmp_path / "new.csv").write_text(content)
    assert main(["predict", str(found["table"]), str(tmp_path / "new.csv"), "--top", "1"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["text"] for line in lines] == ['meow, "purr"', "", "woof\nfetch"]
    assert [(line["row"], line["class"]) for line in lines if line["text"]] == [("0", "cat"), ("2", "dog")]
    (tmp_path / "new.svm").write_text("1:1\n")
    assert main(["predict", str(found["svmlight"]), str(tmp_path / "new.svm"), "--top", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "row,rank,class,probability"


def test_a_table_of_numbers_keeps_the_names_of_its_columns(tmp_path, capsys):
    """The label, told by its number, too: new rows need not have it in the same place."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    frame = pd.DataFrame(np.eye(3)[y] + 0.05 * rng.random((90, 3)), columns=["a", "b", "c"]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "rows.yaml").write_text(
        "name: rows\nformat: table\nfiles: [{path: rows.csv}]\noptions: {label: -1}\n"
    )
    for call in (
        ["download", tmp_path / "rows.yaml", "-o", tmp_path / "raw"],
        ["prepare", tmp_path / "rows.yaml", "--raw", tmp_path / "raw", "-o", tmp_path / "rows.h5"],
        ["train", tmp_path / "rows.h5", "--method", "softmax", "--epochs", 30, "-o", tmp_path / "fit"],
    ):
        assert main([str(word) for word in call]) == 0
    capsys.readouterr()
    model, told = str(tmp_path / "fit" / "model.h5"), []
    assert load_model(model).transform.feature_names == ("a", "b", "c")
    for columns in ("abcy", "cyba"):
        frame[list(columns)].to_csv(tmp_path / "new.csv", index=False)
        assert main(["evaluate", model, str(tmp_path / "new.csv")]) == 0
        told.append(json.loads(capsys.readouterr().out)["new"])
    assert told[0] == told[1]
    assert told[0]["accuracy"] > 0.9
    assert main(["evaluate", model, str(tmp_path)]) == 1
    assert "a folder, expected a file of rows" in capsys.readouterr().err


def test_new_rows_may_have_labels_and_weights_or_neither(tmp_path):
    """Of a table without names, by how many columns there are; what is wrong is said of their number."""
    options = {"header": False, "label": 2, "weight": 3}
    path = run(tmp_path, {"a.csv": "1,2,x,5\n3,4,y,6\n"}, format="table", options=options)[1]
    with open_prepared(path) as data:
        transform = data.transform
        assert data.split("train").weight.tolist() == [5, 6]
    for content in ("1,2,x,5\n3,4,y,6\n", "1,2,x\n3,4,y\n", "1,2\n3,4\n"):
        (tmp_path / "new.csv").write_text(content)
        assert read_new_rows(tmp_path / "new.csv", transform).tolist() == [[1, 2], [3, 4]]
    for content in ("1,2,x,5\n3,4,y,6\n", "1,2,x\n3,4,y\n"):
        (tmp_path / "new.csv").write_text(content)
        rows = read_labelled_rows(tmp_path / "new.csv", transform)
        assert rows.features.tolist() == [[1, 2], [3, 4]]
        assert rows.label_names == ("x", "y")


def test_parts_whose_columns_have_other_names_are_refused(tmp_path):
    settings = {"format": "table", "parts": {"train": "a.csv", "test": "b.csv"}}
    with pytest.raises(InputError, match="where train has the column 'a', test has 'b'; give both the same columns"):
        run(tmp_path, {"a.csv": "a,b,label\n1,2,x\n3,4,y\n", "b.csv": "b,a,label\n1,2,x\n"}, **settings)


def test_a_model_whose_names_are_not_those_of_its_columns_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        put_transform(file.create_group("transform"), dataclasses.replace(NUMBERS, n_columns=4))
        with pytest.raises(ContentError, match="transform of 4 columns with 3 names"):
            transform_of(file["transform"], 4)


def test_paths_may_be_texts(models):
    folder, found = models
    model = load_model(str(found["table"]))
    assert model.transform.features_of(str(folder / "table.csv")).shape[0] == 120


def test_words_with_newlines_survive_a_model(tmp_path, capsys):
    """A token of a user's own may let them in."""
    rows = "".join(f'"{"a b" if k % 2 else "c d"}\nrest{k % 3}",{"x" if k % 2 else "y"}\n' for k in range(60))
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    (tmp_path / "own.yaml").write_text(
        "name: own\nformat: table\nfiles: [{path: rows.csv}]\noptions: {text: text}\n"
        "text: {token: '[a-z]+\\s[a-z\\n]+'}\n"
    )
    for call in (
        ["download", tmp_path / "own.yaml", "-o", tmp_path / "raw"],
        ["prepare", tmp_path / "own.yaml", "--raw", tmp_path / "raw", "-o", tmp_path / "own.h5"],
        ["train", tmp_path / "own.h5", "--method", "softmax", "--epochs", 20, "-o", tmp_path / "fit"],
    ):
        assert main([str(word) for word in call]) == 0
    words = load_model(tmp_path / "fit" / "model.h5").transform.words
    assert any("\n" in word for word in words), words
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "fit" / "model.h5"), str(tmp_path / "rows.csv"), "--top", "1"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["class"] for line in lines] == ["x" if k % 2 else "y" for k in range(60)]
