"""Files appear whole or not at all."""

import os
import platform
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import BusyError, locked, remove, write_json, write_text, written_aside


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with written_aside(path) as aside:
        aside.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail_halfway():
        with written_aside(path) as aside:
            aside.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_goes_with_the_file(tmp_path):
    path = tmp_path / "file.txt"
    aside = written_aside(path)
    aside.__enter__().write_text("half")
    remove(path)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from xsoftmax.internal.files import written_aside
with written_aside(Path(sys.argv[1])) as aside:
    aside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_kill_left_goes_with_the_next_file(tmp_path):
    path = tmp_path / "file[1].txt"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "half"
    with written_aside(path) as aside:
        aside.write_text("all of it")
    assert list(tmp_path.iterdir()) == [path]


def test_two_that_write_the_same_file_do_not_write_into_one_another(tmp_path):
    """The other one runs on, such as a job that its scheduler has started twice."""
    path = tmp_path / "file.txt"
    others = path.with_name(f".{path.name}.{platform.node()}.{os.getppid()}.aside")
    others.write_text("half")
    with written_aside(path) as aside:
        aside.write_text("all of it")
    assert path.read_text() == "all of it"
    assert others.read_text() == "half"


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Otherwise a machine that dies leaves an empty file of that name."""
    happened, sync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        happened.append(("synced", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        sync(descriptor)

    def replaced(old, new):
        happened.append(("replaced", str(old)))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_text(tmp_path / "file.txt", "all of it")
    assert [what for what, _ in happened] == ["synced", "replaced"]
    assert happened[0][1] == happened[1][1]


def test_texts_are_utf_8_whatever_the_locale(tmp_path):
    write_text(tmp_path / "text", "Zoë 汉字")
    write_json(str(tmp_path / "json"), {"a": [1, "é"]})
    assert (tmp_path / "text").read_bytes() == "Zoë 汉字".encode()
    assert (tmp_path / "json").read_text() == '{\n "a": [\n  1,\n  "\\u00e9"\n ]\n}\n'


@pytest.mark.fault(
    "an output that is a symbolic link",
    happens="the file that it leads to is replaced; the link stays",
    user="nothing",
)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(there, tmp_path):
    target, link, second = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "second"
    if there:
        target.parent.mkdir()
        target.write_text("old")
        target.chmod(0o640)
    link.symlink_to("far/target")
    second.symlink_to(link)
    write_text(second, "new")
    assert target.read_text() == "new"
    assert second.is_symlink()
    assert link.is_symlink()
    assert not there or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(target.parent.iterdir()) == [target]
    remove(second)
    assert not target.exists()


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").is_symlink()


def test_a_folder_is_an_error(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "folder", "new")
    assert (tmp_path / "folder").is_dir()


def test_a_pipe_gets_the_content_once_it_is_whole(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    with written_aside(tmp_path / "pipe") as aside:
        aside.write_text("all of it")
        time.sleep(0.1)
        assert not found
    reader.join(10)
    assert found == ["all of it"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


WRITES = """
import sys
from xsoftmax.internal.files import write_text
print("before")
write_text(sys.argv[1], "content\\n")
print("after")
"""


@pytest.mark.fault(
    "an output that is /dev/stdout, a pipe or a device",
    happens="it gets the content once that is whole, and stays what it was",
    user="nothing",
)
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_not_replaced(name, tmp_path):
    """Be it a pipe or a file, where what was printed before and is printed afterwards keeps its place."""
    words = [sys.executable, "-c", WRITES, name]
    assert subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout == "before\ncontent\nafter\n"
    with (tmp_path / "out").open("w") as out:
        out.write("first\n")
        out.flush()
        subprocess.run(words, stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "first\nbefore\ncontent\nafter\n"
    assert os.path.islink("/dev/stdout")  # noqa: PTH114
    for device in ("/dev/null", "/dev/full"):
        done = subprocess.run([sys.executable, "-c", WRITES, device], capture_output=True, check=False)
        assert stat.S_ISCHR(os.stat(device).st_mode)  # noqa: PTH116
        assert (done.returncode == 0) == (device == "/dev/null")


HOLDS = """
import sys, time
from pathlib import Path
from xsoftmax.internal.files import locked
with locked(Path(sys.argv[1]), "try again"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_a_lock_is_held_by_one_at_a_time(tmp_path, capsys):
    path = tmp_path / "folder" / "lock"
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(path), "4"], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    with (
        pytest.raises(BusyError, match=r"has held it for more than 0.5 s; try again later"),
        locked(path, "try again", seconds=0.5),
    ):
        pass
    began = time.monotonic()
    with locked(path, "try again"):
        assert other.wait(10) == 0
    assert time.monotonic() - began > 2
    assert f"waiting for another program, which holds {path}, for 600 s at most" in capsys.readouterr().err


def test_a_lock_that_is_removed_locks_nobody_out(tmp_path):
    path = tmp_path / "lock"
    with locked(path, "try again"):
        path.unlink()
        with locked(path, "try again", seconds=0):
            assert path.exists()


def test_a_lock_is_no_way_to_change_a_file(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "link", "try again"):
        pass
    with locked(tmp_path / "precious", "try again"):
        pass
    assert (tmp_path / "precious").read_text() == "precious"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no regular file"), locked(tmp_path / "pipe", "try again"):
        pass
