"""How close a model's weights are to a reference's: Titsias, One-vs-each approximation to softmax, NIPS 2016, eq. 17.

    |w_reference - w| / |w_reference|,  |.| the sum of absolute values, biases included

A vector added to all classes' weights changes no probability. So it is taken out first, of both: the mean over
classes, which is zero already at the optimum of a regularised softmax.
"""

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.model import Model


def weight_distance(model: Model, reference: Model) -> float:
    """Give the distance to a reference; NaN for a model whose scores are not linear, or no softmax's.

    Raises
    ------
    InputError
        If the two differ in classes or features, or the reference has no weights to be compared with.
    """
    if model.class_names != reference.class_names or not model.has_features(
        reference.n_features, reference.features_sha256
    ):
        raise InputError("the reference has other classes or features than the model; train both on one data set")
    expected, found = _weights(reference), _weights(model)
    if expected is None or not np.abs(expected).sum() > 0:
        raise InputError("the reference has no weights to be compared with; take a trained softmax")
    if found is None:
        return float("nan")
    return float(np.abs(expected - found).sum() / np.abs(expected).sum())


def _weights(model: Model) -> np.ndarray | None:
    """Centred weights, float64 of shape (n_classes, n_features + 1), corrected, as biases, and calibrated."""
    if model.W is None or model.encoder is not None or model.link != "softmax":
        return None
    W = model.rows.astype(np.float64)
    if model.correction is not None:
        log_q = model.correction.log_q(np.zeros((2, model.n_features), np.float32), 0, model.n_classes)
        if log_q is not None and log_q.shape[0] > 1:  # it differs from row to row
            return None
        W[:, -1] += 0 if log_q is None else log_q[0]
    if model.calibration is not None:
        W *= model.calibration.inverse_temperature
        W[:, -1] += model.calibration.offsets(slice(None))
    return W - W.mean(axis=0)
