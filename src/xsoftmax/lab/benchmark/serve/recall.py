"""What an index finds of the classes that are best by all scores, and how long it takes, as it looks further."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.prediction import Prediction, top_k
from xsoftmax.evaluation.prepared import check_same
from xsoftmax.model import load_model
from xsoftmax.serving.index import KINDS, ClassIndex

PROBES = {"hnsw": (100, 200, 400), "ivf": (1, 4, 16, 32, 64, 128)}
BEST = (1, 5, 10)
# Rows that are asked for one by one.
ALONE = 100


def measured(model_path: Path, data_path: Path, n_rows: int) -> list[dict[str, Any]]:
    """Compare each index, at each of its settings, with all scores, on test rows of the model's data."""
    model = load_model(model_path, mapped=True)
    with open_prepared(data_path) as data:
        check_same(model, model_path, data, data_path)
        test = data.split("test")
        X, y = np.ascontiguousarray(test.X[:n_rows]), test.y[:n_rows]
    with model.unchanging():
        exact, seconds = _timed(lambda rows: top_k(model, rows, max(BEST)), X)
        common = {"classes": model.n_classes, "features": model.n_features, "rows": len(X), "data": data.name}
        found = [common | {"index": "none"} | _compared(exact, exact, y) | seconds]
        print(_line(found[0]), flush=True)
        for kind in KINDS:
            found += _of_kind(model, kind, X, y, exact, common)
    return found


def _of_kind(
    model: Any, kind: str, X: Any, y: np.ndarray, exact: Prediction, common: dict[str, Any]
) -> list[dict[str, Any]]:
    found = []
    begin = time.process_time()
    index = ClassIndex.of(model, kind)
    building = time.process_time() - begin
    for probes in PROBES[kind]:
        index.look(probes)
        best, seconds = _timed(lambda rows: index.top_k(rows, max(BEST)), X)
        said = common | {"index": kind, "probes": probes, "building": building}
        found.append(said | _compared(best, exact, y) | seconds)
        print(_line(found[-1]), flush=True)
    return found


def _timed(ask: Callable[[Any], Prediction], X: Any) -> tuple[Prediction, dict[str, float]]:
    """Ask for all rows at once, and for some one by one; seconds are those that it computes, on one thread."""
    ask(X[:1])
    begin = time.process_time()
    found = ask(X)
    together = (time.process_time() - begin) / len(X)
    alone = []
    for row in range(min(ALONE, len(X))):
        begin = time.process_time()
        ask(X[row : row + 1])
        alone.append(time.process_time() - begin)
    return found, {"together": together, "p50": float(np.median(alone)), "p99": float(np.percentile(alone, 99))}


def _compared(found: Prediction, exact: Prediction, y: np.ndarray) -> dict[str, float]:
    """Give recall of the best, accuracy, and how far the best class's log-probability is off, where that is found."""
    shares = {
        f"recall_{k}": float(
            np.mean([np.isin(a[:k], b[:k]).mean() for a, b in zip(exact.classes, found.classes, strict=True)])
        )
        for k in BEST
    }
    same = found.classes[:, 0] == exact.classes[:, 0]
    distance = np.abs(np.log(found.probabilities[same, 0]) - np.log(exact.probabilities[same, 0]))
    return shares | {
        "accuracy": float((found.classes[:, 0] == y).mean()),
        "log_probability_error": float(distance.mean()) if same.any() else 0.0,
        "log_probability_error_99": float(np.percentile(distance, 99)) if same.any() else 0.0,
    }


def _line(found: dict[str, Any]) -> str:
    return (
        f"{found['data']}, {found['index']} {found.get('probes', '')}: recall at 10 {found['recall_10']:.4f}, "
        f"accuracy {found['accuracy']:.4f}, a row alone {1e3 * found['p50']:.2f} ms, "
        f"log p off by {found['log_probability_error']:.4f}"
    )
