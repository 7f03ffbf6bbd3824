"""Minibatches over all classes behind a table, on PyTorch: see ``xsoftmax.gpu.table``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals import Size, TrainingSet
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import behind, memory_of_table, rules_of_encoders
from xsoftmax.solvers._rules import first_broken
from xsoftmax.solvers._table import WithTable, begun
from xsoftmax.solvers._torch import copies_there
from xsoftmax.solvers.encoded_full import EncodedFullSolver
from xsoftmax.solvers.torch_full import PRODUCTS_A_SECOND, TorchFullSolver


class TorchEncodedFullSolver(WithTable, TorchFullSolver):  # type: ignore[misc]
    """As ``TorchFullSolver`` on the rows behind a table, which moves with the classes and is averaged like them."""

    encodes = True
    takes = staticmethod(EncodedFullSolver.takes)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken(rules_of_encoders(method)) or TorchFullSolver.refuses(method)

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``."""
        return TorchFullSolver.memory(method, size, threads) | memory_of_table(method, size)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores twice, the products of slopes with rows, and those with weights."""
        return size.n_samples * 4 * size.n_classes * method.encoder.dimension / PRODUCTS_A_SECOND

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: and the table, with what the optimizer keeps for it."""
        table = {"the table": 4 * copies_there(method) * size.n_features * method.encoder.dimension}
        rows = {"rows": super().room(method, size)["rows"]}
        return super().room(method, behind(method.encoder, size)) | rows | table

    def _begin(self, method: Any, data: TrainingSet, pool: ThreadPool, auxiliary: np.ndarray) -> None:
        from xsoftmax.gpu.features import Features

        shape = (data.X.shape[1], method.encoder.dimension)
        seen = np.broadcast_to(np.zeros(1, np.float32), (data.n_samples, shape[1]))
        super()._begin(method, replace(data, X=seen), pool, auxiliary)
        self._features = Features(data.X, 0.0, self._device, self._weights.W.dtype)
        self._table = self._weights_of(method, shape, self.dtype)
        self._table.load(begun(method.encoder, data, shape))
        self._of_table = Average(method, self._table)

    def _fuses(self, method: Any, data: TrainingSet) -> bool:
        return False

    def _layout(self, method: Any) -> Any:
        from xsoftmax.gpu.table import BehindTable

        return BehindTable(self._weights, self._table, float(method.bias), not method.encoder.frozen)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        self._of_table.begin(samples, epoch, first)
        used = super().advance(samples, epoch, first, rate)
        self._of_table.end(epoch * self._batches_per_epoch - -(first + used) // self._batch_size)
        return used

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        table = {f"table_{name}": array for name, array in self._table.arrays().items()}
        return {**super().arrays(), **table}

    def _take_back(self, found: Mapping[str, np.ndarray]) -> None:
        super()._take_back(found)
        self._table.restore({name.removeprefix("table_"): found[name] for name in found if name.startswith("table_")})


MEMBER = TorchEncodedFullSolver
