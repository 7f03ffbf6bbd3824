import gzip
import io
import json
import os
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse
from sklearn.preprocessing import normalize

from xsoftmax.data.label_cells import split_labels
from xsoftmax.data.readers import arrays, documents, folders, gaussians, hierarchy, icd10, idx, table, zipf
from xsoftmax.data.readers import images as images_reader
from xsoftmax.data.rows import Form
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError


def labels_of(rows):
    found = [rows.labels[a:b].tolist() for a, b in zip(rows.label_starts, rows.label_starts[1:], strict=False)]
    return [[rows.label_names[i] if rows.label_names else i for i in each] for each in found]


def idx_bytes(values, kind=0x08):
    return bytes([0, 0, kind, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.fixture
def images(tmp_path):
    pixels = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    (tmp_path / "images").write_bytes(idx_bytes(pixels))
    (tmp_path / "labels").write_bytes(gzip.compress(idx_bytes(np.array([3, 0, 3, 1, 2], dtype=np.uint8))))
    return tmp_path


def test_idx(images):
    rows = idx.read(images=images / "images", labels=images / "labels")
    assert rows.features.dtype == np.float32
    np.testing.assert_array_equal(rows.features, np.arange(30).reshape(5, 6))
    assert labels_of(rows) == [[3], [0], [3], [1], [2]]


def test_idx_of_floats(images):
    (images / "images").write_bytes(idx_bytes(np.linspace(0, 1, 5).reshape(5, 1).astype(">f8"), 0x0E))
    rows = idx.read(images=images / "images", labels=images / "labels")
    np.testing.assert_allclose(rows.features[:, 0], np.linspace(0, 1, 5), rtol=1e-6)


BAD_IDX = {
    b"": "the file is empty",
    b"PNG picture": "not an idx file, it begins with 50 4e 47 20",
    b"\0\0\x08\x01\0": "the file ends early",
    idx_bytes(np.zeros((5, 6), np.uint8))[:-1]: "the file ends early",
    idx_bytes(np.zeros((5, 6), np.uint8)) + b"x": "more bytes than its header says",
    idx_bytes(np.zeros((4, 6), np.uint8)): "has 4 rows and .*labels 5; do they belong together",
    idx_bytes(np.full((5, 1), np.nan, ">f4"), 0x0D): "row 0: NaN or infinite",
    gzip.compress(idx_bytes(np.zeros((5, 6), np.uint8)), mtime=0)[:-9]: "compressed data are truncated or damaged",
    idx_bytes(np.zeros((5, 6), np.uint8)).replace(
        b"\6", b"\xff", 1
    ): "5 rows of 255 numbers, more than the file can hold",
    gzip.compress(b"\0\0\x08\1" + b"\x7f" * 4, mtime=0): "2139062143 rows of 1 numbers, more than the file can hold",
    idx_bytes(np.zeros((5, 0), np.uint8)): "5 rows of 0 numbers, which is nothing",
}


@pytest.mark.parametrize("content", BAD_IDX)
def test_bad_idx(images, content):
    (images / "images").write_bytes(content)
    with pytest.raises(InputError, match=BAD_IDX[content]) as raised:
        idx.read(images=images / "images", labels=images / "labels")
    assert str(images / "images") in str(raised.value)


def test_idx_labels_are_whole_numbers(images):
    (images / "labels").write_bytes(idx_bytes(np.zeros(5, ">f4"), 0x0D))
    with pytest.raises(InputError, match="labels: labels of type >f4; expected whole numbers"):
        idx.read(images=images / "images", labels=images / "labels")


def test_idx_files_mixed_up(images):
    with pytest.raises(InputError, match="expected one label per row"):
        idx.read(images=images / "labels", labels=images / "images")


@pytest.fixture
def groups(tmp_path):
    for name, texts in {"b": ["Header: x\r\n\r\nBody caf\xe9"], "a": ["H\n\nfirst\n\nsecond", "no body"]}.items():
        (tmp_path / name).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / name / f"{number}").write_bytes(text.encode("latin-1"))
    (tmp_path / "a" / ".hidden").write_text("x")
    return tmp_path


def test_folders(groups):
    rows = folders.read(data=groups, encoding="latin-1", skip_header=True)
    assert list(rows.features) == list(rows.features) == ["first\n\nsecond", "", "Body caf\xe9"]
    assert labels_of(rows) == [["a"], ["a"], ["b"]]


def test_bad_folders(groups):
    rows = folders.read(data=groups)
    with pytest.raises(InputError, match=r"b/0, line 3: not utf-8: b'\\xe9'; set options.encoding"):
        list(rows.features)
    (groups / "c").mkdir()
    with pytest.raises(InputError, match="no texts in it"):
        folders.read(data=groups / "c")
    with pytest.raises(InputError, match="expected a folder"):
        folders.read(data=groups / "a" / "0")


@pytest.mark.parametrize("kind", ["a link to nothing", "a folder", "no file"])
def test_what_is_no_text_in_a_folder_of_texts(groups, kind):
    odd = groups / "b" / "odd"
    make = {
        "a link to nothing": lambda: odd.symlink_to("none"),
        "a folder": odd.mkdir,
        "no file": lambda: os.mkfifo(odd),
    }
    make[kind]()
    with pytest.raises(InputError, match=f"b/odd: {kind}; expected one folder per class"):
        folders.read(data=groups)


CSV = 'id,label,text\n1,cat,"Meow, ""loud""\nmeow"\n2,,nothing\n3,dog,Woof\n'


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.jsonl", "a.jsonl.gz"])
def test_table_of_texts(tmp_path, name):
    path = tmp_path / name
    if name == "a.parquet":
        frame = pd.DataFrame({"label": ["cat", None, "dog"], "text": ['Meow, "loud"\nmeow', "nothing", "Woof"]})
        frame.to_parquet(path)
    elif "jsonl" in name:
        lines = [{"label": "cat", "text": 'Meow, "loud"\nmeow'}, {"text": "nothing", "label": None, "id": [2]}]
        content = "\n\n".join(map(json.dumps, [*lines, {"label": "dog", "text": "Woof"}])).encode()
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    elif name == "a.tsv":
        path.write_text('text\tlabel\n"Meow, ""loud""\nmeow"\tcat\nnothing\t\nWoof\tdog\n')
    else:
        path.write_bytes(gzip.compress(CSV.encode()) if name.endswith("gz") else CSV.encode())
    rows = table.read(data=path, text="text")
    assert list(rows.features) == list(rows.features) == ['Meow, "loud"\nmeow', "nothing", "Woof"]
    assert labels_of(rows) == [["cat"], [], ["dog"]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ndjson"])
def test_table_of_numbers(tmp_path, suffix):
    frame = pd.DataFrame({"a": [1.5, 2, 3], "label": ["x", "y", "x"], "b": [0, -1, 2]})
    path = tmp_path / f"a{suffix}"
    if suffix == ".ndjson":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path, index=False)
    rows = table.read(data=path)
    np.testing.assert_array_equal(rows.features, np.float32([[1.5, 0], [2, -1], [3, 2]]))
    assert labels_of(rows) == [["x"], ["y"], ["x"]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"label": "x"}', "line 2: no 'a', which the first row has; write null if it is missing"),
        ('{"label": "x", "a": [1, 2]}', r"line 2: 'a' has several values: '\[1, 2\]'; give it one"),
        ('{"label": "x", "a": ', "line 2 is not JSON"),
        ("[1, 2]", r"line 2: expected an object, such as \{...\}, found '\[1, 2\]'"),
        ('{"label": "x", "a": "one"}', "line 2: not a finite number: 'one'"),
    ],
)
def test_json_lines_that_are_no_table_say_their_line(tmp_path, line, said):
    (tmp_path / "a.jsonl").write_text(f'{{"label": "x", "a": 1}}\n{line}\n')
    with pytest.raises(InputError, match=said):
        table.read(data=tmp_path / "a.jsonl")


