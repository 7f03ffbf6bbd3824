"""What a fit will hold in memory, before it is allocated."""

import psutil

from xsoftmax.data.dataset import SPLITS, Dataset
from xsoftmax.data.windows import WINDOW_BYTES
from xsoftmax.evaluation.calibration import rows_for
from xsoftmax.evaluation.likelihood import rows_at_a_time
from xsoftmax.gpu.ranks import ALONE, Group
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import free_bytes
from xsoftmax.kernels.scores import CLASSES_AT_A_TIME, ROWS_AT_A_TIME, weights_copied
from xsoftmax.methods import Method
from xsoftmax.model import MOST_HELD
from xsoftmax.solvers import Size, solver_of
from xsoftmax.training.evaluator import MOST_SCORES
from xsoftmax.training.plan import SUBSET

_MB = 2**20
# Draws of a step beyond which there must be as many classes: a step compares each draw with the others.
MOST_DRAWS = 1024


def size_of(data: Dataset) -> Size:
    """Read what the cost of training depends on."""
    n = data.n_samples("train")
    return Size(n, data.n_classes, data.n_features, data.n_entries("train") / max(1, n))


def check_memory(
    method: Method,
    data: Dataset,
    keeps_best: bool,
    limit: int | None = None,
    streams: bool = False,
    threads: int = 1,
    ranks: Group = ALONE,
) -> dict[str, int]:
    """Estimate a fit's memory and make sure that it is there.

    Parameters
    ----------
    method : Method
    data : Dataset
    keeps_best : bool
        Whether the best weights so far are kept beside the current ones.
    limit : int, optional
        Bytes the program may take, if that is less than what the machine has free.
    streams : bool
        Whether the training rows stay in their file.
    threads : int
    ranks : Group
        Those on one machine share its memory, and ``limit``.

    Returns
    -------
    dict of str to int
        Bytes by purpose.

    Raises
    ------
    InputError
        If it is not there; says how much is needed, and of what.
    """
    if method.n_sampled > max(MOST_DRAWS, data.n_classes):
        raise InputError(
            f"method {method.name}: n_sampled is {method.n_sampled}, {data.name} has {data.n_classes} classes; "
            "proposal all looks at each of them once"
        )
    needed = estimate(method, data, keeps_best, streams, threads, ranks.n_ranks)
    needed["the program itself"] = psutil.Process().memory_info().rss
    allowed, total = _allowed(limit, ranks.n_here), sum(needed.values())
    if total > allowed:
        parts = ", ".join(f"{size / _MB:.0f} MB for {what}" for what, size in needed.items())
        size = f"{data.n_classes} classes x {data.n_features} features"
        last = "keep the last weights instead of the best (--keep last), or " if keeps_best else ""
        raise InputError(
            f"method {method.name} on {data.name} ({size}) needs {total / _MB:.0f} MB: {parts}; it may take "
            f"{allowed / _MB:.0f} MB; give it more (--memory; with Snakemake --set-resources train:mem_mb=...), "
            f"{last}prepare the data with fewer features (max_features, pca)"
        )
    return needed


def must_stream(
    method: Method,
    data: Dataset,
    keeps_best: bool,
    limit: int | None = None,
    threads: int = 1,
    ranks: Group = ALONE,
) -> bool:
    """Tell whether the training rows have to stay in their file: memory does not hold them. See ``check_memory``."""
    held = psutil.Process().memory_info().rss
    needed = sum(estimate(method, data, keeps_best, threads=threads, n_ranks=ranks.n_ranks).values()) + held
    lacks = needed > _allowed(limit, ranks.n_here)
    return bool(ranks.latest(not data.in_memory and solver_of(method, size_of(data)).streams and lacks))


def _allowed(limit: int | None, n_here: int) -> int:
    free = free_bytes() // n_here + psutil.Process().memory_info().rss
    return free if limit is None else min(free, limit // n_here)


def estimate(
    method: Method, data: Dataset, keeps_best: bool, streams: bool = False, threads: int = 1, n_ranks: int = 1
) -> dict[str, int]:
    """Bytes that a fit will hold, by purpose; of several ranks, those of one."""
    size, n_classes = size_of(data), -(-data.n_classes // n_ranks)
    solver, width = solver_of(method, size), data.n_features + 1
    dense = method.weights == "dense"
    one_copy = 4 * n_classes * width if dense else 3 * data.nbytes("train")
    if method.encoder is not None:
        width, one_copy = method.encoder.dimension + 1, 4 * method.encoder.size(data.n_classes, data.n_features)
    n_train = data.n_samples("train")
    n_rows = max(data.n_samples(split) for split in SPLITS)
    data_bytes = 0 if data.in_memory else sum(data.nbytes(split) for split in SPLITS)
    if streams:
        data_bytes += min(2 * WINDOW_BYTES, data.nbytes("train")) - data.nbytes("train")
        data_bytes += 12 * n_train + data.label_bytes("train")
    needed = {
        "the data": data_bytes,
        "weights and what the optimizer keeps": int(solver.copies(method) * one_copy),
        "variables per sample": 8 * n_train * (method.objective.n_auxiliary + 2)
        + 4 * n_train * method.objective.uses_log_q,
        # for sparse rows, a copy of some weights (a row per feature) and of the rows; a block of scores; whole rows
        "evaluation": (4 * weights_copied(n_classes * width) * dense + _of_evaluations(data) if data.sparse else 0)
        + 4 * threads * min(ROWS_AT_A_TIME, n_rows) * min(n_classes, CLASSES_AT_A_TIME)
        + (0 if method.objective.sums_exponentials else _of_whole_rows(method, data, threads)),
    }
    if method.settings["start"]["name"] != "zero":
        most = data.nbytes("train") if data.sparse else one_copy
        needed["where weights begin"] = 3 * min(most, 2 * one_copy)
    needed |= solver.memory(method, size, threads)
    if keeps_best:
        needed["the best weights so far"] = one_copy
    if method.calibration != "none" or method.settings["start"]["name"] != "zero":
        n_scores = min(rows_for(data.n_classes), data.n_samples("validation")) * data.n_classes
        needed["scores of validation rows that are seen again"] = 4 * n_scores * (n_scores <= MOST_HELD)
    if method.prune:  # columns of weights, twice, and their absolute values
        needed["the weights that are pruned"] = 4 * one_copy
    return needed


def _of_evaluations(data: Dataset) -> int:
    """Bytes of the rows that a look takes together: validation, test, and a subset of the training rows."""
    n = data.n_samples("train")
    subset = data.nbytes("train") * min(SUBSET, n) // max(1, n)
    return subset + sum(data.nbytes(split) for split in ("validation", "test"))


def _of_whole_rows(method: Method, data: Dataset, threads: int) -> int:
    """Bytes for the objective's value: scores, a log-probability of each where it needs them, and a few arrays."""
    at_a_time = rows_at_a_time(data.n_classes, data.n_features, data.sparse)
    n_rows = min(at_a_time, SUBSET, data.n_samples("train"), max(1, MOST_SCORES // data.n_classes))
    per_class = (4 if method.objective.excludes_true else 8) * n_rows + 4 + 12 * threads
    return per_class * data.n_classes
