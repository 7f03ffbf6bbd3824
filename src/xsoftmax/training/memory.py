"""What a fit will hold in memory, before it is allocated."""

import psutil

from xsoftmax.data.store import Prepared
from xsoftmax.errors import InputError
from xsoftmax.methods import Method
from xsoftmax.model import CLASSES_AT_A_TIME, ROWS_AT_A_TIME

_MB = 2**20


def check_memory(method: Method, data: Prepared, keeps_best: bool, limit: int | None = None) -> dict[str, int]:
    """Estimate a fit's memory and make sure that it is there.

    Parameters
    ----------
    method : Method
    data : Prepared
    keeps_best : bool
        Whether the best weights so far are kept beside the current ones.
    limit : int, optional
        Bytes the fit may take, if that is less than what the machine has free.

    Returns
    -------
    dict of str to int
        Bytes by purpose.

    Raises
    ------
    InputError
        If it is not there; says how much is needed, and of what.
    """
    needed = estimate(method, data, keeps_best)
    free = psutil.virtual_memory().available
    allowed = free if limit is None else min(free, limit)
    total = sum(needed.values())
    if total > allowed:
        parts = ", ".join(f"{size / _MB:.0f} MB for {what}" for what, size in needed.items())
        size = f"{data.n_classes} classes x {data.n_features} features"
        raise InputError(
            f"method {method.name} on {data.name} ({size}) needs {total / _MB:.0f} MB: {parts}; it may take "
            f"{allowed / _MB:.0f} MB; give it more, or prepare the data with fewer features (max_features, pca)"
        )
    return needed


def estimate(method: Method, data: Prepared, keeps_best: bool) -> dict[str, int]:
    """Bytes that a fit will hold, by purpose."""
    width = data.n_features + 1
    one_copy = 4 * data.n_classes * width
    n_train = data.n_samples("train")
    needed = {
        "the data": sum(data.nbytes(split) for split in ("train", "validation", "test")),
        "weights and what the optimizer keeps": _solver_copies(method) * one_copy,
        "variables per sample": 8 * n_train * (method.objective.n_states + 1),
        "evaluation": 4 * min(data.n_classes, CLASSES_AT_A_TIME) * (width + ROWS_AT_A_TIME),
    }
    if keeps_best:
        needed["the best weights so far"] = one_copy
    return needed


def _solver_copies(method: Method) -> int:
    """How many float32 arrays of the weights' size a solver holds, its conversions counted."""
    if method.optimizer.layout is None:
        return 2 * (2 * method.optimizer.memory + 8)
    if not method.proposal.draws:
        return method.optimizer.layout.copies + 1
    return method.optimizer.layout.copies
