"""PyTorch as a fit wants it: with the same bits each time, or as fast as can be."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Without it, products on a card are not the same from run to run; it is read when the first one is made.
_SAME_PRODUCTS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@contextmanager
def same_bits(wanted: bool = True) -> Iterator[None]:
    """Let PyTorch take what gives the same bits each time, or what is fastest, for as long as this lasts.

    On a card a few operations have no such form, such as a running sum that the margin of an objective takes: PyTorch
    then warns, with the operation's name, and goes on.
    """
    torch = loaded_torch()
    before, warns = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fills = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(wanted, warn_only=True)
    # with NaN, each time memory is allocated: an eighth of a step of exact softmax on a card
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)
        torch.utils.deterministic.fill_uninitialized_memory = fills


def reproducibly(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function compute the same bits each time, on whatever number of threads, and without gradients."""

    @wraps(function)
    def computed(*arguments: P.args, **named: P.kwargs) -> T:
        torch = loaded_torch()
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with same_bits(), torch.no_grad():
                return function(*arguments, **named)
        finally:
            torch.set_num_threads(n_threads)

    return computed


def loaded_torch() -> Any:
    """Import PyTorch, such that products on a card can be the same from run to run."""
    os.environ.setdefault(*_SAME_PRODUCTS)
    import torch

    return torch