def test_table_without_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2,7\n3,4,8\n")
    rows = table.read(data=path, header=False, label=-1)
    assert rows.features.tolist() == [[1, 2], [3, 4]]
    assert labels_of(rows) == [["7"], ["8"]]


BAD_TABLE = [
    ("", {"text": "text"}, "a.csv: the file is empty"),
    ("text,label\n", {"text": "text"}, "a.csv: no row in it"),
    ("a,label\nx,y\n", {"text": "text"}, "no column 'text'; columns: a, label"),
    ("a,b\nx,y\n", {"text": "a"}, "no column 'label'; columns: a, b"),
    ("text,label\nx,y\nx,y,z\n", {"text": "text"}, "line 3: 3 cells, the first line has 2: 'x,y,z'"),
    ("a,label\n1,y\nabc,y\n", {}, "line 3: not a finite number: 'abc'"),
    ("a,label\n1,y\n1e39,y\n", {}, "line 3: not a finite number: '1e39'"),
    ("a,label\n1,y\nnan,y\n", {}, "line 3: not a finite number: 'nan'"),
    ("a,label\n1,y\n,y\n", {}, "line 3: column 'a' is empty; give a number"),
    ("a,label\n1,y\n\nabc,y\n", {}, "line 4: not a finite number: 'abc'"),
    ('label,a\n"x\ny",1\nz,abc\n', {}, "line 4: not a finite number: 'abc'"),
    ('label,a\n\n"x\ny",abc\n', {}, "line 3: not a finite number: 'abc'"),
    ('label,a\n"x\ny",1\n\n"x\ny",1,2\n', {}, "line 5: 3 cells, the first line has 2"),
    ("text,label\nx\xff,y\n", {"text": "text"}, "line 2: cannot read on .*codec can't decode.*see options.encoding"),
    ("text,label\n" + 60 * "x,y\n" + "x\xff,y\n", {"text": "text"}, "a.csv, line 62: cannot read on .*codec"),
    ("text,label,text\nx,y,z\n", {"text": "text"}, "a.csv: several columns are named 'text'; rename all but one"),
    ("text,label,label\nx,y,z\n", {"text": "text"}, "a.csv: several columns are named 'label'"),
    ("a,a,label\n1,2,y\n", {}, "a.csv: several columns are named 'a'"),
    ("1,0.5,x\n1,2,y\n", {}, "no column 'label'; columns: 1, 0.5, x"),
    (
        "1,0.5,7\n1,2,8\n",
        {"label": -1},
        "the first line is a row of numbers, expected the names of columns: '1,0.5,7'",
    ),
    (
        "text,label\nx,y\nx,y\0\n",
        {"text": "text"},
        r"a.csv, row 2: the label has a character that is no text: 'y.x00'",
    ),
]


