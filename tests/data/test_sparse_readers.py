import gzip
import lzma
import re
import tracemalloc

import numpy as np
import pytest

from data.naive_data import arff_rows, labelled_rows, matrix
from xsoftmax.data import parsing, sparse_text
from xsoftmax.data.readers import arff, dense_text, svmlight, xc
from xsoftmax.internal.errors import InputError

XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="TAG_a"></label><label name="b b"/></labels>'
ARFF = """@relation 'a test'
% a comment
@attribute w0 {0,1}
@attribute TAG_a {0,1}
@ATTRIBUTE 'it\\'s' numeric

@attribute "b b" {0,1}
@data
"""


def labels_of(rows):
    return [rows.labels[a:b].tolist() for a, b in zip(rows.label_starts, rows.label_starts[1:], strict=False)]


def random_lines(rng, n, n_features, n_labels, base):
    formats = ["{:.6f}", "{:g}", "{:.3e}", "{:+.2f}", "{:.17g}", "{:.0f}."]
    lines = []
    for _ in range(n):
        features = rng.choice(n_features, rng.integers(0, 8), replace=False) + base
        values = rng.standard_normal(features.size) * 10.0 ** rng.integers(-6, 6, features.size)
        cells = [f"{f}:{rng.choice(formats).format(v)}" for f, v in zip(features, values, strict=True)]
        labels = rng.integers(0, n_labels, rng.integers(1, 4))
        lines.append(",".join(map(str, labels)) + " " + " ".join(cells))
    return lines


@pytest.mark.parametrize("block", [50, 2**22])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_xc_agrees_with_a_naive_parser(tmp_path, monkeypatch, block, pack):
    monkeypatch.setattr(sparse_text.line_blocks, "__defaults__", (block,))
    lines = [*random_lines(np.random.default_rng(0), 300, 40, 9, base=0), " 3:1 5:-2", "4 ", "2,1\t0:1\t1:2\r"]
    path = tmp_path / "a.txt"
    path.write_bytes(pack((f"{len(lines)} 40 9\n" + "\n".join(lines)).encode()))
    labels, entries = labelled_rows(lines, base=0)
    rows = xc.read(data=path)
    assert labels_of(rows) == labels
    np.testing.assert_allclose(rows.features.toarray(), matrix(entries, 40).toarray(), rtol=1e-6)
    assert rows.features.dtype == np.float32
    assert rows.features.has_sorted_indices


def test_svmlight_agrees_with_a_naive_parser(tmp_path):
    lines = [
        *random_lines(np.random.default_rng(1), 200, 30, 5, base=1),
        "-1 qid:3 2:1 # 4:5",
        "+2 30:1e-3",
        "1.0 1:.5",
    ]
    path = tmp_path / "a.svm"
    path.write_text("# a comment\n\n" + "\n".join(lines) + "\n")
    labels, entries = labelled_rows(lines, base=1)
    rows = svmlight.read(data=path)
    assert labels_of(rows) == labels
    np.testing.assert_allclose(rows.features.toarray(), matrix(entries, 30).toarray(), rtol=1e-6)


def test_svmlight_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import load_svmlight_file

    path = tmp_path / "a.svm"
    path.write_text("3 1:0.5 4:1e2\n-2 2:1\n")
    X, y = load_svmlight_file(path, zero_based=False)
    rows = svmlight.read(data=path)
    np.testing.assert_allclose(rows.features.toarray(), X.toarray())
    assert rows.labels.tolist() == y.tolist()
    assert svmlight.read(data=path, zero_based=True).features.shape == (2, 5)
    assert svmlight.read(data=path, n_features=9).features.shape == (2, 9)


