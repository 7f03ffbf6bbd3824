"""The ways to compute on scores between matrix products that run on this machine."""

import torch

from xsoftmax.gpu import fused_softmax
from xsoftmax.gpu.elementwise import ONE_BY_ONE, Elementwise, compiled
from xsoftmax.gpu.precision import ClassWeights, precision_of
from xsoftmax.internal.errors import first_line

# What a program, or PyTorch's compiler, may raise that does not run here: others are measured all the same.
REFUSALS = (ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def ways(device: torch.device) -> dict[str, Elementwise]:
    """Give the ways by name: on a card also the compiled one, if it runs there; else a line says why not."""
    found = {"one by one": ONE_BY_ONE}
    if device.type == "cuda":
        try:
            _try(compiled(), device)
            found["compiled"] = compiled()
        except REFUSALS as error:
            print(f"torch.compile is left out: {first_line(error)}")
    return found


def _try(way: Elementwise, device: torch.device) -> None:
    """Make a small step."""
    W = ClassWeights.allocate(10, 4, precision_of("bfloat16"), device)
    X, y = torch.ones(3, 4, device=device), torch.arange(3, device=device)
    sums = fused_softmax.sums_of(X, y, W, elementwise=way)
    fused_softmax.gradients(X, y, W, None, sums.log_partition, elementwise=way)
