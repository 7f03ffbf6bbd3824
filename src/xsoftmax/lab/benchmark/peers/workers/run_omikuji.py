"""Omikuji, Parabel trees. One training is one point; the clock starts once it has read its text."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import omikuji
from omikuji import ffi, lib
from protocol import Record, work


def lines(X: Any, y: np.ndarray) -> Iterator[str]:
    """Text of the extreme classification repository: sizes, then a row per line."""
    yield f"{len(y)} {X.shape[1]} {int(y.max()) + 1}"
    for i, label in enumerate(y):
        indices, values = row(X, i)
        yield f"{label} " + " ".join(
            f"{j}:{value:.6g}" for j, value in zip(indices.tolist(), values.tolist(), strict=True)
        )


def row(X: Any, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values that are not zero."""
    if isinstance(X, np.ndarray):
        return np.flatnonzero(X[i]), X[i][X[i] != 0]
    within = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[within], X.data[within]


def train(record: Record) -> None:
    """Settings: ``n_trees``, ``linear.c``."""
    file = record.data.text("train", "xc", lines)
    record.loaded()
    record.notes["no_log_likelihood"] = "its scores are products of sigmoids, no distribution"
    threads = omikuji._ThreadPoolHandle(record.job["threads"])
    data = ffi.gc(
        lib.load_omikuji_data_set(ffi.new("char[]", str(file).encode()), threads.ptr), lib.free_omikuji_data_set
    )
    parameters = omikuji.Model.default_hyper_param()
    for name, value in record.settings.items():
        setattr(parameters, name.replace(".", "_"), value)
    with record.training():
        model = omikuji.Model(lib.train_omikuji_model(data, parameters, threads.ptr), threads)

    def top(X: Any, y: np.ndarray) -> tuple[None, np.ndarray]:
        best = np.full(len(y), -1)
        for i in range(len(y)):
            indices, values = row(X, i)
            found = model.predict(list(zip(indices.tolist(), values.tolist(), strict=True)), top_k=1)
            best[i] = found[0][0] if found else -1
        return None, best

    record.look_at_rows(None, top)


if __name__ == "__main__":
    work(train)
