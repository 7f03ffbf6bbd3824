"""Training on features that are read from a file as it goes on, against features in memory; and parsing text."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xsoftmax.data.readers import xc
from xsoftmax.data.store import open_prepared
from xsoftmax.data.training_set import TrainingSet
from xsoftmax.data.windows import Windows
from xsoftmax.kernels.layout import allocate
from xsoftmax.kernels.protocol import Clock, Parts, Samples
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import Csr, Dense, features_of
from xsoftmax.kernels.run_steps import run_steps, single
from xsoftmax.lab.benchmark.case import Case, Quantity
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, sparse_rows, write_problem

N_SAMPLED = 5
CHUNK = 2**15
LIMIT = 1.2
FLOOR = "the same steps on rows in memory, in an order of the whole epoch"
REQUIRED_MB = 50  # of text, per second of one core


def cases(small: bool) -> Iterator[Case | Quantity]:
    """Yield the comparisons: dense and sparse rows, then text."""
    if small:
        yield from fed(dense_rows(40_000, 512, 20_000), 20_000, 2**24)
        yield from fed(sparse_rows(50_000, 2_000, 5_000, 100), 5_000, 2**23)
        yield from parsing(1_000)
        return
    yield from fed(dense_rows(2**18, 512, 200_000), 200_000, 2**26)
    yield from fed(sparse_rows(2**18, 10_000, 20_000, 100), 20_000, 2**25)
    yield from parsing(20_000)


def fed(rows: Rows, n_classes: int, window_bytes: int) -> Iterator[Case]:
    """Sampled steps on all rows: in memory, read from the system's memory, and read from the disk."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.h5"
        write_problem(file, rows, n_classes)
        with open_prepared(file) as data:
            windows = Windows(data, window_bytes=window_bytes)
            passes = Passes(rows, n_classes, windows, file)
            n_samples, n_features = rows.X.shape
            kind = "dense" if not data.sparse else f"sparse, {rows.X.nnz // n_samples} non-zeros"
            yield Case(
                f"reading beside training, {kind}, {n_features:,} features, {N_SAMPLED} negatives, "
                f"{n_classes:,} classes, {len(windows)} windows",
                "step",
                n_samples,
                {
                    "floor": passes.in_memory,
                    "in windows": passes.in_windows,
                    "in windows, from disk": passes.from_disk,
                },
                {"in windows": LIMIT},
                f"{FLOOR}; from disk: after the system was asked to forget the file, which depends on the disk",
            )


class Passes:
    """Epochs of negative sampling, on rows in memory or on windows.

    Parameters
    ----------
    rows : Rows
    n_classes : int
    windows : Windows
        Of the same rows.
    file : Path
        Where those are.
    """

    def __init__(self, rows: Rows, n_classes: int, windows: Windows, file: Path) -> None:
        method = method_of("negative-sampling", {"name": "uniform", "n_sampled": N_SAMPLED})
        data = TrainingSet(rows.X, rows.y, n_classes)
        kernel = method.proposal.fit(data).kernel(rows.X)
        self._parts = Parts(method.objective.fit(data), kernel, method.optimizer.fit(data), N_SAMPLED)
        self._batch = single(kernel)
        self._windows, self._file, self._y = windows, file, rows.y
        self._features, self._mapped = features_of(rows.X, True), features_of(windows.split.X, True)
        dense = isinstance(rows.X, np.ndarray)
        self._weights = allocate(method.optimizer, n_classes, rows.X.shape[1] + 1, dense)
        self._auxiliary = np.zeros((rows.y.size, 0))
        self._rate = np.float32(method.optimizer.learning_rate)
        self._epoch = 0

    def in_memory(self) -> None:
        """One epoch, all rows at hand."""
        self._epoch += 1
        order = np.random.default_rng([0, self._epoch]).permutation(self._y.size)
        self._steps(self._features, order, 0)

    def in_windows(self) -> None:
        """One epoch, window by window."""
        self._epoch += 1
        for window in self._windows.of_epoch(0, self._epoch):
            self._steps(self._mapped, window.order, window.first)

    def from_disk(self) -> None:
        """One epoch, window by window, of a file that the system has forgotten."""
        forget(self._file)
        self.in_windows()

    def _steps(self, features: Dense | Csr, order: np.ndarray, first: int) -> None:
        key = np.uint64(stream(0, self._epoch))
        for at in range(0, order.size, CHUNK):
            some, clock = order[at : at + CHUNK], Clock(key, first + at, first + at)
            samples = Samples(features, self._y, self._auxiliary, None)
            used = run_steps(self._batch, self._parts, samples, self._weights, some, clock, self._rate)
            if used < some.size:
                raise FloatingPointError(f"the benchmark's steps diverged after {first + at + used}")


def forget(path: Path) -> None:
    """Ask the system to keep nothing of a file in its memory; what is not on the disk yet has to go there first."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def parsing(n_rows: int) -> Iterator[Quantity]:
    """Extreme Classification text of 100 features per row."""
    rows = sparse_rows(1_000, 100_000, 5_000, 100)
    lines = []
    for i in range(1_000):
        cells = zip(rows.X.indices[100 * i : 100 * (i + 1)], rows.X.data[100 * i : 100 * (i + 1)], strict=True)
        lines.append(f"{rows.y[i]} " + " ".join(f"{feature}:{value:.6f}" for feature, value in cells))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        path.write_text(f"{n_rows} 100000 5000\n" + "\n".join(lines * (n_rows // 1_000)))
        yield Quantity(
            f"parsing {REQUIRED_MB} MB of sparse text",
            "s",
            lambda: parsing_seconds(path) * REQUIRED_MB,
            1.0,
            "processor time of the fastest of four; reading the file is part of it",
        )


def parsing_seconds(path: Path) -> float:
    """Seconds of the processor per MB of text, best of four after one that may compile."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        xc.read(data=path)
        seconds.append(time.process_time() - start)
    return min(seconds[1:]) / (path.stat().st_size / 1e6)