@pytest.mark.parametrize(("content", "options", "message"), BAD_TABLE)
def test_bad_table(tmp_path, content, options, message):
    (tmp_path / "a.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        table.read(data=tmp_path / "a.csv", **options)


def test_truncated_tables(tmp_path):
    rng = np.random.default_rng(0)
    content = "text,label\n" + "".join(f"{word},{word % 7}\n" for word in rng.integers(10**9, size=20000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content.encode(), mtime=0)[:-1000])
    with pytest.raises(InputError, match=r"a.csv.gz, after line \d+: cannot read on"):
        table.read(data=tmp_path / "a.csv.gz", text="text")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(InputError, match=r"a.parquet: not a Parquet file, or damaged"):
        table.read(data=tmp_path / "a.parquet", text="text")


@pytest.mark.parametrize("damage", [(b"PAR1\x15", b"PAR1\x17"), (b"Woof", b"W\xffof")])
def test_a_damaged_page_of_a_table(tmp_path, damage):
    pd.DataFrame({"label": ["cat"], "text": ["Woof"]}).to_parquet(tmp_path / "a.parquet", compression=None)
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes().replace(*damage))
    with pytest.raises(InputError, match=r"a.parquet, after row 0: not a Parquet file, or damaged"):
        list(table.read(data=tmp_path / "a.parquet", text="text").features)  # texts are read when they are needed


def test_arrays(tmp_path):
    X, y = np.arange(12.0).reshape(3, 2, 2), np.array([5, 2, 5])
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.save(tmp_path / "X.npy", X.reshape(3, 4))
    np.save(tmp_path / "y.npy", np.array(["u", "v", "u"]))
    sparse.save_npz(tmp_path / "s.npz", sparse.csc_matrix(X.reshape(3, 4)))
    one = arrays.read(data=tmp_path / "a.npz")
    two = arrays.read(data=tmp_path / "X.npy", labels=tmp_path / "y.npy")
    three = arrays.read(data=tmp_path / "s.npz", labels=tmp_path / "y.npy")
    np.testing.assert_array_equal(one.features, X.reshape(3, 4))
    np.testing.assert_array_equal(two.features, one.features)
    np.testing.assert_array_equal(three.features.toarray(), one.features)
    sparse.save_npz(tmp_path / "coo.npz", sparse.coo_array(X.reshape(3, 4)))
    np.testing.assert_array_equal(arrays.load_matrix(tmp_path / "coo.npz").toarray(), one.features)
    assert one.features.dtype == two.features.dtype == three.features.dtype == np.float32
    assert labels_of(one) == [[5], [2], [5]]
    assert labels_of(two) == labels_of(three) == [["u"], ["v"], ["u"]]


