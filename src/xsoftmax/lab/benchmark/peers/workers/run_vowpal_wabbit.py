"""Vowpal Wabbit, one example at a time: its own parser makes the examples, off the clock.

``oaa`` with ``--probabilities`` gives one-against-all sigmoids divided by their sum, a distribution; ``log_multi``
and ``plt`` name classes only.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from protocol import Record, work
from vowpalwabbit import Workspace

NO_LIKELIHOOD = {
    "log_multi": "it names a class, no probabilities",
    "plt": "its labels have probabilities of their own, no distribution",
}
BETWEEN_CLOCKS = 16  # examples


def lines(X: Any, y: np.ndarray, first: int = 1) -> Iterator[str]:
    """One example per row; classes are numbered from ``first``."""
    for i, label in enumerate(y):
        if isinstance(X, np.ndarray):
            indices, values = np.flatnonzero(X[i]), X[i][X[i] != 0]
        else:
            indices, values = (part[X.indptr[i] : X.indptr[i + 1]] for part in (X.indices, X.data))
        features = " ".join(f"{j}:{value:.6g}" for j, value in zip(indices.tolist(), values.tolist(), strict=True))
        yield f"{label + first} | {features}"


def arguments(record: Record) -> str:
    """Command line: as many weights as classes and features ask for, within reason."""
    reduction, n_classes = record.settings["reduction"], record.data.n_classes
    bits = int(np.clip(np.ceil(np.log2(n_classes * (record.data.n_features + 1))), 18, 27))
    parts = [f"--{reduction} {n_classes}", f"-b {bits}", f"-l {record.settings['learning_rate']}", "--quiet"]
    parts += [f"--random_seed {record.job['seed'] + 1}"]
    if reduction == "plt":
        parts += ["--top_k 1", "--loss_function logistic"]
    elif reduction == "oaa":
        parts += ["--loss_function logistic", "--probabilities"]
    else:
        parts += ["--loss_function logistic"]
    return " ".join(parts)


def train(record: Record) -> None:
    """Settings: ``reduction`` (oaa, log_multi, plt), ``learning_rate``."""
    reduction = record.settings["reduction"]
    first = 0 if reduction == "plt" else 1
    X, y = record.data.features("train"), record.data.classes("train")
    record.loaded()
    if reduction in NO_LIKELIHOOD:
        record.notes["no_log_likelihood"] = NO_LIKELIHOOD[reduction]
    n = len(y)
    workspace = Workspace(arguments(record))
    examples = [workspace.parse(line) for line in lines(X, y, first)]
    for split, (rows, classes) in record.rows.items():
        record.rows[split] = [workspace.parse(line) for line in lines(rows, classes, first)], classes
    del X
    rng = np.random.default_rng(record.job["seed"])
    order, place, used = rng.permutation(n), 0, 0
    while record.goes_on():
        with record.training():
            while not record.due():
                for i in order[place : place + BETWEEN_CLOCKS]:
                    workspace.learn(examples[i])
                done = min(BETWEEN_CLOCKS, n - place)
                place, used = place + done, used + done
                if place == n:
                    order, place = rng.permutation(n), 0
        record.look_at_rows(used / n, lambda parsed, y: _predictions(workspace, parsed, y, reduction))


def _predictions(workspace: Any, examples: list[Any], y: np.ndarray, reduction: str) -> tuple[np.ndarray | None, Any]:
    found = [workspace.predict(example) for example in examples]
    if reduction == "oaa":
        log_likelihood, top = np.empty(len(y)), np.empty(len(y), np.int64)
        with np.errstate(divide="ignore"):
            for i, row in enumerate(found):
                probabilities = np.asarray(row, np.float64)
                log_likelihood[i] = np.log(probabilities[y[i]])
                top[i] = probabilities.argmax()
        return log_likelihood, top
    if reduction == "plt":
        return None, np.array([labels[0] if len(labels) else -1 for labels in found])
    return None, np.array(found) - 1


if __name__ == "__main__":
    work(train)
