"""Rates of a device by which ``auto`` estimates what exact softmax takes there: see ``xsoftmax.advice.on_device``."""

from collections.abc import Sequence
from typing import Any

import torch

from xsoftmax.gpu.fused_softmax import BYTES_OF_A_BLOCK
from xsoftmax.lab.benchmark.gpu import exact
from xsoftmax.lab.benchmark.gpu.clock import typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes

# Samples, classes and features of a step that takes as long as its calls do.
SMALL = (64, 64, 16)


def measured(
    sizes: Sizes, device: torch.device, ceilings: dict[str, float], results: Sequence[dict[str, Any]]
) -> dict[str, float]:
    """Give products of exact softmax in float32 and bytes moved, both in a second, and seconds of a small step.

    Only steps count that are those of a fit. Where these were left out, the products are those of one large
    multiplication.
    """
    batch, few_classes, few_features = SMALL
    weights = exact.weights_of(few_classes, few_features, "float32", True, device)
    step = exact.steps_of(weights, exact.Steps(batch, BYTES_OF_A_BLOCK), device)
    products = products_of(sizes, results) or ceilings["float32"] / 2
    return {"products": products, "bandwidth": ceilings["bandwidth"], "step_seconds": typical(step["seconds"])}


def products_of(sizes: Sizes, results: Sequence[dict[str, Any]]) -> float:
    """Give products that a fit in float32 adds up in a second, or 0 where none was measured."""
    n_samples, n_classes, n_features = sizes.exact
    epochs = [
        each["value"]
        for each in results
        if each.get("of_training") and each.get("precision") == "float32" and "value" in each
    ]
    return 3 * n_samples * n_classes * n_features / min(epochs) if epochs else 0.0