def test_bad_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", Z=np.zeros((3, 2)), X=np.zeros((3, 2)))
    np.save(tmp_path / "nan.npy", np.array([[1.0, 2], [3, np.nan]]))
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "y.npy", np.zeros(2, dtype=int))
    np.save(tmp_path / "real.npy", np.zeros(3))
    np.save(tmp_path / "object.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "flat.npy").read_bytes()[:-5])
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(InputError, match="no array of labels 'y' in it; arrays: Z, X"):
        arrays.read(data=tmp_path / "a.npz")
    with pytest.raises(InputError, match="no array 'W' in it"):
        arrays.read(data=tmp_path / "a.npz", x="W")
    with pytest.raises(InputError, match=r"nan.npy, row 1: NaN"):
        arrays.read(data=tmp_path / "nan.npy", labels=tmp_path / "y.npy")
    with pytest.raises(InputError, match=r"features of shape \(3,\)"):
        arrays.read(data=tmp_path / "flat.npy")
    with pytest.raises(InputError, match=r"labels of shape \(2,\) for 3 rows"):
        arrays.read(data=tmp_path / "a.npz", labels=tmp_path / "y.npy")
    with pytest.raises(InputError, match="labels of type float64"):
        arrays.read(data=tmp_path / "a.npz", labels=tmp_path / "real.npy")
    for name in ("object.npy", "cut.npy", "empty.npy"):
        with pytest.raises(InputError, match=f"{name}: cannot read it as NumPy arrays"):
            arrays.read(data=tmp_path / name)


def test_arrays_that_promise_too_much(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2000, 200)), y=np.zeros(2000, int))
    assert arrays.read(data=tmp_path / "a.npz").features.shape == (2000, 200)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    with pytest.raises(InputError, match=r"a.npz: .*X.npy: a shape of \(1000000000000, 3\) is more than its bytes"):
        arrays.read(data=tmp_path / "a.npz")
    sparse.save_npz(tmp_path / "s.npz", sparse.csc_array((10**12, 2)))
    with pytest.raises(InputError, match=r"s.npz: .*1000000000000 rows and 2 columns"):
        arrays.load_matrix(tmp_path / "s.npz")


def test_sparse_arrays_whose_indices_are_out_of_range(tmp_path):
    for of in (sparse.csr_array, sparse.csc_array):
        X = of(np.eye(3))
        X.indices[1] = 7
        sparse.save_npz(tmp_path / "s.npz", X)
        with pytest.raises(InputError, match=r"s.npz: cannot read it as NumPy arrays \(.*indices"):
            arrays.load_matrix(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([1, 2**64 - 1], np.uint64), "the label 18446744073709551615 is too large"),
        (np.array(["u", "v\0w"]), "row 1: the label has a character that is no text"),
        (np.array(["u", "\ud800"]), "row 1: the label has a character that is no text"),
        (np.array([1, 2**31 - 1], np.uint32).view("<U1"), "row 1: the label is no text"),
    ],
)
def test_labels_that_cannot_be(tmp_path, labels, message):
    np.save(tmp_path / "X.npy", np.zeros((2, 1)))
    np.save(tmp_path / "y.npy", labels)
    with pytest.raises(InputError, match=f"y.npy.*{message}"):
        arrays.read(data=tmp_path / "X.npy", labels=tmp_path / "y.npy")


