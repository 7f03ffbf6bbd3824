"""How the touched weights move; one file each.

A file holds the optimizer's parameters, a NamedTuple described by ``optimizer`` and named ``MEMBER``, and the rule
for one entry of the weights, the compiled ``updated`` (see ``xsoftmax.kernels.protocol``); how entries lie in memory
is nothing to it. One whose parameters depend on the data has ``fit(TrainingSet)``.
"""

from collections.abc import Callable
from typing import Any


def optimizer(
    *,
    needs: str = "gradient",
    accumulates: bool = False,
    fade: float = 1.0,
    takes_l2: bool = False,
    qualifier: str = "",
) -> Callable[[Any], Any]:
    """Describe an optimizer: a decorator for its NamedTuple of parameters, of which one is ``learning_rate``.

    Parameters
    ----------
    needs : {"gradient", "raise_bound", "proximal", "full_gradient"}
        What the objective must offer; the last is the gradient of the whole data set.
    accumulates : bool
        Whether a number is kept beside each weight, at first its parameter ``initial_accumulator``, or 0.
    fade : float
        Factor by which that number falls in every step that does not touch its weight.
    takes_l2 : bool
        Whether an L2 penalty, which is part of the gradient, may shrink weights apart from it: so it is for steps
        along minus the rate times the gradient, and where it is solved for; for others there is decay.
    qualifier : str
        Under what condition its mean step is along the mean gradient, where there is one.
    """

    def describe(member: Any) -> Any:
        member.needs, member.accumulates, member.fade = needs, accumulates, fade
        member.qualifier = qualifier
        # float32 arrays of the weights' size that training holds: stamps tell where accumulators fade from
        member.copies = 1 + accumulates + (fade < 1)
        member.takes_l2 = takes_l2
        if not hasattr(member, "fit"):
            member.fit = lambda self, data: self
        return member

    return describe
