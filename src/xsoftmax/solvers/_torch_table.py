"""What solvers on PyTorch's devices have in common that train a table beside classes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals import Size, TrainingSet
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import behind, memory_of_table
from xsoftmax.solvers._table import WithTable, begun
from xsoftmax.solvers._torch import copies_there


class TorchWithTable(WithTable):
    """To stand before a ``TorchSolver``, which sees rows behind the table; it is averaged like the classes."""

    encodes = True

    @classmethod
    def memory(cls, method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``."""
        held: dict[str, int] = super().memory(method, size, threads)  # type: ignore[misc]
        return held | memory_of_table(method, size)

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: and the table, with what the optimizer keeps for it."""
        of_rows: dict[str, int] = super().room(method, size)  # type: ignore[misc]
        seen = super().room(method, behind(method.encoder, size))  # type: ignore[misc]
        table = {"the table": 4 * copies_there(method) * size.n_features * method.encoder.dimension}
        return seen | {name: of_rows[name] for name in of_rows if name == "rows" or name not in seen} | table

    def _begin(self, method: Any, data: TrainingSet, pool: ThreadPool, auxiliary: np.ndarray) -> None:
        from xsoftmax.gpu.features import Features

        shape = (data.X.shape[1], method.encoder.dimension)
        seen = np.broadcast_to(np.zeros(1, np.float32), (data.n_samples, shape[1]))
        super()._begin(method, replace(data, X=seen), pool, auxiliary)  # type: ignore[misc]
        self._features = Features(data.X, 0.0, self._device, self._weights.W.dtype)  # type: ignore[attr-defined]
        self._table = self._weights_of(method, shape, self.dtype)  # type: ignore[attr-defined]
        self._table.load(begun(method.encoder, data, shape))
        self._of_table = Average(method, self._table)

    def _behind(self, method: Any) -> Any:
        """Say how classes see rows."""
        from xsoftmax.gpu.table import BehindTable

        weights: Any = self._weights  # type: ignore[attr-defined]
        return BehindTable(weights, self._table, float(method.bias), not method.encoder.frozen)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        self._of_table.begin(samples, epoch, first)
        used: int = super().advance(samples, epoch, first, rate)  # type: ignore[misc]
        n_batches, size = self._batches_per_epoch, self._batch_size  # type: ignore[attr-defined]
        self._of_table.end(epoch * n_batches - -(first + used) // size)
        return used

    def arrays(self) -> Mapping[str, np.ndarray]:
        """See ``Solver``."""
        table = {f"table_{name}": array for name, array in self._table.arrays().items()}
        return {**super().arrays(), **table}  # type: ignore[misc]

    def _take_back(self, found: Mapping[str, np.ndarray]) -> None:
        super()._take_back(found)  # type: ignore[misc]
        self._table.restore({name.removeprefix("table_"): found[name] for name in found if name.startswith("table_")})
