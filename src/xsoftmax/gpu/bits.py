"""Random bits on a device: the numbers of ``xsoftmax.kernels.random``, many at once.

uint64 is held in int64, whose sums and products wrap around to the same bits; shifts to the right bring zeros.
"""

import torch
from torch import Tensor

_GAMMA, _MIX_1, _MIX_2 = (n - 2**64 for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_LOW = 2**32 - 1


def shifted(bits: Tensor, n: int) -> Tensor:
    """Shift to the right by n, zeros coming in."""
    return (bits >> n) & ((1 << (64 - n)) - 1)


def mix(bits: Tensor) -> Tensor:
    """Scramble 64 bits: ``xsoftmax.kernels.random.mix``."""
    bits = (bits ^ shifted(bits, 30)) * _MIX_1
    bits = (bits ^ shifted(bits, 27)) * _MIX_2
    return bits ^ shifted(bits, 31)


def starts(key: int, positions: Tensor) -> Tensor:
    """States from which steps at ``positions`` of an epoch begin, int64; ``key`` is the epoch's, as int64."""
    return mix(key ^ mix(positions * _GAMMA + _GAMMA))


def numbers(states: Tensor, n: int) -> Tensor:
    """The next n numbers of 64 bits of each state, of shape (len(states), n)."""
    steps = torch.arange(1, n + 1, device=states.device) * _GAMMA
    return mix(states[:, None] + steps)


def skipped(states: Tensor, n: Tensor | int) -> Tensor:
    """States after n numbers that nobody looks at."""
    return states + n * _GAMMA


def below(bits: Tensor, n: int) -> Tensor:
    """Turn the upper 32 of 64 bits into integers in [0, n), n < 2^31."""
    return (shifted(bits, 32) * n) >> 32


def low_bits(bits: Tensor) -> Tensor:
    """Lower 32 bits, as integers."""
    return bits & _LOW


def uniform(bits: Tensor) -> Tensor:
    """Turn random bits into float32 in [0, 1)."""
    return shifted(bits, 40).to(torch.float32) * 2.0**-24


def open_uniform(bits: Tensor) -> Tensor:
    """Turn random bits into float64 above 0 and below 1."""
    return (shifted(bits, 11).to(torch.float64) + 0.5) * 2.0**-53
