"""A given callback that fails is left out, and the fit goes on."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from xsoftmax.internal.errors import StoppedError, as_line
from xsoftmax.training.callbacks import Callback, RunningFit

NUMBERS = "biuf"  # kinds of arrays that a checkpoint keeps


class Guarded(Callback):
    """Call another callback until it fails; what it keeps bears its name.

    Parameters
    ----------
    callback : Callback
    name : str
        It has no dot in it.
    """

    def __init__(self, callback: Callback, name: str) -> None:
        self.name, self._callback, self._works = name, callback, True

    def begin(self, fit: RunningFit) -> None:
        """Call it."""
        self._try(lambda: self._callback.begin(fit))

    def advanced(self, fit: RunningFit) -> None:
        """Call it."""
        self._try(lambda: self._callback.advanced(fit))

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Call it, with a row of its own."""
        self._try(lambda: self._callback.evaluated(fit, dict(row)))

    def end(self, fit: RunningFit) -> None:
        """Call it."""
        self._try(lambda: self._callback.end(fit))

    def arrays(self) -> dict[str, np.ndarray]:
        """Give its arrays, as ``name.key``."""
        return self._try(self._numbers) or {}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Give it those of a checkpoint's arrays that are its own, if there are any."""
        mine = {key: arrays[key] for key in arrays if key.startswith(f"{self.name}.")}
        if mine:
            self._try(lambda: self._callback.restore({key.partition(".")[2]: mine[key][...] for key in mine}))

    def _numbers(self) -> dict[str, np.ndarray]:
        found = {f"{self.name}.{key}": np.asarray(value) for key, value in self._callback.arrays().items()}
        for key, array in found.items():
            if array.dtype.kind not in NUMBERS or "/" in key:
                raise TypeError(f"a checkpoint keeps numbers by a name without a slash, not {key} of {array.dtype}")
        return found

    def _try(self, call: Callable[[], Any]) -> Any:
        """Call it, unless it has failed before; what stops a program, such as Ctrl-C, passes."""
        if not self._works:
            return None
        try:
            return call()
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it does, the fit is not lost
            self._works = False
            with suppress(OSError, ValueError):  # of a standard error that is gone
                said = f"{as_line(error)}; training goes on without it"
                print(f"warning: callback {self.name}: {said}", file=sys.stderr)
            return None


def guarded(callbacks: Iterable[Callback]) -> list[Guarded]:
    """Guard callbacks, each named as its class is, and numbered if there are several of a class."""
    seen: Counter[str] = Counter()
    found = []
    for callback in callbacks:
        name = type(callback).__name__
        seen[name] += 1
        found.append(Guarded(callback, name if seen[name] == 1 else f"{name}-{seen[name]}"))
    return found
