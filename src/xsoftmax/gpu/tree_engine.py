"""A tree's fit on a device: see ``xsoftmax.tree.engine``; torch is imported when a device is asked for."""

from typing import Any

import numpy as np

from xsoftmax.gpu.device import NUMBA
from xsoftmax.tree.engine import Engine, FitLevel, Rows


class TreeEngine:
    """A device of PyTorch's.

    Parameters
    ----------
    place : {"cpu", "cuda"}
    """

    def __init__(self, place: str) -> None:
        self._place = place

    def rows(self, X: Any) -> Rows:
        """See ``Engine``.

        Raises
        ------
        InputError
            If the device lacks the memory.
        """
        from xsoftmax.gpu.tree_rows import DeviceRows

        return DeviceRows(X, self._place)

    def levels(
        self, Z: np.ndarray, offsets: np.ndarray, sums: np.ndarray, regularizer: float, resplit: bool
    ) -> FitLevel:
        """See ``Engine``.

        Raises
        ------
        InputError
            If the device lacks the memory.
        """
        from xsoftmax.gpu.tree_levels import DeviceLevels

        return DeviceLevels(self._place, Z, offsets, sums, regularizer, resplit)


def engine_on(place: str) -> Engine | None:
    """Give what fits trees at a place, one of those of ``xsoftmax.gpu.device.place_of``: None for compiled code."""
    return None if place == NUMBA else TreeEngine(place)