@pytest.fixture
def drawings(tmp_path):
    """Two classes in three folders, 1-bit PNG of 6 x 6 pixels: in each, ink is as many columns as its number says."""
    for folder, numbers in {"one/Greek/alpha": (1, 2), "one/Greek/beta": (3,), "two/Latin/a": (2, 6)}.items():
        (tmp_path / folder).mkdir(parents=True)
        for number in numbers:
            pixels = np.broadcast_to(np.arange(6) >= number, (6, 6))
            Image.fromarray(pixels).save(tmp_path / folder / f"07_{number}.png")
    (tmp_path / "one/.hidden").mkdir()
    (tmp_path / "one/.hidden/07_1.png").write_bytes(b"no image")
    (tmp_path / "one/notes.txt").write_text("no image")
    return tmp_path


def test_images(drawings):
    rows = images_reader.read(data=drawings / "one", more=drawings / "two", size=3, invert=True)
    assert labels_of(rows) == [["Greek/alpha"], ["Greek/alpha"], ["Greek/beta"], ["Latin/a"], ["Latin/a"]]
    first_lines = [[128, 0, 0], [255, 0, 0], [255, 128, 0], [255, 0, 0], [255, 255, 255]]
    np.testing.assert_allclose(rows.features.reshape(5, 3, 3)[:, 0], first_lines, atol=1)
    np.testing.assert_array_equal(rows.features, np.tile(rows.features[:, :3], 3))
    upstream = images_reader.read(data=drawings / "one", size=3)
    np.testing.assert_array_equal(upstream.features, 255 - rows.features[:3])


def test_images_of_a_part(drawings):
    files = {"data": drawings / "one", "more": drawings / "two", "size": 6, "test_files": "_[36][.]png$"}
    train, test = images_reader.read(**files, part="train"), images_reader.read(**files, part="test")
    assert labels_of(train) == [["Greek/alpha"], ["Greek/alpha"], ["Latin/a"]]
    assert labels_of(test) == [["Greek/beta"], ["Latin/a"]]


