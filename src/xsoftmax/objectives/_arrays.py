"""What the array forms of several objectives share: sums of exponentials, and what the array API standard lacks.

``xp`` is the array library: numpy, torch, or another that has the standard's functions. Arrays have one row per
sample; see ``xsoftmax.objectives.ScoredClasses``.
"""

from importlib import import_module
from typing import Any

from xsoftmax.internal.errors import InputError

# Where each library keeps logsumexp and log_ndtr, which the standard lacks.
_SPECIAL = {"numpy": "scipy.special", "torch": "torch.special", "jax.numpy": "jax.scipy.special"}


def special(xp: Any) -> Any:
    """Import the module of an array library that has ``logsumexp(x, axis)`` and ``log_ndtr(x)``.

    Raises
    ------
    InputError
        If the library is not known; the message names those that are.
    """
    name = _SPECIAL.get(xp.__name__)
    if name is None:
        raise InputError(f"array library {xp.__name__!r} is not known; use {', '.join(_SPECIAL)}")
    return import_module(name)


def softplus(xp: Any, x: Any) -> Any:
    """Return log(1 + e^x)."""
    return xp.logaddexp(x, xp.zeros_like(x))


def sigmoid(xp: Any, x: Any) -> Any:
    """Return 1 / (1 + e^-x)."""
    return xp.exp(-softplus(xp, -x))


def gaps(draws: Any) -> Any:
    """Return s_k - s_y, of shape (n, m)."""
    return draws.scores - draws.score_true[:, None]


def log_sum(xp: Any, first: Any, exponents: Any, weights: Any) -> Any:
    """Return log(e^first + sum_k weights_k e^exponents_k), of shape (n,), where a weight of 0 counts nothing.

    Parameters
    ----------
    xp : module
    first : array of shape (n,)
    exponents, weights : array of shape (n, m)
    """
    counts = weights > 0
    logs = xp.log(xp.where(counts, weights, xp.ones_like(weights)))
    nothing = xp.full_like(logs, -float("inf"))
    terms = xp.where(counts, exponents + logs, nothing)
    return special(xp).logsumexp(xp.concat([first[:, None], terms], axis=1), 1)


def log_inner_sum(xp: Any, draws: Any) -> Any:
    """Return log(1 + sum_k weights_k e^(s_k - s_y)), of shape (n,)."""
    return log_sum(xp, xp.zeros_like(draws.score_true), gaps(draws), draws.weights)


def double_sum(xp: Any, nu: Any, draws: Any) -> Any:
    """Return nu + e^-nu inner - 1, of shape (n,): at least log(inner), and equal at nu = log(inner)."""
    return nu + xp.exp(log_inner_sum(xp, draws) - nu) - 1


def log_mix(xp: Any, log_a: Any, log_b: Any, share: Any) -> Any:
    """Return log((1 - share) a + share b), of shape (n,)."""
    highest = xp.maximum(log_a, log_b)
    return highest + xp.log((1 - share) * xp.exp(log_a - highest) + share * xp.exp(log_b - highest))


def distinct(xp: Any, draws: Any) -> Any:
    """Return 1 for the first of equal classes that count, and 0 for the others, of shape (n, m)."""
    classes = draws.classes
    places = xp.arange(classes.shape[1], device=classes.device)
    earlier = places[None, :] < places[:, None]
    again = xp.any((classes[:, :, None] == classes[:, None, :]) & earlier, axis=2)
    ones = xp.ones_like(draws.weights)
    return xp.where((draws.weights > 0) & ~again, ones, xp.zeros_like(ones))


def descending(xp: Any, x: Any) -> Any:
    """Return the rows of ``x``, each sorted, the highest first."""
    return -_values(xp.sort(-x, axis=-1))


def highest(xp: Any, x: Any) -> Any:
    """Return the highest of each row, of shape (n,)."""
    return _values(xp.max(x, axis=-1))


def _values(found: Any) -> Any:
    """Take the values where torch gives their places, too."""
    return found.values if hasattr(found, "values") else found
