"""Rows window by window: which, in what order, from which kind of file, and what of it is in memory."""

import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import h5py
import numba
import numpy as np
import pytest
from scipy import sparse

from xsoftmax.data import store
from xsoftmax.data import windows as windows_file
from xsoftmax.data.mapped_array import MappedArray
from xsoftmax.data.store import Split, open_prepared, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.data.windows import Windows, taken
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.rows import features_of

N_FEATURES = 12


def dense_of(X):
    return X.toarray() if sparse.issparse(X) else X


def training_rows(n, storage, seed=0):
    """Rows that all differ; sparse ones of different lengths, some empty."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, N_FEATURES), dtype=np.float32)
    if storage == "csr":
        X = sparse.csr_array(X * (rng.random(X.shape) < rng.random((n, 1))))
    return Split(X, rng.integers(0, 1000, n).astype(np.int32))


def write(path, rows):
    none = Split(rows.X[:0], rows.y[:0])
    write_prepared(
        path,
        dataset="toy",
        splits={"train": rows, "validation": none, "test": none},
        class_names=[str(k) for k in range(1000)],
        class_counts=np.bincount(rows.y, minlength=1000),
        transform=Transform("dense", n_columns=N_FEATURES),
        parameters={},
        source_sha256={},
        dropped={},
    )


@pytest.fixture(params=["in one piece", "compressed"])
def layout(request, monkeypatch):
    monkeypatch.setattr(store, "PLAIN_ABOVE", 0 if request.param == "in one piece" else 2**60)
    return request.param


@pytest.fixture(params=["dense", "csr"])
def storage(request):
    return request.param


@pytest.fixture
def toy(tmp_path, layout, storage):
    """A file of 1,003 rows, and what is in it."""
    rows = training_rows(1003, storage)
    write(tmp_path / "a.h5", rows)
    with open_prepared(tmp_path / "a.h5") as data:
        yield data, rows


def small_windows(data, **sizes):
    """Blocks of 7 or so rows, windows of 15 or so blocks."""
    row_bytes = data.nbytes("train") // data.n_samples("train")
    return Windows(data, **{"block_bytes": 7 * row_bytes, "window_bytes": 105 * row_bytes, **sizes})


def visited(windows, *arguments):
    """Windows of an epoch as lists of rows, and the rows that come before each."""
    found = list(windows.of_epoch(*arguments))
    return [window.order for window in found], [window.first for window in found]


def visits(windows, *arguments):
    return np.concatenate([np.empty(0, np.int64), *visited(windows, *arguments)[0]])


def test_every_row_comes_once(toy):
    windows, seen = small_windows(toy[0]), 0
    for window in windows.of_epoch(3, 5):
        assert window.first == seen
        assert window.order.dtype == np.int64
        seen += window.order.size
    assert sorted(visits(windows, 3, 5)) == list(range(1003))
    assert len(windows) == 10


def test_rows_are_those_of_the_file(toy, layout):
    data, expected = toy
    windows = small_windows(data)
    data.close()
    rows = windows.split
    np.testing.assert_array_equal(dense_of(rows.X), dense_of(expected.X))
    np.testing.assert_array_equal(rows.y, expected.y)
    assert (rows.X.dtype, rows.y.dtype) == (np.float32, np.int32)
    values = rows.X.data if sparse.issparse(rows.X) else rows.X
    while isinstance(values.base, np.ndarray):
        values = values.base
    assert isinstance(values.base, MappedArray) == (layout == "in one piece")
    for window in windows.of_epoch(0, 0):
        found = taken(rows, window.order)
        np.testing.assert_array_equal(dense_of(found.X), dense_of(expected.X[window.order]))
        np.testing.assert_array_equal(found.y, expected.y[window.order])


def test_kernels_need_not_be_compiled_anew(toy):
    data, expected = toy
    found, wanted = (features_of(X, True) for X in (small_windows(data).split.X, expected.X))
    assert numba.typeof(found) == numba.typeof(wanted)


def test_nothing_is_copied_for_kernels(toy, layout):
    rows = small_windows(toy[0]).split
    features = features_of(rows.X, True)
    arrays = (
        [(features.X, rows.X)]
        if not toy[0].sparse
        else [(features.data, rows.X.data), (features.indices, rows.X.indices)]
    )
    assert all(np.shares_memory(one, two) for one, two in arrays)


def test_order_derives_from_seed_and_epoch_alone(toy):
    windows = small_windows(toy[0])
    first = visits(windows, 0, 0)
    np.testing.assert_array_equal(first, visits(small_windows(toy[0]), 0, 0))
    others = [visits(windows, seed, epoch) for seed, epoch in [(0, 1), (1, 0), (1, 1)]]
    assert all((first != other).mean() > 0.9 for other in others)
    assert (others[0] != others[1]).mean() > 0.9


@pytest.mark.parametrize("start", [0, 1, 104, 105, 106, 500, 1002, 1003])
def test_an_epoch_goes_on_in_the_middle(toy, start):
    windows = small_windows(toy[0])
    whole = visited(windows, 2, 7)[1]
    np.testing.assert_array_equal(visits(windows, 2, 7, start), visits(windows, 2, 7)[start:])
    expected = [start] * (start < 1003) + [first for first in whole if first > start]
    assert visited(windows, 2, 7, start)[1] == expected


def test_rows_mix(toy):
    """Windows of 15 blocks have rows from all over the file, in random order, and blocks begin anywhere."""
    windows = small_windows(toy[0])
    assert windows.block_rows == 7
    orders = visited(windows, 0, 0)[0]
    assert np.median([np.ptp(order) for order in orders]) > 700
    beginnings = set()
    for epoch in range(40):
        order = next(windows.of_epoch(0, epoch)).order
        rows = np.sort(order)
        beginnings |= set(rows[np.diff(rows, prepend=-9) != 1].tolist())
        assert (np.abs(np.diff(order)) == 1).mean() < 0.1
        assert np.unique(order // 7).size <= 2 * 15  # a block lies in two sevens
    assert len(beginnings) > 300


def test_no_row_is_always_the_last(toy):
    """The epoch's last, smaller block is of other rows each time."""
    windows = small_windows(toy[0])
    last = [visited(windows, 0, epoch, 1003 - 1003 % 105)[0][-1] for epoch in range(60)]
    assert {rows.size for rows in last} == {1003 % 105}
    assert np.unique(np.concatenate(last)).size > 900


