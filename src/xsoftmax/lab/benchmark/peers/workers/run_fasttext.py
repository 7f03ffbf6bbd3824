"""fastText, supervised: the non-zero features of a row are its words; their values can't be given.

It reads its text while it trains; what reading takes before the first word is trained on (a run of no epochs) is
taken off its time. Its rate falls to zero over a run, so that every number of epochs is a run of its own. It may have
twelve threads, its own default, on the cores that all others have too: with one it leaves nine tenths of its input
vectors without a random start, which hurts some losses and helps others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
from protocol import Record, work

GROWTH = 1.5  # of the number of epochs from run to run
END = "</s>"


def lines(X: Any, y: np.ndarray) -> Iterator[str]:
    """One line per row."""
    for i, label in enumerate(y):
        words = X.indices[X.indptr[i] : X.indptr[i + 1]]
        yield f"__label__{label} " + " ".join(f"w{j}" for j in words)


def train(record: Record) -> None:
    """Settings: ``loss`` (softmax, hs, ns), ``dimension``, ``learning_rate``, ``threads``."""
    file = record.data.text("train", "ft", lines)
    record.loaded()
    with record.warm_up():
        start = record.clock()
        _fit(record, file, 0)
        reading = record.clock() - start
    record.notes |= {"seconds_of_reading_taken_off": reading, "threads_of_its_own": record.settings["threads"]}
    if record.settings["loss"] == "ns":
        record.notes["no_log_likelihood"] = "its classes have sigmoids of their own, no distribution"
    n_epochs = 1
    while True:
        with record.training_anew():
            model = _fit(record, file, n_epochs)
        record.seconds = max(1e-3, record.seconds - reading)
        evaluation = Evaluation(model, record.settings["loss"])
        record.look_at_rows(n_epochs, evaluation.rows)
        if not record.allows(GROWTH):
            return
        n_epochs = int(np.ceil(n_epochs * GROWTH))


def _fit(record: Record, file: Path, n_epochs: int) -> Any:
    settings = record.settings
    return fasttext.train_supervised(
        str(file), loss=settings["loss"], dim=settings["dimension"], lr=settings["learning_rate"], epoch=n_epochs,
        thread=settings["threads"], seed=record.job["seed"], minCount=1, verbose=0,
    )  # fmt: skip


class Evaluation:
    """Exact log-probabilities from a model's matrices: fastText itself cuts small ones off."""

    def __init__(self, model: Any, loss: str) -> None:
        self.model, self.loss = model, loss
        self.words = {word: i for i, word in enumerate(model.get_words())}
        names, counts = model.get_labels(include_freq=True)
        self.classes = np.array([int(name.removeprefix("__label__")) for name in names])
        self.place = np.empty(self.classes.max() + 1, np.int64)
        self.place[self.classes] = np.arange(len(self.classes))
        self.counts = np.asarray(counts, np.int64)
        self.inputs, self.outputs = model.get_input_matrix(), model.get_output_matrix()

    def rows(self, X: Any, y: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Log-probabilities of true classes (None for ns), and top classes."""
        hidden = self.hidden(X)
        if self.loss == "ns":
            return None, self.classes[_argmax(hidden, self.outputs)]
        if self.loss == "softmax":
            return self.softmax(hidden, self.place[y])
        texts = [line.split(" ", 1)[1] for line in lines(X, y)]
        top = [int(labels[0].removeprefix("__label__")) for labels in self.model.predict(texts, k=1)[0]]
        return self.hierarchical(hidden, self.place[y]), np.array(top)

    def hidden(self, X: Any) -> np.ndarray:
        """Mean vectors of the words of each row, and the end of its line."""
        known = np.array([self.words.get(f"w{j}", -1) for j in range(X.shape[1])])
        found = np.empty((X.shape[0], self.inputs.shape[1]), np.float32)
        for i in range(X.shape[0]):
            words = known[X.indices[X.indptr[i] : X.indptr[i + 1]]]
            words = np.append(words[words >= 0], [self.words[END]])
            found[i] = self.inputs[words].mean(axis=0)
        return found

    def softmax(self, hidden: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-softmax of all scores."""
        found, top = np.empty(len(true)), np.empty(len(true), np.int64)
        for start in range(0, len(true), 256):
            scores = (hidden[start : start + 256] @ self.outputs.T).astype(np.float64)
            highest = scores.max(axis=1, keepdims=True)
            total = np.log(np.exp(scores - highest).sum(axis=1)) + highest[:, 0]
            rows = np.arange(len(scores))
            found[start : start + 256] = scores[rows, true[start : start + 256]] - total
            top[start : start + 256] = scores.argmax(axis=1)
        return found, self.classes[top]

    def hierarchical(self, hidden: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Sums of log-sigmoids along the paths of a Huffman tree, as fastText builds it."""
        parent, is_right = huffman(self.counts)
        found, root = np.zeros(len(true)), len(parent) - 1
        node, rows = true.copy(), np.arange(len(true))
        while len(rows):
            above = parent[node]
            scores = np.einsum("nd,nd->n", hidden[rows], self.outputs[above - len(self.counts)], dtype=np.float64)
            signed = np.where(is_right[node], scores, -scores)
            found[rows] -= np.logaddexp(0, -signed)
            goes_on = above != root
            node, rows = above[goes_on], rows[goes_on]
        return found


def huffman(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parents of all nodes, leaves first, and whether a node is a right child; ``counts`` fall."""
    n = len(counts)
    weights = np.concatenate([counts, np.full(n - 1, 10**15)])
    parent, is_right = np.full(2 * n - 1, -1), np.zeros(2 * n - 1, bool)
    leaf, node = n - 1, n
    for following in range(n, 2 * n - 1):
        least = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                least.append(leaf)
                leaf -= 1
            else:
                least.append(node)
                node += 1
        weights[following] = weights[least].sum()
        parent[least] = following
        is_right[least[1]] = True
    return parent, is_right


def _argmax(hidden: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return np.concatenate([(hidden[i : i + 256] @ outputs.T).argmax(axis=1) for i in range(0, len(hidden), 256)])


if __name__ == "__main__":
    work(train)
