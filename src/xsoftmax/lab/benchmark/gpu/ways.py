"""The ways to compute on scores between matrix products that run on this machine; the last is what training takes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from xsoftmax.gpu.elementwise import ONE_BY_ONE, Block, Elementwise, chosen
from xsoftmax.gpu.precision import precision_of
from xsoftmax.gpu.same_bits import same_bits

COMPILED = "compiled"
# On which it is tried whether PyTorch's compiler runs.
TRIED = Block(24, 40, precision_of("bfloat16"), has_biases=True)


def ways(device: torch.device) -> dict[str, Elementwise]:
    """Give the ways by name: on a card also the compiled one, if it runs there; else a warning says why not."""
    with as_in_training():
        taken = chosen(device, TRIED)
    found = {"one by one": ONE_BY_ONE}
    return found if taken is ONE_BY_ONE else found | {COMPILED: taken}


def of_size(way: str, elementwise: Elementwise, device: torch.device, block: Block) -> Elementwise:
    """Give a way for blocks of one size, as a fit takes it: what is compiled is compiled for them alone."""
    return chosen(device, block) if way == COMPILED else elementwise


def taken_of(ways: dict[str, Elementwise]) -> str:
    """Name the way that training takes."""
    return list(ways)[-1]


@contextmanager
def as_in_training(deterministic: bool = True) -> Iterator[None]:
    """Let PyTorch take the operations that a fit takes, and keep nothing to differentiate."""
    with same_bits(deterministic), torch.no_grad():
        yield
