import base64
import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from xsoftmax.data import checksum
from xsoftmax.data.config import DatasetConfig, Source
from xsoftmax.data.download import download
from xsoftmax.data.fetch import Patience, fetch
from xsoftmax.data.raw import checked_files
from xsoftmax.data.sparse_text import line_blocks
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import BusyError, locked

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(attempts=3, pause=0.01, stall=0.5)


def config_of(*urls, **source):
    source = {"name": "a.bin", "sha256": SHA256, "size": len(CONTENT), **source}
    return DatasetConfig(name="toy", format="xc", files=(Source(urls=urls, **source),))


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def tmp_path(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


def parts_of(target):
    return target.with_name(f".{target.name}.part")


@pytest.fixture
def files(server):
    server.files.update({"a.bin": CONTENT, "a.bin.gz": gzip.compress(CONTENT)})
    return server


@pytest.mark.parametrize("behaviour", ["ok", "no-length", "busy", "cut", "stall", "no-range", "wrong-range"])
def test_a_whole_file_arrives_whatever_happens(files, tmp_path, behaviour):
    download(config_of(f"{files.url}/{behaviour}/a.bin"), tmp_path, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert left_in(tmp_path) == ["a.bin", "receipt.json"]
    assert not parts_of(tmp_path).exists()
    checked_files(tmp_path, "toy", ["a.bin"])


@pytest.mark.parametrize("as_mirror", [False, True])
def test_a_password_before_the_host_is_basic_authorization(files, tmp_path, as_mirror):
    files.wanted = "Basic " + base64.b64encode(b"ann:s/e@cret").decode()
    base = files.url.replace("//", "//ann:s%2Fe%40cret@") + "/ok"
    config = config_of(f"{base}/a.bin") if not as_mirror else config_of(mirror="a.bin")
    download(config, tmp_path, mirror=base if as_mirror else None, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    with pytest.raises(InputError, match="HTTP status 401"):
        download(config_of(f"{files.url}/ok/a.bin"), tmp_path / "other", patience=QUICK)


@pytest.mark.parametrize(("host", "sent"), [("127.0.0.1", True), ("localhost", False)])
def test_a_redirection_takes_the_password_to_the_same_host_alone(files, tmp_path, host, sent):
    files.redirect = files.url.replace("127.0.0.1", host) + "/ok/a.bin"
    download(config_of(files.url.replace("//", "//ann:cret@") + "/redirect/a.bin"), tmp_path, patience=QUICK)
    assert [authorization is not None for authorization in files.authorizations] == [True, sent]


@pytest.mark.parametrize("behaviour", ["cut", "stall"])
def test_what_arrived_is_continued_not_fetched_again(files, tmp_path, behaviour):
    download(config_of(f"{files.url}/{behaviour}/a.bin"), tmp_path, patience=QUICK)
    assert [wanted for *_, wanted in files.requests] == [None, f"bytes={len(CONTENT) // 2}-"]


@pytest.mark.fault(
    "a download that is killed or breaks off",
    happens="the next one continues where it ended; nothing is called good before its checksum was compared",
    user="progress that begins in the middle",
)
def test_a_later_run_continues_what_an_interrupted_one_left(files, tmp_path):
    config = config_of(f"{files.url}/stall/a.bin")
    with pytest.raises(InputError, match=r"no byte for 0.2 s"):
        download(config, tmp_path, patience=Patience(attempts=1, stall=0.2))
    assert left_in(tmp_path) == []
    (part,) = parts_of(tmp_path).iterdir()
    held = part.stat().st_size
    assert held > 0
    with pytest.raises(InputError, match="no complete download of toy here"):
        checked_files(tmp_path, "toy", ["a.bin"])
    download(config, tmp_path, patience=QUICK)
    assert files.requests[1][2] == f"bytes={held}-"
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


@pytest.mark.fault(
    "a host that sends another file, or a corrupted one",
    happens="refused; nothing is left of it, and the next address is tried",
    user="`error: …: sha256 of the download is …, expected …`",
)
def test_a_corrupted_file_is_refused_and_nothing_is_left(files, tmp_path):
    corrupted = hashlib.sha256(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])).hexdigest()
    with pytest.raises(InputError) as raised:
        download(config_of(f"{files.url}/corrupt/a.bin"), tmp_path, patience=QUICK)
    message = str(raised.value)
    assert f"toy: a.bin: sha256 of the download is {corrupted}, expected {SHA256}" in message
    assert "the host may have changed the file" in message
    assert f"{files.url}/corrupt/a.bin" in message
    assert left_in(tmp_path) == left_in(parts_of(tmp_path)) == []


def test_a_file_whose_beginning_was_corrupt_is_fetched_once_more(files, tmp_path):
    url = f"{files.url}/ok/a.bin"
    part = parts_of(tmp_path) / f"a.bin.{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    part.parent.mkdir()
    part.write_bytes(b"something else")
    download(config_of(url), tmp_path, patience=QUICK)
    assert [wanted for *_, wanted in files.requests] == ["bytes=14-", None]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_addresses_are_tried_in_order(files, tmp_path, capsys):
    urls = [f"{files.url}/{each}" for each in ("ok/none.bin", "corrupt/a.bin", "always-busy/a.bin", "ok/a.bin")]
    download(config_of(*urls), tmp_path, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    lines = capsys.readouterr().err
    for reason in (
        "HTTP status 404",
        "sha256 of the download",
        "HTTP status 503 Service Unavailable, after 3 attempts",
    ):
        assert reason in lines


def test_when_no_address_helps_all_reasons_are_given(files, tmp_path):
    with pytest.raises(InputError, match=r"(?s)toy: could not get a.bin:.*404.*503") as raised:
        download(config_of(f"{files.url}/ok/x", f"{files.url}/always-busy/a.bin"), tmp_path, patience=QUICK)
    assert raised.type is InputError
    with pytest.raises(InputError, match="Connection refused"):
        download(config_of("http://127.0.0.1:9/a.bin"), tmp_path, patience=QUICK)
    with pytest.raises(InputError, match="unknown kind of address"):
        download(config_of("gopher://127.0.0.1/a.bin"), tmp_path, patience=QUICK)


def test_a_size_that_differs_is_refused(files, tmp_path):
    with pytest.raises(InputError, match=r"a.bin from .* has 300000 bytes, expected 7"):
        download(config_of(f"{files.url}/ok/a.bin", size=7), tmp_path, patience=QUICK)
    assert left_in(tmp_path) == []


def test_a_second_run_does_nothing(files, tmp_path):
    config = config_of(f"{files.url}/ok/a.bin")
    receipt = download(config, tmp_path, patience=QUICK)
    before = receipt.stat().st_mtime_ns
    download(config, tmp_path, patience=QUICK)
    assert len(files.requests) == 1
    assert receipt.stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["changed", "gone", "receipt"])
def test_a_damaged_file_is_noticed_and_fetched_again(files, tmp_path, damage):
    config = config_of(f"{files.url}/ok/a.bin")
    download(config, tmp_path, patience=QUICK)
    if damage == "changed":
        (tmp_path / "a.bin").write_bytes(CONTENT[:-1])
    elif damage == "gone":
        (tmp_path / "a.bin").unlink()
    else:
        (tmp_path / "receipt.json").write_text("{")
    with pytest.raises(InputError, match="download"):
        checked_files(tmp_path, "toy", ["a.bin"])
    download(config, tmp_path, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_another_expected_checksum_means_another_download(files, tmp_path):
    other = gzip.compress(b"other")
    files.files["b.bin"] = other
    download(config_of(f"{files.url}/ok/a.bin"), tmp_path, patience=QUICK)
    changed = config_of(f"{files.url}/ok/b.bin", sha256=hashlib.sha256(b"other").hexdigest(), size=5)
    download(changed, tmp_path, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == b"other"


PACKED = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, "": bytes}


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("kind", ["folder", "url"])
def test_the_mirror_comes_first_however_it_is_compressed(files, tmp_path, suffix, kind):
    packed = PACKED[suffix](CONTENT)
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / f"mirror/toy/a.bin{suffix}").write_bytes(packed)
    files.files.clear()
    files.files[f"toy/a.bin{suffix}"] = packed
    mirror = str(tmp_path / "mirror") if kind == "folder" else f"{files.url}/ok"
    receipt = download(config_of(f"{files.url}/ok/upstream.bin"), tmp_path / "raw", mirror, QUICK)
    assert (tmp_path / "raw/a.bin").read_bytes() == CONTENT
    assert json.loads(receipt.read_text())["files"]["a.bin"]["sha256"] == SHA256
    assert not any(name == "upstream.bin" for _, name, _ in files.requests)


def test_a_mirror_without_the_file_or_with_a_bad_one_is_passed_over(files, tmp_path, capsys):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    config = config_of(f"{files.url}/ok/a.bin")
    download(config, tmp_path / "one", str(tmp_path / "mirror"), QUICK)
    assert "mirror" not in capsys.readouterr().err
    (tmp_path / "mirror/toy/a.bin.gz").write_bytes(gzip.compress(CONTENT)[:-100])
    download(config, tmp_path / "two", str(tmp_path / "mirror"), QUICK)
    assert "truncated or damaged" in capsys.readouterr().err
    assert (tmp_path / "two/a.bin").read_bytes() == CONTENT


def test_checksum_of_the_compressed_file(files, tmp_path):
    packed = files.files["a.bin.gz"]
    source = {"of": "file", "sha256": hashlib.sha256(packed).hexdigest(), "size": len(packed)}
    config = config_of(f"{files.url}/ok/a.bin.gz", **source)
    receipt = download(config, tmp_path, patience=QUICK)
    download(config, tmp_path, patience=QUICK)
    assert len(files.requests) == 1
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert json.loads(receipt.read_text())["files"]["a.bin"]["sha256"] == SHA256


def test_receipts_do_not_depend_on_where_a_file_came_from(files, tmp_path):
    receipts = [
        download(config_of(f"{files.url}/ok/{name}"), tmp_path / name, patience=QUICK)
        for name in ("a.bin", "a.bin.gz")
    ]
    assert receipts[0].read_bytes() == receipts[1].read_bytes()


def unpinned(folder, *urls, **source):
    """A description without a checksum, in a folder of its own."""
    return replace(config_of(*urls, sha256=None, size=None, **source), folder=folder)


def test_a_first_download_records_the_checksum_and_later_ones_are_held_to_it(files, tmp_path):
    config = unpinned(tmp_path, f"{files.url}/ok/a.bin")
    download(config, tmp_path / "one", patience=QUICK)
    assert (tmp_path / "toy.sha256").read_text() == f"{SHA256}  a.bin\n"
    download(config, tmp_path / "two", patience=QUICK)
    files.files["a.bin"] = b"changed"
    download(config, tmp_path / "two", patience=QUICK)
    assert len(files.requests) == 2
    with pytest.raises(InputError, match=rf"expected {SHA256}; the host may have") as raised:
        download(config, tmp_path / "three", patience=QUICK)
    assert f"recorded at the first download, in {tmp_path}/toy.sha256; remove the line" in str(raised.value)
    (tmp_path / "toy.sha256").unlink()
    download(config, tmp_path / "three", patience=QUICK)
    assert (tmp_path / "toy.sha256").read_text() == f"{hashlib.sha256(b'changed').hexdigest()}  a.bin\n"


def test_what_was_downloaded_but_not_recorded_is_recorded(files, tmp_path):
    config = unpinned(tmp_path, f"{files.url}/ok/a.bin")
    download(config, tmp_path / "one", patience=QUICK)
    (tmp_path / "toy.sha256").unlink()
    download(config, tmp_path / "one", patience=QUICK)
    assert (tmp_path / "toy.sha256").exists()
    (tmp_path / "toy.sha256").write_text(f"{'0' * 64}  a.bin\n")
    with pytest.raises(InputError, match=f"expected {'0' * 64}"):
        download(config, tmp_path / "one", patience=QUICK)


def test_a_recorded_checksum_is_of_what_the_description_says(files, tmp_path):
    config = unpinned(tmp_path, f"{files.url}/ok/a.bin.gz", of="file")
    download(config, tmp_path / "one", patience=QUICK)
    packed = hashlib.sha256(files.files["a.bin.gz"]).hexdigest()
    assert (tmp_path / "toy.sha256").read_text() == f"{packed}  a.bin\n"
    download(config, tmp_path / "two", patience=QUICK)


def test_no_record_where_it_is_not_needed_and_bad_ones_are_refused(files, tmp_path):
    download(replace(config_of(f"{files.url}/ok/a.bin"), folder=tmp_path), tmp_path / "one", patience=QUICK)
    assert left_in(tmp_path) == ["one"]
    config = unpinned(tmp_path, f"{files.url}/ok/a.bin")
    (tmp_path / "toy.sha256").write_text("abc  a.bin\n")
    with pytest.raises(InputError, match=r"toy.sha256, line 1: expected '<sha256>  <file name>', found 'abc"):
        download(config, tmp_path / "one", patience=QUICK)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=rf"(?s)cannot record the checksums .*{SHA256}  a.bin"):
        download(replace(config, folder=tmp_path / "file"), tmp_path / "two", patience=QUICK)


