"""`make run` installs what runs need, `make setup` the rest; who waits sees how far it is."""

import os
import pty
import re
import runpy
import shutil
import subprocess
import venv

import pytest

from workflow.checkout import REPOSITORY

INSTALL = REPOSITORY / "envs/install.py"
FILES = (
    "Makefile",
    "pyproject.toml",
    "requirements.lock",
    "requirements-run.lock",
    "envs/create-venv.sh",
    "envs/install.py",
)
STAMPS = (".venv/.installed-run", ".venv/.installed")
PRINTED = """\
Ignoring colorama: markers 'sys_platform == "win32"' don't match your environment
Requirement already satisfied: click==1 in ./lib (from -r few.lock (line 1)) (1)
  Downloading numpy-2.4.6-cp311-abi3.whl.metadata (62 kB)
  Downloading numpy-2.4.6-cp311-abi3.whl (16.6 MB)
Processing /wheels/six-1.17.0-py2.py3-none-any.whl
Installing collected packages: six, numpy
"""
# What stands in for pip, in an environment of its own: it prints what pip does and leaves behind what pip leaves.
PIP = """
import pathlib, sys, sysconfig, time
site = pathlib.Path(sysconfig.get_path("purelib"))
if said:
    sys.exit(print(said, end="") or 1)
for line in printed.splitlines():
    print(line, flush=True)
    time.sleep(wait)
for name in ("six-1.17.0", "numpy-2.4.6"):
    (site / f"{name}.dist-info").mkdir()
    (site / f"{name}.dist-info" / "INSTALLER").touch()
"""
FEW = "".join(f"{name}==1 \\\n    --hash=sha256:{0:064}\n" for name in ("click", "colorama", "numpy", "six"))
MISSING = "ERROR: No matching distribution found for six==1.17.0\n"


def packages(lock):
    """Pairs of a name with its version, and the hashes, of what a lock names."""
    text = (REPOSITORY / lock).read_text().replace("\\\n", " ")
    return {
        pin: set(hashes.split()) for pin, hashes in re.findall(r"^(\S+==\S+)[^-\n]*?((?: +--hash=\S+)+)", text, re.M)
    }


def test_what_runs_need_is_a_part_of_what_is_locked():
    """If this fails, run `make lock`."""
    few, all_of_them = packages("requirements-run.lock"), packages("requirements.lock")
    assert len(few) == len(re.findall(r"^\w", (REPOSITORY / "requirements-run.lock").read_text(), re.MULTILINE))
    assert few.items() <= all_of_them.items()
    names = {pin.split("==")[0] for pin in few}
    assert names >= {"numba", "mlflow", "snakemake", "dvc", "matplotlib", "pyarrow", "setuptools"}
    assert not names & {"pytest", "mypy", "ruff", "mkdocs", "playwright", "ipykernel", "faiss-cpu"}


@pytest.fixture
def make(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()

    def is_made(target):
        return subprocess.run(["make", "-q", target], cwd=tmp_path, check=False).returncode == 0

    return is_made


def written(folder, *names, at):
    for name in names:
        (folder / name).touch()
        os.utime(folder / name, (at, at))


@pytest.mark.parametrize(
    ("stamps", "newer", "ready"),
    [
        ((), (), []),
        (STAMPS[:1], (), ["setup-run"]),
        (STAMPS, (), ["setup-run", "setup"]),
        (STAMPS, ("requirements.lock",), ["setup-run"]),
        (STAMPS, ("requirements-run.lock",), []),
        (STAMPS, ("pyproject.toml",), []),
    ],
    ids=lambda value: "+".join(value) or "none",
)
def test_what_is_installed_is_not_installed_again(make, tmp_path, stamps, newer, ready):
    written(tmp_path, *FILES, at=1_000)
    for time, stamp in enumerate(stamps):
        written(tmp_path, stamp, at=2_000 + time)
    written(tmp_path, *newer, at=3_000)
    assert [target for target in ("setup-run", "setup") if make(target)] == ready


def environment(tmp_path, said="", wait=0.0):
    """An environment with the stand-in for pip."""
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (site / "pip").mkdir()
    (site / "pip/__main__.py").write_text(f"said, wait, printed = {said!r}, {wait}, {PRINTED!r}\n{PIP}")
    (tmp_path / "few.lock").write_text(FEW)
    return [tmp_path / "venv/bin/python", INSTALL, "few.lock"]


def test_a_log_gets_one_line(tmp_path):
    done = subprocess.run(environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"few\.lock: 2 packages installed in \d+ s\n", done.stdout)
    assert done.stderr == ""


def test_a_terminal_sees_how_far_it_is(tmp_path):
    ours, theirs = pty.openpty()
    program = subprocess.Popen(environment(tmp_path, wait=0.15), cwd=tmp_path, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = ""
    while piece := _read(ours):
        printed += piece
    assert program.wait() == 0
    assert re.search(r"\rfew\.lock, \d+ s: (fetched|installing) \d of 2.*\x1b", printed)
    assert re.search(r"few\.lock: 2 packages installed in \d+ s\r\n$", printed)


@pytest.mark.parametrize(
    ("n_lines", "n_installed", "line"),
    [
        (0, 0, "fetched 0 of 4"),
        (3, 0, "fetched 0 of 2"),
        (4, 0, "fetched 1 of 2: numpy-2.4.6-cp311-abi3.whl (16.6 MB)"),
        (5, 0, "fetched 2 of 2: six-1.17.0-py2.py3-none-any.whl"),
        (6, 1, "installing 1 of 2"),
    ],
)
def test_the_line_counts_what_pip_has_done(n_lines, n_installed, line):
    """Not what is there already or is for other machines, nor the files that only describe a package."""
    program = runpy.run_path(str(INSTALL))
    printed = "\n".join(PRINTED.splitlines()[:n_lines])
    assert program["progress"](printed, program["entries"](FEW), n_installed) == line


def _read(terminal):
    try:
        return os.read(terminal, 4096).decode()
    except OSError:  # Linux says so where the other end is closed
        return ""


@pytest.mark.fault(
    "a package index that does not answer while `make run` or `make setup` installs, or a package with another hash",
    happens="nothing is marked as installed; the same command goes on from there",
    user="`error: requirements-run.lock: …`: why, what to do, and where all of pip's output is",
)
@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            f"WARNING: Retrying (Retry(total=0)) after connection broken by 'X'\n{MISSING}",
            "the package index does not answer",
        ),
        (MISSING, "pip says: No matching distribution found for six==1.17.0"),
        ("ERROR: Exception:\nTraceback\n  a.py\nTimeoutError: timed out\n", "pip says: TimeoutError: timed out"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    six==1.17.0 from a.whl\n",
            "six==1.17.0 is not the file of which the lock has the hash",
        ),
    ],
    ids=["no network", "no such version", "pip crashes", "another hash"],
)
def test_what_stops_pip_is_said_in_a_line(tmp_path, said, line):
    done = subprocess.run(environment(tmp_path, said), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: few.lock: {line}")
    assert done.stderr.endswith(f"all that pip printed is in {tmp_path / 'venv/install.log'}\n")
    assert done.stderr.count("\n") == 1
    assert said in (tmp_path / "venv/install.log").read_text()
