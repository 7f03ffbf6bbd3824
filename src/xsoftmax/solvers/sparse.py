"""Single steps on sparse rows, with weights of which only those that are not zero are held."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import check_arrays, copy_arrays
from xsoftmax.kernels.class_lists import empty_class_lists
from xsoftmax.kernels.lists import Lists, bytes_of, checked, empty_lists, grown
from xsoftmax.kernels.rows import Csr, n_columns
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import Size
from xsoftmax.solvers._rules import first_broken, indexes_dense_rows, named, rules_of_draws
from xsoftmax.solvers.sampled import SampledSolver, decay_per_step


class SparseSolver(SampledSolver):
    """As ``SampledSolver``, by one thread; lists of weights grow as classes meet features for the first time."""

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``: what asks for it."""
        return method.weights == "sparse" and method.proposal.draws and method.optimizer.needs != "full_gradient"

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        optimizer = named(method)[2]
        return first_broken(
            [
                *rules_of_draws(method),
                (
                    method.batch.size > 1,
                    "weights are sparse, which move sample by sample; leave batch out, or take weights: dense",
                ),
                (
                    method.optimizer.needs == "proximal" and method.n_sampled > 1,
                    f"{optimizer} solves its step for one drawn class; set n_sampled: 1",
                ),
                (
                    method.proposal.finds and method.bias and not getattr(method.proposal, "shortlist", 0),
                    f"{named(method)[1]} finds the classes that share a feature with a row, whatever the biases of "
                    "others; set bias: false, or take weights: dense",
                ),
                (
                    method.proposal.finds and method.settings["start"]["name"] == "zero",
                    f"{named(method)[1]} finds nothing where all weights are zero; set start: class-means, or take "
                    "weights: dense",
                ),
                (
                    indexes_dense_rows(method.proposal),
                    f"{named(method)[1]} clusters rows of weights, which are dense; take proposal search, or "
                    "weights: dense",
                ),
                (
                    method.l2,
                    f"l2 is {method.l2:g}, which shrinks classes as steps touch them; sparse weights shrink "
                    f"all together; set l2: 0 and decay: {method.l2:g}, or take weights: dense",
                ),
                (
                    method.optimizer.fade < 1,
                    f"weights are sparse, and what {optimizer} accumulates fades in every step; take adagrad or sgd",
                ),
            ]
        )

    @staticmethod
    def copies(method: Any) -> int:
        """See ``Solver``: none that is dense."""
        return 0

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: lists as long as the rows, twice as they grow; what more they need is asked for then."""
        n_arrays = 1 + method.optimizer.accumulates + (method.average != "none")
        n_entries = int(size.n_samples * size.n_entries)
        lists = bytes_of(n_entries, max(size.n_features, size.n_classes), size.n_classes, n_arrays)
        return SampledSolver.memory(method, size, 1) | {"weights that are not zero, as they grow": 2 * lists}

    def _allocated(self, method: Any, proposal: Proposal, data: TrainingSet, features: Any, kernel: Any) -> Lists:
        if not isinstance(features, Csr):
            raise InputError(
                f"method {method.name}: weights are sparse, and the rows are dense; take weights: dense, or rows "
                "of a sparse format"
            )
        optimizer = method.optimizer
        initial = getattr(optimizer, "initial_accumulator", 0.0)
        averages = method.average != "none"
        empty = empty_lists if getattr(type(kernel), "reads_features", False) else empty_class_lists
        lists = empty(
            data.n_classes,
            n_columns(features),
            optimizer.accumulates,
            averages,
            initial,
            decay_per_step(method, data),
        )
        if data.start is None:
            return lists
        lists = lists.load(data.start.W)
        if data.start.b is not None:
            lists.biases[0] = data.start.b
        return lists

    def _load_biases(self, biases: np.ndarray) -> None:
        self._weights.biases[0] = biases

    def _fold(self) -> None:
        self._weights.fold()

    def _swept(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        used = self._task(samples, epoch, first, rate, self._weights)()
        while used < samples.size and self._weights.full[0]:
            holder = [self._weights]
            self._weights = self._average.weights = None
            self._weights = self._average.weights = grown(holder)
            used += self._task(samples[used:], epoch, first + used, rate, self._weights)()
        return used

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """See ``Solver``; lists come in the length that they have there."""
        learned = self._learned()
        check_arrays(learned, {name: array for name, array in arrays.items() if name in learned})
        of_lists = {name: array for name, array in arrays.items() if name not in learned}
        self._weights = self._average.weights = checked(self._weights, self.auxiliary, of_lists)
        copy_arrays(learned, {name: arrays[name] for name in learned})


MEMBER = SparseSolver
