"""Every form that the Extreme Classification Repository has data in, from a local server: whole, cut, shuffled."""

import gzip
import json
import random
from typing import NamedTuple

import numpy as np
import pytest

from data.test_upstream import QUICK, zipped
from xsoftmax.data.config import Archive, DatasetConfig, Source, SplitOptions, TextOptions
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare
from xsoftmax.data.readers import xc_separate, xc_text
from xsoftmax.data.rows import Form
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError

N_FEATURES, N_LABELS = 8, 6


class Row(NamedTuple):
    """What a row is, whatever the form: numbers of labels, how often it has each feature, what never counts."""

    labels: list
    features: dict
    filtered: list


def drawn(seed, n):
    """Rows; the last has no label, the one before it no feature, and of features the first is never alone."""
    rng = random.Random(seed)
    rows = [
        Row(
            rng.sample(range(N_LABELS), rng.randint(1, 3)),
            {k: rng.randint(1, 3) for k in sorted({0, *rng.sample(range(N_FEATURES), 3)})},
            rng.sample(range(N_LABELS), rng.randint(0, 2)),
        )
        for _ in range(n)
    ]
    return [*rows, Row([1], {}, [1]), Row([], {2: 1}, [])]


ROWS = {"trn": [Row([k], {k: 1}, []) for k in range(N_LABELS)] + drawn(0, 20), "tst": drawn(1, 12)}


def entries(pairs):
    return " ".join(f"{key}:{value}" for key, value in pairs)


def matrix(rows, n_columns):
    return f"{len(rows)} {n_columns}\n" + "".join(entries(row) + "\n" for row in rows)


def label_file(rows):
    return matrix([[(label, "1.0") for label in row.labels] for row in rows], N_LABELS)


def words(row):
    return " ".join(f"word{k}" for k, n in row.features.items() for _ in range(n))


def combined(part, rows):
    lines = (f"{','.join(map(str, row.labels))} {entries(row.features.items())}\n" for row in rows)
    return {f"{part}.txt": f"{len(rows)} {N_FEATURES} {N_LABELS}\n" + "".join(lines)}


def separate(part, rows):
    return {
        f"{part}_X_Xf.txt": matrix([row.features.items() for row in rows], N_FEATURES),
        f"{part}_X_Y.txt": label_file(rows),
    }


def raw(part, rows):
    return {f"{part}_X.txt": "".join(words(row) + "\n" for row in rows), f"{part}_X_Y.txt": label_file(rows)}


def json_lines(part, rows):
    """Title and content, and one label more whose value is 0."""
    lines = []
    for number, row in enumerate(rows):
        title, _, content = words(row).partition(" ")
        line = {"uid": str(number), "title": title, "content": content, "target_ind": [*row.labels, 5]}
        lines.append(json.dumps(line | {"target_rel": [*(1.0 for _ in row.labels), 0.0]}) + "\n")
    return {f"{part}.json": "".join(lines)}


def dense(part, rows):
    numbers = (" ".join(str(row.features.get(k, 0)) for k in range(N_FEATURES)) for row in rows)
    features = f"{len(rows)} {N_FEATURES}\n" + "".join(f"{line}\n" for line in numbers)
    return {f"{part}_ft_mat_dense.txt": features, f"{part}_lbl_mat.txt": label_file(rows)}


class Kind(NamedTuple):
    """A form: its reader, what files a part has, and which file plays which role."""

    reader: str
    files: object
    roles: dict


FORMS = {
    "combined": Kind("xc", combined, {"data": "{}.txt"}),
    "separate": Kind("xc-separate", separate, {"features": "{}_X_Xf.txt", "labels": "{}_X_Y.txt"}),
    "raw": Kind("xc-text", raw, {"texts": "{}_X.txt", "labels": "{}_X_Y.txt"}),
    "json": Kind("xc-text", json_lines, {"texts": "{}.json"}),
    "dense": Kind("dense-text", dense, {"features": "{}_ft_mat_dense.txt", "labels": "{}_lbl_mat.txt"}),
}


def files_of(form, parts):
    found = {}
    for part, rows in parts.items():
        found |= FORMS[form].files(part, rows)
        pairs = (f"{i} {label}\n" for i, row in enumerate(rows) for label in row.filtered)
        found[f"filter_labels_{part}.txt"] = "".join(pairs)
    return found


