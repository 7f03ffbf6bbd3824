"""Files appear whole or not at all."""

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
