"""Exact softmax: an epoch extrapolated from steps, against its three matrix products at the measured rate."""

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any, NamedTuple

import torch

from xsoftmax.gpu.elementwise import Elementwise
from xsoftmax.gpu.features import DenseRows
from xsoftmax.gpu.full_steps import Labels
from xsoftmax.gpu.fused_softmax import BYTES_OF_A_BLOCK, block_size
from xsoftmax.gpu.fused_steps import FusedSteps
from xsoftmax.gpu.precision import precision_of
from xsoftmax.gpu.weights import Weights, WeightsAndBiases
from xsoftmax.lab.benchmark.gpu.ceilings import products_of
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of, typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes
from xsoftmax.lab.benchmark.gpu.ways import as_in_training, taken_of
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd

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
    """Steps of ``batch`` samples, of whose block of scores there are ``n_bytes``; without a way, that of training."""

    batch: int
    n_bytes: int
    elementwise: Elementwise | None = None


def measured(
    sizes: Sizes, device: torch.device, ceilings: dict[str, float], ways: dict[str, Elementwise]
) -> Iterator[dict[str, Any]]:
    """Time a fit's steps in each precision, way and block, and say what an epoch of such steps takes.

    Only what a fit takes by itself is compared with the target: the last of ``ways`` and blocks of training's size.
    """
    n_samples, n_classes, n_features = sizes.exact
    for name, adagrad in CASES:
        weights = weights_of(n_classes, n_features, name, adagrad, device)
        precision = weights.of_samples.rows.precision
        products = 3 * 2 * n_samples * n_classes * n_features / products_of(precision, ceilings)
        aimed_at = precision.factors == torch.bfloat16
        for (way, elementwise), n_bytes in product(ways.items(), sizes.blocks if aimed_at else sizes.blocks[:1]):
            taken = way == taken_of(ways)
            found = steps_of(weights, Steps(sizes.batch, n_bytes, None if taken else elementwise), device)
            epoch = typical(found["seconds"]) * n_samples / sizes.batch
            of_training = taken and n_bytes == BYTES_OF_A_BLOCK
            yield found | {
                "part": f"exact softmax, N={n_samples:,}, K={n_classes:,}, D={n_features}",
                "name": f"{name}, {'Adagrad' if adagrad else 'SGD'}, {way}, {of_blocks(n_bytes)}",
                "precision": name,
                "way": way,
                "block_bytes": n_bytes,
                "of_training": of_training,
                "unit": "epoch",
                "value": epoch,
                "seconds_of_three_products": products,
                "reached": f"{epoch / products:.2f} times products",
                **(_judged(epoch / products, found["overhead"]) if aimed_at and of_training else NO_TARGET),
            }


NO_TARGET = {"target": None, "met": None}


def _judged(times_products: float, overhead: float) -> dict[str, Any]:
    return {"target": "2 times, 10 %", "met": times_products <= 2 and overhead <= 0.1}


def large(sizes: Sizes, device: torch.device, ways: dict[str, Elementwise]) -> Iterator[dict[str, Any]]:
    """Time steps of a model in bfloat16 with stochastic rounding that in float32 would need twice the memory.

    Gives a result for each size of blocks.
    """
    n_classes, n_features, batch = sizes.large
    weights = weights_of(n_classes, n_features, "bfloat16-stochastic", False, device)
    for n_bytes in sizes.blocks:
        found = steps_of(weights, Steps(batch, n_bytes), device)
        peak = found["bytes_of_weights"] + found["peak_bytes_beyond"]
        of_training = n_bytes == BYTES_OF_A_BLOCK
        yield found | {
            "part": f"exact softmax, K={n_classes:,}, D={n_features}, {batch} samples",
            "name": f"bfloat16-stochastic, SGD, {taken_of(ways)}, {of_blocks(n_bytes)}",
            "way": taken_of(ways),
            "block_bytes": n_bytes,
            "of_training": of_training,
            "unit": "step",
            "value": typical(found["seconds"]),
            "reached": f"{peak / 1e9:.2f} GB",
            **({"target": "less than 8 GB", "met": peak < MOST_BYTES} if of_training else NO_TARGET),
        }


def of_blocks(n_bytes: int) -> str:
    """Name a size of blocks' scores."""
    return f"{n_bytes / 2**20:g} MiB"


def weights_of(n_classes: int, n_features: int, name: str, adagrad: bool, device: torch.device) -> WeightsAndBiases:
    """Make random weights of a precision as a fit holds them, with the optimizer's accumulators."""
    how: tuple[Any, str] = (Adagrad(initial_accumulator=0.01), "adagrad") if adagrad else (Sgd(), "sgd")
    found = WeightsAndBiases(
        Weights(*how, (n_classes, n_features), False, device, precision_of(name)),
        Weights(*how, (n_classes, 1), False, device, precision_of("float32")),
    )
    found.of_samples.W.normal_(std=n_features**-0.5)
    return found


def steps_of(weights: WeightsAndBiases, steps: Steps, device: torch.device) -> dict[str, Any]:
    """Time steps, and give the bytes of weights and accumulators, and of all else at the peak, the batch included."""
    n_classes, n_features = weights.of_samples.W.shape
    batches = [_batch(steps.batch, n_classes, n_features, device) for _ in range(N_BATCHES)]
    turns = cycle(batches)
    # as in ``xsoftmax.solvers.torch_full``
    block = block_size(max(steps.batch, n_features), n_classes, steps.n_bytes)
    fused = FusedSteps(weights, True, 0.0, block, seed=0, elementwise=steps.elementwise)
    samples = torch.arange(steps.batch, device=device)

    def run() -> None:
        rows, labels = next(turns)
        fused.take(rows, samples, labels, 0.1, 0)

    with as_in_training():
        fused.get_ready(steps.batch)
        peaks = [peak_bytes(run, device) for _ in range(2)]  # on a card the second step is recorded, others replayed
        seconds = seconds_of(run, device)
    beyond = max(peaks) + batches[0][0].inputs.nbytes + batches[0][1].classes.nbytes
    held = weights.of_samples.n_bytes + weights.biases.n_bytes
    return {"seconds": seconds, "bytes_of_weights": held, "peak_bytes_beyond": beyond, "overhead": beyond / held}


def _batch(n_samples: int, n_classes: int, n_features: int, device: torch.device) -> tuple[DenseRows, Labels]:
    """Make random samples with a class each."""
    rows = DenseRows(torch.randn(n_samples, n_features + 1, device=device))
    numbers, ones = torch.arange(n_samples, device=device), torch.ones(n_samples, device=device)
    return rows, Labels(numbers, torch.randint(n_classes, (n_samples,), device=device), ones, ones)
