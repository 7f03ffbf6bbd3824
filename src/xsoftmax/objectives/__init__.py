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
    adds_log_q: bool = False,
    needs_all_classes: bool = False,
    sums_exponentials: bool = False,
    n_states: int = 0,
    solves_states: bool = False,
    draws_numbers: bool = False,
    link: str = "softmax",
    qualifier: str = "",
    target_of_all: str = "",
) -> Callable[[Any], Any]:
    """Describe an objective: a decorator for its NamedTuple of parameters.

    Parameters
    ----------
    title : str
        Name of its value in reports.
    target : {"softmax", "bound", "loss", "nothing"}
        What the mean stochastic gradient is the gradient of: the softmax's likelihood, a bound of the model's
        likelihood, a loss of its own, or nothing that can be named (then it is biased).
    excludes_true : bool
        Whether its sum is over the other classes; otherwise it is a mean under the proposal.
    offers : tuple of str
        What it has of gradient, raise_bound and proximal, for optimizers that need one of these.
    uses_log_q : bool
        Whether it looks at the proposal's log-probabilities.
    adds_log_q : bool
        Whether its scores lack the proposal's log-probabilities, which prediction then adds.
    needs_all_classes : bool
        Whether no sampling can stand for its sum.
    sums_exponentials : bool
        Whether its derivatives by all scores are those of the softmax, and so follow from sums of exponentials.
    n_states : int
        Variables that it keeps per sample; if any, it has ``initial_states(n_samples, n_classes)``.
    solves_states : bool
        Whether ``loss`` and ``gradient`` solve for these variables, which then only say where to begin.
    draws_numbers : bool
        Whether it draws random numbers of its own, from ``draws.rng``.
    link : str
        How scores become probabilities: a module of ``xsoftmax.evaluation.links``.
    qualifier : str
        Under what condition the gradient is that of the target, where there is one: "as ... falls to 0".
    target_of_all : str
        The target where every class is looked at, if that is another one.

    A member whose compiled code needs more than its parameters has ``fit(TrainingSet)``, which returns another
    NamedTuple, described in the same way.
    """

    def describe(member: Any) -> Any:
        member.title, member.target, member.offers = title, target, offers
        member.excludes_true, member.uses_log_q, member.adds_log_q = excludes_true, uses_log_q, adds_log_q
        member.needs_all_classes, member.n_states = needs_all_classes, n_states
        member.sums_exponentials = sums_exponentials
        member.solves_states, member.draws_numbers, member.link = solves_states, draws_numbers, link
        member.qualifier, member.target_of_all = qualifier, target_of_all or target
        if not hasattr(member, "fit"):
            member.fit = lambda self, data: self
        return member

    return describe
