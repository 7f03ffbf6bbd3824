"""Begin a fit with the weights of a model, among other classes."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack

from xsoftmax.data.dataset import ArrayDataset
from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.internal.errors import InputError
from xsoftmax.model import Model
from xsoftmax.starts import Start

# Training rows that tell how good the weights are.
ROWS = 2000


def start_from(model: Model, classes: np.ndarray, names: np.ndarray, data: ArrayDataset) -> Start:
    """Give the weights of a model of ``classes`` to begin with, among ``names``; new ones have zeros.

    Raises
    ------
    InputError
        If it has no weights of features alone.
    """
    if model.W is None or model.encoder is not None:
        said = f"{data.name}: a model of method {model.attributes['method']} has no weights of features alone"
        raise InputError(f"{said} to go on from; set warm_start to False, or fit another method")
    places = np.searchsorted(names, classes)
    W, b = _in_places(model.W, places, len(names)), None
    if model.b is not None:
        b = np.zeros(len(names), np.float32)
        b[places] = model.b
    of_columns = csc_array(W) if issparse(W) else W
    grown = replace(model, W=of_columns, b=b, class_names=data.class_names, calibration=None, correction=None)
    rows = data.rows("train", 0, ROWS)
    value = evaluate(grown, rows.X, rows.y)["log_likelihood"]
    n_alike = math.exp(-value) if math.isfinite(value) and -value < math.log(len(names)) else float(len(names))
    return Start(W, n_alike, b)


def _in_places(W: Any, places: np.ndarray, n_classes: int) -> Any:
    """Put rows of weights in their places among those of so many classes, the others zero."""
    if not issparse(W):
        found = np.zeros((n_classes, W.shape[1]), np.float32)
        found[places] = W
        return found
    rows = vstack([csr_array(W), csr_array((1, W.shape[1]), dtype=W.dtype)], format="csr")
    order = np.full(n_classes, W.shape[0])
    order[places] = np.arange(W.shape[0])
    return csr_array(rows[order])
