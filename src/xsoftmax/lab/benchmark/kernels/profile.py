"""Where the time of a step goes: the whole, and the same loop with its last parts left out.

What a run takes more than the one after it is what its last part costs, waiting for memory included: whoever looks
at a row first waits for it.
"""

from collections.abc import Iterator
from dataclasses import replace

from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.left_out import NoGradient, NoMove, Unread
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, sparse_rows, steps_of

N_STEPS = 2**15
NOTE = "a whole step; the other runs leave its last parts out"


def cases(small: bool) -> Iterator[Case]:
    """Yield a profile of dense and one of sparse rows, each with one negative and with five."""
    for n_sampled in (1, 5):
        n_classes, n_features = (20_000, 64) if small else (200_000, 512)
        rows = dense_rows(2 * N_STEPS, n_features, n_classes)
        yield profile(f"dense, {n_features} features, {n_classes:,} classes", rows, n_classes, n_sampled)
    n_classes, n_features = (2_000, 1_000) if small else (20_000, 10_000)
    rows = sparse_rows(2 * N_STEPS, n_features, n_classes, 100)
    yield profile(f"sparse, 100 non-zeros, {n_features:,} features, {n_classes:,} classes", rows, n_classes, 1)


def profile(name: str, rows: Rows, n_classes: int, n_sampled: int) -> Case:
    """Negative sampling with Adagrad."""
    whole = method_of("negative-sampling", {"name": "uniform", "n_sampled": n_sampled})
    nothing = NoGradient()
    still = replace(whole, optimizer=NoMove())
    members = {
        "draw, score, coefficients, move": (whole, None, None),
        "draw, score, coefficients": (still, None, None),
        "draw, score": (still, nothing, None),
        "draw": (still, nothing, Unread),
    }
    runs = {
        parts: steps_of(method, rows, n_classes, N_STEPS, objective=objective, layout=layout)[1]
        for parts, (method, objective, layout) in members.items()
    }
    return Case(f"profile of a step, {name}, {n_sampled} drawn", "step", N_STEPS, {**runs}, {}, NOTE)
