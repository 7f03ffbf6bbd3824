"""Names of classes, held as text and not as an object each: of ten million, that is 100 MB instead of 700."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import h5py
import numpy as np

from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_starts

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
    def of(cls, names: Iterable[str]) -> "Names":
        """Take names as they are, if they are held as text already."""
        return names if isinstance(names, Names) else cls(names)

    @classmethod
    def from_group(cls, group: h5py.Group) -> "Names":
        """Read what ``to_group`` stored.

        Raises
        ------
        ContentError
            If it is not that.
        """
        check_array(group["text"], np.uint8, None)
        check_array(group["ends"], np.int64, None)
        check_starts(group["ends"], len(group["text"]))
        found = cls()
        found._text, found._ends = group["text"][()].tobytes(), group["ends"][()]
        found._text.decode()
        firsts = np.frombuffer(found._text, np.uint8)[found._ends[:-1][np.diff(found._ends) > 0]]
        if (firsts & 0xC0 == 0x80).any():  # the middle of a character
            raise ContentError(f"{group.name}: not utf-8")
        return found

    def to_group(self, group: h5py.Group) -> None:
        """Store the text, and where each name begins and ends in it: int64 of shape (n_names + 1,)."""
        group.create_dataset("text", data=np.frombuffer(self._text, np.uint8))
        group.create_dataset("ends", data=self._ends)

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

    def repeated(self) -> str | None:
        """Find a name that comes twice; of ten million this takes a few hundred MB for a few seconds."""
        hashes = np.fromiter((hash(self._encoded(k)) for k in range(len(self))), np.int64, len(self))
        order = np.argsort(hashes)
        for at in np.flatnonzero(np.diff(hashes[order]) == 0):
            if self[order[at]] == self[order[at + 1]]:
                return self[order[at]]
        return None

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
