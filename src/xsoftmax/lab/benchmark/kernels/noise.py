"""Drawing classes beside a step: what it adds where memory is not waited for anyway."""

from collections.abc import Callable, Iterator

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.protocol import draw
from xsoftmax.kernels.random import start, stream
from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, steps_of

PROPOSALS = ("uniform", "frequency")


@njit(**OPTIONS)
def draws_alone(proposal, key, n_steps, n_sampled):
    """Draw for ``n_steps`` steps; return a number that depends on all of them."""
    draws = empty_draws(n_sampled)
    total = np.int64(0)
    for t in range(n_steps):
        draw(proposal, 0, np.int64(-1), start(key, t), draws)
        for j in range(n_sampled):
            total += draws.classes[j]
    return total


def cases(small: bool) -> Iterator[Case]:
    """Yield one comparison: a step, and the draw of its one class by itself."""
    n_classes, n_features = (20_000, 64) if small else (200_000, 512)
    rows = dense_rows(2**16, n_features, n_classes)
    _, steps = steps_of(method_of("negative-sampling"), rows, n_classes, 2**15)
    drawing = {name: drawn(name, rows, n_classes, steps.n) for name in PROPOSALS}
    note = f"a whole step with a uniform draw, {n_features} features"
    yield Case(f"a draw beside a step, {n_classes:,} classes", "draw", steps.n, {"floor": steps, **drawing}, {}, note)


def drawn(name: str, rows: Rows, n_classes: int, n: int) -> Callable[[], object]:
    """One draw for each of ``n`` steps."""
    kernel = method_of("negative-sampling", name).proposal.fit(TrainingSet(rows.X, rows.y, n_classes)).kernel(rows.X)
    return lambda: draws_alone(kernel, np.uint64(stream(0, 0)), n, 1)
