"""What a device can do at best, measured in the same run: the rate of a large matrix product, and of a copy."""

import torch

from xsoftmax.gpu.precision import Precision, multiply, precision_of
from xsoftmax.lab.benchmark.gpu.clock import seconds_of, typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes

PRODUCTS = ("float32", "tf32", "bfloat16")


def measured(sizes: Sizes, device: torch.device) -> dict[str, float]:
    """Give operations per second of products, by precision, and ``bandwidth``, bytes read or written per second."""
    found = {name: _product_rate(sizes.square, precision_of(name), device) for name in PRODUCTS}
    source = torch.ones(sizes.copied // 8, dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    seconds = typical(seconds_of(lambda: target.copy_(source), device))
    return {**found, "bandwidth": 2 * source.nbytes / seconds}


def products_of(precision: Precision, ceilings: dict[str, float]) -> float:
    """Give the rate of products of a precision's factors."""
    if precision.factors == torch.bfloat16:
        return ceilings["bfloat16"]
    return ceilings["tf32" if precision.tf32 else "float32"]


def _product_rate(side: int, precision: Precision, device: torch.device) -> float:
    left, right = (torch.randn(side, side, device=device).to(precision.factors) for _ in range(2))
    return 2 * side**3 / typical(seconds_of(lambda: multiply(left, right, precision), device))
