"""Rates of a device by which ``auto`` estimates what exact softmax takes there: see ``xsoftmax.advice.on_device``."""

from collections.abc import Sequence
from typing import Any

import torch

from xsoftmax.gpu.elementwise import ONE_BY_ONE
from xsoftmax.lab.benchmark.gpu import exact
from xsoftmax.lab.benchmark.gpu.clock import typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes

# Samples, classes and features of a step that takes as long as its calls do.
SMALL = (64, 64, 16)


def measured(
    sizes: Sizes, device: torch.device, ceilings: dict[str, float], results: Sequence[dict[str, Any]]
) -> dict[str, float]:
    """Give products of exact softmax in float32 and bytes moved, both in a second, and seconds of a small step.

    Where those steps were left out, the products are those of one large multiplication.
    """
    n_samples, n_classes, n_features = sizes.exact
    in_float32 = [each for each in results if each["part"].startswith("exact softmax, N=")]
    epochs = [each["value"] for each in in_float32 if each["name"].startswith("float32") and "value" in each]
    products = 3 * n_samples * n_classes * n_features / min(epochs) if epochs else ceilings["float32"] / 2
    batch, few_classes, few_features = SMALL
    rows = exact.rows_of(few_classes, few_features, "float32", device)
    step = exact.steps_of(rows, exact.Steps(batch, sizes.blocks[0], True, ONE_BY_ONE), device)
    return {"products": products, "bandwidth": ceilings["bandwidth"], "step_seconds": typical(step["seconds"])}
