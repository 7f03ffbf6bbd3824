"""Steps of sampled methods against the memory that they touch, threads against one, and the implicit solve."""

from collections.abc import Iterator

from xsoftmax.benchmark.case import Case
from xsoftmax.benchmark.floors import row_floor
from xsoftmax.benchmark.left_out import ConstantSolve, with_flags_of
from xsoftmax.benchmark.problems import dense_rows, method_of, sparse_rows, steps_of
from xsoftmax.kernels.rows import features_of

NEGATIVE = "negative-sampling"
FLOOR = "the same memory, rows known in advance, no arithmetic; the fastest of several ways"
STEPS = 2**15


def cases(small: bool) -> Iterator[Case]:
    """Yield the comparisons; what small sizes can keep to is not what is promised of large ones."""
    if small:
        yield dense(20_000, 512, 1.7)
        yield sparse(5_000, 2_000)
        yield two_threads(20_000, 512)
        yield implicit(5_000, 2_000)
        return
    yield dense(200_000, 512, 1.15)
    yield dense(20_000, 512, None)
    yield sparse(20_000, 10_000)
    yield two_threads(200_000, 512)
    yield implicit(50_000, 10_000)


def dense(n_classes: int, n_features: int, limit: float | None) -> Case:
    """Negative sampling with one negative and Adagrad, one thread."""
    rows = dense_rows(3 * STEPS, n_features, n_classes)
    solver, steps = steps_of(method_of(NEGATIVE), rows, n_classes, STEPS)
    way, floor = row_floor(features_of(rows.X, True), solver.arrays()["W"], steps.n)
    return Case(
        f"sampled step, dense, {n_features} features, {n_classes:,} classes",
        "step",
        steps.n,
        {"floor": floor, "one thread": steps},
        {} if limit is None else {"one thread": limit},
        f"{FLOOR} (here: {way})",
    )


def sparse(n_classes: int, n_features: int) -> Case:
    """The same with 100 non-zeros per row."""
    rows = sparse_rows(3 * STEPS, n_features, n_classes, 100)
    solver, steps = steps_of(method_of(NEGATIVE), rows, n_classes, STEPS)
    way, floor = row_floor(features_of(rows.X, True), solver.arrays()["W"], steps.n)
    return Case(
        f"sampled step, sparse, 100 non-zeros, {n_features:,} features, {n_classes:,} classes",
        "step",
        steps.n,
        {"floor": floor, "one thread": steps},
        {"one thread": 1.25},
        f"{FLOOR} (here: {way})",
    )


def two_threads(n_classes: int, n_features: int) -> Case:
    """Two lock-free threads against one."""
    rows = dense_rows(4 * STEPS, n_features, n_classes)
    runs = {}
    for name, threads in (("floor", 1), ("two threads", 2)):
        runs[name] = steps_of(method_of(NEGATIVE), rows, n_classes, 4 * STEPS, threads)[1]
    return Case(
        f"two threads, dense, {n_features} features, {n_classes:,} classes",
        "step",
        runs["floor"].n,
        {**runs},
        {"two threads": round(1 / 1.8, 3)},
        "the same steps on one thread",
    )


def implicit(n_classes: int, n_features: int) -> Case:
    """An implicit step with the scalar solve, and with a constant in its place."""
    rows = sparse_rows(3 * STEPS, n_features, n_classes, 100)
    method = method_of("double-sum", optimizer={"name": "implicit", "learning_rate": 0.3}, bias=False)
    runs = {}
    for name, objective in (("floor", with_flags_of(method.objective, ConstantSolve)), ("solved", None)):
        runs[name] = steps_of(method, rows, n_classes, STEPS, objective=objective)[1]
    return Case(
        f"implicit step, sparse, 100 non-zeros, {n_features:,} features, {n_classes:,} classes",
        "step",
        runs["floor"].n,
        {**runs},
        {"solved": 1.18},
        "the same step, a constant in place of the scalar solve",
    )
