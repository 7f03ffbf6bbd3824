"""Sizes that a file, a setting or a config names: memory is asked before it is taken, and nothing runs for ever."""

import gzip
import io
import json
import lzma
import time
import zipfile
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.programs import N_CLASSES, clustered
from xsoftmax.cli import main
from xsoftmax.data.config import load_config
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare as prepare_data
from xsoftmax.internal.errors import InputError


@contextmanager
def quickly(seconds=30):
    """Time of the processors, so that neighbours do not count."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


HUGE = 10**12


@pytest.mark.fault(
    "generated data, readers and methods that are asked for 10^12 rows, classes, features, draws or threads",
    happens="memory is asked before it is taken; what no machine has is refused",
    user="`error: …: … MB of memory, … MB are free; …`",
)
@pytest.mark.parametrize(
    ("reader", "options"),
    [
        ("zipf", {"n_samples": HUGE}),
        ("zipf", {"n_classes": HUGE}),
        ("hierarchy", {"n_samples": HUGE}),
        ("hierarchy", {"n_features": HUGE}),
        ("hierarchy", {"n_classes": HUGE}),
        ("documents", {"n_samples": HUGE}),
        ("documents", {"n_features": HUGE}),
        ("documents", {"n_classes": HUGE, "n_samples": 10}),
        ("documents", {"length": HUGE}),
        ("documents", {"own_words": HUGE}),
        ("gaussians", {"n_samples": HUGE}),
        ("gaussians", {"n_features": HUGE, "n_classes": 10}),
        ("contingency", {"n_samples": HUGE}),
        ("contingency", {"n_distinct": HUGE}),
    ],
)
def test_generated_data_of_any_size(reader, options, tmp_path, capsys):
    text = f"name: big\nformat: {reader}\noptions: {json.dumps(options)}\n"
    (tmp_path / "big.yaml").write_text(text)
    assert main(["download", str(tmp_path / "big.yaml"), "-o", str(tmp_path / "raw")]) == 0
    with quickly():
        words = ["prepare", tmp_path / "big.yaml", "--raw", tmp_path / "raw", "-o", tmp_path / "big.h5"]
        assert main([str(word) for word in words]) == 1
    said = capsys.readouterr().err
    assert "MB of memory" in said
    assert "MB are free; draw fewer" in said
    assert not (tmp_path / "big.h5").exists()


@pytest.fixture(scope="module")
def data(prepare):
    return prepare(*clustered(400), N_CLASSES, n_validation=50, n_test=50)


METHODS = {
    "draws": {"objective": {"name": "negative-sampling"}, "proposal": {"name": "uniform", "n_sampled": 10**9}},
    "shared draws": {
        "objective": {"name": "sampled-softmax"},
        "proposal": {"name": "frequency", "n_sampled": 10**9},
        "batch": {"size": 8, "shared": True},
    },
    "head": {
        "objective": {"name": "sampled-softmax"},
        "proposal": {"name": "head", "n_head": 10, "n_sampled": 10**9},
    },
    "tree": {
        "objective": {"name": "negative-sampling"},
        "proposal": {"name": "tree", "dimension": 4, "n_sampled": 10**9},
    },
    "memory": {
        "objective": {"name": "softmax"},
        "proposal": {"name": "all"},
        "optimizer": {"name": "lbfgs", "memory": 10**9},
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_any_size(name, data, tmp_path, capsys):
    (tmp_path / "methods.yaml").write_text(json.dumps({"big": {"optimizer": {"name": "adagrad"}, **METHODS[name]}}))
    words = ["train", data, "--methods", tmp_path / "methods.yaml", "--method", "big", "--epochs", 1]
    with quickly():
        assert main([str(word) for word in [*words, "-o", tmp_path / "fit"]]) == 1
    said = capsys.readouterr().err
    assert (" needs " in said and " MB: " in said) or "proposal all looks at each of them once" in said
    assert not (tmp_path / "fit").exists()


TRAIN = ["train", "DATA", "--method", "u-max", "--epochs", "1"]


TREE = ["proposal", "DATA", "--kind", "tree"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [*TRAIN, "--threads", "1000000", "-o", "OUT"],
            "threads is 1000",
        ),
        (
            [*TRAIN, "--points", "1000000000", "-o", "OUT"],
            "--points is 1",
        ),
        (
            [*TRAIN, "--seed", "1" + "0" * 23, "-o", "OUT"],
            "seed is 1000",
        ),
        ([*TRAIN, "--at", "nan", "-o", "OUT"], "evaluations are at"),
        (["train", "DATA", "--method", "u-max", "--seconds", "inf", "-o", "OUT"], "budget is inf"),
        (
            [*TRAIN, "--checkpoint-seconds", "nan", "-o", "OUT"],
            "checkpoint_seconds is nan; set it to 0 or more",
        ),
        ([*TREE, "--set", '{"folds": 1000000000}', "-o", "OUT"], "folds"),
        ([*TREE, "--set", '{"regularizer": NaN}', "-o", "OUT"], "regularizer"),
        ([*TREE, "--set", '{"dimension": 1e30}', "-o", "OUT"], "dimension"),
        ([*TREE, "--seed", "1" + "0" * 23, "-o", "OUT"], "seed is 1"),
    ],
)
def test_options_of_any_size(words, said, data, tmp_path, capsys):
    known = {"DATA": str(data), "OUT": str(tmp_path / "out")}
    with quickly():
        assert main([known.get(word, word) for word in words]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def described(folder, reader, options="{}", name="big.file"):
    """Describe a file of one's own."""
    text = f"name: big\nformat: {reader}\nfiles: [{{name: {name}, path: {folder / name}}}]\noptions: {options}\n"
    (folder / "big.yaml").write_text(text)
    return folder / "big.yaml"


