"""Small valid files for every reader of files, and what may happen to their bytes."""

import bz2
import gzip
import io
import lzma
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from PIL import Image
from scipy import sparse

from data.test_debian import PACKAGES, TRANSLATION
from data.test_readers import CSV, TABULAR, idx_bytes
from data.test_sparse_readers import ARFF, DENSE, LABELS, XML
from xsoftmax.data.config import DatasetConfig

Files = dict[str, bytes]


class Variant(NamedTuple):
    """Files by their paths, how they are read, and how they are packed once they are damaged."""

    config: DatasetConfig
    files: Files
    pack: Callable[[Files], Files] = dict

    def write(self, folder: Path, damaged: Files | None = None) -> None:
        """Write the files below a folder, some of them damaged."""
        for name, content in self.pack(self.files | (damaged or {})).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # to write over it takes ext4 2.5 ms
            path.write_bytes(content)


def compressed(files: Files) -> Files:
    """Compress each file."""
    return {name: gzip.compress(content) for name, content in files.items()}


def zipped(files: Files) -> Files:
    """Make an archive of what is in ``X.npz``."""
    file, members = io.BytesIO(), [name for name in files if name.startswith("X.npz/")]
    with zipfile.ZipFile(file, "w") as archive:
        for name in members:
            archive.writestr(name.removeprefix("X.npz/"), files[name])
    return {name: files[name] for name in files if name not in members} | {"X.npz": file.getvalue()}


def variant(reader: str, roles: dict[str, str], files: Files, **options: object) -> Variant:
    """Describe files of one reader."""
    return Variant(DatasetConfig(name="fuzz", format=reader, parts={"all": roles}, options=options), files)


def packed(reader: str, roles: dict[str, str], files: Files, **options: object) -> list[Variant]:
    """Describe files that may be compressed: damaged before that or, by all that compresses, after it."""
    plain = variant(reader, roles, files, **options)
    packs = (gzip.compress, lzma.compress, bz2.compress)
    after = [plain._replace(files={name: pack(files[name]) for name in files}) for pack in packs]
    return [plain, plain, plain, plain._replace(pack=compressed), *after]


def _saved(save: Callable[..., None], *values: object, **named: object) -> bytes:
    file = io.BytesIO()
    save(file, *values, **named)
    return file.getvalue()


def _members(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {f"X.npz/{name}": archive.read(name) for name in archive.namelist()}


def _arrays() -> list[Variant]:
    X, whole = np.float64([[1.5, 0, 2], [0, 0, -3]]), {"data": "X.npz"}
    dense = _saved(np.savez_compressed, X=X, y=[5, 2])
    labels = {"y": _saved(np.save, ["u", "v"])}
    formats = (sparse.csr_array, sparse.csc_array, sparse.coo_array)
    matrices = [_saved(sparse.save_npz, of(X)) for of in formats]
    return [
        variant("arrays", whole, {"X.npz": dense}),
        variant("arrays", whole, _members(dense))._replace(pack=zipped),
        variant("arrays", {"data": "X", "labels": "y"}, {"X": _saved(np.save, X)} | labels),
        variant("arrays", whole | {"labels": "y"}, {"X.npz": matrices[0]} | labels),
        *(
            variant("arrays", whole | {"labels": "y"}, _members(matrix) | labels)._replace(pack=zipped)
            for matrix in matrices
        ),
    ]


def _picture(suffix: str, mode: str, **options: object) -> bytes:
    file, pixels = io.BytesIO(), np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    Image.fromarray(pixels).convert(mode).save(file, suffix, **options)
    return file.getvalue()


def _images() -> list[Variant]:
    pictures = {
        "a.png": _picture("png", "1"),
        "b.png": _picture("png", "RGBA"),
        "c.jpg": _picture("jpeg", "RGB"),
        "d.gif": _picture("gif", "P"),
        "e.bmp": _picture("bmp", "RGB"),
        "f.tif": _picture("tiff", "L"),
        "g.tif": _picture("tiff", "RGB", compression="tiff_lzw"),
        "h.webp": _picture("webp", "RGB", lossless=True),
    }
    return [
        variant("images", {"data": "top"}, {"top/one/0.png": pictures["a.png"], f"top/two/{name}": picture}, size=3)
        for name, picture in pictures.items()
    ]


def _parquet(frame: pd.DataFrame, compression: str | None) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file, compression=compression, index=False)
    return file.getvalue()