def test_bad_images(drawings):
    with pytest.raises(InputError, match="none: expected a folder with one folder of images per class"):
        images_reader.read(data=drawings / "none")
    with pytest.raises(InputError, match="to say which images are the test"):
        images_reader.read(data=drawings, part="test")
    with pytest.raises(InputError, match=r"test_files: not a regular expression .*: '\('"):
        images_reader.read(data=drawings, part="test", test_files="(")
    with pytest.raises(InputError, match="no images in it"):
        images_reader.read(data=drawings, part="test", test_files="_9")
    with pytest.raises(InputError, match="cannot resize images to 0 pixels"):
        images_reader.read(data=drawings, size=0)
    (drawings / "two/Latin/a/07_6.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"07_6.png: cannot read it as an image"):
        images_reader.read(data=drawings)
    Image.new("1", (2**14, 2**12 + 1)).save(drawings / "two/Latin/a/07_6.png")
    with pytest.raises(InputError, match=r"07_6.png: .*16384 x 4097 pixels, more than 67108864"):
        images_reader.read(data=drawings)
    Image.new("L", (6, 6)).save(drawings / "two/Latin/a/07_6.png", "ppm")
    with pytest.raises(InputError, match=r"07_6.png: cannot read it as an image"):
        images_reader.read(data=drawings)


TABULAR = """<ICD10CM.tabular><chapter><name>1</name><desc>One</desc>
<section id="A00-A01"><desc>Section</desc>
 <diag><name>A00</name><desc>Cholera</desc><inclusionTerm><note>ignored: not a leaf</note></inclusionTerm>
  <diag><name>A00.1</name><desc>Mild</desc><inclusionTerm><note>Faint</note><note>Weak</note></inclusionTerm></diag></diag>
 <diag><name>A01</name><desc>Wound</desc><sevenChrDef><extension char="A">first</extension>
  <note>time</note><extension char="D">later</extension></sevenChrDef>
  <diag><name>A01.2</name><desc>Cut</desc></diag></diag>
</section>
<section id="B20"><desc>Alone</desc><diag><name>B20</name><desc>Only</desc></diag></section>
<section id="C00-C09"><desc>Heading</desc></section></chapter></ICD10CM.tabular>"""


def test_icd10(tmp_path):
    (tmp_path / "t.xml").write_text(TABULAR)
    (tmp_path / "c.txt").write_text("A001\nA012XXA Cut\n")
    files = {"tabular": tmp_path / "t.xml", "codes": tmp_path / "c.txt"}
    rows = icd10.read(**files, as_listed=False)
    assert list(rows.features) == ["Mild", "Faint", "Weak", "Cut, first/time", "Only"]
    assert labels_of(rows) == [["A00"], ["A00"], ["A00"], ["A01"], ["B20"]]
    assert labels_of(icd10.read(**files, as_listed=False, target="subcategory"))[2:4] == [["A00"], ["A01.2"]]
    assert list(icd10.read(**files).features)[4:] == ["Only", "Only", "Heading"]
    with pytest.raises(InputError, match="unknown target 'block'"):
        icd10.read(**files, target="block")
    (tmp_path / "t.xml").write_text(TABULAR[:300])
    with pytest.raises(InputError, match=r"t.xml: not well-formed XML"):
        icd10.read(**files)
    (tmp_path / "t.xml").write_text('<?xml version="1.0" encoding="utf-9"?>' + TABULAR)
    with pytest.raises(InputError, match=r"t.xml: not well-formed XML .*utf-9"):
        icd10.read(**files)
    (tmp_path / "c.txt").write_bytes(b"A001\nA012XXA C\xfct\n")
    with pytest.raises(InputError, match=r"c.txt, line 2: not utf-8"):
        icd10.read(**files)


def test_icd10_nested_without_end(tmp_path):
    depth = 3000
    nested = "<diag><name>A00</name><desc>x</desc>" * depth + "</diag>" * depth
    section = f'<section id="A00-A09"><desc>x</desc>{nested}</section>'
    (tmp_path / "t.xml").write_text(f"<ICD10CM.tabular><chapter>{section}</chapter></ICD10CM.tabular>")
    (tmp_path / "c.txt").write_text("A00\n")
    with pytest.raises(InputError, match=r"t.xml: nested too deeply"):
        icd10.read(tabular=tmp_path / "t.xml", codes=tmp_path / "c.txt")


def test_icd10_agrees_with_the_package_itself():
    from pathlib import Path

    import simple_icd_10_cm as package

    folder = Path(package.__file__).parent / "data"
    files = {"tabular": next(folder.glob("*.xml")), "codes": next(folder.glob("*.txt"))}
    leaves = [code for code in package.get_all_codes(with_dots=True) if package.is_leaf(code)]
    texts = [[package.get_description(code), *package.get_inclusion_term(code)] for code in leaves]
    rows = icd10.read(**files, target="subcategory")
    assert list(rows.features) == [text for each in texts for text in each]
    parents = [[package.get_parent(code)] for code, each in zip(leaves, texts, strict=True) for _ in each]
    assert labels_of(rows) == parents


def test_zipf_draws_follow_the_squares():
    rows = zipf.read(n_samples=200_000, n_classes=10, seed=3)
    shares = np.random.default_rng(3).random(10) ** 2
    expected = shares / shares.sum() * 200_000
    found = np.bincount(rows.labels, minlength=10)
    assert rows.features.shape == (200_000, 0)
    assert ((found - expected) ** 2 / expected).sum() < 30


def test_hierarchy_has_near_and_far_classes():
    rows = hierarchy.read(n_samples=6000, n_features=20, n_classes=27, branching=3, noise=0.5, label_noise=0, seed=1)
    centres = np.array([rows.features[rows.labels == k].mean(axis=0) for k in range(27)])
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    siblings = np.equal.outer(np.arange(27) // 3, np.arange(27) // 3) & ~np.eye(27, dtype=bool)
    strangers = ~np.equal.outer(np.arange(27) // 9, np.arange(27) // 9)
    assert distance[siblings].mean() < 0.8 * distance[strangers].mean()
    spread = np.linalg.norm(rows.features - centres[rows.labels], axis=1)
    assert (spread**2).mean() ** 0.5 == pytest.approx(0.5, rel=0.05)
    again = hierarchy.read(n_samples=6000, n_features=20, n_classes=27, branching=3, noise=0.5, label_noise=0, seed=1)
    np.testing.assert_array_equal(again.features, rows.features)


def test_hierarchy_label_noise_and_bad_options():
    options = {"n_samples": 5000, "n_features": 4, "n_classes": 10, "seed": 2}
    clean, noisy = hierarchy.read(**options, label_noise=0.0), hierarchy.read(**options, label_noise=0.5)
    assert (clean.labels != noisy.labels).mean() == pytest.approx(0.45, abs=0.03)
    with pytest.raises(InputError, match="branching at least 2"):
        hierarchy.read(n_classes=10, branching=1)


def test_hierarchy_by_parts_trains_on_every_class():
    options = {"n_samples": {"train": 60, "validation": 4000, "test": 4000}, "n_features": 20, "n_classes": 50}
    options |= {"noise": 0.3, "label_noise": 0.2, "skew": 1.0, "seed": 3}
    train, validation, test = (hierarchy.read(**options, part=part) for part in ("train", "validation", "test"))
    assert train.features.shape == (60, 20)
    assert set(train.labels) == set(range(50))
    assert not (train.labels[:50] == np.arange(50)).all()
    assert not (validation.features == test.features).all(axis=1).any()
    clean = [hierarchy.read(**options | {"label_noise": 0.0}, part=part) for part in ("validation", "test")]
    common = [k for k in range(50) if all((each.labels == k).sum() > 20 for each in clean)]
    centres = [np.array([each.features[each.labels == k].mean(axis=0) for k in common]) for each in clean]
    distances = np.linalg.norm(centres[0][:, None] - centres[1][None], axis=2)
    assert (distances.argmin(axis=1) == np.arange(len(common))).all()
    with pytest.raises(InputError, match="n_samples has no number for 'test'; parts: train"):
        hierarchy.read(n_samples={"train": 5}, part="test")
    with pytest.raises(InputError, match="40 training rows for 50 classes"):
        hierarchy.read(n_samples=40, n_classes=50, part="train")


def test_gaussians_scatter_around_the_same_centres_in_all_parts():
    options = {"n_samples": {"train": 3000, "test": 2000}, "n_features": 3, "n_classes": 4, "spread": 0.3, "seed": 1}
    train, test = (gaussians.read(**options, part=part) for part in ("train", "test"))
    assert (train.features.shape, test.features.shape) == ((3000, 3), (2000, 3))
    means = [np.array([each.features[each.labels == k].mean(axis=0) for k in range(4)]) for each in (train, test)]
    np.testing.assert_allclose(*means, atol=0.07)  # 5 standard errors
    assert (train.features - means[0][train.labels]).std() == pytest.approx(0.3, rel=0.05)
    assert np.abs(np.bincount(train.labels) - 750).max() < 150
    assert not np.isin(train.features, test.features).any()
    with pytest.raises(InputError, match="n_samples has no number for 'validation'; parts: train"):
        gaussians.read(**options, part="validation")
    with pytest.raises(InputError, match="gaussians: sizes must be positive"):
        gaussians.read(n_classes=0)


def test_every_format_is_a_reader():
    for name in registry.names("xsoftmax.data.readers"):
        assert callable(registry.load("xsoftmax.data.readers", name).read)


@pytest.mark.filterwarnings("error")
def test_a_cell_that_float32_does_not_hold_gives_no_raw_warning(tmp_path):
    (tmp_path / "a.csv").write_text("a,label\n1,y\n1e39,y\n")
    with pytest.raises(InputError, match="line 3: not a finite number: '1e39'"):
        table.read(data=tmp_path / "a.csv")


def test_documents_follow_zipf_and_can_be_learned():
    options = {"n_samples": {"train": 600, "test": 300}, "n_features": 5000, "n_classes": 60, "seed": 4}
    train, test = (documents.read(**options, part=part) for part in ("train", "test"))
    X = train.features
    assert (X.shape, set(train.labels)) == ((600, 5000), set(range(60)))
    assert X.has_sorted_indices
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)
    again = documents.read(**options, part="train")
    np.testing.assert_array_equal((again.features != X).sum(), 0)
    np.testing.assert_array_equal(again.labels, train.labels)
    means = normalize(sparse.csr_array((np.ones(600), (train.labels, np.arange(600)))) @ X)
    assert 0.3 < ((test.features @ means.T).toarray().argmax(axis=1) == test.labels).mean() < 0.98
    rows = documents.read(n_samples=3000, n_features=5000, n_classes=60, topic_share=0.0, class_share=0.0)
    share_of_rows = np.sort(np.bincount(rows.features.indices, minlength=5000) / 3000)[::-1]
    count = -np.log1p(-share_of_rows[50:1000])  # Poisson's mean, where a row has a word or not
    slope = np.polyfit(np.log(np.arange(50, 1000)), np.log(count), 1)[0]
    assert slope == pytest.approx(-1, abs=0.1)
    assert 60 < rows.features.nnz / 3000 < 130


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"branching": 1}, "branching at least 2"),
        ({"length": 0.5}, "length must be 1 or more"),
        ({"class_share": 0.6, "topic_share": 0.6}, "class_share is 0.6 and topic_share 0.6; give shares"),
        ({"part": "train", "n_samples": 5}, "5 training rows for 10000 classes; each class needs one"),
    ],
)
def test_documents_refuse_options(options, says):
    with pytest.raises(InputError, match=says):
        documents.read(**options)


