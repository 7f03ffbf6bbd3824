"""Scores of rows for all classes of a model on a device, in blocks: what ``xsoftmax.kernels.scores`` is on the host.

Weights are sent over in stretches of classes, as many as the device has memory for; for each stretch, rows follow a
few thousand at a time. Scores are float32, and equal to the host's up to rounding.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu.device import ask_for_room, free_on
from xsoftmax.gpu.features import Features
from xsoftmax.gpu.layouts import ClassMajor, FeatureMajor, cut
from xsoftmax.gpu.same_bits import same_bits
from xsoftmax.gpu.table import BehindTable
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels.scores import ScoreBlock, Scored

ROWS_AT_A_TIME = 2048
# Scores of a block; of 1,024 classes, all are one, as on the host.
MOST_SCORES = 2**23
# Weights that are sent over at a time, and those that are held on PyTorch's CPU device, where they take the host's
# memory a second time.
SENT_AT_ONCE, HELD_ON_CPU = 2**22, 2**24
# Beside the scores of a block: what is computed of each of them.
BYTES_OF_A_SCORE = 28


class Given(NamedTuple):
    """Weights that stay, of all classes, as ``xsoftmax.gpu.weights.Weights`` to a layout."""

    W: Tensor
    part: None = None


class Found(NamedTuple):
    """Scores of some rows for classes ``first_class``... on the device, (n, m)."""

    rows: slice
    first_class: int
    scores: Tensor


class DeviceScorer:
    """Scores of the rows of ``X`` for all classes of a model with dense weights.

    Parameters
    ----------
    model : Scored
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    place : {"cpu", "cuda"}
    kept : dict, optional
        Weights are taken from here, or left here if all are there: the caller promises not to change them.

    Raises
    ------
    InputError
        If the device lacks the memory for a block.
    """

    def __init__(self, model: Scored, X: Any, place: str, kept: dict[Any, Any] | None = None) -> None:
        self._model, self._X, self._kept = model, X, kept if kept is not None else {}
        self._device = torch.device(place)
        constant = 0.0 if model.b is None or model.encoder is not None else 1.0
        self._features = Features(X, constant, self._device, torch.float32)
        self._by_feature = self._features.sparse and model.encoder is None
        self._n_rows = max(1, min(X.shape[0], ROWS_AT_A_TIME))
        self._block = min(model.n_classes, MOST_SCORES // self._n_rows)
        self._stretch = model.n_classes if self._key in self._kept else self._ask(place)
        calibration = model.calibration
        frequency = calibration is not None and calibration.frequency
        self._offsets = self._sent(calibration.offsets(slice(None))) if calibration and frequency else None

    @property
    def _key(self) -> tuple[str, bool]:
        return str(self._device), self._by_feature

    @property
    def whole(self) -> bool:
        """Whether all classes are one block."""
        return self._block == self._model.n_classes

    def _ask(self, place: str) -> int:
        """Choose how many classes are held at a time, and make sure that they may be."""
        model, of_a_class = self._model, 4 * (self._model.n_features + 1)
        entries = self._X.shape[1] if not self._features.sparse else self._X.nnz / max(1, self._X.shape[0])
        needed = {
            "scores of a block": BYTES_OF_A_SCORE * self._n_rows * self._block,
            "rows": int(24 * self._n_rows * (entries + model.n_features * (model.encoder is not None) + 1)),
            "the table": 0 if model.encoder is None else model.encoder.nbytes,
        }
        left = (free_on(place) - sum(needed.values())) // (2 * of_a_class)
        most = HELD_ON_CPU * 4 // of_a_class if place == "cpu" else model.n_classes
        stretch = min(model.n_classes, max(self._block, min(left, most)))
        advice = "leave device out: then scores are made on the host"
        ask_for_room(f"device is {place}", place, needed | {"weights": stretch * of_a_class}, "scoring rows", advice)
        return stretch

    def blocks(self) -> Iterator[Found]:
        """Go through all scores; a row sees its classes in rising order. They may be changed."""
        n_samples = self._X.shape[0]
        for begin, end in cut(self._model.n_classes, self._stretch):
            layout = self._layout(begin, end)
            for first in range(0, n_samples, self._n_rows):
                rows = slice(first, min(first + self._n_rows, n_samples))
                batch = layout.opened(self._features.take(np.arange(rows.start, rows.stop)))
                for start, stop in cut(end - begin, self._block):
                    classes = slice(begin + start, begin + stop)
                    scores = layout.scores(batch, start, stop)
                    yield Found(rows, classes.start, self._corrected(scores, rows, classes))

    def _corrected(self, scores: Tensor, rows: slice, classes: slice) -> Tensor:
        """See ``xsoftmax.kernels.scores.correct``; what a proposal adds is made on the host."""
        correction, calibration = self._model.correction, self._model.calibration
        log_q = None if correction is None else correction.log_q(self._X[rows], classes.start, classes.stop)
        if log_q is not None:
            scores += self._sent(log_q)
        if calibration is not None:
            scores *= float(np.float32(calibration.inverse_temperature))
        if self._offsets is not None:
            scores += self._offsets[classes]
        return scores

    def _layout(self, first: int, stop: int) -> Any:
        """Give weights of some classes on the device."""
        if self._key in self._kept:
            return self._kept[self._key]
        found = self._behind(Given(self._weights(first, stop)))
        if stop - first == self._model.n_classes:
            self._kept[self._key] = found
        return found

    def _weights(self, first: int, stop: int) -> Tensor:
        """Send weights over, biases last: a row per class, or for sparse rows per feature."""
        W, b, width = self._model.W, self._model.b, self._model.n_features + 1
        shape = (width, stop - first) if self._by_feature else (stop - first, width)
        found = torch.zeros(shape, device=self._device)
        by_class = found.T if self._by_feature else found
        for start, end in cut(stop - first, SENT_AT_ONCE // width):
            by_class[start:end, :-1] = self._sent(W[first + start : first + end])
        if b is not None:
            by_class[:, -1] = self._sent(b[first:stop])
        return found

    def _behind(self, weights: Any) -> Any:
        if self._model.encoder is not None:
            table = Given(self._sent(self._model.encoder))
            return BehindTable(weights, table, float(self._model.b is not None), trained=False)  # type: ignore[arg-type]
        return (FeatureMajor if self._by_feature else ClassMajor)(weights)

    def _sent(self, array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(self._device)


def visit(
    model: Scored,
    X: Any,
    place: str,
    show: Callable[[ScoreBlock], Any],
    pool: ThreadPool,
    kept: dict[Any, Any] | None = None,
) -> None:
    """Bring all scores to the host, block by block, and show them: see ``xsoftmax.model.Model.visit_scores``."""
    with on_device(place, pool):
        for found in DeviceScorer(model, X, place, kept).blocks():
            scores = found.scores.cpu().numpy()
            parts = split_evenly(len(scores), pool.n_threads)
            blocks = [ScoreBlock(found.rows.start + part.start, found.first_class, scores[part]) for part in parts]
            pool.run([partial(show, block) for block in blocks])


@contextmanager
def on_device(place: str, pool: ThreadPool) -> Iterator[None]:
    """Compute there the same bits each time, without gradients."""
    if place == "cpu":
        torch.set_num_threads(pool.n_threads)
    with same_bits(), torch.no_grad():
        yield
