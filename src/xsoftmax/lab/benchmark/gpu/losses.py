"""Forward and backward of one loss: ours beside PyTorch's, Cut Cross-Entropy's and Liger's, where installed."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.elementwise import REFUSALS, Block, Elementwise
from xsoftmax.gpu.fused_softmax import block_size
from xsoftmax.gpu.precision import ClassWeights, precision_of
from xsoftmax.gpu.replay import Replayed
from xsoftmax.internal.errors import first_line
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of, typical
from xsoftmax.lab.benchmark.gpu.exact import of_blocks
from xsoftmax.lab.benchmark.gpu.sizes import Sizes
from xsoftmax.lab.benchmark.gpu.ways import as_in_training, of_size

OURS = "xsoftmax"


class Found(NamedTuple):
    """The loss, a mean in nats, and its gradients of X and W."""

    loss: Tensor
    X: Tensor
    W: Tensor


def measured(sizes: Sizes, device: torch.device, ways: dict[str, Elementwise]) -> Iterator[dict[str, Any]]:
    """Time each in bfloat16 on the same inputs; of one that is missing or fails, say so."""
    n_samples, n_classes, n_features = sizes.loss
    part = f"loss and gradients, N={n_samples:,}, K={n_classes:,}, D={n_features}, bfloat16"
    X = torch.randn(n_samples, n_features, device=device).bfloat16()
    W = (torch.randn(n_classes, n_features, device=device) / n_features**0.5).bfloat16()
    y = torch.randint(n_classes, (n_samples,), device=device)
    ours = None
    cases = {f"{OURS}, {way}, {of_blocks(n_bytes)}": (way, n_bytes) for way, n_bytes in product(ways, sizes.blocks)}
    own = {name: partial(_Ours, n_bytes, way, ways[way]) for name, (way, n_bytes) in cases.items()}
    for program, make in (own | OTHERS).items():
        found: dict[str, Any] = {"part": part, "name": program, "unit": "call"}
        if program in cases:
            found["way"], found["block_bytes"] = cases[program]
        try:
            call = make()
            loss, dX, dW = call(X, W, y)
            ours = ours or Found(loss, dX.clone(), dW)
            found["difference_of_loss"] = float((loss.double() - ours.loss.double()).abs())
            found["difference_of_dX"] = float((dX.double() - ours.X.double()).abs().max() / ours.X.abs().max())
            del dX, dW
            found["peak_bytes_beyond"] = peak_bytes(partial(call, X, W, y), device)
            found["seconds"] = seconds_of(partial(call, X, W, y), device)
            found["value"] = typical(found["seconds"])
        except REFUSALS as error:
            found["left_out"] = first_line(error)
        yield found


class _Ours:
    """As in a fit: code is compiled for this very block, and calls with the same X and W are replayed on a card."""

    def __init__(self, n_bytes: int, way: str, elementwise: Elementwise) -> None:
        self._n_bytes, self._way, self._elementwise = n_bytes, way, elementwise
        self._replayed = Replayed()
        self._given: tuple[int, int] | None = None

    def __call__(self, X: Tensor, W: Tensor, y: Tensor) -> Found:
        assert self._given in (None, (X.data_ptr(), W.data_ptr())), "what is recorded is of these alone"
        rows = ClassWeights(W, precision_of("bfloat16-stochastic"))
        block = block_size(len(X), len(W), self._n_bytes)
        how: dict[str, Any] = {"block": block}

        def loss_of(y: Tensor) -> Tensor:
            sums = fused_softmax.sums_of(X, y, rows, **how)
            self._found = fused_softmax.gradients(X, y, rows, None, sums.log_partition, dtype=W.dtype, **how)
            return -sums.log_likelihood.mean()

        with as_in_training():
            if self._given is None:
                like = Block(len(X), block, rows.precision, has_biases=False)
                self._elementwise = of_size(self._way, self._elementwise, X.device, like)
            how["elementwise"] = self._elementwise
            self._given = X.data_ptr(), W.data_ptr()
            loss = self._replayed(loss_of, y)
        assert self._found.X is not None
        return Found(loss, self._found.X, self._found.W)


def _differentiated(loss_of: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Found]:
    """Give loss and gradients of a loss that autograd differentiates."""

    def call(X: Tensor, W: Tensor, y: Tensor) -> Found:
        X, W = (each.detach().requires_grad_() for each in (X, W))
        loss = loss_of(X, W, y)
        loss.backward()
        assert X.grad is not None
        assert W.grad is not None
        return Found(loss.detach(), X.grad, W.grad)

    return call


def _composed() -> Callable[[Tensor, Tensor, Tensor], Found]:
    return _differentiated(lambda X, W, y: torch.nn.functional.cross_entropy(X @ W.T, y))


def _chunked() -> Callable[[Tensor, Tensor, Tensor], Found]:
    options = torch.nn.LinearCrossEntropyOptions()
    function = torch.nn.functional.linear_cross_entropy
    return _differentiated(lambda X, W, y: function(X, W, y, options=options))


def _cut() -> Callable[[Tensor, Tensor, Tensor], Found]:
    function = import_module("cut_cross_entropy").linear_cross_entropy
    return _differentiated(function)


def _liger() -> Callable[[Tensor, Tensor, Tensor], Found]:
    module = import_module("liger_kernel.transformers").LigerFusedLinearCrossEntropyLoss()
    return _differentiated(lambda X, W, y: module(W, X, y))


OTHERS: dict[str, Callable[[], Callable[[Tensor, Tensor, Tensor], Found]]] = {
    "torch cross_entropy": _composed,
    "torch linear_cross_entropy": _chunked,
    "Cut Cross-Entropy": _cut,
    "Liger": _liger,
}
