"""Random bits from (seed, epoch, position): a counter, hashed, so that there is no generator state to save.

Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (splitmix64).
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


@njit(**OPTIONS)
def mix(bits):
    """Scramble 64 bits so that neighbouring inputs have unrelated outputs."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@njit(**OPTIONS)
def stream(seed, epoch):
    """Key of the random numbers of one epoch; give it to ``start``."""
    return mix(mix(np.uint64(seed) * _GAMMA + np.uint64(1)) + np.uint64(epoch) * _GAMMA)


@njit(**OPTIONS)
def start(key, position):
    """State from which the draws of one step begin."""
    return mix(key ^ mix(np.uint64(position) * _GAMMA + _GAMMA))


@njit(**OPTIONS)
def next_u64(state):
    """Advance; return the new state and 64 random bits."""
    state = state + _GAMMA
    return state, mix(state)


@njit(**OPTIONS)
def skip(state, n):
    """State after ``n`` numbers, uint64, that nobody looks at."""
    return state + n * _GAMMA


@njit(**OPTIONS)
def uniform(bits):
    """Turn random bits into a float32 in [0, 1)."""
    return np.float32(bits >> np.uint64(40)) * np.float32(2.0**-24)


@njit(**OPTIONS)
def below(bits, n):
    """Turn the upper 32 of 64 random bits into an integer in [0, n), n < 2^32 (bias below n / 2^32)."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(**OPTIONS)
def low_bits(bits):
    """Lower 32 bits, independent of what ``below`` used."""
    return bits & _LOW
