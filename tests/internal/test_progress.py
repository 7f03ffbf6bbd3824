"""Progress in a log file: few lines, each with what is done of what."""

import numpy as np
import pytest

from xsoftmax.internal.progress import Progress


@pytest.fixture
def seconds(monkeypatch):
    """A clock that goes on by four seconds whenever it is read."""
    clock = iter(np.arange(0, 200, 4.0))
    monkeypatch.setattr("xsoftmax.internal.progress.time.monotonic", lambda: next(clock))


def test_log_lines_are_few(capsys, seconds):
    with Progress("tree of toy", "levels", total=10) as progress:
        for level in range(10):
            progress.move_to(level + 1, "note")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tree of toy: 3 of 10 levels, note"
    assert 2 <= len(lines) <= 4


def test_what_is_said_is_written_at_once(capsys):
    with Progress("fit", "epochs") as progress:
        progress.say("half done")
        progress.move_to(1)
    assert capsys.readouterr().err == "fit: half done\n"


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("fit", "epochs", total=2) as progress:
        progress.move_to(2, "5 steps/s")
    shown = capsys.readouterr().err
    assert "2/2 epochs" in shown
    assert "5 steps/s" in shown