def test_a_web_page_instead_of_the_file_is_refused_not_recorded(files, tmp_path):
    files.files["page"] = b"\n<!DOCTYPE html><html><title>Quota exceeded</title></html>"
    config = unpinned(tmp_path, f"{files.url}/ok/page")
    with pytest.raises(InputError, match=r"a.bin: .*/ok/page gives a web page, not the file"):
        download(config, tmp_path / "raw", patience=QUICK)
    assert not (tmp_path / "toy.sha256").exists()
    assert left_in(tmp_path / "raw") == []


def test_installed_packages(tmp_path):
    url = "package:scikit-learn/sklearn/datasets/data/iris.csv"
    download(config_of(url, sha256=None, size=None), tmp_path)
    assert (tmp_path / "a.bin").read_text().startswith("150,4")
    with pytest.raises(InputError, match=r"package scikit-learn is .*, needed is 0.1; pip install scikit-learn==0.1"):
        download(config_of(url, version="0.1"), tmp_path / "b")
    with pytest.raises(InputError, match="package no-such-thing is not installed"):
        download(config_of("package:no-such-thing/x"), tmp_path / "b")


def test_own_files_stay_where_they_are(tmp_path):
    path = tmp_path / "mine.svm"
    path.write_text("1 1:1\n")
    config = DatasetConfig(name="mine", format="svmlight", files=(Source(name="mine.svm", path=str(path)),))
    download(config, tmp_path / "raw")
    assert checked_files(tmp_path / "raw", "mine", ["mine.svm"])["mine.svm"]["path"] == str(path)
    path.write_text("2 1:1\n")
    with pytest.raises(InputError, match="at download it was"):
        checked_files(tmp_path / "raw", "mine", ["mine.svm"])
    download(config, tmp_path / "raw")
    checked_files(tmp_path / "raw", "mine", ["mine.svm"])
    path.unlink()
    with pytest.raises(InputError, match=r"files: no file .*mine.svm"):
        download(config, tmp_path / "raw")


