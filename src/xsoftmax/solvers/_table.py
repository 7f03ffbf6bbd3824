"""Where the table of an encoder begins."""

from typing import Any

import numpy as np

from xsoftmax.kernels.encoded import Embedded, EncodedWeights
from xsoftmax.kernels.rows import features_of
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers._average import Average
from xsoftmax.solvers._encoder import Encoder

# Keeps a table's numbers apart from others of the same seed.
_OWN_NUMBERS = 0x7AB1E
# Rows of a table that are drawn at a time: float64 numbers take memory, too.
_DRAWN_AT_ONCE = 2**20


class WithTable:
    """What solvers give that train a table beside classes: to stand before one that trains these."""

    _of_table: Average

    def weights(self) -> EncodedWeights:
        """See ``Solver``; the table beside them."""
        return EncodedWeights(super().weights(), self._of_table.of_weights())  # type: ignore[misc]


def embedded(method: Any, data: TrainingSet, table: Any) -> Embedded:
    """Give the samples, going through ``table``, which is loaded with where it begins: a layout of zeros."""
    load_table(method.encoder, data, table.weights())
    rows, trained = features_of(data.X, False), not method.encoder.frozen
    return Embedded(rows, table, method.encoder.dimension, np.float32(method.bias), trained)


def begun(encoder: Encoder, data: TrainingSet, shape: tuple[int, int]) -> np.ndarray:
    """Give the table as it begins, float32."""
    table = np.empty(shape, np.float32)
    load_table(encoder, data, table)
    return table


def load_table(encoder: Encoder, data: TrainingSet, table: np.ndarray) -> None:
    """Draw rows of about unit length, from N(0, 1 / dimension), but for those that are given.

    Classes begin at zero.
    """
    rng, spread = np.random.default_rng([data.seed, _OWN_NUMBERS]), encoder.dimension**-0.5
    step = max(1, _DRAWN_AT_ONCE // encoder.dimension)
    for first in range(0, len(table), step):
        part = table[first : first + step]
        part[:] = rng.normal(0, spread, part.shape)
        if data.table is not None:
            given = data.table[first : first + step]
            known = ~np.isnan(given[:, 0])
            part[known] = given[known]
