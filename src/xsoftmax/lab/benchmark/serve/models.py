"""Models of any size, of random weights, to be served; and requests for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from xsoftmax.model import Model, save_model

KINDS = ("dense", "sparse")
# Features of dense rows; of sparse rows, entries of them, and weights of a class.
DENSE, SPARSE, ENTRIES, WEIGHTS = 128, 100_000, 30, 40
N_REQUESTS = 200
ATTRIBUTES = {"status": "finished", "dataset": "random", "method": "random"}


def written(folder: Path, n_classes: int, kind: str) -> tuple[Path, list[bytes]]:
    """Write a model of so many classes; return its path, and requests of one row each."""
    rng = np.random.default_rng(0)
    W, rows = (_dense if kind == "dense" else _sparse)(rng, n_classes)
    n_features = DENSE if kind == "dense" else SPARSE
    path = folder / f"{kind}.h5"
    names = [f"class {k}" for k in range(n_classes)]
    save_model(Model(W, names, n_features, np.zeros(n_classes, np.float32), attributes=ATTRIBUTES), path)
    return path, [json.dumps({"rows": [row]}).encode() for row in rows]


def _dense(rng: np.random.Generator, n_classes: int) -> tuple[np.ndarray, list[Any]]:
    W = rng.standard_normal((n_classes, DENSE), dtype=np.float32)
    return W, rng.standard_normal((N_REQUESTS, DENSE)).round(4).tolist()


def _sparse(rng: np.random.Generator, n_classes: int) -> tuple[csc_array, list[Any]]:
    n = n_classes * WEIGHTS
    indptr = np.arange(n_classes + 1, dtype=np.int64) * WEIGHTS
    values, columns = rng.standard_normal(n, dtype=np.float32), rng.integers(0, SPARSE, n).astype(np.int32)
    W = csc_array(csr_array((values, columns, indptr), shape=(n_classes, SPARSE)))
    W.sum_duplicates()
    rows = [
        {
            "indices": rng.choice(SPARSE, ENTRIES, replace=False).tolist(),
            "values": rng.random(ENTRIES).round(4).tolist(),
        }
        for _ in range(N_REQUESTS)
    ]
    return W, rows
