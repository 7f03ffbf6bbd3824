"""An array of an HDF5 file as memory: whoever reads it finds it there, and the system fetches and drops what it must.

Nothing is copied: a step that reads 2 KB of features pays 0.06 µs for them, where copying them out of the system's
memory costs 0.5 µs, and HDF5 in between two to four times that. What will be needed can be fetched in advance,
without Python's lock.
"""

import ctypes
import errno
import mmap
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_WILL_NEED, _DO_NOT_NEED, _POPULATE_READ = 3, 4, 22


class MappedArray:
    """An array that lies in a file in one piece, not compressed; the file may be closed.

    Parameters
    ----------
    dataset : h5py.Dataset

    Attributes
    ----------
    values : ndarray
        To be read only; writing to it ends the process.
    """

    def __init__(self, dataset: Any) -> None:
        if not can_map(dataset):
            raise InputError(
                f"{dataset.file.filename}, {dataset.name}: compressed, which is too slow for features that exceed "
                "memory; prepare the data again"
            )
        self._name = f"{dataset.file.filename}, {dataset.name}"
        offset = dataset.id.get_offset()
        before = offset % mmap.ALLOCATIONGRANULARITY
        self._memory = mmap.mmap(
            dataset.file.id.get_vfd_handle(), dataset.nbytes + before, access=mmap.ACCESS_READ, offset=offset - before
        )
        start = np.frombuffer(self._memory, np.uint8).ctypes.data
        self._bounds = start, start + len(self._memory)
        self.__array_interface__ = {
            "version": 3,
            "shape": dataset.shape,
            "typestr": dataset.dtype.str,
            # False: writable, which it is not. Kernels are compiled for the type of arrays in memory, and would be
            # once more for arrays that may only be read; none writes to features.
            "data": (start + before, False),
        }
        self.values = np.asarray(self)
        self._row_bytes = self.values.strides[0]

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Bring rows start..stop-1 of each range into memory: ask for all, then wait for them.

        Raises
        ------
        InputError
            If the file cannot be read, or has become shorter.
        """
        places = [self._place(start, stop) for start, stop in ranges if stop > start]
        for address, size in places:
            _LIBRARY.madvise(address, size, _WILL_NEED)
        for address, size in places:
            if _LIBRARY.madvise(address, size, _POPULATE_READ) == 0:
                continue
            reason = ctypes.get_errno()
            if reason != errno.EINVAL:  # a system that does not know it fetches when a kernel gets there
                raise InputError(f"{self._name}: cannot be read ({os.strerror(reason)}); prepare it again")

    def forget_all_but(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Let go of all but rows start..stop-1 of each range, given in order; who reads others finds them again."""
        address, end = self._bounds
        for start, stop in ranges:
            kept, size = self._place(start, stop)
            if kept > address:
                _LIBRARY.madvise(address, kept - address, _DO_NOT_NEED)
            address = kept + size + -size % mmap.PAGESIZE
        if end > address:
            _LIBRARY.madvise(address, end - address, _DO_NOT_NEED)

    def _place(self, start: int, stop: int) -> tuple[int, int]:
        """Address and size of some rows, from the beginning of a page."""
        first, last = (self.values.ctypes.data + row * self._row_bytes for row in (start, stop))
        address = first - first % mmap.PAGESIZE
        return address, last - address


def can_map(dataset: Any) -> bool:
    """Whether a dataset lies in the file as it would in memory."""
    offset = dataset.id.get_offset()
    return dataset.size > 0 and dataset.dtype.isnative and offset is not None and offset % dataset.dtype.itemsize == 0
