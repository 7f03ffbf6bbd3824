"""Checkpoints of a fit by several ranks: a checksummed file for each rank's classes, and one that names them all.

Each rank writes its part beside the checkpoint, under a name of its own. Once all parts are whole, rank 0 replaces
the checkpoint itself, which has what is common to all and the checksums of the parts; only then are older parts
removed. So the checkpoint names parts that belong together, whichever rank is killed when. As parts are cut along
classes, another number of ranks, or one process, goes on from them: each rank reads the classes that it has.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.gpu.ranks import Group, Shard, shard_of
from xsoftmax.internal.checksummed import checksum_of, open_checksummed, written_checksummed
from xsoftmax.internal.errors import BAD_CONTENT, InputError
from xsoftmax.internal.files import remove
from xsoftmax.internal.hdf5 import put
from xsoftmax.internal.hdf5_checks import ContentError, check_array
from xsoftmax.training.checkpoint import in_one_piece, read_checkpoint, write_checkpoint

REMEDY = "training from the start"
PARTS = "parts"  # the array of a checkpoint that names its parts
KIND = "checkpoint part"
_MARK = ".part-"  # between the checkpoint's name and the rest of a part's


class Piece(NamedTuple):
    """Arrays of some classes, in their file."""

    shard: Shard
    arrays: Mapping[str, Any]


class JoinedArray:
    """An array of one rank's classes, in the files of others: as one in a file.

    Parameters
    ----------
    name : str
    axis : int
        Along which the classes are.
    shard : Shard
        The classes that are asked for.
    pieces : sequence of Piece
        Those that have some of them.

    Raises
    ------
    ContentError
        If a piece does not fit.
    """

    def __init__(self, name: str, axis: int, shard: Shard, pieces: Sequence[Piece]) -> None:
        self.name, self._axis, self._shard = name, axis, shard
        self._found = [(piece.shard, piece.arrays[name]) for piece in pieces]
        self.dtype = self._found[0][1].dtype
        self.shape = _with(self._found[0][1].shape, axis, shard.n)
        for of, array in self._found:
            if array.dtype != self.dtype or array.shape != _with(self.shape, axis, of.n):
                raise ContentError(f"{name}: {array.dtype} of shape {array.shape} among parts of other shapes")

    @property
    def nbytes(self) -> int:
        """Count the bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __getitem__(self, all_of_it: Any) -> np.ndarray:
        """Read it."""
        found = np.empty(self.shape, self.dtype)
        self.read_direct(found)
        return found

    def read_direct(self, found: np.ndarray) -> None:
        """Read it into an array."""
        for of, array in self._found:
            first, stop = max(of.first, self._shard.first), min(of.stop, self._shard.stop)
            there = (slice(None),) * self._axis + (slice(first - self._shard.first, stop - self._shard.first),)
            found[there] = array[(slice(None),) * self._axis + (slice(first - of.first, stop - of.first),)]


