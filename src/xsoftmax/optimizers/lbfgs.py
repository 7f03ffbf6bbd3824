"""L-BFGS on the full objective: one step of the whole data set an epoch. The reference optimum.

Liu and Nocedal 1989; the solver is ``xsoftmax.solvers.lbfgs``.
"""

from typing import NamedTuple

from xsoftmax.optimizers import optimizer

# Scores of some samples for all classes, float64, that are held at a time.
BLOCK_BYTES = 2**26


@optimizer(needs="full_gradient", takes_l2=True)
class Lbfgs(NamedTuple):
    """Parameters: ``memory``, pairs kept; ``tolerance`` on the largest entry of the mean gradient, to stop."""

    memory: int = 10
    tolerance: float = 1e-7
    learning_rate: float = 1.0


MEMBER = Lbfgs
