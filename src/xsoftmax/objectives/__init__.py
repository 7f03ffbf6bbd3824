"""What one example's loss looks like, given a few scores; one file each.

A file holds the objective's parameters, a NamedTuple described by ``objective`` and named ``MEMBER``, and its
compiled ``loss`` and ``gradient`` (see ``xsoftmax.kernels.protocol``). The NamedTuple says the same once more, in a
few lines, for any library with the functions of the Python array API standard, which is called ``xp``:

``value(xp, at, draws)``
    The loss of n samples, of shape (n,). Its derivatives by the scores, with ``at`` held fixed, are the slopes that
    ``gradient`` gives.
``settle(xp, state, draws)``
    ``at`` where the loss is asked for and no step is taken: by default ``state``.
``prepare(xp, rate, state, draws, noise)``
    ``at`` of a step, and the state after it: by default ``settle`` and ``state``. ``noise`` holds uniform numbers
    above 0 and below 1, of shape (n, ``n_numbers``); None where these are 0.

``rate`` is the learning rate, a number; ``state`` is float64 of shape (n, ``n_auxiliary``); ``draws`` are
``ScoredClasses``. An objective that offers raise_bound takes U-max's ``threshold`` as a last argument of ``prepare``.
Tests compare these methods with the compiled code; a solver that differentiates by itself needs nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class ScoredClasses(NamedTuple):
    """The classes of n samples, scored: of each the true one and m others.

    What is no class of a sample, such as a place that is left over, or the true class where the sum is over the other
    ones, has weight 0, and the score and log-probability of the true class: 0 times infinity would be NaN, in the
    loss or in its derivatives.

    Attributes
    ----------
    score_true, log_q_true : array of shape (n,)
        Score of the true class, and its log-probability under the proposal.
    classes : integer array of shape (n, m)
    scores, weights, log_q : array of shape (n, m)
        As in ``xsoftmax.kernels.protocol.Draws``.
    """

    score_true: Any
    log_q_true: Any
    classes: Any
    scores: Any
    weights: Any
    log_q: Any


def objective(
    *,
    title: str,
    target: str,
    excludes_true: bool,
    offers: tuple[str, ...] = ("gradient",),
    uses_log_q: bool = False,
    adds_log_q: bool = False,
    needs_all_classes: bool = False,
    takes_found: bool = False,
    sums_exponentials: bool = False,
    n_auxiliary: int = 0,
    solves_auxiliary: bool = False,
    n_numbers: int = 0,
    link: str = "softmax",
    qualifier: str = "",
    target_of_all: str = "",
    labels_compete: bool | None = None,
    takes_sets: bool = False,
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
    takes_found : bool
        Of these, whether it can do with the classes that a search finds: with weight 1, and places that are left over
        with weight 0.
    sums_exponentials : bool
        Whether its derivatives by all scores are those of the softmax, and so follow from sums of exponentials.
    n_auxiliary : int
        Variables that it keeps per sample; if any, it has ``initial_auxiliary(n_samples, n_classes)``.
    solves_auxiliary : bool
        Whether ``loss`` and ``gradient`` solve for these variables, which then only say where to begin.
    n_numbers : int
        Uniform random numbers of its own that a step takes, from ``draws.rng``.
    link : str
        How scores become probabilities: a module of ``xsoftmax.evaluation.links``.
    qualifier : str
        Under what condition the gradient is that of the target, where there is one: "as ... falls to 0", or, where
        what falls does so with each visit of a sample, "as visits grow".
    target_of_all : str
        The target where every class is looked at, if that is another one.

    labels_compete : bool
        Of a sample with several labels: whether the loss of one has the others in its sum over the other classes, as
        where scores are normalised over all classes (the default if ``target`` is the softmax), or leaves them out.
    takes_sets : bool
        Whether it has a loss of its own for all labels of a sample together, ``gradient_of_set`` and
        ``loss_of_set``; otherwise it meets them one by one.

    A member whose code needs more than its parameters has ``fit(TrainingSet)``, which returns another NamedTuple,
    described in the same way; then ``value`` is there.
    """

    def describe(member: Any) -> Any:
        member.title, member.target, member.offers = title, target, offers
        member.excludes_true, member.uses_log_q, member.adds_log_q = excludes_true, uses_log_q, adds_log_q
        member.needs_all_classes, member.takes_found, member.n_auxiliary = needs_all_classes, takes_found, n_auxiliary
        member.sums_exponentials = sums_exponentials
        member.solves_auxiliary, member.link = solves_auxiliary, link
        member.n_numbers, member.draws_numbers = n_numbers, n_numbers > 0
        member.qualifier, member.target_of_all = qualifier, target_of_all or target
        competing = target == "softmax" or sums_exponentials
        member.labels_compete = competing if labels_compete is None else labels_compete
        member.takes_sets = takes_sets
        if not hasattr(member, "fit"):
            member.fit = lambda self, data: self
        if not hasattr(member, "settle"):
            member.settle = lambda self, xp, state, draws: state
        if not hasattr(member, "prepare"):
            member.prepare = lambda self, xp, rate, state, draws, noise: (self.settle(xp, state, draws), state)
        return member

    return describe
