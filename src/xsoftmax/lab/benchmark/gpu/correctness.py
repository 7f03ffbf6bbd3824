"""Whether results are right on this very device: PyTorch's cross entropy in float64 is computed beside them."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.elementwise import Block, Elementwise
from xsoftmax.gpu.precision import PRECISIONS, ClassWeights, precision_of, rounded
from xsoftmax.lab.benchmark.gpu import sampled
from xsoftmax.lab.benchmark.gpu.ways import as_in_training, of_size

# Largest error of an array by its largest entry.
TOLERANCE = {"float64": 1e-11, "float32": 1e-5, "tf32": 5e-3}
OF_BFLOAT16 = 3e-2
STANDARD_ERRORS = 6.0  # of about 2,000 values: chance alone exceeds it once in 250,000 runs
N_DRAWS = 4096
BLOCK = 1000  # classes of a block, which do not divide those of a shard
GRADIENTS = ("gradient of X", "gradient of W", "gradient of b")


class Inputs(NamedTuple):
    """Random samples, their classes, weights and biases, in float64."""

    X: Tensor
    y: Tensor
    W: Tensor
    b: Tensor


def checks(seed: int, device: torch.device, ways: dict[str, Elementwise]) -> Iterator[dict[str, Any]]:
    """Give one entry per result: ``name``, ``error``, ``tolerance`` and ``holds``."""
    inputs = _inputs(seed, device)
    expected = _reference(inputs)
    for (way, elementwise), name in product(ways.items(), PRECISIONS):
        block = Block(len(inputs.X), BLOCK, precision_of(name), has_biases=True)
        with as_in_training():
            elementwise = of_size(way, elementwise, device, block)
        tolerance = TOLERANCE.get(name, OF_BFLOAT16)
        for what, found in _results(inputs, name, elementwise).items():
            yield _entry(f"{name}, {way}: {what}", _error(found, expected[what]), tolerance)
    yield _entry("rounding: mean by standard errors", _bias_of_rounding(seed, device), STANDARD_ERRORS)
    for case, error in sampled.errors_of_a_step(seed, device):
        yield _entry(f"negative sampling, {case}: one step", error, TOLERANCE["float64"])


def _entry(name: str, error: float, tolerance: float) -> dict[str, Any]:
    return {"name": name, "error": error, "tolerance": tolerance, "holds": error < tolerance}


def _inputs(seed: int, device: torch.device) -> Inputs:
    """Draw inputs on the host, such that each device has the same."""
    generator = torch.Generator().manual_seed(seed)
    n_samples, n_classes, n_features = 300, 5003, 96
    X = torch.randn(n_samples, n_features, generator=generator, dtype=torch.float64)
    W = torch.randn(n_classes, n_features, generator=generator, dtype=torch.float64) / n_features**0.5
    b = torch.randn(n_classes, generator=generator, dtype=torch.float64)
    y = torch.randint(n_classes, (n_samples,), generator=generator)
    return Inputs(*(each.to(device) for each in (X, y, W, b)))


def _reference(inputs: Inputs) -> dict[str, Tensor]:
    X, W, b = (each.clone().requires_grad_() for each in (inputs.X, inputs.W, inputs.b))
    loss = torch.nn.functional.cross_entropy(X @ W.T + b, inputs.y)
    loss.backward()
    gradients = [each.grad for each in (X, W, b) if each.grad is not None]
    return {"log-likelihood": -loss.detach()} | dict(zip(GRADIENTS, gradients, strict=True))


def _results(inputs: Inputs, name: str, elementwise: Elementwise) -> dict[str, Tensor]:
    """Compute as in training, in two shards and uneven blocks; W is rounded where its dtype makes it so."""
    with as_in_training():
        return _in_shards(inputs, name, elementwise)


def _in_shards(inputs: Inputs, name: str, elementwise: Elementwise) -> dict[str, Tensor]:
    X, y, W, b = inputs
    half = len(W) // 2
    shards = []
    for first, stop in ((0, half), (half, len(W))):
        rows = _rows(W[first:stop], name)
        how: dict[str, Any] = {"first_class": first, "block": BLOCK, "elementwise": elementwise}
        shards.append((rows, b[first:stop].to(rows.precision.sums), how))
    one, other = (fused_softmax.sums_of(X, y, rows, bias, **how) for rows, bias, how in shards)
    sums = one.plus(other)
    found = [fused_softmax.gradients(X, y, rows, bias, sums.log_partition, **how) for rows, bias, how in shards]
    parts_of_X, parts_of_W, parts_of_b = zip(*found, strict=True)
    whole = [sum(parts_of_X), torch.cat(parts_of_W), torch.cat(parts_of_b)]
    return {"log-likelihood": sums.log_likelihood.mean()} | dict(zip(GRADIENTS, whole, strict=True))


def _rows(W: Tensor, name: str) -> ClassWeights:
    n_classes, n_features = W.shape
    rows = ClassWeights.allocate(n_classes, n_features, precision_of(name), W.device)
    rows.add(W, slice(0, len(W)))
    return rows


def _error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).abs().max() / expected.abs().max())


def _bias_of_rounding(seed: int, device: torch.device) -> float:
    """Give the largest distance of a mean of rounded values from the value, in standard errors."""
    generator = torch.Generator(device).manual_seed(seed)
    values = torch.randn(2000, generator=generator, device=device)
    draws = rounded(values.expand(N_DRAWS, -1), generator).double()
    exact = values.double()
    lower, upper = draws.amin(0), draws.amax(0)
    up = (exact - lower) / (upper - lower).clamp(min=1e-30)
    standard_error = (upper - lower) * (up * (1 - up) / N_DRAWS).clamp(min=0).sqrt()
    known = (upper > lower) & (up > 0.01) & (up < 0.99)  # of others a normal distribution is no model
    return float(((draws.mean(0) - exact).abs() / standard_error)[known].max())
