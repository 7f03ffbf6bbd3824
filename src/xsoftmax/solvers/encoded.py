"""Single steps on a few drawn classes, behind a table: see ``xsoftmax.kernels.encoded``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xsoftmax.kernels.encoded import Embedded, Encoded, encode_samples
from xsoftmax.kernels.label_sets import LabelLists
from xsoftmax.kernels.layout import allocate, arrays_of
from xsoftmax.kernels.one_sample import OneLabel
from xsoftmax.kernels.protocol import Samples
from xsoftmax.kernels.rows import Dense
from xsoftmax.proposals import Proposal, TrainingSet
from xsoftmax.solvers import BYTES_A_SECOND, Size
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import behind, memory_of_table, rules_of_encoders
from xsoftmax.solvers._rules import first_broken, named, rules_of_draws
from xsoftmax.solvers._table import WithTable, embedded
from xsoftmax.solvers.sampled import SampledSolver, solves_batches


class EncodedSolver(WithTable, SampledSolver):  # type: ignore[misc]
    """As ``SampledSolver``, of which the table moves with the classes, and is averaged like them."""

    encodes = True

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``: those with an encoder whose proposal draws."""
        return method.encoder is not None and method.proposal.draws

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        encoder, optimizer = f"encoder has dimension {method.encoder.dimension}", named(method)[2]
        return first_broken(
            [
                *rules_of_encoders(method),
                (
                    method.batch.size > 1,
                    f"{encoder}, whose table moves sample by sample, and batch has size {method.batch.size}; leave "
                    "batch out, or take proposal all, which has minibatches",
                ),
                (
                    solves_batches(method),
                    f"{encoder}, and {optimizer} solves for one drawn class where there is a table; set n_sampled: 1",
                ),
                *rules_of_draws(method),
            ]
        )

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: and a row as it leaves the table, with its gradient."""
        hidden = {"rows behind the table": threads * 8 * method.encoder.dimension}
        seen = SampledSolver.memory(
            method, behind(method.encoder, size) if method.proposal.adaptive else size, threads
        )
        return seen | hidden | memory_of_table(method, size)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: what is touched of the classes and of the table is read and written."""
        touched = (method.n_sampled + 1 + size.n_entries) * method.encoder.dimension * 4 * method.optimizer.copies
        return size.n_samples * 2 * touched / BYTES_A_SECOND

    def _features_of(self, method: Any, data: TrainingSet) -> Embedded:
        table = allocate(method.optimizer, data.X.shape[1], method.encoder.dimension, dense=True)
        self._of_table = Average(method, table)
        return embedded(method, data, self._of_table.weights)

    def _allocated(self, method: Any, proposal: Proposal, data: TrainingSet, features: Any, kernel: Any) -> Any:
        return allocate(method.optimizer, data.n_classes, method.encoder.dimension + 1, dense=True)

    def _batch_type(self, method: Any, proposal: Proposal, data: TrainingSet) -> Encoded:
        return Encoded(OneLabel() if data.label_sets is None else super()._batch_type(method, proposal, data))

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        self._of_table.begin(samples, epoch, first)
        used = super().advance(samples, epoch, first, rate)
        self._of_table.end(epoch * self._batches_per_epoch + first + used)
        return used

    def _refresh(self) -> None:
        """See ``SampledSolver``: rows that the proposal keeps are taken anew."""
        if hasattr(self._proposal, "look_at"):
            self._proposal.look_at(self._encoded)
        super()._refresh()

    def _encoded(self, rows: np.ndarray) -> np.ndarray:
        """Give some samples behind the table as it is."""
        features = self._samples.features
        hidden = np.empty((rows.size, features.dimension), np.float32)
        encode_samples(features.rows, features.table, rows, hidden)
        return hidden

    def found(self, rows: np.ndarray) -> dict[str, float]:
        """Measure a search as ``SampledSolver`` does, on samples behind the table."""
        whole = self._samples
        if isinstance(whole.labels, LabelLists):
            return {}
        features, log_q = Dense(self._encoded(rows), whole.features.constant), whole.log_q
        self._samples = Samples(
            features, whole.labels[rows], whole.auxiliary[rows], None if log_q is None else log_q[rows]
        )
        try:
            return super().found(np.arange(rows.size))
        finally:
            self._samples = whole

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        table = {f"table_{name}": array for name, array in arrays_of(self._of_table.weights).items()}
        return {**super().arrays(), **table}


MEMBER = EncodedSolver
