"""napkinXC: probabilistic label trees, and hierarchical softmax. One training is one point; models go to disk."""

import shutil
import tempfile
from typing import Any

import numpy as np
from napkinxc.models import HSM, PLT
from protocol import Record, work
from scipy.sparse import csr_matrix

TUPLES_AT_A_TIME = 2_000_000


def train(record: Record) -> None:
    """Settings: ``model`` (PLT, HSM), and keyword arguments of it."""
    X, y = csr_matrix(record.data.features("train")), record.data.classes("train")
    record.loaded()
    labels = [[int(label)] for label in y]
    settings = {key: value for key, value in record.settings.items() if key != "model"}
    folder = tempfile.mkdtemp(prefix="napkinxc-")
    is_softmax = record.settings["model"] == "HSM"
    if not is_softmax:
        record.notes["no_log_likelihood"] = "its labels have probabilities of their own, no distribution"
    try:
        kind = HSM if is_softmax else PLT
        model = kind(folder, threads=record.job["threads"], seed=record.job["seed"], **settings)
        with record.training():
            model.fit(X, labels)
        evaluation = all_classes if is_softmax else top_classes
        record.look_at_rows(None, lambda rows, y: evaluation(record, model, csr_matrix(rows), y))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def top_classes(record: Record, model: Any, X: csr_matrix, y: np.ndarray) -> tuple[None, np.ndarray]:
    """The first class of each row."""
    return None, np.array([labels[0] if labels else -1 for labels in model.predict(X, top_k=1)])


def all_classes(record: Record, model: Any, X: csr_matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of true classes, from those of all classes, whose sum is written down."""
    n_classes = record.data.n_classes
    step = max(1, TUPLES_AT_A_TIME // n_classes)
    log_likelihood, top, sums = np.empty(len(y)), np.empty(len(y), np.int64), np.empty(len(y))
    with np.errstate(divide="ignore"):
        for start in range(0, len(y), step):
            for i, pairs in enumerate(model.predict_proba(X[start : start + step], top_k=n_classes), start):
                found = dict(pairs)
                log_likelihood[i] = np.log(found.get(int(y[i]), 0.0))
                top[i], sums[i] = pairs[0][0] if pairs else -1, sum(found.values())
    record.notes["sum_of_probabilities"] = [float(sums.min()), float(sums.mean()), float(sums.max())]
    return log_likelihood, top


if __name__ == "__main__":
    work(train)
