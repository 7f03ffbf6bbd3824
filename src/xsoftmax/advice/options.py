"""What a user may ask of ``auto``: its settings, in a config or on the command line."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from xsoftmax.internal.errors import InputError


class AutoOptions(NamedTuple):
    """Of a choice.

    Attributes
    ----------
    among : tuple of str or None
        Candidates; None: all.
    gap : float or None
        Good enough: relative gap to the best log-likelihood that any candidate reaches, where a fit may end.
    """

    among: tuple[str, ...] | None = None
    gap: float | None = None

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
                f"{where}: auto has no {unknown[0]!r}; it takes among, a list of methods, and gap, a number"
            )
        among, gap = settings.get("among"), settings.get("gap")
        if among is not None and not (isinstance(among, list) and among and all(isinstance(n, str) for n in among)):
            raise InputError(f"{where}: among is {among!r}; give a list of methods")
        if gap is not None and not (isinstance(gap, int | float) and 0 < gap < 1):
            raise InputError(f"{where}: gap is {gap!r}; give a number above 0 and below 1, such as 0.05")
        return cls(among and tuple(among), gap)
