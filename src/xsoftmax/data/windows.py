"""Training rows that exceed memory: an epoch in random order, of which only a window is in memory at a time.

A window is made of blocks of neighbouring rows, taken from all over the file; where the blocks begin, which of them
make a window, and the order of the rows in it derive from (seed, epoch). The features are mapped into memory, so that
a row has the same number as everywhere, and kernels read it where it is; the next window is fetched from the disk
by a thread while the current one is used.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.mapped_array import MappedArray, can_map
from xsoftmax.data.rows import csr_of
from xsoftmax.data.store import PLAIN_ABOVE, Prepared
from xsoftmax.internal.errors import InputError

WINDOW_BYTES = 2**26
BLOCK_BYTES = 2**18
SMALL_INDICES = 2**31

Ranges = list[tuple[int, int]]  # start..stop-1


class Window(NamedTuple):
    """Some rows of an epoch, in memory while the window is used.

    Attributes
    ----------
    order : ndarray, int64
        Numbers of the rows in the split, in the order in which to visit them.
    first : int
        Rows of the epoch that come before.
    """

    order: np.ndarray
    first: int


class Windows:
    """All rows of a split, window by window.

    The order of an epoch depends on the sizes as well as on seed and epoch: they are part of a fit's identity.

    Parameters
    ----------
    data : Prepared
        May be closed.
    split : str
    window_bytes : int
        Size of a window; at most two of them are in memory, and for each row of the split its labels and 8 bytes.
    block_bytes : int
        Size of a block. The more blocks a window has, the better rows mix; the larger they are, the fewer reads.
    multiple : int
        The rows of a window, but for the last of an epoch, are a multiple of this: a batch size.

    Attributes
    ----------
    split : Split
        All rows. Features that are large are where the file is: reading them outside windows reads the disk.
    block_rows, window_rows : int
        Rows of a block and of a window; of the last ones of an epoch there may be fewer.
    nbytes : int
        Memory that going through the rows takes, about: sparse rows differ in length.
    """

    def __init__(
        self,
        data: Prepared,
        split: str = "train",
        window_bytes: int = WINDOW_BYTES,
        block_bytes: int = BLOCK_BYTES,
        multiple: int = 1,
    ) -> None:
        if min(window_bytes, block_bytes, multiple) < 1:
            raise InputError(
                f"windows: {window_bytes} bytes, blocks of {block_bytes}, multiple {multiple}; set them to 1 or more"
            )
        self._mapped: list[MappedArray] = []
        self.split = self._rows_of(data, split)
        n_samples = self.split.n_samples
        row_bytes = max(1, data.nbytes(split) // max(1, n_samples))
        self.block_rows = multiple * max(1, block_bytes // (row_bytes * multiple))
        self.window_rows = self.block_rows * max(1, window_bytes // (row_bytes * self.block_rows))
        self.nbytes = row_bytes * min(2 * self.window_rows, n_samples) + 8 * n_samples + data.label_bytes(split)

    def __len__(self) -> int:
        """Count the windows of an epoch."""
        return -(-self.split.n_samples // self.window_rows)

    def of_epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Window]:
        """Go through the rows of one epoch, each once.

        The iterator keeps a thread: exhaust or close it.

        Parameters
        ----------
        seed, epoch : int
            What the order derives from.
        start : int
            Leave out so many rows of the epoch, those that were visited before.

        Raises
        ------
        InputError
            While iterating: if the file cannot be read.
        """
        n_samples = self.split.n_samples
        if not 0 <= start <= n_samples:
            raise InputError(f"windows: {start} rows of an epoch of {n_samples} cannot be done")
        with ThreadPoolExecutor(1, "windows") as reader:
            ahead: deque[tuple[_Plan, Future]] = deque()
            for plan in self._plans(seed, epoch, start) if start < n_samples else ():
                ahead.append((plan, reader.submit(self._fetch, plan.ranges)))
                if len(ahead) == 2:
                    yield from self._used(*ahead.popleft(), following=plan.ranges)
            for last, fetched in ahead:
                yield from self._used(last, fetched, following=[])

    def _plans(self, seed: int, epoch: int, start: int) -> Iterator["_Plan"]:
        """Say which rows each window has, from that with the ``start``-th row of the epoch on."""
        n, size = self.split.n_samples, self.block_rows
        rng = np.random.default_rng([seed, epoch])
        origin = int(rng.integers(n))
        blocks = rng.permutation(n // size)
        if n % size:
            blocks = np.append(blocks, n // size)  # what remains comes last: every other block is whole
        for number in range(start // self.window_rows, len(self)):
            first = number * self.window_rows
            chosen = blocks[first // size : (first + self.window_rows) // size]
            ranges = _joined(_cyclic(origin, chosen * size, size, n))
            order = np.concatenate([np.arange(*each, dtype=np.int64) for each in ranges])
            np.random.default_rng([seed, epoch, number]).shuffle(order)
            done = max(0, start - first)
            yield _Plan(ranges, Window(order[done:], first + done))

    def _fetch(self, ranges: Ranges) -> None:
        for mapped in self._mapped:
            mapped.fetch(self._entries(ranges))

    def _used(self, plan: "_Plan", fetched: Future, following: Ranges) -> Iterator[Window]:
        """Wait for a window; afterwards let go of all but the following one."""
        fetched.result()
        yield plan.window
        for mapped in self._mapped:
            mapped.forget_all_but(self._entries(following))

    def _entries(self, ranges: Ranges) -> Ranges:
        """Where rows lie in the mapped arrays."""
        X = self.split.X
        if isinstance(X, np.ndarray):
            return ranges
        return [(int(X.indptr[start]), int(X.indptr[stop])) for start, stop in ranges]

    def _rows_of(self, data: Prepared, split: str) -> Split:
        """Map the features; read what is small and compressed."""
        labelling = data.labelling(split)
        if not data.sparse:
            return Split(self._values(data, split, "X"), **labelling)
        starts = data.array(split, "X/indptr")[:]
        values, indices = (self._values(data, split, f"X/{name}") for name in ("data", "indices"))
        if starts[-1] < SMALL_INDICES:
            X = csr_of(values, indices, starts, data.n_features)
        else:  # scipy would widen all indices
            X = csr_array((starts.size - 1, data.n_features), dtype=np.float32)
            X.data, X.indices, X.indptr = values, indices, starts
        X.has_canonical_format = True
        return Split(X, **labelling)

    def _values(self, data: Prepared, split: str, name: str) -> np.ndarray:
        dataset = data.array(split, name)
        if dataset.nbytes <= PLAIN_ABOVE and not can_map(dataset):
            return dataset[:]
        self._mapped.append(MappedArray(dataset))
        return self._mapped[-1].values


def training_windows(data: Dataset, multiple: int) -> Windows:
    """Walk through training rows that stay in their file.

    Raises
    ------
    InputError
        If they are in memory.
    """
    if not isinstance(data, Prepared):
        raise InputError(f"{data.name}: its rows are in memory already; leave out that they are to be streamed")
    return Windows(data, "train", multiple=multiple)


def taken(rows: Split, chosen: np.ndarray) -> Split:
    """Copy some rows into memory; of features that are mapped, no more than these are read."""
    X = rows.X
    if isinstance(X, np.ndarray):
        return rows.with_labels_of(X[chosen], chosen)
    parts = [slice(int(X.indptr[i]), int(X.indptr[i + 1])) for i in chosen]
    lengths = [part.stop - part.start for part in parts]
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    none = slice(0, 0)
    data, indices = (np.concatenate([values[part] for part in [none, *parts]]) for values in (X.data, X.indices))
    return rows.with_labels_of(csr_of(data, indices, indptr, X.shape[1]), chosen)


class _Plan(NamedTuple):
    """One window: where its rows lie, and what is told of it."""

    ranges: Ranges
    window: Window


def _cyclic(origin: int, offsets: np.ndarray, size: int, n: int) -> Ranges:
    """Cut blocks, which begin at ``offsets`` behind ``origin`` and go on at row 0 behind row n-1, into ranges."""
    ranges = []
    for offset in offsets.tolist():
        start, length = (origin + offset) % n, min(size, n - offset)
        ranges.append((start, min(start + length, n)))
        if start + length > n:
            ranges.append((0, start + length - n))
    return ranges


def _joined(ranges: Ranges) -> Ranges:
    """Sort ranges, and join neighbours."""
    joined: Ranges = []
    for start, stop in sorted(ranges):
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


def some(split: Split, rows: int | None) -> Split:
    """Draw rows, the same ones for all fits; all of them if there are no more."""
    if rows is None or rows >= split.n_samples:
        return split
    return taken(split, np.sort(np.random.default_rng(0).permutation(split.n_samples)[:rows]))