def prepared(folder, config):
    download(load_config(config), folder / "raw")
    return prepare_data(load_config(config), folder / "raw", folder / "big.h5")


@pytest.fixture
def little(monkeypatch):
    """A machine with 16 MB left."""
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 2**24)


@pytest.mark.long_cases
@pytest.mark.fault(
    "compressed data that are far more than they look: gzip, xz, npz, Parquet",
    happens="they are read a piece at a time; memory for what comes out is asked before it is taken",
    user="`error: …: … MB of memory, … MB are free; …`",
)
@pytest.mark.parametrize("kind", ["gzip", "xz", "npz", "parquet", "line"])
def test_bombs(kind, little, tmp_path):
    if kind in ("gzip", "xz"):
        pack, lines = {"gzip": gzip, "xz": lzma}[kind], b"1 1:1 2:1 3:1 4:1\n" * 2**18
        with pack.open(tmp_path / "big.file", "wb") as file:
            for _ in range(24):
                file.write(lines)
        config = described(tmp_path, "svmlight")
    elif kind == "npz":
        np.savez_compressed(tmp_path / "big.npz", X=np.zeros((2**14, 2**13), np.float32), y=np.zeros(2**14, int))
        (tmp_path / "big.yaml").write_text(
            f"name: big\nformat: arrays\nfiles: [{{path: {tmp_path / 'big.npz'}}}]\n"
            "parts: {all: {data: big.npz}}\n"
        )
        config = tmp_path / "big.yaml"
    elif kind == "parquet":
        column = pa.array(["the same"] * 2**20).dictionary_encode()
        with pq.ParquetWriter(
            tmp_path / "big.parquet", pa.schema([("label", column.type), ("text", column.type)])
        ) as file:
            for _ in range(8):
                file.write_table(pa.table({"label": column, "text": column}))
        config = described(tmp_path, "table", "{text: text}", "big.parquet")
    else:
        with gzip.open(tmp_path / "big.file", "wb", compresslevel=1) as file:
            for _ in range(17 * 64):
                file.write(b"1" * 2**20)
        config = described(tmp_path, "svmlight")
    size = sum(path.stat().st_size for path in tmp_path.glob("big.*"))
    assert size < 20 * 2**20
    with quickly(60), pytest.raises(InputError, match=r"MB are free; |in a line; is it text\?"):
        prepared(tmp_path, config)
    assert not (tmp_path / "big.h5").exists()


@pytest.mark.slow
def test_a_line_of_200_mb(tmp_path):
    """Read as any other, in a few seconds: a row of 17 million features, and a text."""
    entries = b" ".join(b"%d:1" % (7 * k + 1) for k in range(18_000_000))
    assert len(entries) > 190 * 2**20
    (tmp_path / "big.file").write_bytes(b"1 " + entries + b"\n2 1:1\n1 2:1\n2 3:1\n")
    config = described(tmp_path, "svmlight")
    config.write_text(config.read_text() + "split: {validation: 0, test: 0}\n")
    with quickly(120):
        sizes = prepared(tmp_path, config)
    assert sizes["train"] == 4
    assert sizes["features"] == 7 * (18_000_000 - 1) + 1


@pytest.mark.parametrize("kind", ["links", "bomb", "nested"])
def test_zips_with_links_and_bombs(kind, tmp_path):
    """What archives hold beside files is refused; what comes out is counted as it comes."""
    with zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        if kind == "links":
            for name, target in (("top/a", "/etc/passwd"), ("top/b", "../../../outside")):
                link = zipfile.ZipInfo(name)
                link.create_system, link.external_attr = 3, 0o120777 << 16
                archive.writestr(link, target)
        elif kind == "bomb":
            for k in range(4):
                archive.writestr(f"top/{k}", bytes(2**24))
        else:
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr("bomb", bytes(2**26))
            archive.writestr("top/inner.zip", inner.getvalue())
    source = f"{{name: packed, urls: ['{(tmp_path / 'packed.zip').as_uri()}'], archive: {{max_bytes: 20000000}}}}"
    (tmp_path / "own.yaml").write_text(f"name: own\nformat: folders\nfiles: [{source}]\n")
    if kind == "nested":  # one archive is unpacked, not those in it
        download(load_config(tmp_path / "own.yaml"), tmp_path / "raw")
        assert (tmp_path / "raw" / "packed" / "top" / "inner.zip").stat().st_size < 2**20
        return
    reason = "only files and folders are unpacked" if kind == "links" else "raise archive.max_bytes"
    with pytest.raises(InputError, match=reason):
        download(load_config(tmp_path / "own.yaml"), tmp_path / "raw")
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink() or path.name in "0123"]
