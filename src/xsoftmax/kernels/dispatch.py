"""Attach compiled code to a function name, by the type of its first argument."""

import inspect
from collections.abc import Callable
from typing import Literal

from numba.extending import overload


def implements(function: Callable, member: type, inline: Literal["never", "always"] = "never") -> Callable:
    """Make the decorated function what compiled code runs for ``function(first, ...)``.

    Parameters
    ----------
    function : callable
        The name that kernels call; its Python body is never run.
    member : type
        The NamedTuple of ``first`` for which this code is meant.
    inline : {"never", "always"}
        "always" inserts the code at the call before types are known, which helps short loops to vectorise.
    """

    def attach(implementation: Callable) -> Callable:
        def choose(*types):
            return implementation if getattr(types[0], "instance_class", None) is member else None

        choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        overload(function, inline=inline)(choose)
        return implementation

    return attach