def test_windows_are_multiples_of_a_batch(toy):
    windows = small_windows(toy[0], multiple=16)
    assert windows.block_rows == 16
    sizes = [order.size for order in visited(windows, 0, 0)[0]]
    assert all(size % 16 == 0 for size in sizes[:-1])
    assert sum(sizes) == 1003


@pytest.mark.parametrize("n", [1, 7, 105, 106])
def test_few_rows(tmp_path, storage, n):
    write(tmp_path / "few.h5", training_rows(n, storage))
    with open_prepared(tmp_path / "few.h5") as data:
        assert sorted(visits(Windows(data), 0, 0)) == list(range(n))
        assert len(list(Windows(data).of_epoch(0, 0))) == 1
        assert list(Windows(data).of_epoch(0, 0, n)) == []
        assert list(Windows(data, "test").of_epoch(0, 0)) == []


def test_rows_of_a_single_window_come_in_another_order_each_time(toy):
    windows = Windows(toy[0])
    orders = [visits(windows, *of) for of in [(0, 0), (0, 1), (1, 0)]]
    assert len(windows) == 1
    assert all((orders[i] != orders[j]).mean() > 0.9 for i, j in [(0, 1), (0, 2), (1, 2)])


def test_rows_without_features(tmp_path, layout):
    rows = Split(sparse.csr_array((50, 0), dtype=np.float32), np.arange(50, dtype=np.int32))
    write(tmp_path / "none.h5", rows)
    with open_prepared(tmp_path / "none.h5") as data:
        windows = Windows(data, block_bytes=100, window_bytes=300)
    assert windows.split.X.shape == (50, 0)
    assert sorted(visits(windows, 0, 0)) == list(range(50))


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("windows")]


def test_closing_early_ends_the_thread(toy):
    assert not reading_threads()
    iterator = small_windows(toy[0]).of_epoch(0, 0)
    next(iterator)
    assert len(reading_threads()) == 1
    iterator.close()
    assert not reading_threads()
    for _ in small_windows(toy[0]).of_epoch(0, 0):
        break
    assert not reading_threads()


@pytest.mark.parametrize("layout", ["in one piece"], indirect=True)
def test_a_file_that_has_become_shorter_is_named(tmp_path, layout, storage):
    write(tmp_path / "a.h5", training_rows(60_000, storage))
    with h5py.File(tmp_path / "a.h5") as file:
        X = file["train/X"] if storage == "dense" else file["train/X/data"]
        middle = X.id.get_offset() + X.id.get_storage_size() // 2
    with open_prepared(tmp_path / "a.h5") as data:
        windows = Windows(data, window_bytes=2**19, block_bytes=2**14)
    with (tmp_path / "a.h5").open("r+b") as file:
        file.truncate(middle)
    with pytest.raises(InputError, match=r"a\.h5, /train/X.*: cannot be read \(.*\); prepare it again"):
        list(windows.of_epoch(0, 0))
    assert not reading_threads()


def test_exceptions_of_the_thread_come_where_their_window_would_have(toy, monkeypatch):
    windows, fetched = small_windows(toy[0]), []

    def fetch(ranges):
        fetched.append(ranges)
        if len(fetched) == 3:
            raise KeyError("no")

    monkeypatch.setattr(windows, "_fetch", fetch)
    iterator = windows.of_epoch(0, 0)
    assert [next(iterator).first, next(iterator).first] == [0, 105]
    with pytest.raises(KeyError, match="no"):
        next(iterator)
    assert not reading_threads()


