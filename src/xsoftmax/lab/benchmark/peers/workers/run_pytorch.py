"""PyTorch on the CPU: full, sampled and adaptive softmax, and negative sampling with sparse Adagrad.

Weights begin at zero, those of adaptive softmax as ``torch.nn`` has them. Sparse rows never become dense: they go
through ``EmbeddingBag``, so that only the weights of features that occur are read and moved.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from protocol import Record, work
from pytorch_models import MODELS, Batch, as_batch, batches
from pytorch_sparse_rows import OF_SPARSE_ROWS
from torch import Tensor

warnings.filterwarnings("ignore", message="Sparse invariant checks")


def train(record: Record) -> None:
    """Settings: ``model``, ``learning_rate``, ``batch_size``, and those of the model."""
    torch.set_num_threads(record.job["threads"])
    torch.manual_seed(record.job["seed"])
    X, y = record.data.features("train"), record.data.classes("train")
    record.loaded()
    labels = torch.from_numpy(y.astype(np.int64))
    rows = torch.from_numpy(X) if record.data.is_dense else X
    n, size = len(y), record.settings["batch_size"]
    counts = np.bincount(y, minlength=record.data.n_classes)
    with record.warm_up():
        model, optimizer = _start(record, counts)
        batch, chosen = next(batches(rows, np.arange(min(n, size)), size))
        step(model, optimizer, batch, chosen, labels)
        del model, optimizer
    torch.manual_seed(record.job["seed"])
    rng = np.random.default_rng(record.job["seed"])
    with record.training():
        model, optimizer = _start(record, counts)
    used = 0
    epoch: Iterator[tuple[Batch, np.ndarray]] = iter(())
    while record.goes_on():
        with record.training():
            while not record.due():
                following = next(epoch, None)
                if following is None:
                    epoch = batches(rows, rng.permutation(n), size)
                    following = next(epoch)
                step(model, optimizer, *following, labels)
                used += following[0].n
        with torch.no_grad():
            model.eval()
            record.evaluate(used / n, lambda block: model.scores(as_batch(block)).numpy(), model.kind)
            model.train()
        if record.curve[-1].get("not_finite"):
            return


def step(model: Any, optimizer: Any, batch: Batch, chosen: np.ndarray, labels: Tensor) -> None:
    """Move the weights by the gradient of one batch."""
    optimizer.zero_grad(set_to_none=True)
    model.loss(batch, labels[torch.from_numpy(chosen)]).backward()
    optimizer.step()


def _start(record: Record, counts: np.ndarray) -> tuple[Any, Any]:
    name = record.settings["model"]
    kinds = MODELS if record.data.is_dense else MODELS | OF_SPARSE_ROWS
    model = kinds[name](record.data, record.settings, counts)
    return model, model.optimizer()


if __name__ == "__main__":
    work(train)
