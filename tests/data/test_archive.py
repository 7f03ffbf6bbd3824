import errno
import gzip
import io
import tarfile
import tracemalloc
import zipfile

import pytest

from xsoftmax.data import checksum
from xsoftmax.data.archive import unpack
from xsoftmax.data.config import Archive
from xsoftmax.internal.errors import InputError

FILES = {"train/a/1": b"one", "train/b/2": b"two", "test/a/3": b"", "readme": b"x"}


def tar(path, entries, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.linkname = content
                archive.addfile(entry)
    return path


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_differently_packed_archives_agree(tmp_path):
    deep = {f"repository-1234/inside/{name}": content for name, content in reversed(FILES.items())}
    junk = {"__MACOSX/train/._1": b"junk", "repository-1234/inside/train/.DS_Store": b"junk"}
    archives = [
        tar(tmp_path / "a.tar.gz", FILES),
        tar(tmp_path / "b.tar.xz", deep | junk, "w:xz"),
        tar(tmp_path / "c.tar", {f"./{name}": content for name, content in FILES.items()}, "w"),
        zipped(tmp_path / "d.zip", deep | {"empty/": b""}),
    ]
    options = Archive(members=("train", "test"))
    results = [unpack(path, tmp_path / path.stem, options) for path in archives]
    wanted = {name: content for name, content in FILES.items() if name != "readme"}
    assert len(set(results)) == 1
    assert all(tree(tmp_path / path.stem) == wanted for path in archives)
    assert results[0].size == 6
    assert results[0].sha256 == checksum.of_path(tmp_path / archives[0].stem)


def test_all_members(tmp_path):
    unpack(tar(tmp_path / "a.tar.gz", FILES), tmp_path / "a", Archive())
    assert tree(tmp_path / "a") == FILES


UNSAFE = [
    ({"../evil": b"x"}, r"entry '../evil' would lie outside the target"),
    ({"train/../../evil": b"x"}, "would lie outside the target"),
    ({"/etc/evil": b"x"}, "would lie outside the target"),
    ({"C:\\evil": b"x"}, "would lie outside the target"),
    ({"train/link": (tarfile.SYMTYPE, "/etc/passwd")}, "'train/link' is a link or device; only files and folders"),
    ({"train/link": (tarfile.LNKTYPE, "../../x")}, "is a link or device"),
    ({"train/fifo": (tarfile.FIFOTYPE, "")}, "is a link or device"),
    ({"train/device": (tarfile.CHRTYPE, "")}, "is a link or device"),
    ({"train/a": b"x" * 2000}, "more than the allowed bytes come out of it; raise archive.max_bytes"),
    ({f"train/{i}": b"" for i in range(20)}, "more than 10 entries; raise archive.max_files"),
    ({"other/a": b"x"}, "nothing to unpack; expected train in it"),
]


@pytest.mark.parametrize(("entries", "message"), UNSAFE)
def test_unsafe_archives_are_refused(tmp_path, entries, message):
    path = tar(tmp_path / "a.tar.gz", entries)
    with pytest.raises(InputError, match=message):
        unpack(path, tmp_path / "inside/a", Archive(members=("train",), max_bytes=1000, max_files=10))
    assert not list(tmp_path.glob("evil"))
    assert not list((tmp_path / "inside").glob("evil"))


def test_the_same_entry_twice_is_refused(tmp_path):
    path = tar(tmp_path / "a.tar.gz", {"x/train/1": b"1", "y/train/1": b"2"})
    with pytest.raises(InputError, match="'y/train/1' comes twice"):
        unpack(path, tmp_path / "a", Archive(members=("train",)))


def test_zip_links_and_bombs(tmp_path):
    link = zipfile.ZipInfo("train/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="is a link or device"):
        unpack(tmp_path / "link.zip", tmp_path / "a", Archive())
    bomb = zipped(tmp_path / "bomb.zip", {"zeros": bytes(10**7)})
    with pytest.raises(InputError, match="more than the allowed bytes"):
        unpack(bomb, tmp_path / "b", Archive(max_bytes=10**6))
    with pytest.raises(InputError, match="would lie outside"):
        unpack(zipped(tmp_path / "out.zip", {"../x": b""}), tmp_path / "c", Archive())


def test_a_zip_that_is_encrypted(tmp_path):
    content = bytearray(zipped(tmp_path / "a.zip", {"train/a": b"x"}).read_bytes())
    for start, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(start) + flags] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.zip: 'train/a' is encrypted; unpack it, and name the file"):
        unpack(tmp_path / "a.zip", tmp_path / "a", Archive())


def header(name, kind, content):
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, len(content)
    return entry.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


BOMBS = {
    "long name": header("././@LongLink", tarfile.GNUTYPE_LONGNAME, b"a" * 2**26),
    "pax header": header("pax", tarfile.XHDTYPE, b"%d comment=" % (2**26) + b"a" * (2**26 - 18) + b"\n"),
    "left out": header(".hidden", tarfile.REGTYPE, bytes(2**26)),
    "after the end": header("other", tarfile.REGTYPE, b"x") + bytes(2**26),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs_of_tar_take_no_memory(kind, tmp_path):
    """In what is not kept: headers, which tarfile reads whole, entries left out, and what follows the last."""
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(BOMBS[kind] + header("train", tarfile.REGTYPE, b"x"), 1))
    tracemalloc.start()
    with pytest.raises(InputError, match="more than the allowed bytes"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "a", Archive(max_bytes=2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_what_is_left_out_is_passed_over(tmp_path):
    """Entries longer than what headers may take among them."""
    large = bytes(3 * 2**20)
    path = tar(tmp_path / "a.tar.gz", {".hidden": large, "other/b": large, "train/c": large, "n" * 200: b""})
    assert unpack(path, tmp_path / "a", Archive(members=("train",), max_bytes=10**7)).size == len(large)


def test_a_full_disk_is_no_damaged_archive(tmp_path, monkeypatch):
    path = tar(tmp_path / "a.tar.gz", {"train/1": b"1"})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("xsoftmax.data.archive._write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        unpack(path, tmp_path / "a", Archive())
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w"])
def test_truncated_archives(tmp_path, mode):
    path = tar(tmp_path / "a.tar", {f"train/{i}": bytes(3000) for i in range(50)}, mode)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"a.tar: the archive is truncated or damaged"):
        unpack(path, tmp_path / "a", Archive())


def test_no_archive_at_all(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"hello, I am a page that says: not found")
    with pytest.raises(InputError, match="truncated or damaged"):
        unpack(tmp_path / "a.tar", tmp_path / "a", Archive())