SEVERAL = [
    ("a", ["a"]),
    ("a;b", ["a", "b"]),
    (" b ;  a;b", ["b", "a"]),
    (";;", []),
    ("", []),
    (" ; a b;", ["a b"]),
    (r"a\;b;c", ["a;b", "c"]),
    (r"a\\;b", ["a\\", "b"]),
    (r"a\b;\;", [r"a\b", ";"]),
    (r"C:\dir;a", [r"C:\dir", "a"]),
    ("a\\", ["a\\"]),
    (r"\;;\;", [";"]),
]


@pytest.mark.parametrize(("cell", "expected"), SEVERAL)
def test_a_cell_may_have_several_labels(cell, expected):
    assert split_labels(cell, ";") == expected


def test_labels_between_separators(tmp_path):
    pd.DataFrame({"label": [cell for cell, _ in SEVERAL], "x": range(12)}).to_csv(tmp_path / "a.csv", index=False)
    expected = [labels for _, labels in SEVERAL]
    for options in ({}, {"delimiter": ","}):
        rows = table.read(data=tmp_path / "a.csv", label_separator=";", **options)
        assert labels_of(rows) == expected
        assert rows.features[:, 0].tolist() == list(range(12))
    assert labels_of(table.read(data=tmp_path / "a.csv"))[1] == ["a;b"]
    frame = pd.DataFrame({"label": [cell for cell, _ in SEVERAL], "text": list("abcdefghijkl")})
    frame.to_parquet(tmp_path / "a.parquet")
    rows = table.read(data=tmp_path / "a.parquet", text="text", label_separator=";")
    assert labels_of(rows) == expected
    assert list(rows.features) == list("abcdefghijkl")
    form = Form("texts", source={"options": {"text": "text", "label_separator": ";"}})
    assert labels_of(table.read_labelled(tmp_path / "a.parquet", form)) == expected
    (tmp_path / "b.csv").write_text("label,x\na|;,1\n|b,2\n")
    assert labels_of(table.read(data=tmp_path / "b.csv", label_separator="|")) == [["a", ";"], ["b"]]


