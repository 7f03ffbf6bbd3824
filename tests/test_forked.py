"""What stands in for ``subprocess.run`` in tests tells of a program what that would."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from forked import run, xsoftmax


def python(text, *words):
    return [sys.executable, "-c", text, *words]


@pytest.mark.parametrize(
    "words",
    [
        python("import sys; print(sys.argv, __name__, sys.stdin.read()); sys.exit(3)", "a b"),
        python("import sys; sys.exit('why')"),
        python("import sys; sys.exit()"),
        python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
        python("import atexit; atexit.register(print, 'last'); print('first')"),
        python("import threading, time; threading.Timer(0.2, print, ['later']).start()"),
        python("import os; print(os.getcwd(), os.environ['LAST'], os.environ.get('PYTEST_CURRENT_TEST'))"),
        xsoftmax("--version"),
        xsoftmax("evaluate", "none.h5", "none.h5"),
        xsoftmax("nothing"),
    ],
    ids=lambda words: " ".join(words[1:])[:40],
)
def test_a_program_ends_and_prints_as_one_that_is_started(words, tmp_path):
    where = {"cwd": tmp_path, "env": {**os.environ, "LAST": "é"}}
    started = subprocess.run(words, **where, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    done = run(words, **where)
    assert (done.returncode, done.stdout, done.stderr) == (started.returncode, started.stdout, started.stderr)


def test_an_exception_is_a_traceback_and_status_1():
    done = run(python("1 / 0"))
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_nothing_of_one_program_is_in_the_next(monkeypatch):
    monkeypatch.setattr(sys, "left", "here", raising=False)
    for _ in range(2):
        done = run(python("import sys; print(hasattr(sys, 'left')); sys.left = 'there'"))
        assert done.stdout == "False\n"


def test_limits_are_those_of_one_program():
    many = python("bytes(2**33)")
    assert "MemoryError" in run(many, limits={resource.RLIMIT_AS: 2**32}).stderr
    assert run(python("import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0])")).stdout == (
        f"{resource.getrlimit(resource.RLIMIT_AS)[0]}\n"
    )


def test_what_hangs_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        run(python("import time; time.sleep(100)"), timeout=0.5)
    assert run(python("import os; os.abort()")).returncode == -signal.SIGABRT
