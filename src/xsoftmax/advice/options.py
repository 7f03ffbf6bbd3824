"""What a user may ask of ``auto``: its settings, in a config or on the command line."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from xsoftmax.gpu.device import DEVICES, NUMBA
from xsoftmax.internal.errors import InputError


class AutoOptions(NamedTuple):
    """Of a choice.

    Attributes
    ----------
    among : tuple of str or None
        Candidates; None: all.
    gap : float or None
        Good enough: relative gap to the best log-likelihood that any candidate reaches, where a fit may end.
    device : str
        Where exact softmax may train, too: see ``xsoftmax.gpu.device``. By default everything is compiled code.
    rates : str or None
        File of that device's rates, which ``benchmark gpu`` writes.
    """

    among: tuple[str, ...] | None = None
    gap: float | None = None
    device: str = NUMBA
    rates: str | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], where: str) -> "AutoOptions":
        """Read the settings of ``auto``, which came from ``where``.

        Raises
        ------
        InputError
            If one is unknown or no such thing.
        """
        if unknown := sorted(set(settings) - set(cls._fields)):
            raise InputError(
                f"{where}: auto has no {unknown[0]!r}; it takes among, a list of methods, and gap, a number, device "
                "and rates"
            )
        among, gap = settings.get("among"), settings.get("gap")
        if among is not None and not (isinstance(among, list) and among and all(isinstance(n, str) for n in among)):
            raise InputError(f"{where}: among is {among!r}; give a list of methods")
        if gap is not None and not (isinstance(gap, int | float) and 0 < gap < 1):
            raise InputError(f"{where}: gap is {gap!r}; give a number above 0 and below 1, such as 0.05")
        device, rates = settings.get("device", NUMBA), settings.get("rates")
        if device not in DEVICES:
            raise InputError(f"{where}: device is {device!r}; set it to {' or '.join(DEVICES)}")
        if rates is not None and not isinstance(rates, str):
            raise InputError(f"{where}: rates is {rates!r}; name the file that `xsoftmax benchmark gpu --json` wrote")
        return cls(among and tuple(among), gap, device, rates)
