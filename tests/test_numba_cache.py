"""Programs that compile at the same time: whose code is loaded afterwards."""

import os
import subprocess
import sys

import pytest
from numba.core import caching

from xsoftmax.numba_cache import FileBySignature

# A program that compiles for one type. With a second type it starts another one, which compiles for that, reads the
# index before the first one has written it, writes its own after that, and ends before the first one writes code.
PROGRAM = """
import pathlib, subprocess, sys, time
import xsoftmax.kernels
from numba.core import caching
from kernel import double

read, written = (pathlib.Path(__file__).with_name(name) for name in ("read", "written"))
files, role, kind, *others = caching.IndexDataCacheFile, *sys.argv[1:]
save_index, save_data, started = files._save_index, files._save_data, []

def wait_for(path):
    while not path.exists():
        time.sleep(0.01)

def first_saves_index(self, overloads):
    started.append(subprocess.Popen([sys.executable, __file__, "second", *others]))
    wait_for(read)
    save_index(self, overloads)
    written.touch()

def first_saves_data(self, name, data):
    for other in started:
        other.wait()
    save_data(self, name, data)

def second_saves_index(self, overloads):
    read.touch()
    wait_for(written)
    save_index(self, overloads)

if role == "first":
    files._save_index, files._save_data = first_saves_index, first_saves_data
if role == "second":
    files._save_index = second_saves_index
found = double({"int": 3, "float": 1.5}[kind]), sum(double.stats.cache_misses.values())
sys.stdout.write("%s %s\\n" % found)  # in one piece: both programs write to the same pipe
for other in started:
    other.wait()
"""
KERNEL = """
from numba import njit

@njit(cache=True)
def double(x):
    return x + x
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "kernel.py").write_text(KERNEL)

    def run(*arguments):
        environment = {**os.environ, "XSOFTMAX_NUMBA_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, str(tmp_path / "program.py"), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run


def test_two_programs_that_compile_at_once_leave_no_mixture(run):
    """With numba's own numbers the index is left naming the code for 3 as that for 1.5."""
    assert sorted(run("first", "int", "float")) == ["1", "1", "3.0", "6"]
    for _ in range(2):
        assert run("alone", "float")[0] == "3.0"
        assert run("alone", "int")[0] == "6"
    assert run("alone", "float") == ["3.0", "0"]
    assert run("alone", "int") == ["6", "0"]


def test_it_is_in_use():
    assert caching.IndexDataCacheFile is FileBySignature
