"""napkinXC: probabilistic label trees, hierarchical softmax, one-vs-rest.

One training is one point; models go to disk.
"""

import shutil
import tempfile
from typing import Any

import numpy as np
from napkinxc.models import BR, HSM, PLT
from protocol import Record, work
from protocol_ranking import DEPTHS, top_of_pairs
from scipy.sparse import csr_matrix

TUPLES_AT_A_TIME = 2_000_000
KINDS = {"PLT": PLT, "HSM": HSM, "BR": BR}


def train(record: Record) -> None:
    """Settings: ``model`` (PLT, HSM, BR), and keyword arguments of it."""
    X, truth = csr_matrix(record.data.features("train")), record.data.labels("train")
    record.loaded()
    labels = [each.tolist() for each in np.split(truth.indices, truth.indptr[1:-1])]
    settings = {key: value for key, value in record.settings.items() if key != "model"}
    folder = tempfile.mkdtemp(prefix="napkinxc-")
    has_likelihood = record.settings["model"] == "HSM" and not record.data.is_multilabel
    if record.settings["model"] != "HSM":
        record.notes["no_log_likelihood"] = "its labels have probabilities of their own, no distribution"
    if record.settings["model"] != "BR":
        settings["seed"] = record.job["seed"]
    try:
        model = KINDS[record.settings["model"]](folder, threads=record.job["threads"], **settings)
        with record.training():
            model.fit(X, labels)
        if has_likelihood:
            record.look_at_rows(None, lambda rows, y: all_classes(record, model, csr_matrix(rows), y))
        else:
            record.look_at_top(
                None, lambda rows: top_of_pairs(model.predict_proba(csr_matrix(rows), top_k=DEPTHS[-1]))
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
