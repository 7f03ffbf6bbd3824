"""How the touched rows move; one file each.

A file holds the optimizer's parameters, a NamedTuple described by ``optimizer`` and named ``MEMBER``, and its
compiled ``coefficients``, ``score_class`` and ``move`` (see ``xsoftmax.kernels.steps``). One whose parameters depend
on the data has ``fit(TrainingSet)``.
"""

from collections.abc import Callable
from typing import Any


def optimizer(
    *,
    layout: type | None,
    needs: str = "gradient",
    takes_blocks: bool = False,
    takes_ridge: bool = False,
    qualifier: str = "",
) -> Callable[[Any], Any]:
    """Describe an optimizer: a decorator for its NamedTuple of parameters, of which one is ``learning_rate``.

    Parameters
    ----------
    layout : type or None
        Where weights and accumulators lie (``xsoftmax.kernels.layout``); None for one that takes the gradient of
        the whole data set.
    needs : {"gradient", "raise_bound", "proximal"}
        What the objective must offer.
    takes_blocks : bool
        Whether it has ``move_block``, for minibatches over all classes.
    takes_ridge : bool
        Whether a ridge can be added: it moves along -rate c x, or takes the full gradient.
    qualifier : str
        Under what condition its mean step is along the mean gradient, where there is one.
    """

    def describe(member: Any) -> Any:
        member.layout, member.needs = layout, needs
        member.takes_blocks, member.takes_ridge = takes_blocks, takes_ridge
        member.qualifier = qualifier
        if not hasattr(member, "fit"):
            member.fit = lambda self, data: self
        return member

    return describe
