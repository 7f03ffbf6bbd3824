"""Recall at k: the share of a row's labels among the k best classes; for all classes, and for frequent and rare ones.

Macro recall averages over classes instead of rows: the share of a class's rows in which it is among the k best, for
classes that rows have (Schultheis et al., Generalized test utilities for long-tail performance, NeurIPS 2023).

Head, torso and tail are thirds of the training rows' labels. Classes are sorted by falling number of training rows
N_k, then by number; a class is of the head, torso or tail if the classes before it have less than a third, two
thirds or more of sum_k N_k. Recall of a third is the share of its labels, over all rows, that are among the k best;
it is NaN if rows have none.
"""

from functools import partial

import numpy as np

from xsoftmax.evaluation.metrics import Metric, RowScores

THIRDS = ("head", "torso", "tail")


def recall_at(k: int, rows: RowScores) -> float:
    """Average over rows."""
    starts = rows.label_sets.starts
    return (np.add.reduceat((rows.label_ranks < k).astype(float), starts[:-1]) / np.diff(starts)).mean()


def macro_recall_at(k: int, rows: RowScores) -> float:
    """Average over the classes that rows have."""
    classes = rows.label_sets.classes
    n, hits = np.bincount(classes), np.bincount(classes, rows.label_ranks < k)
    return (hits[n > 0] / n[n > 0]).mean()


def recall_of_third(k: int, third: int, rows: RowScores) -> float:
    """Average over the labels of the third."""
    chosen = thirds(rows.class_counts)[rows.label_sets.classes] == third
    return (rows.label_ranks[chosen] < k).mean() if chosen.any() else float("nan")


def thirds(counts: np.ndarray) -> np.ndarray:
    """Give the third of each class, 0 (head) to 2 (tail): int64 of shape (n_classes,)."""
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    found = np.empty(counts.size, np.int64)
    found[order] = np.minimum(3 * before // max(1, counts.sum()), 2)
    return found


SETS = ["label_sets", "label_ranks"]
MEMBERS = [
    Metric("recall_at_5", "recall@5", SETS, partial(recall_at, 5), 0, 1),
    Metric("recall_at_10", "recall@10", SETS, partial(recall_at, 10), 0, 1, at="end", shown=False),
    Metric("macro_recall_at_5", "macro recall@5", SETS, partial(macro_recall_at, 5), 0, 1, at="end", shown=False),
    *(
        Metric(
            f"{name}_recall_at_5",
            f"recall@5, {name}",
            [*SETS, "class_counts"],
            partial(recall_of_third, 5, third),
            least=0,
            greatest=1,
            at="end",
            shown=False,
        )
        for third, name in enumerate(THIRDS)
    ),
]
