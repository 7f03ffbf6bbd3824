"""How the learning rate falls: its factor after some epochs and steps, and some share of the fit."""

import math
from typing import NamedTuple

from xsoftmax.internal.errors import InputError

# By so much, relatively, a factor may change before the rate is set anew.
ROUGHLY = 0.05


class Constant(NamedTuple):
    """Factor 1 for ever."""

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return 1.0


class Exponential(NamedTuple):
    """Multiplied by ``decay`` after each epoch: papers (a) and (b), 0.9."""

    decay: float = 0.9

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return self.decay**epoch


class Power(NamedTuple):
    """(scale / (scale + step))^exponent: the published code of paper (e)."""

    scale: float = 68025.0
    exponent: float = 0.5

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return "" if self.scale > 0 else "scale is 0; set it above 0"

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return (self.scale / (self.scale + step)) ** self.exponent

    def lasts(self, step: int) -> float:
        """For how many samples the factor changes by less than ``ROUGHLY``."""
        if self.exponent == 0:
            return math.inf
        return (self.scale + step) * ((1 - ROUGHLY) ** (-1 / abs(self.exponent)) - 1)


class Stairs(NamedTuple):
    """Multiplied by ``decay`` after every ``every`` samples: paper (d), 0.9 after 2000 minibatches.

    A minibatch counts as many as it has samples.
    """

    decay: float = 0.9
    every: int = 2000

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return self.decay ** (step // self.every)

    def lasts(self, step: int) -> float:
        """For how many samples the factor stays."""
        return self.every - step % self.every


class Linear(NamedTuple):
    """1 - progress: from the whole learning rate at the start of a fit to 0 at its end."""

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return 1 - progress


class Cosine(NamedTuple):
    """(1 + cos(pi progress)) / 2: slower than ``Linear`` at first and at last (Loshchilov and Hutter 2017)."""

    def factor(self, epoch: int, step: int, progress: float) -> float:
        """What the learning rate is multiplied with."""
        return (1 + math.cos(math.pi * progress)) / 2


Schedule = Constant | Exponential | Power | Stairs | Linear | Cosine
# Those that follow the share of the fit that is done, so that another number of epochs makes another fit of them.
BY_PROGRESS = (Linear, Cosine)
# Those that change within an epoch, and tell when.
BY_STEP = (Power, Stairs)
_SCHEDULES = {
    "constant": Constant,
    "exponential": Exponential,
    "power": Power,
    "stairs": Stairs,
    "linear": Linear,
    "cosine": Cosine,
}


def schedule_type(name: str) -> type:
    """Find a schedule by name; an unknown one is an InputError that lists the known."""
    if name not in _SCHEDULES:
        raise InputError(f"unknown schedule {name!r}; known: {', '.join(_SCHEDULES)}")
    return _SCHEDULES[name]