NUMBERS = "a,label,b\n1.5,x,0\n2,y,-1e3\n3,x,2\n"
COLUMNS = 't,n,c,label\n"a, b",1.5,x,k\nb,2,,m\n,-3e3,y,k\n'
WORDS = pd.DataFrame({"label": ["cat", None, "dog"], "text": ['Meow, "loud"\nmeow', "nothing", "Woof"]})
XC = "3 6 4\n0,3 1:0.5 5:2\n1 0:-3e38\n 2:1 3:3\n"
SVMLIGHT = "3,1 1:0.5 4:3e38 # two\n-2 qid:3 2:1\n\n+1 3:7\n"
TEXT = "the cat and the dog\nthe dog\n\ncaf\u00e9 and the cat\n"
SEVERAL = "a,label\n1.5,x;y\n2,\\;; y;\n3,\n"
MATRIX = "3 6\n1:0.5 5:2\n\n0:-3e38 2:1\n"
TEXT_OF_THREE = "the cat\n\ncaf\u00e9\n"
JSON_LINES = (
    '{"uid": "0", "title": "the cat", "content": "caf\u00e9", "target_ind": [3, 1], "target_rel": [1.0, 0.5]}\n'
    '{"title": "dog", "content": "", "target_ind": []}\n'
)
ONE, TABLE = {"data": "data"}, {"data": "data.parquet"}
XML_1 = '<?xml version="1.0" encoding="utf-8"?>\n'
PIXELS = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)

CASES: dict[str, list[Variant]] = {
    "arff": [
        each._replace(files=each.files | {"labels": (XML_1 + XML).encode()}, pack=dict)
        for each in packed(
            "arff",
            {"data": "data", "labels": "labels"},
            {"data": (ARFF + "{0 1,1 1,2 0.5}\n{3 1, 2 -3e38}\n").encode()},
        )
    ],
    "arrays": _arrays(),
    "debian": packed(
        "debian",
        {"packages": "packages", "translation": "translation"},
        {"packages": PACKAGES.encode(), "translation": TRANSLATION.encode()},
    ),
    "dense-text": packed("dense-text", {"features": "x", "labels": "y"}, {"x": DENSE.encode(), "y": LABELS.encode()}),
    "folders": [
        variant("folders", ONE, {"data/a/0": "H: x\n\ncaf\u00e9".encode(), "data/b/0": b"no body"}, skip_header=True)
    ],
    "icd10": [
        variant(
            "icd10",
            {"tabular": "tabular", "codes": "codes"},
            {"tabular": (XML_1 + TABULAR).encode(), "codes": b"A001\nA012XXA Cut\n"},
        )
    ],
    "idx": [
        *packed("idx", {"images": "x", "labels": "y"}, {"x": idx_bytes(PIXELS), "y": idx_bytes(np.uint8([3, 0]))}),
        variant(
            "idx",
            {"images": "x", "labels": "y"},
            {"x": idx_bytes(PIXELS.astype(">f8"), 0x0E), "y": idx_bytes(np.array([300, -1], ">i4"), 0x0C)},
        ),
    ],
    "images": _images(),
    "skip-gram": packed("skip-gram", ONE, {"data": TEXT.encode()}, window=2, min_count=1, subsample=None),
    "svmlight": packed("svmlight", ONE, {"data": SVMLIGHT.encode()}),
    "table-csv": [
        *packed("table", ONE, {"data": CSV.encode()}, text="text"),
        *packed("table", ONE, {"data": NUMBERS.encode()}),
    ],
    "table-parquet": [
        variant("table", TABLE, {"data.parquet": _parquet(WORDS, "snappy")}, text="text"),
        variant("table", TABLE, {"data.parquet": _parquet(pd.read_csv(io.StringIO(NUMBERS)), None)}),
    ],
    "table-columns": packed("table", ONE, {"data": COLUMNS.encode()}, text="t", numeric=["n"], categorical="c"),
    "table-several-labels": packed("table", ONE, {"data": SEVERAL.encode()}, label_separator=";"),
    "xc": packed("xc", ONE, {"data": XC.encode()}),
    "xc-filter": packed("xc", ONE | {"filter": "pairs"}, {"data": XC.encode(), "pairs": b"0 3\n2 1\n2 7\n"}),
    "xc-separate": packed(
        "xc-separate", {"features": "x", "labels": "y"}, {"x": MATRIX.encode(), "y": LABELS.encode()}
    ),
    "xc-text": [
        *packed("xc-text", {"texts": "x.json"}, {"x.json": JSON_LINES.encode()}),
        *packed("xc-text", {"texts": "x", "labels": "y"}, {"x": TEXT_OF_THREE.encode(), "y": LABELS.encode()}),
    ],
}

