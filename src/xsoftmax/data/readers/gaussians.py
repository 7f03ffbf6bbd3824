"""Generated: Gaussian clouds around random centres, one per class, as small as for a figure.

Titsias 2016, figure 1b, shows 200 points of five classes in the plane, without how they were drawn.
"""

from collections.abc import Mapping

import numpy as np

from xsoftmax.data.parts import PARTS, check_sizes, n_samples_of, rng_of
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError


def read(
    *,
    part: str = "all",
    n_samples: int | Mapping[str, int] = 200,
    n_features: int = 2,
    n_classes: int = 5,
    spread: float = 0.4,
    seed: int = 0,
) -> Rows:
    """Draw rows, each of a class drawn uniformly.

    Parameters
    ----------
    part : str
        ``train``, ``validation`` or ``test``: rows of its own around the same centres.
    n_samples : int, or mapping of str to int
        How many rows, or how many of each part.
    n_features, n_classes : int
        Dimensions, and clouds.
    spread : float
        Standard deviation of a cloud in each direction; that of the centres is 1.
    seed : int
        Of the draws.
    """
    n_samples = n_samples_of(part, n_samples, "gaussians")
    if min(n_samples, n_features, n_classes) < 1 or spread < 0:
        raise InputError("gaussians: sizes must be positive, spread not negative")
    check_sizes("gaussians", n_samples, n_classes * n_features, bytes_a_row=20 * n_features + 16)
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    if part in PARTS:
        rng = rng_of(part, seed)
    y = rng.integers(n_classes, size=n_samples)
    X = centres[y] + spread * rng.standard_normal((n_samples, n_features))
    return Rows.with_ids(X.astype(np.float32), y)
