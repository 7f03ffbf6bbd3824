"""Files appear whole or not at all."""

import os
import platform
import subprocess
import sys

import pytest

from xsoftmax.files import remove, written_aside


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
from xsoftmax.files import written_aside
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
