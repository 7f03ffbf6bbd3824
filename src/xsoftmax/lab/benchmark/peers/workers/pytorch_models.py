"""Models of the PyTorch worker: full, sampled and adaptive softmax, and negative sampling; weights begin at zero."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from protocol import Data
from torch import Tensor, nn
from torch.nn import functional


class Batch(NamedTuple):
    """Some rows: dense x, or the indices, offsets and values of sparse ones; y; and n, their number."""

    x: Any
    indices: Any
    offsets: Any
    values: Any
    n: int


def batches(X: Any, order: np.ndarray, size: int) -> Iterator[tuple[Batch, np.ndarray]]:
    """Cut rows, in ``order``, into batches."""
    if isinstance(X, Tensor):
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield Batch(X[torch.from_numpy(chosen)], None, None, None, len(chosen)), chosen
        return
    X = X[order]
    for start in range(0, len(order), size):
        yield sparse_batch(X, start, min(start + size, len(order))), order[start : start + size]


def sparse_batch(X: Any, start: int, stop: int) -> Batch:
    """Rows ``start`` to ``stop`` of a csr_matrix, without a copy."""
    pointers = X.indptr[start : stop + 1]
    within = slice(pointers[0], pointers[-1])
    offsets = torch.from_numpy((pointers[:-1] - pointers[0]).astype(np.int32))
    return Batch(None, torch.from_numpy(X.indices[within]), offsets, torch.from_numpy(X.data[within]), stop - start)


def as_batch(X: Any) -> Batch:
    """Rows to score."""
    if isinstance(X, np.ndarray):
        return Batch(torch.from_numpy(np.ascontiguousarray(X)), None, None, None, len(X))
    return sparse_batch(X, 0, X.shape[0])


class Model(nn.Module):
    """What all models share: they know the data's sizes, and have an optimizer."""

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__()
        self.n_features, self.n_classes, self.is_dense = data.n_features, data.n_classes, data.is_dense
        self.settings = settings
        self.log_q = torch.from_numpy(np.log(counts / counts.sum())).float()

    def optimizer(self) -> Any:
        """Adagrad; gradients of ``EmbeddingBag`` are sparse."""
        return torch.optim.Adagrad(self.parameters(), lr=self.settings["learning_rate"])


def bag(batch: Batch, weight: Tensor, sparse: bool = False) -> Tensor:
    """Sparse rows times a matrix, (n_features, m): shape (n, m)."""
    values = {"per_sample_weights": batch.values, "mode": "sum"}
    return functional.embedding_bag(batch.indices, weight, batch.offsets, sparse=sparse, **values)


class FullSoftmax(Model):
    """Cross-entropy over all classes."""

    kind = "scores"

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__(data, settings, counts)
        if self.is_dense:
            self.weight = nn.Parameter(torch.zeros(self.n_classes, self.n_features))
        else:
            self.bag = nn.EmbeddingBag(
                self.n_features,
                self.n_classes,
                mode="sum",
                sparse=True,
                _weight=torch.zeros(self.n_features, self.n_classes),
            )
        self.bias = nn.Parameter(torch.zeros(self.n_classes))

    def scores(self, batch: Batch) -> Tensor:
        """Scores, shape (n, n_classes)."""
        if self.is_dense:
            return functional.linear(batch.x, self.weight, self.bias)
        return self.bag(batch.indices, batch.offsets, per_sample_weights=batch.values) + self.bias

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        return functional.cross_entropy(self.scores(batch), y)


class ClassRows(Model):
    """A row of weights per class, sparse gradients: what sampled losses look up."""

    kind = "scores"

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__(data, settings, counts)
        shape = self.n_classes, self.n_features
        self.rows = nn.Embedding(*shape, sparse=True, _weight=torch.zeros(shape))
        self.bias = nn.Embedding(self.n_classes, 1, sparse=True, _weight=torch.zeros(self.n_classes, 1))
        self.cumulative = torch.cumsum(self.log_q.double().exp(), 0)

    def draw(self, *shape: int) -> Tensor:
        """Classes by their frequency."""
        drawn = torch.searchsorted(self.cumulative, torch.rand(shape, dtype=torch.float64) * self.cumulative[-1])
        return drawn.clamp_(max=self.n_classes - 1)

    def scores(self, batch: Batch) -> Tensor:
        """Scores of all classes, shape (n, n_classes)."""
        weights, bias = self.rows.weight, self.bias.weight[:, 0]
        if batch.x is not None:
            return functional.linear(batch.x, weights, bias)
        if not hasattr(self, "_columns"):
            self._columns = weights.detach().t().contiguous()  # for this look: training forgets it
        return (
            functional.embedding_bag(
                batch.indices, self._columns, batch.offsets, mode="sum", per_sample_weights=batch.values
            )
            + bias
        )

    def train(self, mode: bool = True) -> "ClassRows":
        """Forget what a look made."""
        self.__dict__.pop("_columns", None)
        return super().train(mode)


