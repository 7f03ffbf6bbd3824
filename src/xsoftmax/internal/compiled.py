"""The one door to numba: every other module takes what it needs of it, and of llvmlite, from here.

Where numba is missing, modules with kernels load all the same, so that parameters, and the array forms of objectives,
are there for a solver that needs no compiled code. What is compiled then says, when it is called, what to install.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from xsoftmax.internal.errors import InputError

__all__ = ["cgutils", "event", "intrinsic", "ir", "njit", "overload", "types"]


class _Missing:
    """Stands for a module that only compiled code looks into: whatever is asked of it is itself."""

    def __getattr__(self, name: str) -> "_Missing":
        return self

    def __call__(self, *arguments: Any, **options: Any) -> "_Missing":
        return self


def _njit_without_numba(function: Callable | None = None, **options: Any) -> Callable:
    """Take the place of ``njit``, with or without options."""
    if function is None:
        return _njit_without_numba

    @wraps(function)
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise InputError(f"{function.__qualname__} is compiled code, and numba is not installed: pip install numba")

    return refuse


def _overload_without_numba(function: Callable, **options: Any) -> Callable:
    """Take the place of ``overload``: nothing is attached to the name."""
    return lambda implementation: implementation


try:
    from llvmlite import ir
    from numba import njit
    from numba.core import cgutils, event, types
    from numba.extending import intrinsic, overload
except ImportError:
    cgutils = event = ir = types = _Missing()  # type: ignore[assignment]
    njit = intrinsic = _njit_without_numba  # type: ignore[assignment]
    overload = _overload_without_numba  # type: ignore[assignment]
else:
    import xsoftmax.internal.numba_cache  # noqa: F401 - before the first kernel