def test_the_next_window_is_fetched_meanwhile_and_no_other(toy, monkeypatch):
    """One is used, one is fetched: never a third; and none is left."""
    windows, fetched, kept = small_windows(toy[0]), [], []

    class Arrays:
        def fetch(self, ranges):
            fetched.append(ranges)

        def forget_all_but(self, ranges):
            kept.append(ranges)

    monkeypatch.setattr(windows, "_mapped", [Arrays()])
    for number, _ in enumerate(windows.of_epoch(0, 0)):
        deadline = time.monotonic() + 10
        while len(fetched) < min(number + 2, 10) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.01)
        assert len(fetched) == min(number + 2, 10)
        assert len(kept) == number
    assert kept == [*fetched[1:], []]


def resident(path):
    """Bytes of a file that this process has in memory, mapped; by lines, as a text of all mappings is memory, too."""
    total, ours = 0, False
    with Path("/proc/self/smaps").open() as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if "-" in name:  # the addresses of a mapping, and its file
                ours = str(path) in line
            elif name == "Rss" and ours:
                total += 1024 * int(value.split()[0])
    return total


@pytest.fixture
def small_pages():
    """A folder whose files are mapped page by page; a disk's may be in pieces of 2 MB, much of so small a file."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.long_cases
@pytest.mark.skipif(
    not (Path("/proc/self/smaps").exists() and Path("/dev/shm").exists()),
    reason="NOT TESTED: no /proc/self/smaps or no /dev/shm here",
)
@pytest.mark.parametrize("layout", ["in one piece"], indirect=True)
def test_not_all_is_in_memory(small_pages, layout, storage):
    n = 600_000
    write(small_pages / "a.h5", training_rows(n, storage))
    with open_prepared(small_pages / "a.h5") as data:
        whole = data.nbytes("train")
        tracemalloc.start()
        windows = Windows(data, window_bytes=whole // 20, block_bytes=whole // 100)
        kept = []
        for window in windows.of_epoch(0, 0):
            assert taken(windows.split, window.order[:50]).X.shape == (min(50, window.order.size), N_FEATURES)
            kept.append(resident(small_pages))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(kept) == len(windows) >= 20
    assert max(kept) > 0.9 * whole / 20  # it measures something
    assert max(kept) < 0.2 * whole
    assert resident(small_pages) < whole / 50
    assert windows.nbytes <= whole / 10 + n * 12
    assert peak < windows.nbytes + 5 * 8 * windows.window_rows + 2**20


def test_what_cannot_be_asked(toy, monkeypatch):
    windows = small_windows(toy[0])
    with pytest.raises(InputError, match="1004 rows of an epoch of 1003 cannot be done"):
        next(windows.of_epoch(0, 0, 1004))
    with pytest.raises(InputError, match="windows: 0 bytes"):
        Windows(toy[0], window_bytes=0)


@pytest.mark.parametrize("layout", ["compressed"], indirect=True)
def test_large_compressed_features_are_refused(toy, monkeypatch):
    monkeypatch.setattr(windows_file, "PLAIN_ABOVE", 1000)
    with pytest.raises(InputError, match=r"a\.h5, /train/X.*: compressed, .*; prepare the data again"):
        Windows(toy[0])


def test_what_fits_in_memory(toy):
    data, expected = toy
    size = data.nbytes("train")
    X = expected.X
    stored = X.nbytes if not data.sparse else X.data.nbytes + 4 * X.nnz + 8 * 1004
    assert size == stored + expected.y.nbytes
    both = size + data.nbytes("validation") + data.nbytes("test")
    assert data.fits_in(both)
    assert not data.fits_in(both - 1)
    assert data.fits_in(size, ["train"])
    assert not data.fits_in(size - 1, ["train"])


def test_more_entries_than_32_bits_count(tmp_path, monkeypatch):
    """Indices stay what they are in the file: to widen them would be to read them all."""
    rows = training_rows(300, "csr")
    write(tmp_path / "a.h5", rows)
    monkeypatch.setattr(windows_file, "SMALL_INDICES", 100)
    with open_prepared(tmp_path / "a.h5") as data:
        found = Windows(data).split
    assert (found.X.indices.dtype, found.X.indptr.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(taken(found, np.arange(300)).X.toarray(), rows.X.toarray())
    assert np.shares_memory(features_of(found.X, True).indices, found.X.indices)


def test_an_array_may_begin_anywhere_in_a_file(tmp_path):
    expected = np.arange(30_000, dtype=np.float32).reshape(-1, 5)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["before"] = np.ones(1300, np.int8)
        file["x"] = expected
        assert file["x"].id.get_offset() % 4096
        file.flush()
        mapped = MappedArray(file["x"])
    mapped.fetch([(0, 1), (100, 2000), (5999, 6000)])
    np.testing.assert_array_equal(mapped.values, expected)
    mapped.forget_all_but([(0, 1), (100, 2000)])
    mapped.forget_all_but([])
    np.testing.assert_array_equal(mapped.values, expected)


def test_numbers_of_the_other_byte_order_are_not_mapped(tmp_path):
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.arange(10, dtype=">f4" if sys.byteorder == "little" else "<f4")
        with pytest.raises(InputError, match="prepare the data again"):
            MappedArray(file["x"])