def config_of(form, server, folder, content):
    """An entry, as one of ``config/datasets`` would be."""
    server.files["a"] = content
    roles = {
        part: {role: f"a/{name.format(part)}" for role, name in FORMS[form].roles.items()}
        | {"filter": f"a/filter_labels_{part}.txt"}
        for part in ("trn", "tst")
    }
    names = [name.format(part) for name in FORMS[form].roles.values() for part in roles]
    members = (*names, *(f"filter_labels_{part}.txt" for part in roles))
    archive = Source(name="a", urls=(f"{server.url}/ok/a",), archive=Archive(members=members))
    return DatasetConfig(
        name="toy",
        format=FORMS[form].reader,
        files=(archive,),
        parts={"train": roles["trn"], "test": roles["tst"]},
        labels="sets",
        text=TextOptions(min_df=1, weighting="counts"),
        split=SplitOptions(validation=0),
        folder=folder,
    )


def prepared(form, server, folder, files):
    folder.mkdir()
    config = config_of(form, server, folder, zipped({f"Toy/{name}": content for name, content in files.items()}))
    download(config, folder / "raw", patience=QUICK)
    return prepare(config, folder / "raw", folder / "a.h5")


def rows_of(path, split):
    """Rows in some order that is always the same: names of labels, features by number, names of what never counts."""
    with open_prepared(path) as data:
        found, names = data.split(split), data.class_names
        columns = data.transform.words or [f"word{k}" for k in range(data.n_features)]
        X = found.X.toarray() if data.sparse else found.X
        return sorted(
            [
                [int(names[k]) for k in found.label_sets.of_rows(np.array([i])).classes],
                [int(names[k]) for k in found.filtered.of_rows(np.array([i])).classes],
                sorted([int(columns[j][4:]), int(X[i, j])] for j in np.flatnonzero(X[i])),
            ]
            for i in range(found.n_samples)
        )


def expected(rows):
    kept = [row for row in rows if row.labels and row.features]
    return sorted([sorted(r.labels), sorted(r.filtered), sorted(map(list, r.features.items()))] for r in kept)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_with_all_labels(form, server, tmp_path):
    sizes = prepared(form, server, tmp_path / "whole", files_of(form, ROWS))
    assert (sizes["train"], sizes["test"], sizes["classes"]) == (26, 12, N_LABELS)
    assert (sizes["dropped_unlabelled"], sizes["dropped_empty"]) == (2, 2)
    found = [rows_of(tmp_path / "whole/a.h5", split) for split in ("train", "test")]
    assert found == [expected(ROWS["trn"]), expected(ROWS["tst"])]

    shuffled = {part: random.Random(5).sample(rows, len(rows)) for part, rows in ROWS.items()}
    assert prepared(form, server, tmp_path / "shuffled", files_of(form, shuffled)) == sizes
    assert [rows_of(tmp_path / "shuffled/a.h5", split) for split in ("train", "test")] == found


FEWER = (
    r"line 1: the header says {} rows( of 8 numbers|), (the file has \d+|more than the file can hold); fetch it again"
)
CUT = {
    "combined": {"tst.txt": FEWER.format(14)},
    "separate": {"trn_X_Xf.txt": FEWER.format(28), "tst_X_Y.txt": FEWER.format(14)},
    "raw": {"trn_X.txt": r"28 rows, and .*trn_X.txt has \d+; do they belong", "trn_X_Y.txt": FEWER.format(28)},
    "json": {"trn.json": r"line \d+ is not JSON: "},
    "dense": {"tst_ft_mat_dense.txt": FEWER.format(14), "tst_lbl_mat.txt": FEWER.format(14)},
}


