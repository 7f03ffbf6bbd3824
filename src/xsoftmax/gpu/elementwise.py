"""What happens to each score of a block between matrix products: as PyTorch's operations one by one, or compiled.

One by one, each operation reads and writes all scores of the block; they overwrite them, so that no second block is
held. `torch.compile` makes of each function here one or two passes that read the scores once. It needs Triton on a
card and a C++ compiler on the CPU device, and its first call takes up to a minute. A fit on a card takes what is
compiled, where that works; on the CPU device it takes operations one by one.
"""

import sys
from collections.abc import Callable, Hashable
from functools import cache, lru_cache, partial
from subprocess import SubprocessError
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.precision import Precision
from xsoftmax.internal.errors import first_line

# Types of the devices on which a fit takes what is compiled.
COMPILED_ON = ("cuda",)
# What PyTorch's compiler, or another program, may raise that does not run on a machine.
REFUSALS = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError),
    *(SubprocessError, TypeError, ValueError),
)


class Places(NamedTuple):
    """Where in a block the samples' own classes are.

    ``inside``, (n_samples,), tells whether a sample's class is in the block. ``column``, (n_samples, 1), is its
    column, and for a class in another block any that exists.
    """

    inside: Tensor
    column: Tensor


class Running(NamedTuple):
    """Each sample's largest score so far, its sum of exponentials relative to that, and its true score if seen.

    All are of shape (n_samples,); the sum is float64, the others have the dtype of scores.
    """

    maximum: Tensor
    total: Tensor
    true: Tensor


class Elementwise(NamedTuple):
    """The two functions.

    ``added(scores, bias, places, running)`` adds a block's scores to what runs.
    ``coefficients(scores, bias, shift, places, share, dtype)`` gives exp(score - shift), less ``share`` where a class
    is the sample's own. Scores have the shape (n_samples, n), and may be overwritten. ``bias`` is (n,), or None.
    ``shift`` is (n_samples,).
    ``share`` has the dtype of scores and no dimension: of a number, `torch.compile` would compile each value anew.
    """

    added: Callable[[Tensor, Tensor | None, Places, Running], Running]
    coefficients: Callable[[Tensor, Tensor | None, Tensor, Places, Tensor, torch.dtype], Tensor]


class _Operations(NamedTuple):
    """Operations that differ: in place or not, and how a share is taken from a sample's own class."""

    add: Any
    subtract: Any
    exp: Any
    less: Callable[[Tensor, Places, Tensor], Tensor]


def _added(operations: _Operations, scores: Tensor, bias: Tensor | None, places: Places, running: Running) -> Running:
    if bias is not None:
        scores = operations.add(scores, bias)
    true = torch.where(places.inside, scores.gather(1, places.column)[:, 0], running.true)
    maximum = torch.maximum(running.maximum, scores.amax(1))
    exponentials = operations.exp(operations.subtract(scores, maximum[:, None]))
    total = running.total * (running.maximum - maximum).double().exp()
    return Running(maximum, total + exponentials.sum(1), true)


def _coefficients(
    operations: _Operations,
    scores: Tensor,
    bias: Tensor | None,
    shift: Tensor,
    places: Places,
    share: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    if bias is not None:
        scores = operations.add(scores, bias)
    probabilities = operations.exp(operations.subtract(scores, shift[:, None]))
    return operations.less(probabilities, places, share).to(dtype)


def _less_in_place(values: Tensor, places: Places, share: Tensor) -> Tensor:
    return values.scatter_add_(1, places.column, (places.inside * -share)[:, None])


def _less(values: Tensor, places: Places, share: Tensor) -> Tensor:
    columns = torch.arange(values.shape[1], device=values.device)
    own = places.inside[:, None] & (columns == places.column)
    return torch.where(own, values - share, values)


_IN_PLACE = _Operations(Tensor.add_, Tensor.sub_, Tensor.exp_, _less_in_place)
_FRESH = _Operations(torch.add, torch.sub, torch.exp, _less)

ONE_BY_ONE = Elementwise(partial(_added, _IN_PLACE), partial(_coefficients, _IN_PLACE))


@lru_cache(maxsize=64)
def compiled(size: tuple[int, int] | None = None, like: Hashable = None) -> Elementwise:
    """Give the functions as `torch.compile` makes them, for blocks of one size, in less time, or of any size.

    What is missing for it, PyTorch says when they are first called: a RuntimeError.

    Parameters
    ----------
    size : tuple of int, optional
        Numbers of samples and classes.
    like : hashable
        What else blocks have in common: each kind has code of its own.
    """
    compile_it: Any = partial(torch.compile, dynamic=size is None)
    return Elementwise(*(compile_it(_of_its_own(each, f"{each.__name__}_{size}_{like}")) for each in _FRESH_ONES))


def _of_its_own(function: Any, name: str) -> Any:
    """Copy a function, as `torch.compile` counts how often it has compiled a function, and gives up at the eighth."""
    return FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)


