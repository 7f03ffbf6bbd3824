"""Between one-vs-each and the softmax: Titsias, One-vs-each approximation to softmax, NIPS 2016, eq. 6.

    L = log(1 + sum_{k in C} e^(s_k - s_y)) + sum_{k not in C} softplus(s_k - s_y)  >=  -log p(y | x),  k != y

C, the same for all samples, holds the classes with most training rows, of equal ones those with lower numbers. Empty,
it gives one-vs-each; with each class that joins the bound tightens; with all classes it is the softmax. Cost of a
step: the rows of C, and n_sampled + 1 more.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp, sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective

_description = objective(title="one-vs-each bound with joint classes", target="bound", excludes_true=True)


@_description
class OneVsEachJoint(NamedTuple):
    """Parameters: ``n_joint``, how many classes C has: a whole number, from 0.

    Every step must look at all of C: by a proposal that draws, as its ``n_head`` most frequent classes.
    """

    n_joint: float = 10.0

    def problem(self) -> str:
        """Tell what is wrong with the parameters."""
        if self.n_joint.is_integer():
            return ""
        return f"n_joint is {self.n_joint:g}; set it to a whole number of classes, 0 for one-vs-each"

    def fit(self, data: TrainingSet) -> "JointClasses":
        """Find the most frequent classes."""
        by_frequency = np.argsort(-data.class_counts, kind="stable")
        joint = np.zeros(data.n_classes, np.bool_)
        joint[by_frequency[: int(self.n_joint)]] = True
        return JointClasses(joint)


MEMBER = OneVsEachJoint


@_description
class JointClasses(NamedTuple):
    """What the kernels see: whether a class is in C, bool of shape (n_classes,)."""

    joint: np.ndarray

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        joint = xp.asarray(self.joint, device=draws.classes.device)[draws.classes]
        zeros = xp.zeros_like(draws.weights)
        together, apart = xp.where(joint, draws.weights, zeros), xp.where(joint, zeros, draws.weights)
        bound = xp.sum(apart * _arrays.softplus(xp, _arrays.gaps(draws)), axis=1)
        return _arrays.log_sum(xp, xp.zeros_like(draws.score_true), _arrays.gaps(draws), together) + bound


@implements(loss, JointClasses)
def _loss(objective, state, score_true, log_q_true, draws):
    highest = score_true
    for j in range(draws.scores.size):
        if objective.joint[draws.classes[j]]:
            highest = max(highest, draws.scores[j])
    together, apart = math.exp(score_true - highest), 0.0
    for j in range(draws.scores.size):
        if objective.joint[draws.classes[j]]:
            together += draws.weights[j] * exp(draws.scores[j] - highest)
        else:
            apart += draws.weights[j] * softplus(draws.scores[j] - score_true)
    return math.log(together) + highest - score_true + apart


@implements(gradient, JointClasses)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    highest = score_true
    for j in range(draws.scores.size):
        if objective.joint[draws.classes[j]]:
            highest = max(highest, draws.scores[j])
    together = exp(score_true - highest)
    for j in range(draws.scores.size):
        if objective.joint[draws.classes[j]]:
            draws.out[j] = draws.weights[j] * exp(draws.scores[j] - highest)
            together += draws.out[j]
        else:
            draws.out[j] = draws.weights[j] * sigmoid(draws.scores[j] - score_true)
    others = together - together  # zero, in the precision of the scores
    for j in range(draws.scores.size):
        if objective.joint[draws.classes[j]]:
            draws.out[j] /= together
        others += draws.out[j]
    return -others
