"""Exact softmax: an epoch extrapolated from steps, against its three matrix products at the measured rate."""

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any, NamedTuple

import torch

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.elementwise import Elementwise
from xsoftmax.gpu.fused_softmax import Update, block_size
from xsoftmax.gpu.precision import ClassWeights, precision_of
from xsoftmax.lab.benchmark.gpu.ceilings import products_of
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of, typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes

# Precision, and whether Adagrad's accumulators, in float32, lie beside the weights.
CASES = (
    ("bfloat16", True),
    ("bfloat16-stochastic", False),
    ("bfloat16-compensated", False),
    ("tf32", True),
    ("float32", True),
)
N_BATCHES = 4  # which steps take in turn
MOST_BYTES = 8e9  # of the largest model in bfloat16


class Steps(NamedTuple):
    """Steps of ``batch`` samples, of whose block of scores there are ``n_bytes``."""

    batch: int
    n_bytes: int
    adagrad: bool
    elementwise: Elementwise


def measured(
    sizes: Sizes, device: torch.device, ceilings: dict[str, float], ways: dict[str, Elementwise]
) -> Iterator[dict[str, Any]]:
    """Time steps in each precision and way, and say what an epoch of such steps takes."""
    n_samples, n_classes, n_features = sizes.exact
    for name, adagrad in CASES:
        rows = rows_of(n_classes, n_features, name, device)
        products = 3 * 2 * n_samples * n_classes * n_features / products_of(rows.precision, ceilings)
        aimed_at = rows.precision.factors == torch.bfloat16
        for (way, elementwise), n_bytes in product(ways.items(), sizes.blocks if aimed_at else sizes.blocks[:1]):
            found = steps_of(rows, Steps(sizes.batch, n_bytes, adagrad, elementwise), device)
            epoch = typical(found["seconds"]) * n_samples / sizes.batch
            yield found | {
                "part": f"exact softmax, N={n_samples:,}, K={n_classes:,}, D={n_features}",
                "name": f"{name}, {'Adagrad' if adagrad else 'SGD'}, {way}, {of_blocks(n_bytes)}",
                "unit": "epoch",
                "value": epoch,
                "seconds_of_three_products": products,
                "target": "2 times, 10 %" if aimed_at else None,
                "reached": f"{epoch / products:.2f} times products",
                "met": epoch <= 2 * products and found["overhead"] <= 0.1 if aimed_at else None,
            }


def large(sizes: Sizes, device: torch.device, ways: dict[str, Elementwise]) -> dict[str, Any]:
    """Time steps of a model in bfloat16 with stochastic rounding that in float32 would need twice the memory."""
    n_classes, n_features, batch = sizes.large
    way, elementwise = list(ways.items())[-1]
    rows = rows_of(n_classes, n_features, "bfloat16-stochastic", device)
    found = steps_of(rows, Steps(batch, sizes.blocks[0], False, elementwise), device)
    peak = found["bytes_of_weights"] + found["peak_bytes_beyond"]
    return found | {
        "part": f"exact softmax, K={n_classes:,}, D={n_features}, {batch} samples",
        "name": f"bfloat16-stochastic, SGD, {way}",
        "unit": "step",
        "value": typical(found["seconds"]),
        "target": "less than 8 GB",
        "reached": f"{peak / 1e9:.2f} GB",
        "met": peak < MOST_BYTES,
    }


def of_blocks(n_bytes: int) -> str:
    """Name a size of blocks' scores."""
    return f"{n_bytes / 2**20:g} MiB"


def rows_of(n_classes: int, n_features: int, name: str, device: torch.device) -> ClassWeights:
    """Make random weights of a precision."""
    rows = ClassWeights.allocate(n_classes, n_features, precision_of(name), device)
    rows.values.normal_(std=n_features**-0.5)
    return rows


def steps_of(W: ClassWeights, steps: Steps, device: torch.device) -> dict[str, Any]:
    """Time steps, and give the bytes of weights and accumulators, and of all else at the peak, the batch included."""
    n_classes, n_features = W.values.shape
    b = torch.zeros(n_classes, device=device)
    shapes = [(n_classes, n_features), (n_classes,)] if steps.adagrad else []
    update = Update(0.1, *(torch.full(shape, 0.01, device=device) for shape in shapes))
    held = W.n_bytes + b.nbytes + sum(each.nbytes for each in update[1:] if isinstance(each, torch.Tensor))
    batches = [torch.randn(steps.batch, n_features, device=device) for _ in range(N_BATCHES)]
    classes = [torch.randint(n_classes, (steps.batch,), device=device) for _ in range(N_BATCHES)]
    turns = cycle(zip(batches, classes, strict=True))
    block = block_size(steps.batch, n_classes, steps.n_bytes)
    run = lambda: fused_softmax.step(  # noqa: E731 - what is timed
        *next(turns), W, b, update, block=block, elementwise=steps.elementwise
    )
    seconds = seconds_of(run, device)
    beyond = peak_bytes(run, device) + batches[0].nbytes + classes[0].nbytes
    return {"seconds": seconds, "bytes_of_weights": held, "peak_bytes_beyond": beyond, "overhead": beyond / held}