def test_labels_may_stand_apart(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("545, 32 8:1 18:2\n7,  3,1 2:1\n")
    rows = svmlight.read(data=path)
    assert labels_of(rows) == [[545, 32], [7, 3, 1]]
    path.write_text("545, 8:1 18:2\n")
    with pytest.raises(InputError, match="line 1: a label is not a whole number: ':1 18:2'"):
        svmlight.read(data=path)


DENSE = "3 2\n0 1.5\n-2e1\t3 \r\n 4 5\n"
LABELS = "3 9\n8:1 2:1\n\n5:1\n"


@pytest.mark.parametrize("block", [3, 2**22])
def test_dense_text(tmp_path, monkeypatch, block):
    monkeypatch.setattr(sparse_text.line_blocks, "__defaults__", (block,))
    (tmp_path / "x").write_bytes(gzip.compress(DENSE.encode()))
    (tmp_path / "y").write_text(LABELS)
    rows = dense_text.read(features=tmp_path / "x", labels=tmp_path / "y")
    assert rows.features.dtype == np.float32
    assert rows.features.tolist() == [[0, 1.5], [-20, 3], [4, 5]]
    assert labels_of(rows) == [[2, 8], [], [5]]


BAD_DENSE = [
    ("2\n0 1\n", LABELS, "x, line 1: expected 'rows columns', found '2'"),
    (
        DENSE.replace("3 2", "3 20"),
        LABELS,
        "x, line 1: the header says 3 rows of 20 numbers, more than the file can hold",
    ),
    (DENSE.replace("3 2", "9" * 50 + " 2"), LABELS, r"x, line 1: .* found '9{40}\.\.\.', more than 2147483647"),
    (DENSE.replace("4 5", "4"), LABELS, "x, line 4: expected 2 numbers: '4'"),
    (DENSE.replace("4 5", "4 5 6"), LABELS, "x, line 4: expected 2 numbers: '6'"),
    (DENSE.replace("1.5", "1.5x"), LABELS, "x, line 2: the value is not a number: '1.5x'"),
    (DENSE.replace("1.5", "NaN"), LABELS, "x, line 2: the value is NaN or infinite; drop or replace .*: 'NaN'"),
    (DENSE.replace("1.5", "1e99"), LABELS, "x, line 2: the value is NaN or infinite"),
    (DENSE + "6 7\n", LABELS, "x, line 1: the header says 3 rows, the file has 4"),
    (DENSE[:-5], LABELS, "x, line 1: the header says 3 rows, the file has 2"),
    (DENSE, LABELS.replace("3 9", "3 9 1"), "y, line 1: expected 'rows labels', found '3 9 1'"),
    (
        DENSE,
        LABELS.replace("8:1", "9:1"),
        r"y, line 2: the label is out of range \(the header says 9, from 0\): '9:1",
    ),
    (DENSE, LABELS.replace("8:1", "8"), "y, line 2: expected 'label:value'"),
    (DENSE, LABELS + "1:1\n", "y, line 1: the header says 3 rows, the file has 4; fetch it again"),
    (DENSE, "4 9\n8:1 2:1\n\n5:1\n1:1\n", "y: 4 rows, and .*x has 3; do they belong together"),
]


@pytest.mark.parametrize(("features", "labels", "message"), BAD_DENSE)
def test_bad_dense_text(tmp_path, features, labels, message):
    (tmp_path / "x").write_text(features)
    (tmp_path / "y").write_text(labels)
    with pytest.raises(InputError, match=message):
        dense_text.read(features=tmp_path / "x", labels=tmp_path / "y")


def test_entries_of_one_feature_are_added_up(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 3:1 1:2 3:4\n")
    assert svmlight.read(data=path).features.toarray().tolist() == [[2, 0, 5]]


def test_numbers_agree_with_float():
    rng = np.random.default_rng(2)
    texts = ["0", "-0.0", "1e-40", "123456789012345678901234567890", "0.000000000000000000000000001", "1E+05", "5."]
    texts += [
        f"{value:.{digits}g}"
        for value, digits in zip(rng.standard_cauchy(500), rng.integers(1, 18, 500), strict=True)
    ]
    for text in texts:
        found, end, ok = parsing.read_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0)
        assert ok
        assert end == len(text)
        assert found == pytest.approx(float(text), rel=1e-14, abs=0)


@pytest.mark.parametrize("text", ["", "-", "+", ".", "e5", "1e", "1e+", "x"])
def test_what_is_no_number(text):
    assert not parsing.read_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0)[2]