class PartedCheckpoint:
    """The checkpoint of one fit.

    Parameters
    ----------
    path : Path
    identity : str
        What it belongs to.
    ranks : Group
    n_classes : int
    class_axis : callable
        Says of an array's name along which axis it has this rank's classes; None: along none, it is the same on all.
    """

    def __init__(
        self, path: Path, identity: str, ranks: Group, n_classes: int, class_axis: Callable[[str], int | None]
    ) -> None:
        self._path, self._identity, self._ranks, self._class_axis = path, identity, ranks, class_axis
        self._n_classes, self._shard = n_classes, ranks.shard(n_classes)

    def write(self, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]) -> None:
        """Write it; the one before stays until this one is whole on all ranks.

        Raises
        ------
        OSError
            On all ranks, if one could not write.
        """
        if self._ranks.n_ranks == 1:
            write_checkpoint(self._path, self._identity, arrays, progress)
            remove_parts(self._path)
            return
        own = {name: array for name, array in arrays.items() if self._class_axis(name) is not None}
        rest = {name: array for name, array in arrays.items() if name not in own}
        names, digests = self._new_names(), np.zeros((self._ranks.n_ranks, 32), np.uint8)
        part = self._path.with_name(names[self._ranks.rank])
        try:
            self._together(
                lambda: self._write_part(part, own, digests[self._ranks.rank]), "could not write its part", OSError
            )
            together = self._ranks.total(digests)
            self._together(lambda: self._name(names, together, rest, progress), "could not write its part", OSError)
        except OSError:
            remove(part)
            raise
        if not self._ranks.rank:
            remove_parts(self._path, names)

    def read(self, restore: Callable[[Mapping[str, Any]], None], progress: Callable[..., Any]) -> Any:
        """Go on from it: see ``read_checkpoint``; on all ranks, or on none.

        Raises
        ------
        InputError
            If the disk fails, or a part does not fit, once other arrays have been restored.
        """
        came = False

        def restore_on_all(arrays: Mapping[str, Any]) -> None:
            nonlocal came
            came = True
            with ExitStack() as stack:
                own = self._together(lambda: self._joined(arrays, stack), f"cannot read its part; {REMEDY}")
                try:
                    self._together(lambda: restore(own), "could not take its part")
                except BAD_CONTENT as error:
                    if self._ranks.n_ranks == 1:
                        raise
                    raise OSError(str(error)) from error

        found = read_checkpoint(self._path, self._identity, restore_on_all, progress)
        if not came:
            self._ranks.latest(True)
        return found

    def _together(self, do: Callable[[], Any], what: str, kind: type[Exception] = InputError) -> Any:
        """Do something on all ranks.

        Raises
        ------
        Exception
            As it does, if it fails here; of the given kind, if it fails on another rank.
        """
        failure: Exception | None = None
        try:
            found = do()
        except BAD_CONTENT as error:  # InputError and OSError are among these
            failure = error
        if not self._ranks.latest(failure is not None):
            return found
        raise failure or kind(f"another rank {what}")

    def _new_names(self) -> list[str]:
        """Name parts, one for each rank, as no parts were named before."""
        number, n = int(self._ranks.of_first(np.array([time.time_ns()]))[0]), self._ranks.n_ranks
        return [f"{self._path.name}{_MARK}{rank}-of-{n}-{number:x}" for rank in range(n)]

    def _name(
        self, names: Sequence[str], digests: np.ndarray, rest: Mapping[str, Any], progress: Mapping[str, Any]
    ) -> None:
        """Let rank 0 write the checkpoint itself, with what is common to all and the names of the parts."""
        if not self._ranks.rank:
            named = [{"file": name, "sha256": bytes(each).hex()} for name, each in zip(names, digests, strict=True)]
            text = np.frombuffer(json.dumps(named).encode(), np.uint8)
            write_checkpoint(self._path, self._identity, {**rest, PARTS: text}, progress)

    def _write_part(self, part: Path, arrays: Mapping[str, np.ndarray], digest: np.ndarray) -> None:
        with written_checksummed(part, KIND) as file:
            put(file, first=self._shard.first, stop=self._shard.stop)
            for name, array in arrays.items():
                file.create_dataset(f"arrays/{name}", data=array)
        digest[:] = np.frombuffer(bytes.fromhex(checksum_of(part)), np.uint8)

    def _joined(self, arrays: Mapping[str, Any], stack: ExitStack) -> dict[str, Any]:
        """Give the arrays of this rank's classes, and those that are common, still in their files."""
        if self._ranks.n_ranks == 1 and PARTS not in arrays:
            return dict(arrays)
        pieces = [*self._pieces(arrays, stack)]
        if not pieces:
            pieces = [Piece(Shard(0, self._n_classes), arrays)]
        found = {name: array for name, array in arrays.items() if name != PARTS and self._class_axis(name) is None}
        for name in pieces[0].arrays:
            if (axis := self._class_axis(name)) is not None:
                found[name] = JoinedArray(name, axis, self._shard, pieces)
        return found

    def _pieces(self, arrays: Mapping[str, Any], stack: ExitStack) -> Iterator[Piece]:
        """Open the parts that have some of this rank's classes; none if the checkpoint has all itself."""
        if PARTS not in arrays:
            return
        check_array(arrays[PARTS], np.uint8, None)
        named = json.loads(arrays[PARTS][...].tobytes())
        for rank, each in enumerate(named):
            shard, name = shard_of(rank, len(named), self._n_classes), str(each["file"])
            if shard.stop <= self._shard.first or shard.first >= self._shard.stop:
                continue
            if not name.startswith(f"{self._path.name}{_MARK}") or "/" in name:
                raise ContentError(f"a part named {name[:80]!r}")
            path = self._path.with_name(name)
            file = stack.enter_context(open_checksummed(path, [KIND], REMEDY))
            if checksum_of(path) != each["sha256"] or [*map(int, (file.attrs["first"], file.attrs["stop"]))] != [
                *shard
            ]:
                raise ContentError(f"{name} is of another checkpoint")
            yield Piece(shard, {key: in_one_piece(array, path) for key, array in file["arrays"].items()})


def remove_parts(path: Path, kept: Sequence[str] = ()) -> None:
    """Remove the parts of a checkpoint, but for those that are kept, and what killed ranks have left of others.

    No rank may be writing one.
    """
    if not path.parent.is_dir():
        return
    for each in path.parent.iterdir():
        if each.name.removeprefix(".").startswith(f"{path.name}{_MARK}") and each.name not in kept:
            each.unlink(missing_ok=True)


def _with(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    """Give a shape with another length along an axis."""
    return (*shape[:axis], n, *shape[axis + 1 :])
