"""Models of every kind of rows, of random weights, and servers of them."""

import subprocess
import sys
from contextlib import contextmanager

import httpx
import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.normalization import Step
from xsoftmax.data.transform import Transform
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import Model

WORDS = ("blue", "long", "red", "round", "soft")
KINDS = ("texts", "dense", "named", "sparse", "features", "encoded", "table")
ATTRIBUTES = {"status": "finished", "dataset": "here", "method": "mine"}


def transform_of(kind):
    if kind == "texts":
        return Transform("texts", words=WORDS, token=r"(?u)\b\w+\b", steps=(Step("l2", {}),))
    if kind == "features":
        return None
    if kind == "table":
        words, values = {"token": r"\w+", "words": ("red", "soft")}, {"words": ("0=", "0=3"), "weighting": "binary"}
        parts = Transform("texts", 1, **words), Transform("dense", 1), Transform("categories", 1, **values)
        return Transform("table", 3, feature_names=("title", "price", "brand"), parts=parts)
    names = ("a", "b", "c", "d", "e") if kind == "named" else ()
    return Transform("dense" if kind in ("dense", "named") else "sparse", n_columns=5, feature_names=names)


def model_of(kind, n_classes=7, **others):
    rng = np.random.default_rng(0)
    width = 3 if kind == "encoded" else 5
    if kind == "encoded":
        others["encoder"] = rng.standard_normal((5, 3)).astype(np.float32)
    W, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((n_classes, width), n_classes))
    names = [f"class {k} – é" for k in range(n_classes)]
    return Model(W, names, 5, b, transform=transform_of(kind), attributes=ATTRIBUTES, **others)


def rows_of(kind, n=3):
    """Rows of a model as JSON has them, and as features."""
    rng = np.random.default_rng(1)
    if kind == "texts":
        texts = ["red and round", "soft", "long, long and blue"][:n]
        X = np.array([[0, 0, 1, 1, 0], [0, 0, 0, 0, 1], [1, 2, 0, 0, 0]], np.float32)[:n]
        return {"texts": texts}, csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    if kind == "table":
        rows = [("red and RED", 0.5, "3"), ("", -2, ""), ("soft", 0, "other")][:n]
        X = np.array([[2, 0, 0.5, 0, 1], [0, 0, -2, 1, 0], [0, 1, 0, 0, 0]], np.float32)[:n]
        names = ("title", "price", "brand")
        return {"rows": [dict(zip(names, row, strict=True)) | {"id": 7} for row in rows]}, csr_array(X)
    X = rng.standard_normal((n, 5)).round(3).astype(np.float32)
    rows = [[float(f"{value:.3f}") for value in row] for row in X]
    if kind == "named":
        return {"rows": [dict(reversed(list(zip("abcde", row, strict=True)))) for row in rows]}, X
    if kind in ("sparse", "encoded"):
        X[:, 1] = 0
        return {
            "rows": [{"indices": [4, 0, 2, 3], "values": [row[k] for k in (4, 0, 2, 3)]} for row in rows]
        }, csr_array(X)
    return {"rows": rows}, X


@contextmanager
def server(*words, env=None):
    """Run a server at a free port: its process and a client."""
    command = [sys.executable, "-m", "xsoftmax", "serve", *map(str, words), "--port", "0"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        line = program.stdout.readline()
        address = line.partition(": ")[0]
        assert address.startswith("http://127.0.0.1:"), line + program.stderr.read()
        with httpx.Client(base_url=address, timeout=60) as client:
            yield program, client
    finally:
        program.kill()
        program.wait()


CALIBRATION = Calibration(0.7, 0.5, np.log(np.arange(1, 8, dtype=np.float32)))
