"""Programs that compile at the same time: whose code is loaded afterwards."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types
from numba.core import caching
from numba.core.caching import FunctionCache

from xsoftmax.internal.numba_cache import CheckedFile
from xsoftmax.proposals.mixture import MixtureDraws
from xsoftmax.proposals.uniform import UniformDraws

SOURCES = Path(__file__).parents[2] / "src"

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


# Slopes of some rows, by a kernel that is compiled, or read from the cache.
SLOPES = """
import hashlib
import numpy as np
from xsoftmax.kernels.full_softmax import slope_block
from xsoftmax.objectives.softmax import Softmax

scores, samples = 3 * np.random.default_rng(0).standard_normal((300, 50)), np.arange(300)
slope_block(Softmax(), np.float32(0), np.zeros(300, np.int32), np.empty((300, 0)), samples, scores)
print(sum(slope_block.stats.cache_misses.values()), hashlib.sha256(scores.tobytes()).hexdigest())
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "kernel.py").write_text(KERNEL)

    def run(*arguments):
        environment = {**os.environ, "XSOFTMAX_NUMBA_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, str(tmp_path / "program.py"), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        run.said = done.stderr
        return done.stdout.split()

    return run


@pytest.mark.slow
def test_two_programs_that_compile_at_once_leave_no_mixture(run):
    """With numba's own numbers the index is left naming the code for 3 as that for 1.5."""
    assert sorted(run("first", "int", "float")) == ["1", "1", "3.0", "6"]
    for _ in range(2):
        assert run("alone", "float")[0] == "3.0"
        assert run("alone", "int")[0] == "6"
    assert run("alone", "float") == ["3.0", "0"]
    assert run("alone", "int") == ["6", "0"]


def test_it_is_in_use():
    assert caching.IndexDataCacheFile is CheckedFile


def test_code_from_the_cache_computes_the_bits_of_code_just_compiled(tmp_path):
    """Whoever compiles has copies of inner functions in memory that were optimised on their own."""
    environment = {**os.environ, "XSOFTMAX_NUMBA_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", SLOPES]
    said = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    (compiled, first), (read, second) = (done.stdout.split() for done in said)
    assert (compiled, read) == ("1", "0")
    assert first == second


@pytest.mark.slow
def test_a_copy_of_the_sources_reads_what_these_have_compiled(tmp_path):
    """Until a module that holds kernels is edited; an edit elsewhere, as in a paper's page, changes nothing."""
    names = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES, tmp_path / "src", ignore=names, copy_function=shutil.copy)  # with dates of its own

    def slopes(sources):
        environment = {**os.environ, "XSOFTMAX_NUMBA_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(sources)}
        command = [sys.executable, "-c", SLOPES]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    compiled, expected = slopes(SOURCES)
    assert compiled == "1"
    assert slopes(tmp_path / "src") == ["0", expected]
    assert slopes(SOURCES) == ["0", expected]
    for edited, compiled in (("lab/papers/yen2018.py", "0"), ("training/fit.py", "0"), ("kernels/rows.py", "1")):
        with (tmp_path / "src/xsoftmax" / edited).open("a") as file:
            file.write("\nEDITED = True\n")
        assert slopes(tmp_path / "src") == [compiled, expected], edited


def kernels_files(folder):
    return [path for path in (folder / "cache").rglob("kernel.double*") if path.suffix in (".nbi", ".nbc")]


def flip(content, rng):
    changed = bytearray(content)
    changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


DAMAGES = {
    "empty": lambda content, rng: b"",
    "cut": lambda content, rng: content[: rng.integers(len(content))],
    "longer": lambda content, rng: content + b"x",
    "flipped": flip,
}


@pytest.mark.long_cases
@pytest.mark.fault(
    "a damaged cache of compiled code: empty, cut, or a bit flipped",
    happens="each file ends with its SHA-256: one that does not match is as good as none, and is written anew",
    user="`warning: …: damaged; what it holds is compiled anew`",
)
@pytest.mark.parametrize(
    ("suffix", "how"),
    [
        *zip((".nbi", ".nbc") * 2, DAMAGES, strict=True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in zip((".nbc", ".nbi") * 2, DAMAGES, strict=True)),
    ],
)
def test_damaged_code_is_compiled_anew(suffix, how, run, tmp_path):
    """Not run: a flipped bit in it is another number."""
    rng = np.random.default_rng(0)
    assert run("alone", "int") == ["6", "1"]
    whole = {path: path.read_bytes() for path in kernels_files(tmp_path)}
    assert {path.suffix for path in whole} == {".nbi", ".nbc"}
    for _ in range(2):
        (path,) = (path for path in whole if path.suffix == suffix)
        path.write_bytes(DAMAGES[how](whole[path], rng))
        assert run("alone", "int") == ["6", "1"]
        assert f"warning: {path}: damaged; what it holds is compiled anew" in run.said
        assert run("alone", "int") == ["6", "0"]
        assert run.said == ""


PLACES = """
import os, sys
sys.path.insert(0, sys.argv[1])
from xsoftmax.internal.errors import InputError
try:
    import xsoftmax.kernels.rows
except InputError as error:
    sys.exit(str(error))
print(os.environ["NUMBA_CACHE_DIR"])
"""


def place(**environment):
    """Where a program keeps compiled code, or why it cannot."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("XSOFTMAX", "XDG", "HOME"))}
    words = [sys.executable, "-c", PLACES, str(SOURCES)]
    done = subprocess.run(words, env=known | environment, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip()


@pytest.mark.slow
@pytest.mark.fault(
    "a home folder, or a cache folder, that cannot be written to",
    happens="nothing is compiled: numba would keep code beside the sources, where it misses edits of other files",
    user="`error: …: cannot keep compiled code there (…); set XSOFTMAX_NUMBA_CACHE to a folder …`",
)
def test_where_compiled_code_is_kept(tmp_path):
    assert place(HOME=str(tmp_path)).startswith(f"{tmp_path}/.cache/xsoftmax/numba/")
    assert place(HOME="/", XDG_CACHE_HOME=str(tmp_path / "own")).startswith(f"{tmp_path}/own/xsoftmax/numba/")
    assert place(HOME=str(tmp_path), XDG_CACHE_HOME="relative").startswith(f"{tmp_path}/.cache/")
    assert place(HOME="/", XSOFTMAX_NUMBA_CACHE=str(tmp_path / "named")).startswith(f"{tmp_path}/named/")
    (tmp_path / "file").write_text("")
    for environment in ({"HOME": str(tmp_path / "file")}, {"XSOFTMAX_NUMBA_CACHE": "/proc/none"}):
        said = place(**environment)
        assert "cannot keep compiled code there" in said
        assert "set XSOFTMAX_NUMBA_CACHE to a folder that is yours to write to" in said


def test_code_of_someone_elses_is_not_run(tmp_path):
    """Of the folder that is taken by itself; who names another one has looked at it."""
    if os.getuid():
        pytest.skip("NO RIGHT TO GIVE FILES AWAY HERE: whose compiled code is taken is not tested; run as root")
    (tmp_path / ".cache" / "xsoftmax").mkdir(parents=True)
    os.chown(tmp_path / ".cache" / "xsoftmax", 12345, 12345)
    assert "belongs to someone else" in place(HOME=str(tmp_path))


def test_a_cache_that_everyone_may_write_to_is_refused(tmp_path):
    (tmp_path / ".cache" / "xsoftmax").mkdir(parents=True)
    (tmp_path / ".cache" / "xsoftmax").chmod(0o777)
    assert "may be written to by everyone" in place(HOME=str(tmp_path))
    (tmp_path / ".cache" / "xsoftmax").chmod(0o755)
    (tmp_path / ".cache" / "xsoftmax" / "numba").mkdir()
    (tmp_path / ".cache" / "xsoftmax" / "numba").chmod(0o777)
    assert "numba: cannot keep compiled code there (may be written to by everyone" in place(HOME=str(tmp_path))


def test_a_user_whom_the_system_does_not_know(tmp_path):
    """As in a container that runs as any number: neither HOME nor an entry of theirs."""
    unknown = "import pwd\ndef none(number):\n    raise KeyError(number)\npwd.getpwuid = none\n"
    known = {key: value for key, value in os.environ.items() if not key.startswith(("XSOFTMAX", "XDG", "HOME"))}
    words = [sys.executable, "-c", unknown + PLACES, str(SOURCES)]
    done = subprocess.run(words, env=known | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False)
    own = tmp_path / f"xsoftmax-{os.getuid()}"
    assert done.stdout.startswith(f"{own}/numba/"), done.stderr
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


class OfAScript(NamedTuple):
    """A type that other programs cannot import."""

    n: int


@pytest.mark.fault(
    "compiled code for a type of someone's own script, read by another program",
    happens="it is not kept, so that no other program fails on it; it is compiled again next time",
    user="nothing",
    lost="the seconds that compiling takes",
)
def test_what_others_could_not_read_is_not_kept(monkeypatch):
    """numba's index of a function names the types of all its signatures; who lacks one of them could read none."""
    saved = []
    monkeypatch.setattr(caching.Cache, "save_overload", lambda self, sig, data: saved.append(sig))
    own, ours, plain = typeof(OfAScript(1)), typeof(UniformDraws(3)), types.int64
    mixed = typeof(MixtureDraws(OfAScript(1), UniformDraws(3), *np.ones(3, np.float32)))
    for signature in ((own,), (plain, own), (mixed,), plain(own)):
        FunctionCache.save_overload(None, signature, None)
        assert not saved
    for n, signature in enumerate([(ours,), (plain, ours), plain(ours), ()]):
        FunctionCache.save_overload(None, signature, None)
        assert len(saved) == n + 1