EXTREMES = (-(2**63), -(2**31), -1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
INTEGERS = [
    struct.pack(order + ("q" if n < 0 else "Q"), n)[-size if order == ">" else 0 :][:size]
    for n in EXTREMES
    for order in "<>"
    for size in (2, 4, 8)
]
TOKENS = sorted(
    {b"-1", b"0", b"1e999", b"-1e39", b"nan", b"inf", b"99999999999999999999", b"\0", b"\n", b"\t", b" ", b",", b":"}
    | {b'"', b"'", b"<", b"&#0;", b"{", b"}", b"\r", b".", b"2147483647", b"2147483648", b"4294967296"}
    | {b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xe2\x80\xa8", b"9" * 400, b"9" * 5000, b"0." + b"0" * 400 + b"1"}
    | set(INTEGERS)
)
DIGITS = re.compile(rb"\d+")


def _flip(content: bytes, at: int, length: int, token: bytes) -> bytes:
    flipped = bytes([content[at] ^ 1 << length % 8]) if at < len(content) else b""
    return content[:at] + flipped + content[at + 1 :]


def _fill(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[:at] + token[:1] * len(content[at : at + length]) + content[at + length :]


def _insert(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[:at] + token + content[at:]


def _overwrite(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[:at] + token + content[at + len(token) :]


def _replace_number(content: bytes, at: int, length: int, token: bytes) -> bytes:
    """Put the token in place of the digits that come next."""
    found = DIGITS.search(content, at)
    return content[: found.start()] + token + content[found.end() :] if found else content


def _delete(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[:at] + content[at + length :]


def _duplicate(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[: at + length] + content[at:]


def _truncate(content: bytes, at: int, length: int, token: bytes) -> bytes:
    return content[:at]


KINDS = (_flip, _fill, _insert, _overwrite, _replace_number, _delete, _duplicate, _truncate)
PLACES = 2**16
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, PLACES), st.integers(1, 64), st.sampled_from(TOKENS)),
    min_size=1,
    max_size=4,
)


class Damaged(NamedTuple):
    """A file of a variant, by number and name, and its bytes after some mutations."""

    variant: int
    name: str
    content: bytes


@st.composite
def damaged(draw: st.DrawFn, variants: list[Variant]) -> Damaged:
    """Choose a file and mutate its bytes 1 to 4 times."""
    number = draw(st.integers(0, len(variants) - 1))
    files = variants[number].files
    name = draw(st.sampled_from(sorted(files)))
    content = files[name]
    for mutate, place, length, token in draw(MUTATIONS):
        content = mutate(content, place * len(content) // PLACES, length, token)
    return Damaged(number, name, content)