@pytest.mark.fault(
    "a file of the Extreme Classification Repository that is cut, in any of its forms",
    happens="a header says how many rows there are, or features and labels have different numbers of them",
    user="`error: …/trn_X_Y.txt, line 1: the header says 28 rows, the file has 13; fetch it again`",
)
@pytest.mark.parametrize(("form", "name"), [(form, name) for form, names in CUT.items() for name in names])
def test_cut_files_are_named(form, name, server, tmp_path):
    files = files_of(form, ROWS)
    half = files[name][: len(files[name]) // 2]
    line_end = len(half) if form == "json" else half.rindex("\n") + 1
    with pytest.raises(InputError, match=CUT[form][name]):
        prepared(form, server, tmp_path / "lines", files | {name: half[:line_end]})
    with pytest.raises(InputError, match=name):
        prepared(form, server, tmp_path / "within", files | {name: half})


@pytest.mark.parametrize("form", FORMS)
def test_a_cut_archive_is_named(form, server, tmp_path):
    content = zipped(files_of(form, ROWS))
    with pytest.raises(InputError, match=r"a\..*: the archive is truncated or damaged .*; fetch it again"):
        download(config_of(form, server, tmp_path, content[: len(content) // 2]), tmp_path / "raw", patience=QUICK)
    assert not (tmp_path / "raw/receipt.json").exists()


BAD_JSON = {
    "": "the file is empty",
    '{"title": "a"}\n[1]\n': r"line 2: expected an object with 'title' and 'target_ind', found '\[1\]'",
    '{"title": "a"\n': "line 1 is not JSON",
    '{"content": "a", "target_ind": [0]}\n': "line 1: the title is None; expected text",
    '{"title": "a", "content": 5, "target_ind": [0]}\n': "line 1: the content is 5; expected text",
    '{"title": "a\\ud800", "target_ind": [0]}\n': "line 1: the title is .*; expected text",
    '{"title": "a", "target_ind": 5}\n': "line 1: target_ind is 5, .*; expected lists of one length",
    '{"title": "a", "target_ind": [5], "target_rel": [1, 1]}\n': r"target_rel \[1, 1\]; expected lists of one length",
    '{"title": "a", "target_ind": [5], "target_rel": ["x"]}\n': r"line 1: target_rel is \['x'\]; expected numbers",
    '{"title": "a", "target_ind": [-1]}\n': "line 1: the label -1 is no whole number from 0 to 2147483647",
    '{"title": "a", "target_ind": [true]}\n': "line 1: the label True is no whole number",
    '{"title": "a", "target_ind": ["b"]}\n': "line 1: the label 'b' is no whole number",
    '{"title": "a", "target_ind": [4294967296]}\n': "line 1: the label 4294967296 is no whole number",
}


@pytest.mark.parametrize("content", BAD_JSON)
def test_bad_json_lines(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=BAD_JSON[content]) as raised:
        xc_text.read(texts=tmp_path / "a.json")
    assert str(raised.value).startswith(f"{tmp_path}/a.json")


def labels_of(rows):
    return [rows.labels[a:b].tolist() for a, b in zip(rows.label_starts, rows.label_starts[1:], strict=False)]


def test_titles_alone_and_labels_apart(tmp_path):
    lines = '{"title": "A b", "content": "c", "target_ind": [3, 1]}\n{"title": "", "content": "d"}\n{"title": "e"}'
    path = tmp_path / "trn.json.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    rows = xc_text.read(texts=path)
    assert list(rows.features) == list(rows.features) == ["A b\nc", "d", "e"]
    assert labels_of(rows) == [[3, 1], [], []]
    assert list(xc_text.read(texts=path, content=False).features) == ["A b", "", "e"]
    (tmp_path / "y").write_text("3 4\n2:1 0:1\n1:0\n3:1\n")
    assert labels_of(xc_text.read(texts=path, labels=tmp_path / "y")) == [[0, 2], [], [3]]
    (tmp_path / "x.txt").write_bytes(b"A b\r\n\ncaf\xc3\xa9")
    rows = xc_text.read(texts=tmp_path / "x.txt", labels=tmp_path / "y")
    assert list(rows.features) == ["A b", "", "caf\u00e9"]
    with pytest.raises(InputError, match=r"x.txt: no labels in it; name a file 'labels', such as trn_X_Y.txt"):
        xc_text.read(texts=tmp_path / "x.txt")
    (tmp_path / "x.txt").write_bytes(b"A b\n\ncaf\xe9")
    with pytest.raises(InputError, match=r"x.txt, line 3: not utf-8"):
        xc_text.read(texts=tmp_path / "x.txt", labels=tmp_path / "y")


def test_new_rows_are_read_without_their_labels(tmp_path):
    (tmp_path / "x").write_text("2 3\n0:1 2:0.5\n\n")
    assert xc_separate.read_new(tmp_path / "x", Form("sparse", 5)).toarray().tolist() == [[1, 0, 0.5, 0, 0], [0] * 5]
    with pytest.raises(InputError, match="x: 3 features, the training data had 2; give the same"):
        xc_separate.read_new(tmp_path / "x", Form("sparse", 2))
    (tmp_path / "a.json").write_text('{"title": "a"}\n{"title": "b", "content": "c", "target_ind": [1]}\n')
    assert list(xc_text.read_new(tmp_path / "a.json", Form("texts"))) == ["a", "b\nc"]
    titles = Form("texts", source={"options": {"content": False}})
    assert list(xc_text.read_new(tmp_path / "a.json", titles)) == ["a", "b"]
    assert labels_of(xc_text.read_labelled(tmp_path / "a.json", titles)) == [[], [1]]
