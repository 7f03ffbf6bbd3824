"""Steps of sampled methods against the memory that they touch, threads against one, and the implicit solve."""

from collections.abc import Iterator
from statistics import median

from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.kernels.rows import features_of
from xsoftmax.lab.benchmark.case import Case, Quantity
from xsoftmax.lab.benchmark.left_out import NoSolve
from xsoftmax.lab.benchmark.problems import Rows, clustered_rows, dense_rows, method_of, sparse_rows, steps_of
from xsoftmax.lab.benchmark.roofline import row_floor
from xsoftmax.model import Model

NEGATIVE = "negative-sampling"
FLOOR = "the same memory, rows known in advance, no arithmetic; the fastest of several ways"
STEPS = 2**15
FEW_STEPS = 2**13


def cases(small: bool) -> Iterator[Case | Quantity]:
    """Yield the comparisons; what small sizes can keep to is not what is promised of large ones."""
    if small:
        yield dense(20_000, 512, FEW_STEPS, 1.35)
        yield sparse(5_000, 2_000, FEW_STEPS)
        yield two_threads(20_000, 512, FEW_STEPS)
        yield lost_by_threads(4_000, 200, 2)
        yield implicit(5_000, 2_000, FEW_STEPS)
        return
    yield dense(200_000, 512, STEPS, 1.15)
    yield dense(20_000, 512, STEPS, None)
    yield sparse(20_000, 10_000, STEPS)
    yield two_threads(200_000, 512, STEPS)
    yield lost_by_threads(100_000, 10_000, 10)
    yield implicit(50_000, 10_000, STEPS)


def dense(n_classes: int, n_features: int, n: int, limit: float | None) -> Case:
    """Negative sampling with one negative and Adagrad, one thread, ``n`` steps for each call."""
    rows = dense_rows(3 * n, n_features, n_classes)
    solver, steps = steps_of(method_of(NEGATIVE), rows, n_classes, n)
    way, floor = row_floor(features_of(rows.X, True), solver.arrays()["W"], n)
    limits = {} if limit is None else {"one thread": limit}
    name = f"sampled step, dense, {n_features} features, {n_classes:,} classes"
    return Case(name, "step", n, {"floor": floor, "one thread": steps}, limits, f"{FLOOR} (here: {way})")


def sparse(n_classes: int, n_features: int, n: int) -> Case:
    """The same with 100 non-zeros per row."""
    rows = sparse_rows(3 * n, n_features, n_classes, 100)
    solver, steps = steps_of(method_of(NEGATIVE), rows, n_classes, n)
    way, floor = row_floor(features_of(rows.X, True), solver.arrays()["W"], n)
    name = f"sampled step, sparse, 100 non-zeros, {n_features:,} features, {n_classes:,} classes"
    limits = {"one thread": 1.25}
    return Case(name, "step", n, {"floor": floor, "one thread": steps}, limits, f"{FLOOR} (here: {way})")


def two_threads(n_classes: int, n_features: int, n: int) -> Case:
    """Two lock-free threads against one."""
    rows = dense_rows(4 * n, n_features, n_classes)
    names = {"floor": 1, "two threads": 2}
    runs = {k: steps_of(method_of(NEGATIVE), rows, n_classes, 4 * n, threads)[1] for k, threads in names.items()}
    name = f"two threads, dense, {n_features} features, {n_classes:,} classes"
    limits = {"two threads": round(1 / 1.8, 3)}
    return Case(name, "step", 4 * n, {**runs}, limits, "the same steps on one thread")


def lost_by_threads(n_samples: int, n_classes: int, n_epochs: int) -> Quantity:
    """By how much two lock-free threads end with another likelihood than one."""

    def difference(seed: int) -> float:
        rows = clustered_rows(n_samples, 64, n_classes, seed)
        one, two = (_trained(rows, n_classes, n_epochs, threads) for threads in (1, 2))
        return abs(two - one)

    name = f"two threads: change of the log-likelihood, {n_classes:,} classes, {n_epochs} epochs"
    note = "mean over 2,000 training rows, after the same steps on one thread and on two; median of three problems"
    return Quantity(name, "nats", lambda: median(map(difference, range(3))), 0.01, note)


def _trained(rows: Rows, n_classes: int, n_epochs: int, threads: int) -> float:
    method = method_of(NEGATIVE, {"name": "uniform", "n_sampled": 5}, {"name": "adagrad", "learning_rate": 0.3})
    solver, steps = steps_of(method, rows, n_classes, rows.y.size, threads)
    for _ in range(n_epochs):
        steps()
    model = Model.of_rows(solver.weights(), [str(k) for k in range(n_classes)], rows.X.shape[1])
    return evaluate(model, rows.X[:2_000], rows.y[:2_000])["log_likelihood"]


def implicit(n_classes: int, n_features: int, n: int) -> Case:
    """An implicit step with the scalar solve, and with a constant in its place."""
    rows = sparse_rows(3 * n, n_features, n_classes, 100)
    method = method_of("double-sum", optimizer={"name": "implicit", "learning_rate": 0.3}, bias=False)
    stand_ins = {"floor": NoSolve(), "solved": None}
    runs = {k: steps_of(method, rows, n_classes, n, objective=own)[1] for k, own in stand_ins.items()}
    name = f"implicit step, sparse, 100 non-zeros, {n_features:,} features, {n_classes:,} classes"
    note = "the same step, a constant in place of the scalar solve"
    return Case(name, "step", n, {**runs}, {"solved": 1.18}, note)
