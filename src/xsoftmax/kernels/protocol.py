"""What an objective, a proposal and an optimizer must say for the loops to be composed from them.

Each function here is a name to which the files of the three axes attach compiled code for their NamedTuple, with
``xsoftmax.kernels.dispatch.implements``. ``state`` is float64, what the objective keeps for this sample.

A step draws classes, scores them and asks for coefficients c; then row k of the weights moves along -c_k x. Of its
candidates the true class comes first. Where an objective has a sum over classes, it writes
sum_j draws.weights[j] f(draws.scores[j]): the weights make that an unbiased estimate of the sum over all other
classes, or of the mean under the proposal, whichever the objective asks for.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import overload
from xsoftmax.kernels.dispatch import NO_COUNTS, lean, otherwise
from xsoftmax.kernels.rows import squared_norm

# Smaller coefficients move no weight, but products with them are denormal numbers, a hundred times slower.
NEGLIGIBLE = np.float32(1e-30)


class Draws(NamedTuple):
    """The classes looked at in one step beside the true one; arrays of shape (n_draws,), float32 but for ``classes``.

    ``rng`` is a random state, uint64 of shape (1,), for objectives that draw numbers of their own.
    """

    classes: np.ndarray
    log_q: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    out: np.ndarray
    rng: np.ndarray


class Candidates(NamedTuple):
    """All classes looked at in one step, the true one first; arrays of shape (1 + n_draws,).

    ``classes``, ``weights``, ``scores`` and ``out`` are as in ``Draws``, of which ``draws`` is what follows the true
    class: views of the same memory. A true class has weight 1.
    """

    classes: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    out: np.ndarray
    draws: Draws


class View(NamedTuple):
    """The weights, in whatever layout they are, and the samples that they meet: what a proposal may look at."""

    weights: Any
    features: Any


class Parts(NamedTuple):
    """A method as loops see it: the NamedTuples of its parts, and how many classes the proposal draws for a step."""

    objective: Any
    proposal: Any
    optimizer: Any
    n_sampled: int


class Samples(NamedTuple):
    """What a loop goes over.

    Attributes
    ----------
    features : Dense or Csr
    labels : ndarray of shape (n_samples,), int32, or LabelLists
        Of samples that may have several: see ``xsoftmax.kernels.label_sets``.
    auxiliary : ndarray of shape (n_labels, n_auxiliary), float64
        What the objective keeps for each label of each sample; changed in place.
    log_q : ndarray of shape (n_labels,), float32, or None
        Log-probability of each label under the proposal, where that is known already.
    """

    features: Any
    labels: Any
    auxiliary: np.ndarray
    log_q: np.ndarray | None


class DrawsAhead(NamedTuple):
    """The classes of several steps, drawn before the first of them.

    Attributes
    ----------
    classes, log_q, weights : ndarray of shape (n_steps, n_draws)
        As in ``Draws``.
    excluded : ndarray of shape (n_steps,), int64
        Class that a step's draws may leave out, or -1.
    lowest : ndarray of shape (n_steps,), float32
        Score below which no class would move.
    rng_states : ndarray of shape (n_steps,), uint64
        Random state from which a step's draws begin.
    step : Candidates
        Workspace of one step.
    """

    classes: np.ndarray
    log_q: np.ndarray
    weights: np.ndarray
    excluded: np.ndarray
    lowest: np.ndarray
    rng_states: np.ndarray
    step: Candidates


class Clock(NamedTuple):
    """Where in a fit a loop begins: what its random numbers and its step sizes derive from.

    Attributes
    ----------
    key : uint64
        Of the epoch's random numbers (``xsoftmax.kernels.random.stream``).
    position : int
        Samples of the epoch before the first of this call.
    step : int
        Steps of the fit before the first of this call.
    """

    key: np.uint64
    position: int
    step: int


class Step(NamedTuple):
    """Learning rate of one step, float32, and the number of steps before it."""

    rate: np.float32
    number: int


# An objective says


@lean
def loss(objective, state, score_true, log_q_true, draws):
    """Value of one sample's loss, float64."""


@lean
def gradient(objective, rate, state, score_true, log_q_true, draws):
    """Write the derivatives by ``draws.scores`` to ``draws.out``, return that by ``score_true``; move ``state``."""


@lean
def raise_bound(objective, threshold, state, score_true, draws):
    """Lift ``state`` where it lies more than ``threshold`` below what these scores prove (for U-max)."""


@lean
def proximal(objective, rate, state, squared_norm, score_true, draws):
    """As ``gradient``, but at the end point of the step, for one draw; the coefficients include the rate."""


@lean
def floor(objective, score_true):
    """Score below which no class has a slope, float32; minus infinity for those that do not say."""


