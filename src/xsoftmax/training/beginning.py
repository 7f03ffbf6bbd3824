"""Where the weights of a fit begin, at a scale that validation rows choose."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.windows import some
from xsoftmax.evaluation.calibration import fit_calibration, likelihood_at, rows_for
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.starts import Start

# Rows whose lengths are taken at a time.
_ROWS = 2**14


@dataclass(frozen=True)
class Beginning:
    """Where a fit begins (None: at zero), the scale of its weights (0: at zero), and the seconds of finding these."""

    start: Start | None = None
    scale: float = 0.0
    seconds: float = 0.0

    def without_weights(self) -> "Beginning":
        """Forget the weights, which take memory, once they have been loaded."""
        return replace(self, start=None)


def find_beginning(method: Method, data: Dataset, train: Split, pool: ThreadPool) -> Beginning:
    """Give the weights and their scale at which a method begins, from its training rows; each label of a row counts.

    The scale is the one under which validation rows are likeliest by the softmax of the scores, some of them if they
    are very many; so it does not depend on the objective.

    Raises
    ------
    InputError
        If validation rows are to choose, and there are none.
    """
    name = method.settings["start"]["name"]
    if name == "zero":
        return Beginning()
    begin = time.perf_counter()
    pairs = train.pairs
    W = method.start.directions(pairs.X, pairs.y, data.n_classes)
    given = method.start.scale / mean_length(pairs.X)
    del pairs
    seconds = time.perf_counter() - begin
    rows = data.split("validation" if data.n_samples("validation") else "train")
    if not data.n_samples("validation") and not method.start.scale:
        raise InputError(
            f"method {method.name}: start {name} has its scale chosen by validation rows, and {data.name} has none; "
            f"set one, as in start: {{name: {name}, scale: 10}}, or keep some rows for validation"
        )
    rows = some(rows, rows_for(data.n_classes)).pairs
    of_columns = csc_array(W) if issparse(W) else W  # once, for all looks at the scores
    model = Model(of_columns, data.class_names, data.n_features)
    likelihood_at(model, rows.X[:1], rows.y[:1], 1.0, pool)  # compiles, off the clock
    begin = time.perf_counter()
    scale = given or fit_calibration(model, rows.X, rows.y, pool).inverse_temperature
    value = likelihood_at(model, rows.X, rows.y, scale, pool).value
    n_alike = math.exp(-value) if math.isfinite(value) else float(data.n_classes)
    W *= np.float32(scale)
    return Beginning(Start(W, min(n_alike, float(data.n_classes))), scale, seconds + time.perf_counter() - begin)


def mean_length(X: Any) -> float:
    """Give the root mean square of the lengths of rows; 1 if all are 0."""
    total = 0.0
    for first in range(0, X.shape[0], _ROWS):
        rows = X[first : first + _ROWS]
        total += float(np.square(rows.data if issparse(rows) else rows, dtype=np.float64).sum())
    return math.sqrt(total / max(1, X.shape[0])) or 1.0
