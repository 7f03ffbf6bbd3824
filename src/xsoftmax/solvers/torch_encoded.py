"""Steps on a few drawn classes behind a table, on PyTorch, in minibatches if there is a ``batch``."""

from typing import Any

from xsoftmax.proposals import Size, memory_of
from xsoftmax.solvers import BYTES_A_SECOND
from xsoftmax.solvers._encoder import rules_of_encoders
from xsoftmax.solvers._rules import first_broken, named
from xsoftmax.solvers._torch_table import TorchWithTable
from xsoftmax.solvers.encoded import EncodedSolver
from xsoftmax.solvers.sampled import solves_batches
from xsoftmax.solvers.torch_sampled import FASTER, TorchSampledSolver


class TorchEncodedSolver(TorchWithTable, TorchSampledSolver):  # type: ignore[misc]
    """As ``TorchSampledSolver`` on the rows behind a table: each of its rows moves once for a batch, by the mean."""

    takes = staticmethod(EncodedSolver.takes)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        encoder, optimizer = f"encoder has dimension {method.encoder.dimension}", named(method)[2]
        solved = (
            solves_batches(method),
            f"{encoder}, and {optimizer} solves for one drawn class of one sample where there is a table; set "
            "n_sampled: 1, and leave batch out",
        )
        return first_broken([*rules_of_encoders(method), solved]) or TorchSampledSolver.refuses(method)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: what is touched of the classes and of the table is read and written."""
        touched = (method.n_sampled + 1 + size.n_entries) * method.encoder.dimension * 4 * method.optimizer.copies
        return size.n_samples * 2 * touched / (FASTER * BYTES_A_SECOND)

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: a proposal sees the rows themselves."""
        return super().room(method, size) | memory_of(method.proposal, size)


MEMBER = TorchEncodedSolver
