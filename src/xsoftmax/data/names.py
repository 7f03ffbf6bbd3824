"""Names of classes, held as text and not as an object each: of ten million, that is 100 MB instead of 700."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import h5py
import numpy as np

AT_A_TIME = 2**13


class Names(Sequence[str]):
    """Many short strings that do not change; compares equal to a list of the same strings.

    Parameters
    ----------
    names : iterable of str
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._take([name.encode() for name in block] for block in _blocks(names))

    @classmethod
    def read(cls, dataset: h5py.Dataset) -> "Names":
        """Read strings of variable length, a block at a time."""
        found = cls()
        found._take(list(dataset[start : start + AT_A_TIME]) for start in range(0, len(dataset), AT_A_TIME))
        return found

    def write(self, dataset: h5py.Dataset) -> None:
        """Write into a dataset of strings of this length, a block at a time."""
        for start in range(0, len(self), AT_A_TIME):
            stop = min(start + AT_A_TIME, len(self))
            dataset[start:stop] = np.array([self._encoded(k) for k in range(start, stop)], object)

    def __len__(self) -> int:
        return self._ends.size - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        k = int(place)
        if not -len(self) <= k < len(self):
            raise IndexError(f"name {k} of {len(self)}")
        return self._encoded(k % len(self)).decode()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Names):
            return self._text == other._text and np.array_equal(self._ends, other._ends)
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(own == name for own, name in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Names({self[:3]}{' ...' if len(self) > 3 else ''}, {len(self)} in all)"

    def _encoded(self, k: int) -> bytes:
        return self._text[self._ends[k] : self._ends[k + 1]]

    def _take(self, blocks: Iterable[list[bytes]]) -> None:
        text, lengths = bytearray(), [np.zeros(1, np.int64)]
        for block in blocks:
            text += b"".join(block)
            lengths.append(np.fromiter(map(len, block), np.int64, len(block)))
        self._text = bytes(text)
        self._ends = np.cumsum(np.concatenate(lengths))


def _blocks(names: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for name in names:
        block.append(name)
        if len(block) == AT_A_TIME:
            yield block
            block = []
    yield block
