"""Negative sampling with Adagrad: a step's time against the bytes of weights and accumulators that it must touch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of, typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes

LEARNING_RATE = 0.3


class State(NamedTuple):
    """Weights and accumulators of shape (n_classes, n_features)."""

    W: Tensor
    accumulator: Tensor


def measured(sizes: Sizes, device: torch.device, ceilings: dict[str, float]) -> dict[str, Any]:
    """Time steps of one batch each, its negatives drawn beforehand."""
    n_classes, n_features, n_samples, n_sampled = sizes.sampled
    state = _state(n_classes, n_features, torch.float32, device)
    X = torch.randn(n_samples, n_features, device=device)
    classes = torch.randint(n_classes, (n_samples, 1 + n_sampled), device=device)
    run = lambda: step(X, classes, state)  # noqa: E731 - what is timed
    seconds = seconds_of(run, device)
    touched = classes.numel() * n_features * 4 * 4  # weight and accumulator, read and written, float32
    share = touched / typical(seconds) / ceilings["bandwidth"]
    return {
        "part": f"negative sampling, K={n_classes:,}, D={n_features}, {n_sampled} drawn, {n_samples} samples",
        "name": "float32, Adagrad",
        "seconds": seconds,
        "unit": "step",
        "value": typical(seconds),
        "bytes_touched": touched,
        "share_of_bandwidth": share,
        "bytes_of_weights": state.W.nbytes + state.accumulator.nbytes,
        "peak_bytes_beyond": peak_bytes(run, device),
        "target": "50 %",
        "reached": f"{share:.0%} of bandwidth",
        "met": share >= 0.5,
    }


def step(X: Tensor, classes: Tensor, state: State) -> None:
    """Move the weights of each sample's class, the first of its row, and of its negatives, the others.

    Mikolov et al. 2013, equation 4. Gradients of a batch are taken at the weights before it; those of a class that
    stands in the batch several times add up, in its accumulator as squares of each.

    Parameters
    ----------
    X : Tensor of shape (n_samples, n_features)
    classes : Tensor of shape (n_samples, 1 + n_sampled), int64
    state : State
        Changed in place.
    """
    coefficients = torch.sigmoid(torch.bmm(state.W[classes], X[:, :, None])[:, :, 0])
    coefficients[:, 0] -= 1
    gradient = (coefficients[:, :, None] * X[:, None, :]).flatten(0, 1)
    touched = classes.flatten()
    state.accumulator.index_add_(0, touched, gradient.square())
    gradient *= state.accumulator[touched].rsqrt_()
    state.W.index_add_(0, touched, gradient, alpha=-LEARNING_RATE)


def error_of_a_step(seed: int, device: torch.device) -> float:
    """Compare a step in float64 with one by loops and autograd, where classes repeat; by the largest weight."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(8, 5, generator=generator, dtype=torch.float64).to(device)
    classes = torch.randint(6, (8, 4), generator=generator).to(device)
    state = _state(6, 5, torch.float64, device)
    expected, accumulator = state.W.clone(), state.accumulator.clone()
    gradients: list[tuple[int, Tensor]] = []
    for x, row in zip(X, classes.tolist(), strict=True):
        for place, k in enumerate(row):
            w = state.W[k].clone().requires_grad_()
            torch.nn.functional.softplus(w @ x if place else -(w @ x)).backward()
            assert w.grad is not None
            gradients.append((k, w.grad))
            accumulator[k] += w.grad**2
    for k, gradient in gradients:
        expected[k] -= LEARNING_RATE * gradient / accumulator[k].sqrt()
    step(X, classes, state)
    return float((state.W - expected).abs().max() / expected.abs().max())


def _state(n_classes: int, n_features: int, dtype: torch.dtype, device: torch.device) -> State:
    W = torch.randn(n_classes, n_features, dtype=dtype, device=device).mul_(0.1)
    return State(W, torch.full_like(W, 0.01))
