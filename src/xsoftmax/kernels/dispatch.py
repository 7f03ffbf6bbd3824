"""Attach compiled code to a function name, by the type of its first argument."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

from xsoftmax.internal.compiled import overload

# Of code that makes no arrays: see ``xsoftmax.kernels.LEAN``.
NO_COUNTS: Any = {"_nrt": False}


def declared(function: Callable) -> Callable:
    """Declare a name that kernels call, of signature and docstring alone: its code comes by type."""

    @wraps(function)
    def uncompiled(*_: Any) -> Any:
        raise TypeError(f"{function.__name__} is called outside compiled code; call it from a kernel")

    return uncompiled


def lean(function: Callable) -> Callable:
    """Declare a name whose code allocates nothing, whatever the type: see ``xsoftmax.kernels.LEAN``."""
    name = declared(function)
    name.lean = True  # type: ignore[attr-defined]
    return name


def implements(
    function: Callable, member: type, inline: Literal["never", "always"] = "never", allocates: bool = False
) -> Callable:
    """Make the decorated function what compiled code runs for ``function(first, ...)``.

    Parameters
    ----------
    function : callable
        The name that kernels call, ``declared`` or ``lean``.
    member : type
        The NamedTuple of ``first`` for which this code is meant.
    inline : {"never", "always"}
        "always" inserts the code at the call before types are known, which helps short loops to vectorise.
    allocates : bool
        Whether this code makes arrays although ``function`` is ``lean``.
    """
    _brought_by(function).add(member)
    return _attach(function, lambda kind, _: kind is member, inline, allocates)


def otherwise(
    function: Callable,
    second: type | None = None,
    allocates: bool = False,
) -> Callable:
    """Make the decorated function what compiled code runs for all types that bring none with ``implements``.

    ``second``, if given, is the NamedTuple of the second argument for which this code is meant.
    """
    brought_by = _brought_by(function)

    def is_meant(kind: type | None, following: type | None) -> bool:
        return kind is not None and kind not in brought_by and second in (None, following)

    return _attach(function, is_meant, "never", allocates)


def _brought_by(function: Callable) -> set[type]:
    """Types of the first argument for which there is code of their own."""
    if not hasattr(function, "brought_by"):
        function.brought_by = set()  # type: ignore[attr-defined]
    return function.brought_by  # type: ignore[attr-defined]


def _attach(
    function: Callable,
    is_meant: Callable[[type | None, type | None], bool],
    inline: Literal["never", "always"],
    allocates: bool,
) -> Callable:
    options: Any = {"_nrt": allocates} if hasattr(function, "lean") else {}

    def attach(implementation: Callable) -> Callable:
        def choose(*types):
            kinds = [getattr(kind, "instance_class", None) for kind in (*types, None)]
            return implementation if is_meant(kinds[0], kinds[1]) else None

        choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        overload(function, jit_options=options, inline=inline)(choose)
        return implementation

    return attach
