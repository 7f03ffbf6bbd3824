"""Minibatches over all classes behind a table, on PyTorch: see ``xsoftmax.gpu.table``."""

from typing import Any

from xsoftmax.proposals import Size, TrainingSet
from xsoftmax.solvers._encoder import rules_of_encoders
from xsoftmax.solvers._rules import first_broken
from xsoftmax.solvers._torch_table import TorchWithTable
from xsoftmax.solvers.encoded_full import EncodedFullSolver
from xsoftmax.solvers.torch_full import PRODUCTS_A_SECOND, TorchFullSolver


class TorchEncodedFullSolver(TorchWithTable, TorchFullSolver):  # type: ignore[misc]
    """As ``TorchFullSolver`` on the rows behind a table, which moves with the classes and is averaged like them."""

    takes = staticmethod(EncodedFullSolver.takes)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken(rules_of_encoders(method)) or TorchFullSolver.refuses(method)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores twice, the products of slopes with rows, and those with weights."""
        return size.n_samples * 4 * size.n_classes * method.encoder.dimension / PRODUCTS_A_SECOND

    def _fuses(self, method: Any, data: TrainingSet) -> bool:
        return False

    def _layout(self, method: Any) -> Any:
        return self._behind(method)


MEMBER = TorchEncodedFullSolver