def test_progress_is_sparse_in_a_log(files, tmp_path, capsys, monkeypatch):
    download(config_of(f"{files.url}/ok/a.bin"), tmp_path / "a", patience=QUICK)
    assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr("xsoftmax.internal.progress.SECONDS_BETWEEN_LINES", 0.0)
    download(config_of(f"{files.url}/ok/a.bin"), tmp_path / "b", patience=QUICK)
    assert "0.3 of 0.3 MB" in capsys.readouterr().err


def test_a_bar_on_a_terminal(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    download(config_of(f"{files.url}/ok/a.bin"), tmp_path, patience=QUICK)
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_no_room_is_not_the_fault_of_an_address(scheme, tmp_path, monkeypatch):
    """It is neither tried again nor elsewhere: the error tells of the disk."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("xsoftmax.data.fetch.shutil.copyfile", full)
    monkeypatch.setattr("xsoftmax.data.fetch._attempt", full)
    monkeypatch.setattr("xsoftmax.data.fetch.time.sleep", lambda _: pytest.fail("tried again"))
    with pytest.raises(OSError, match="No space left"):
        fetch(f"{scheme}://localhost/x", tmp_path / "part", Patience())


def described(files, folder, behaviour):
    """A description on disk, for programs of their own."""
    path = folder.parent / "toy.yaml"
    source = f"{{name: a.bin, urls: ['{files.url}/{behaviour}/a.bin'], sha256: {SHA256}, size: {len(CONTENT)}}}"
    path.write_text(f"name: toy\nformat: xc\nfiles: [{source}]\n")
    return path


def begun(config, target):
    command = [sys.executable, "-m", "xsoftmax", "download", config, "-o", target]
    environment = {key: value for key, value in os.environ.items() if key != "XSOFTMAX_MIRROR"}
    return subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True, env=environment)


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.fault(
    "two downloads of one data set at once",
    happens="the second waits for the first, and finds the file there: it is fetched once",
    user="after 3 s `waiting for another program, which holds …`; after an hour an error",
)
def test_two_at_once_download_once(files, tmp_path):
    """The host stalls until both are at it."""
    config = described(files, tmp_path, "stall")
    first = begun(config, tmp_path)
    until(lambda: files.requests)
    second = begun(config, tmp_path)
    told = second.stderr.readline()
    assert "waiting for another program, which holds" in told
    assert len(files.requests) == 1
    files.released.set()
    for each in (first, second):
        assert (each.wait(60), each.communicate()[1].count("error")) == (0, 0)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert left_in(tmp_path) == ["a.bin", "receipt.json"]
    assert left_in(tmp_path.parent) == ["raw", "toy.yaml"]
    assert [begin for _, _, begin in files.requests].count(None) == 1


@pytest.mark.fault(
    "SIGKILL of a download that others wait for",
    happens="its lock goes with it; the next one continues",
    user="nothing",
)
def test_a_killed_download_locks_nobody_out(files, tmp_path):
    config = described(files, tmp_path, "stall")
    first = begun(config, tmp_path)
    until(lambda: files.requests)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stderr.close()
    download(config_of(f"{files.url}/ok/a.bin"), tmp_path, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_one_waits_for_another_no_longer_than_a_limit(files, tmp_path, monkeypatch):
    monkeypatch.setattr("xsoftmax.data.download.LOCKED_SECONDS", 0.1)
    held = locked(tmp_path.with_name(f".{tmp_path.name}.lock"), "hold")
    with held, pytest.raises(BusyError, match=r"held it for more than 0.1 s; download toy later"):
        download(config_of(f"{files.url}/ok/a.bin"), tmp_path, patience=QUICK)
    assert files.requests == []


@pytest.mark.fault(
    "a download of little that becomes more than 4 GiB and 100 times its size",
    happens="it is refused as it comes, and nothing is left of it",
    user="`error: …: more than … bytes and 100 times its size come out of it`",
)
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_bomb_is_not_decompressed_to_its_end(server, tmp_path, monkeypatch, compress):
    monkeypatch.setattr(checksum, "MOST_BYTES", 2**20)
    server.files["a.bin"] = compress(bytes(2**22))
    config = unpinned(tmp_path, f"{server.url}/ok/a.bin")
    with pytest.raises(InputError, match=r"more than 1,048,576 bytes and 100 times its size come out of it"):
        download(config, tmp_path / "raw", patience=QUICK)
    assert left_in(tmp_path / "raw") == []
    (tmp_path / "bomb.txt").write_bytes(compress(b"0 1:1\n" * 2**20))
    with pytest.raises(InputError, match=r"100 times its size come out of it; if they are"):
        list(line_blocks(tmp_path / "bomb.txt"))
    server.files["a.bin"] = compress(bytes(2**20))  # no more than may come out of any
    download(config, tmp_path / "raw", patience=QUICK)
    assert (tmp_path / "raw" / "a.bin").stat().st_size == 2**20


@pytest.mark.parametrize(
    "secret", ["https://ann:s3cr3t@127.0.0.1:9", "http://127.0.0.1:9/x?token=s3cr3t", "http://ann:s3/cr3t@x:9"]
)
def test_passwords_of_mirrors_and_addresses_are_not_said(tmp_path, capfd, secret):
    """The library that fetches quotes parts of an address that it can't use."""
    with pytest.raises(InputError, match="could not get") as raised:
        download(config_of(f"{secret}&again={secret}"), tmp_path, secret, QUICK)
    said = str(raised.value) + "".join(capfd.readouterr())
    assert "s3" not in said
    assert "cr3t" not in said
    assert "://…" in said or "?…" in said


@pytest.mark.parametrize("problem", ["page", "checksum", "size"])
def test_the_query_of_an_address_is_not_said(files, tmp_path, capfd, problem):
    files.files["a.bin?token=s3cr3t"] = b"<html>" if problem == "page" else CONTENT
    changes = {"checksum": {"sha256": "0" * 64}, "size": {"sha256": None, "size": 1}}.get(problem, {})
    with pytest.raises(InputError, match="could not get") as raised:
        download(config_of(f"{files.url}/ok/a.bin?token=s3cr3t", **changes), tmp_path, patience=QUICK)
    assert "s3cr3t" not in str(raised.value) + "".join(capfd.readouterr())


def test_where_a_file_came_from_is_said_without_the_query(files, tmp_path, capfd):
    files.files["a.bin?token=s3cr3t"] = CONTENT
    download(config_of(f"{files.url}/ok/a.bin?token=s3cr3t"), tmp_path, patience=QUICK)
    assert f"a.bin is here, from {files.url}/ok/a.bin?…" in capfd.readouterr().err
