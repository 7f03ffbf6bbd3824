"""Implicit steps on minibatches, many classes and an L2 penalty: solved for the weights that they end at."""

from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.implicit_batch import Inclusion, Joint
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers._rules import differs_by_row, first_broken, named, not_word_by_word, rules_of_draws
from xsoftmax.solvers.sampled import SampledSolver, solves_batches


class ImplicitSolver(SampledSolver):
    """As ``SampledSolver``, but a batch shares its draws, and its step is solved for all of it together."""

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``."""
        return method.proposal.draws and method.weights == "dense" and solves_batches(method)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        objective, proposal, optimizer = named(method)
        by = method.proposal
        return first_broken(
            [
                *rules_of_draws(method),
                not_word_by_word(method, batch=True),
                (
                    method.decay or method.average != "none",
                    f"{optimizer} solves its step for an L2 penalty and the weights themselves; leave decay and "
                    "average out, or take optimizer sgd or adagrad",
                ),
                (
                    "batch_proximal" not in method.objective.offers,
                    f"{optimizer} solves {objective} for one sample and one class without l2; set n_sampled: 1 "
                    "and leave batch and l2 out, or take objective double-sum",
                ),
                (
                    by.adaptive or differs_by_row(by),
                    f"{optimizer} shares its draws in a batch and weighs its L2 penalty by how often a class is "
                    f"touched, {proposal} draws differently for each sample; take uniform or frequency, or "
                    "n_sampled: 1 without batch and l2",
                ),
            ]
        )

    @staticmethod
    def copies(method: Any) -> int:
        """See ``Solver``: decaying rows are multiplied out to be looked at."""
        return method.optimizer.copies + 1

    @staticmethod
    def labels_of_a_step(method: Any) -> int:
        """Count the labels whose classes a sample's step looks at: all of its batch."""
        return method.batch.size

    @staticmethod
    def weighed_by(method: Any, proposal: Proposal, draws_from: Any, data: TrainingSet) -> Inclusion:
        """Give what its l2 is weighted by."""
        return inclusion_of(proposal, draws_from, data.class_counts, method.n_sampled, method.batch.size)

    def _inverse_inclusion(self, method: Any, proposal: Proposal, draws_from: Any, data: TrainingSet) -> np.ndarray:
        return np.empty(0, np.float32)

    def _batch_type(self, method: Any, proposal: Proposal, data: TrainingSet) -> Joint:
        return Joint(method.batch.size, self.weighed_by(method, proposal, self._parts.proposal, data))


MEMBER = ImplicitSolver


def inclusion_of(
    proposal: Proposal, kernel: Any, class_counts: np.ndarray, n_sampled: int, batch_size: int
) -> Inclusion:
    """Give b_k for batches of ``batch_size`` rows, and for what is left at the end of an epoch.

    A class is touched if a label of the batch or drawn, 1 / b_k = a_k + (1 - a_k) r_k. Epochs are permutations, so
    that a_k is 1 minus the probability that n rows without replacement are all of other classes. For draws that
    do not look at the labels, r_k is exact. Draws of m classes outside the labels Y have r = m / (K - |Y|): b_k
    takes its value at the mean of |Y|, and a drawn class's b_k is multiplied by that over the actual one, so that
    the mean of b_k over all steps, 0 for untouched classes, is 1 exactly. For n = m = 1 it is the paper's beta.

    Raises
    ------
    InputError
        If the proposal's draws differ from row to row.
    """
    n_samples = int(class_counts.sum())
    sizes = [min(batch_size, n_samples), n_samples % batch_size or min(batch_size, n_samples)]
    inverse, shares = [], []
    for size in sizes:
        in_batch = -np.expm1(log_absent(class_counts, size))
        if getattr(kernel, "avoids_labels", False):
            outside = class_counts.size - in_batch.sum()
            drawn: Any = min(1.0, n_sampled / outside) if outside > 0 else 1.0
            shares.append(drawn)
        else:
            drawn = proposal.inclusion(n_sampled)
            if drawn is None:
                raise InputError(
                    f"proposal {proposal.name} draws differently for each row, an implicit step shares its draws; "
                    "take uniform or frequency"
                )
            shares.append(0.0)
        touched = in_batch + (1 - in_batch) * drawn
        inverse.append(np.divide(1, touched, where=touched > 0, out=np.zeros(class_counts.size)))
    return Inclusion(np.array(inverse), np.array(shares))


def log_absent(class_counts: np.ndarray, size: int) -> np.ndarray:
    """Log-probability that ``size`` rows, drawn without replacement, are all of other classes, (n_classes,)."""
    n_samples, total = class_counts.sum(), np.zeros(class_counts.size)
    with np.errstate(divide="ignore"):
        for drawn in range(size):
            total += np.log1p(-np.minimum(1.0, class_counts / (n_samples - drawn)))
    return total