def test_arff_agrees_with_a_naive_parser(tmp_path):
    lines = ["{0 1,1 1,2 0.5}", "{ 3 1 , 0 1 }", "{}", "{1 0, 2 -1e2}", "{1 1,3 1}"]
    (tmp_path / "a.arff").write_text(ARFF + "\n".join(lines[:3]) + "\n% comment\n\n" + "\n".join(lines[3:]))
    (tmp_path / "a.xml").write_text(XML)
    labels, entries = arff_rows(lines, np.array([False, True, False, True]))
    rows = arff.read(data=tmp_path / "a.arff", labels=tmp_path / "a.xml")
    assert labels_of(rows) == labels
    assert rows.label_names == ("TAG_a", "b b")
    np.testing.assert_allclose(rows.features.toarray(), matrix(entries, 2).toarray())


BAD_XC = {
    "": r"a.txt: the file is empty",
    "3 4\n": r"line 1: expected 'rows features labels', found '3 4'",
    "1 4 x\n": r"line 1: expected 'rows features labels'",
    "1 4 2147483648\n": r"line 1: expected 'rows features labels', found '2147483648', more than 2147483647; fetch",
    "1 4 " + "9" * 5000 + "\n": r"line 1: expected 'rows features labels', found '9{40}\.\.\.', more than",
    "2 4 3\n0 1:1\n0 1:3e38 2:1 1:3e38\n": r"a.txt, row 1: the values of feature 1 add up to infinity; drop some",
    "2 4 3\n0 1:1\n": r"line 1: the header says 2 rows, the file has 1",
    "1 4 3\n0 1:1\n1 2:1\n": r"line 1: the header says 1 rows, the file has 2",
    "2 4 3\n0 1:1\n1 4:1\n": r"line 3: the feature number is out of range \(the header says 4, from 0\): '4:1'",
    "1 4 3\n0 99999999999999999999:1\n": r"line 2: the feature number is out of range",
    "2 4 3\n0 1:1\n1,3 2:1\n": r"line 3: the label is out of range \(the header says 3, from 0\): '3 2:1'",
    "2 4 3\n0 1:1\n-1 2:1\n": r"line 3: the label is out of range",
    "1 4 3\n0 1:1 2:abc 3:1\n": r"line 2: the value is not a number: '2:abc 3:1'",
    "1 4 3\n0 1:1 2:\n": r"line 2: the value is not a number: '2:'",
    "1 4 3\n0 2:1.5x\n": r"line 2: the value is not a number: '2:1.5x'",
    "1 4 3\n0 1:NaN\n": r"line 2: the value is NaN or infinite; drop or replace such values: '1:NaN'",
    "1 4 3\n0 1:-inf\n": r"line 2: the value is NaN or infinite",
    "1 4 3\n0 1:1e39\n": r"line 2: the value is NaN or infinite",
    "1 4 3\n0 1:1 2\n": r"line 2: expected 'feature:value': '2'",
    "1 4 3\n0 1:1 x:2\n": r"line 2: expected a feature number, as in 'feature:value': 'x:2'",
    "1 4 3\n0 -1:1\n": r"line 2: expected a feature number",
    "2 4 3\n0 1:1\n1:1 2:1\n": r"line 3: the labels are missing; a row that has none begins with a space: '1:1 2:1'",
    "1 4 3\nsport 1:1\n": r"line 2: a label is not a whole number: 'sport 1:1'",
    "1 4 3\n1.5 1:1\n": r"line 2: a label is not a whole number",
    "1 4 3\n0, 1:1\n": r"line 2: a label is not a whole number",
    "1 4 3\n0 1:" + "x" * 100 + "\n": r"line 2: the value is not a number: '1:x{38}\.\.\.'",
}


