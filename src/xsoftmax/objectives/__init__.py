"""What one example's loss looks like, given a few scores; one file each.

A file holds the objective's parameters, a NamedTuple described by ``objective`` and named ``MEMBER``, and its
compiled ``loss`` and ``gradient`` (see ``xsoftmax.kernels.steps``).
"""

from collections.abc import Callable
from typing import Any


def objective(
    *,
    title: str,
    target: str,
    excludes_true: bool,
    offers: tuple[str, ...] = ("gradient",),
    uses_log_q: bool = False,
    needs_all_classes: bool = False,
    n_states: int = 0,
) -> Callable[[Any], Any]:
    """Describe an objective: a decorator for its NamedTuple of parameters.

    Parameters
    ----------
    title : str
        Name of its value in reports.
    target : {"softmax", "bound", "proposal"}
        What the stochastic gradient is unbiased for: the softmax's likelihood, a bound of that, or a contrast with
        the proposal, whose log-probabilities prediction then adds.
    excludes_true : bool
        Whether its sum is over the other classes; otherwise it is a mean under the proposal.
    offers : tuple of str
        What it has of gradient, raise_bound and proximal, for optimizers that need one of these.
    uses_log_q : bool
        Whether it looks at the proposal's log-probabilities.
    needs_all_classes : bool
        Whether no sampling can stand for its sum.
    n_states : int
        Variables that it keeps per sample; if any, it has ``initial_states(n_samples, n_classes)``.
    """

    def describe(member: Any) -> Any:
        member.title, member.target, member.offers = title, target, offers
        member.excludes_true, member.uses_log_q = excludes_true, uses_log_q
        member.needs_all_classes, member.n_states = needs_all_classes, n_states
        return member

    return describe