class SampledSoftmax(ClassRows):
    """One set of classes, drawn by frequency, for a whole batch; corrected scores, accidental hits left out."""

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        x, others = batch.x, self.draw(self.settings["n_sampled"])
        true = (x * self.rows(y)).sum(1) + self.bias(y)[:, 0]
        drawn = torch.addmm(self.bias(others)[:, 0], x, self.rows(others).t())
        return self.corrected(true, drawn, y, others)

    def corrected(self, true: Tensor, drawn: Tensor, y: Tensor, others: Tensor) -> Tensor:
        """Mean loss of scores of true classes, (n,), and of the drawn ones, (n, n_sampled)."""
        expected = self.log_q + math.log(self.settings["n_sampled"])
        true, drawn = true - expected[y], drawn - expected[others]
        drawn = drawn.masked_fill(others[None] == y[:, None], -torch.inf)
        return (torch.logsumexp(torch.cat([true[:, None], drawn], 1), 1) - true).mean()


class NegativeSampling(ClassRows):
    """Logistic losses of the true class and of classes drawn for each row, by frequency; sparse Adagrad."""

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__(data, settings, counts)
        if not self.is_dense:  # one weight per (class, feature): only those of features that occur are touched
            self.cells = nn.EmbeddingBag.from_pretrained(
                self.rows.weight.detach().view(-1, 1), freeze=False, mode="sum", sparse=True
            )
            del self.rows

    def scores_of(self, batch: Batch, classes: Tensor) -> Tensor:
        """Scores of classes, (n, m), of rows: shape (n, m)."""
        bias = self.bias(classes)[..., 0]
        if batch.x is not None:
            return torch.einsum("nd,nmd->nm", batch.x, self.rows(classes)) + bias
        lengths = torch.diff(batch.offsets, append=torch.tensor([len(batch.indices)], dtype=torch.int32))
        per_entry = torch.repeat_interleave(classes, lengths, dim=0).t() * self.n_features + batch.indices.long()
        m, nnz = per_entry.shape
        offsets = (torch.arange(m)[:, None] * nnz + batch.offsets.long()).reshape(-1)
        sums = self.cells(per_entry.reshape(-1), offsets, per_sample_weights=batch.values.repeat(m))
        return sums.view(m, batch.n).t() + bias

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        others = self.draw(batch.n, self.settings["n_sampled"])
        scores = self.scores_of(batch, torch.cat([y[:, None], others], 1))
        return (functional.softplus(-scores[:, 0]) + functional.softplus(scores[:, 1:]).sum(1)).mean()

    def scores(self, batch: Batch) -> Tensor:
        """Scores of all classes, with log q, which they lack."""
        if not self.is_dense:
            self.rows = nn.Embedding.from_pretrained(self.cells.weight.detach().view(self.n_classes, self.n_features))
        try:
            return super().scores(batch) + self.log_q
        finally:
            if not self.is_dense:
                del self.rows


class AdaptiveSoftmax(Model):
    """``AdaptiveLogSoftmaxWithLoss``, the classes in the order of their frequency."""

    kind = "log_probabilities"

    def __init__(self, data: Data, settings: dict[str, Any], counts: np.ndarray) -> None:
        super().__init__(data, settings, counts)
        self.place = torch.from_numpy(np.argsort(np.argsort(-counts, kind="stable")))
        cutoffs = sorted({max(1, int(share * self.n_classes)) for share in settings["cutoffs"]} - {self.n_classes})
        self.head = nn.AdaptiveLogSoftmaxWithLoss(
            self.n_features, self.n_classes, cutoffs, div_value=settings["div_value"], head_bias=True
        )

    def loss(self, batch: Batch, y: Tensor) -> Tensor:
        """Mean over the batch."""
        return self.head(batch.x, self.place[y]).loss

    def scores(self, batch: Batch) -> Tensor:
        """Log-probabilities, shape (n, n_classes)."""
        return self.head.log_prob(batch.x)[:, self.place]


MODELS: dict[str, Callable[..., Any]] = {
    "full-softmax": FullSoftmax,
    "sampled-softmax": SampledSoftmax,
    "negative-sampling": NegativeSampling,
    "adaptive-softmax": AdaptiveSoftmax,
}
