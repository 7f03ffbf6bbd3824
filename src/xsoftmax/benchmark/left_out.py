"""Members of the axes that leave out a part of a step: what the rest takes tells what that part costs."""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.steps import proximal


class ConstantSolve(NamedTuple):
    """In place of an objective whose implicit step is solved: both classes always move by ``step``."""

    n_sampled: int = 1
    step: np.float32 = np.float32(1e-6)


def with_flags_of(member: Any, stand_in: type) -> Any:
    """Give a stand-in the flags that the loops ask an objective for; return an instance."""
    for flag in ("excludes_true", "uses_log_q", "draws_numbers"):
        setattr(stand_in, flag, getattr(member, flag))
    return stand_in()


@implements(proximal, ConstantSolve)
def _proximal(objective, rate, state, squared_norm, score_true, draws):
    draws.out[0] = objective.step
    return -objective.step