@lean
def gradient_of_set(objective, share, n_true, places):
    """Write the derivatives by all scores to ``places.out``, for an objective that ``takes_sets``.

    ``places`` are ``Draws`` that hold the positives, ``n_true`` of them, and behind them the other classes, weighed;
    ``share`` is what one positive's loss counts, where the sample's is a mean over them.
    """


@lean
def loss_of_set(objective, share, n_true, places):
    """Value of the loss of a sample of several labels, float64: see ``gradient_of_set``."""


# A proposal says


@lean
def note_moved(proposal, k):
    """Take note that class ``k``, which was not drawn, moves; for proposals that follow the weights."""


@lean
def draw(proposal, view, i, excluded, lowest, rng, draws):
    """Draw classes for sample ``i`` from random state ``rng``, each with its log-probability and its weight.

    A proposal whose type ``reads_weights`` may look at the ``view``, as it is when the step is taken, and at
    ``lowest``, the score below which no class would move; to others both mean nothing, and the view may be None.

    The weights make sum_j weights[j] f(classes[j]) an unbiased estimate of the sum of f over all classes: 1 / (n q)
    for n draws from a distribution q. A proposal that can do it at no cost leaves out the class ``excluded`` (-1:
    none) and then draws without replacement, ``log_q`` being that of one draw; another may draw it.
    """


@lean
def draw_ahead(proposal, view, samples, ahead):
    """Do what ``draw`` does for several samples, into the first rows of ``ahead``.

    A proposal may bring code of its own, which gives the same classes; for the others there is the loop of
    ``xsoftmax.kernels.run_steps``.
    """


@lean
def log_probability(proposal, view, i, k):
    """Log-probability with which class ``k`` is drawn for sample ``i``, float32."""


def reads_weights(proposal) -> bool:
    """Tell whether a proposal's kernel, or one that it is made of, looks at the weights: an attribute of its type."""
    return _reads_weights(proposal, type)


def _reads_weights(proposal: Any, type_of: Any) -> bool:
    if getattr(type_of(proposal), "reads_weights", False):
        return True
    parts = getattr(proposal, "types", proposal) if hasattr(proposal, "_fields") or hasattr(proposal, "types") else ()
    return any(_reads_weights(part, type_of) for part in parts)


@lean
def searches(proposal):
    """Tell whether it gives the classes that score highest, the highest first: an attribute ``finds`` of its type."""


@overload(searches)
def _searches(proposal):
    flag = bool(getattr(proposal.instance_class, "finds", False))
    return lambda proposal: flag


@lean
def n_exact(proposal):
    """Count the classes that every step looks at, before those that are drawn: a field ``exact_classes``."""


# An optimizer says


@lean
def updated(optimizer, step, w, a, g):
    """Give a weight and what is accumulated beside it after a step along its gradient: ``(w, a)``, float32.

    ``a`` is 0 for an optimizer that accumulates nothing. One that ``fades`` is given the ``a`` of the step before,
    whenever that was.
    """


@lean
def coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    """Fill ``draws.out`` with the coefficients of the drawn classes; return that of the true class."""


@overload(coefficients, jit_options=NO_COUNTS)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    """By what the optimizer needs."""
    needs = optimizer.instance_class.needs

    def along_gradient(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
        return gradient(objective, rate, state, score_true, log_q_true, draws)

    def within_bound(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
        raise_bound(objective, optimizer.threshold, state, score_true, draws)
        return gradient(objective, rate, state, score_true, log_q_true, draws)

    def at_the_end(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
        return proximal(objective, rate, state, squared_norm(features, i), score_true, draws)

    return {"gradient": along_gradient, "raise_bound": within_bound, "proximal": at_the_end}[needs]


def _attribute(function: Callable) -> Callable:
    """Declare the name of an attribute of the argument's type, which is a constant to compiled code."""
    name = lean(function)

    @overload(name)
    def of_type(objective):
        value = getattr(objective.instance_class, function.__name__)
        return lambda objective: value

    return name


@_attribute
def excludes_true(objective):
    """Tell whether its sum is over the other classes (draws of the true one count nothing) or under the proposal."""


@_attribute
def labels_compete(objective):
    """Tell whether other labels of a sample are in the sum over the other classes: where it normalises scores."""


@_attribute
def uses_log_q(objective):
    """Tell whether it looks at the proposal's log-probabilities."""


@_attribute
def draws_numbers(objective):
    """Tell whether it draws random numbers of its own, from ``draws.rng``."""


@overload(reads_weights)
def _reads_weights_of(proposal):
    flag = _reads_weights(proposal, lambda kind: getattr(kind, "instance_class", None))
    return lambda proposal: flag


@overload(n_exact)
def _n_exact(proposal):
    if "exact_classes" in proposal.instance_class._fields:
        return lambda proposal: proposal.exact_classes.size
    return lambda proposal: 0


@otherwise(note_moved)
def _note_nothing(proposal, k):
    pass


@otherwise(floor)
def _no_floor(objective, score_true):
    return np.float32(-np.inf)
