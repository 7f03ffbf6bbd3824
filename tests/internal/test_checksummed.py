import errno
import io
import json

import h5py
import numpy as np
import pytest

from edited import edited
from xsoftmax.internal.checksummed import CHECKSUM_BYTES, DamagedError, opened, verify_checksum, written_checksummed
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put

REMEDY = "make another"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.h5"
    with written_checksummed(path, "model") as file:
        file["small"] = np.arange(10.0)
        file.create_dataset("packed", data=np.arange(10_000), chunks=(1000,), compression="gzip")
        file["large"] = np.arange(100_000, dtype=np.float32)
    return path


def opening(path, *kinds):
    with opened(path, kinds or ("model", "proposal"), REMEDY) as file:
        return file["large"][:]


def test_what_was_written_is_read(path):
    assert np.array_equal(opening(path), np.arange(100_000))
    with h5py.File(path) as file:  # as any program does
        assert np.array_equal(file["packed"][:], np.arange(10_000))


def test_every_bit_counts(path, tmp_path):
    """Flipped anywhere: in the superblock, in the tree of groups, among numbers, in the seal."""
    whole = np.fromfile(path, np.uint8)
    rng = np.random.default_rng(0)
    for place in [0, 9, whole.size - 1, whole.size - CHECKSUM_BYTES, *rng.integers(0, whole.size, 300)]:
        flipped = whole.copy()
        flipped[place] ^= 1 << rng.integers(8)
        flipped.tofile(tmp_path / "flipped.h5")
        with pytest.raises(DamagedError, match=f"flipped.h5: .*; {REMEDY}"):
            opening(tmp_path / "flipped.h5")


@pytest.mark.parametrize("length", [0, 5, 100, -1, -CHECKSUM_BYTES, -CHECKSUM_BYTES - 1])
def test_every_byte_counts(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedError, match=f"some.h5: .*; {REMEDY}"):
        opening(path)


def test_what_is_added_counts(path):
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(DamagedError):
        opening(path)


def test_errors_say_what_is_wrong_and_what_to_do(path, tmp_path):
    with pytest.raises(InputError, match=r"none\.h5: no such file; make another"):
        opening(tmp_path / "none.h5")
    with pytest.raises(InputError, match="holds 'model', not a prepared; make another"):
        opening(path, "prepared")
    with edited(path) as file:
        put(file, schema_version=7)
    with pytest.raises(InputError, match="model of version 7, this xsoftmax reads 4; make another"):
        opening(path)
    path.write_text(json.dumps({}))
    with pytest.raises(DamagedError, match=r"some\.h5: not an HDF5 file, or damaged at its beginning; make another"):
        opening(path)


def test_the_same_content_has_the_same_bytes(path, tmp_path):
    with written_checksummed(tmp_path / "again.h5", "model") as file:
        file["small"] = np.arange(10.0)
        file.create_dataset("packed", data=np.arange(10_000), chunks=(1000,), compression="gzip")
        file["large"] = np.arange(100_000, dtype=np.float32)
    assert (tmp_path / "again.h5").read_bytes() == path.read_bytes()
    verify_checksum(path)


def test_a_failure_leaves_what_was_there(path):
    before = path.read_bytes()
    with pytest.raises(TypeError), written_checksummed(path, "model") as file:
        file["other"] = object()
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


class WithRoom(io.FileIO):
    def __init__(self, path, mode, room):
        super().__init__(path, mode)
        self.room = room

    def write(self, values):
        if len(values) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(values)
        return super().write(values)


@pytest.mark.parametrize("room", [0, 1000, 50_000, 300_000])
def test_a_disk_that_is_full_is_said_once_and_leaves_what_was_there(path, room, monkeypatch):
    """Whether it fails among numbers or as HDF5 closes."""
    before, opens = path.read_bytes(), type(path).open

    def opens_with_little_room(path, mode="r", **options):
        return WithRoom(path, "w+", room) if mode == "w+b" else opens(path, mode, **options)

    monkeypatch.setattr(type(path), "open", opens_with_little_room)
    with pytest.raises(OSError, match="No space left"), written_checksummed(path, "model") as file:
        file["large"] = np.random.default_rng(0).standard_normal(100_000)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