@pytest.mark.parametrize("content", BAD_XC)
@pytest.mark.parametrize("block", [8, 2**22])
def test_bad_xc_gives_file_line_and_text(tmp_path, monkeypatch, content, block):
    monkeypatch.setattr(sparse_text.line_blocks, "__defaults__", (block,))
    path = tmp_path / "a.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=BAD_XC[content]) as raised:
        xc.read(data=path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_truncated_compressed_file_is_named(tmp_path, pack):
    rng = np.random.default_rng(3)
    path = tmp_path / "a.txt.packed"
    text = ("2000 9 3\n" + "\n".join(random_lines(rng, 2000, 9, 3, 0))).encode()
    for at, expected in ((-2000, range(1500, 1999)), (-1, range(1990, 2001)), (2000, range(10, 500))):
        path.write_bytes(pack(text)[:at])
        with pytest.raises(InputError, match=r"a\.txt\.packed, after line (\d+): .* truncated or damaged") as raised:
            xc.read(data=path)
        assert int(re.search(r"line (\d+)", str(raised.value))[1]) in expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# only a comment\n", "no row in it"),
        ("1 0:1\n", r"line 1: the feature number is out of range \(from 1; set options.zero_based"),
        ("1 1:1\n\n2:1 3:1\n", r"a.svm, line 3: the label is missing; .*: '2:1 3:1'"),
        ("1 1:1\n 2:1\n", r"line 2: the label is missing; .*: '2:1'"),
        ("1 1:1\n2 1:?\n", r"line 2: the value is not a number: '1:\?'"),
    ],
)
def test_bad_svmlight(tmp_path, content, message):
    path = tmp_path / "a.svm"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        svmlight.read(data=path)


BAD_ARFF = [
    (
        ARFF + "{0 1}\n{0 1,9 1}\n",
        XML,
        r"line 10: the attribute number is out of range \(the header has 4, from 0\): '9 1}'",
    ),
    (ARFF + "0,1,0,1\n", XML, r"line 9: expected a sparse row '\{attribute value, \.\.\.\}': '0,1,0,1'"),
    (ARFF + "{0 ?}\n", XML, r"line 9: the value is not a number: '0 \?}'"),
    (ARFF + "{0 nan}\n", XML, r"line 9: the value is NaN or infinite"),
    (ARFF + "{0 1;2 1}\n", XML, r"line 9: expected ',' or '}' after a value"),
    (ARFF + "{0 1\n", XML, r"line 9: expected ',' or '}' after a value"),
    (ARFF + "{0 1} x\n", XML, r"line 9: expected ',' or '}' after a value: 'x'"),
    (ARFF, XML, "no row after @data"),
    ("@relation x\n", XML, "no @data in it"),
    ("hello\n" + ARFF, XML, "line 1: expected an ARFF header, found 'hello'"),
    ("@attribute x string\n@data\n{}\n", XML, r"line 1: attributes must be numbers or \{0,1\}"),
    ("", XML, "a.arff: the file is empty"),
    (ARFF + "{0 1}\n", "<labels><label name='zz'/></labels>", r"a.xml: label 'zz' is not an attribute of .*a.arff"),
    (ARFF + "{0 1}\n", "<labels/>", "a.xml: no <label name=...> in it"),
    (ARFF + "{0 1}\n", "", "a.xml: not a list of labels in XML"),
]


def test_rows_without_labels_where_they_are_allowed(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n2:1\n 3:1\n")
    assert labels_of(svmlight.read(data=tmp_path / "a.svm", require_labels=False)) == [[1], [], []]
    (tmp_path / "a.txt").write_text("3 4 3\n0 1:1\n2:1\n 3:1\n")
    assert labels_of(xc.read(data=tmp_path / "a.txt", require_labels=False)) == [[0], [], []]


@pytest.mark.parametrize(("content", "labels", "message"), BAD_ARFF)
def test_bad_arff_gives_file_line_and_text(tmp_path, content, labels, message):
    (tmp_path / "a.arff").write_text(content)
    (tmp_path / "a.xml").write_text(labels)
    with pytest.raises(InputError, match=message):
        arff.read(data=tmp_path / "a.arff", labels=tmp_path / "a.xml")


def test_memory_is_bounded_by_the_result(tmp_path, monkeypatch):
    monkeypatch.setattr(sparse_text.line_blocks, "__defaults__", (2**16,))
    path = tmp_path / "a.txt"
    line = "1 " + " ".join(f"{feature}:0.12345678901234567890" for feature in range(100))
    path.write_text("4000 100 2\n" + "\n".join([line] * 4000))
    xc.read(data=path)
    tracemalloc.start()
    rows = xc.read(data=path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = rows.features.data.nbytes + rows.features.indices.nbytes
    assert path.stat().st_size > 2.5 * result
    assert peak < 2 * result