def test_separators_that_are_none(tmp_path):
    (tmp_path / "a.csv").write_text("label,x\na;b,1\nb;c\0d,2\n")
    for separator in ("", ", ", "\\"):
        with pytest.raises(InputError, match=r"options.label_separator is '.*'; give one character, such as ';'"):
            table.read(data=tmp_path / "a.csv", label_separator=separator)
    with pytest.raises(InputError, match=r"a.csv, row 2: the label has a character that is no text: 'c\\x00d'"):
        table.read(data=tmp_path / "a.csv", label_separator=";")


def test_arrays_of_several_labels(tmp_path):
    X, indicator = np.arange(6.0).reshape(3, 2), np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "both.npz", X=X, y=indicator)
    np.save(tmp_path / "y.npy", indicator.astype(bool))
    sparse.save_npz(tmp_path / "y.npz", sparse.csr_array(indicator))
    for given in ({"data": "both.npz"}, {"data": "X.npy", "labels": "y.npy"}, {"data": "X.npy", "labels": "y.npz"}):
        rows = arrays.read(**{role: tmp_path / name for role, name in given.items()})
        assert labels_of(rows) == [[1, 2], [], [0]]
        assert rows.labels.dtype == rows.label_starts.dtype == np.int64
    for wrong, message in (
        (2 * indicator, "y.npy: row 0, column 1 is 2; give 0 or 1"),
        (indicator[:2], "labels of 2 rows for 3 rows"),
    ):
        np.save(tmp_path / "y.npy", wrong)
        with pytest.raises(InputError, match=message):
            arrays.read(data=tmp_path / "X.npy", labels=tmp_path / "y.npy")
