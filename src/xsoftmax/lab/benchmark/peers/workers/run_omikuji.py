"""Omikuji: trees as those of Parabel, or of Bonsai.

One training is one point; the clock starts once it has read its text.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import omikuji
from omikuji import ffi, lib
from protocol import Record, work
from protocol_ranking import DEPTHS, top_of_pairs
from scipy.sparse import issparse


def lines(X: Any, truth: Any) -> Iterator[str]:
    """Text of the extreme classification repository: sizes, then a row per line."""
    several = issparse(truth)
    n_classes = truth.shape[1] if several else int(truth.max()) + 1
    yield f"{truth.shape[0]} {X.shape[1]} {n_classes}"
    for i in range(truth.shape[0]):
        labels = truth.indices[truth.indptr[i] : truth.indptr[i + 1]].tolist() if several else [truth[i]]
        indices, values = row(X, i)
        features = " ".join(f"{j}:{value:.6g}" for j, value in zip(indices.tolist(), values.tolist(), strict=True))
        yield f"{','.join(map(str, labels))} {features}"


def row(X: Any, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values that are not zero."""
    if isinstance(X, np.ndarray):
        return np.flatnonzero(X[i]), X[i][X[i] != 0]
    within = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[within], X.data[within]


def train(record: Record) -> None:
    """Settings: hyper-parameters of Omikuji, such as ``n_trees``, ``linear.c``, ``cluster.k``."""
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

    def best(X: Any) -> Iterator[list[tuple[int, float]]]:
        for i in range(X.shape[0]):
            indices, values = row(X, i)
            yield model.predict(list(zip(indices.tolist(), values.tolist(), strict=True)), top_k=DEPTHS[-1])

    record.look_at_top(None, lambda X: top_of_pairs(best(X)))


if __name__ == "__main__":
    work(train)