def _compiled_for(block: "Block") -> Elementwise:
    """Give what is compiled for blocks of one size, and of any size for others: the last is narrower."""
    like = (block.precision.factors, block.precision.sums, block.has_biases)
    size = (block.n_samples, block.n_classes)
    of_size, others = compiled(size, like), compiled(None, like)
    return Elementwise(
        _by_size(size, of_size.added, others.added), _by_size(size, of_size.coefficients, others.coefficients)
    )


def _by_size(size: tuple[int, int], of_size: Callable[..., Any], of_others: Callable[..., Any]) -> Callable[..., Any]:
    def function(scores: Tensor, *others: Any) -> Any:
        return (of_size if tuple(scores.shape) == size else of_others)(scores, *others)

    return function


class Block(NamedTuple):
    """What the scores of a block are like: their numbers, the precision, and whether biases are added to them."""

    n_samples: int
    n_classes: int
    precision: Precision
    has_biases: bool


def chosen(device: torch.device, block: Block) -> Elementwise:
    """Give what a fit takes for such blocks on a device: on a card what is compiled, if that works.

    If not, a warning says so, once. Compiling and first calls take up to a minute. Blocks of this size have code of
    their own, and others share code, which is tuned for the sizes that it meets first.

    Raises
    ------
    torch.OutOfMemoryError
        If the device has no room for a block.
    """
    if device.type not in COMPILED_ON:
        return ONE_BY_ONE
    way = _compiled_for(block)
    try:
        for width in (block.n_classes, max(1, block.n_classes - 1)):  # the last block is narrower
            _try(way, device, block._replace(n_classes=width))
    except torch.OutOfMemoryError:
        raise
    except REFUSALS as error:
        warn(f"torch.compile does not run here ({first_line(error)}); exact softmax takes more time without it")
        return ONE_BY_ONE
    return way


@cache
def warn(message: str) -> None:
    """Print a warning, once."""
    print(f"warning: {message}", file=sys.stderr)


def _try(way: Elementwise, device: torch.device, block: Block) -> None:
    """Compute on a block of zeros."""
    n, m, precision, has_biases = block
    scores = torch.zeros((n, m), dtype=precision.sums, device=device)
    of_samples, bias = scores.new_zeros(n), scores.new_zeros(m) if has_biases else None
    places = Places(of_samples > 0, torch.zeros((n, 1), dtype=torch.int64, device=device))
    way.added(scores, bias, places, Running(of_samples, of_samples.double(), of_samples))
    way.coefficients(scores, bias, of_samples, places, scores.new_zeros(()), precision.factors)


def _added_fresh(scores: Tensor, bias: Tensor | None, places: Places, running: Running) -> Running:
    return _added(_FRESH, scores, bias, places, running)


def _coefficients_fresh(
    scores: Tensor, bias: Tensor | None, shift: Tensor, places: Places, share: Tensor, dtype: torch.dtype
) -> Tensor:
    return _coefficients(_FRESH, scores, bias, shift, places, share, dtype)


# What is compiled, in the order of ``Elementwise``.
_FRESH_ONES = (_added_fresh, _coefficients_fresh)
