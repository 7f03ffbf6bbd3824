"""Run a verb in a process of its own and see what that takes: time, peak memory, and what numba compiles.

``python -m xsoftmax.lab.benchmark.observed train ...`` runs the verb and ends with a line of JSON on standard output.
"""

import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from xsoftmax.internal.compiled import event
from xsoftmax.internal.errors import InputError

_MARK = "observed: "


class Observed(NamedTuple):
    """What a process took.

    Attributes
    ----------
    seconds : float
        From its start to its end, on the wall.
    compiled : int
        Signatures that numba compiled, rather than loaded.
    peak_bytes : int
        Memory held at most at once.
    """

    seconds: float
    compiled: int
    peak_bytes: int


def observed(arguments: Sequence[object], cache: Path | None = None, threads: int = 1) -> Observed:
    """Run ``python -m xsoftmax`` with these arguments.

    Parameters
    ----------
    arguments : sequence
    cache : Path, optional
        Where numba caches; by default where it always does.
    threads : int
        Of BLAS.

    Raises
    ------
    InputError
        If it fails.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    if cache is not None:
        environment["XSOFTMAX_NUMBA_CACHE"] = str(cache)
    command = [sys.executable, "-m", __name__, *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    last = done.stdout.rstrip().rpartition("\n")[2]
    if done.returncode or not last.startswith(_MARK):
        raise InputError(f"xsoftmax {' '.join(map(str, arguments))} failed:\n{done.stderr[-2000:]}")
    return Observed(seconds, **json.loads(last.removeprefix(_MARK)))


def peak_bytes_so_far() -> int:
    """Peak memory of this program: what getrusage tells may be that of the program which started it."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise InputError("the system does not tell a process's peak memory (/proc/self/status); measure it on Linux")


def _run() -> int:
    """Do what ``python -m xsoftmax`` does with our arguments, and print what it took."""
    with event.install_recorder("numba:compile") as compilations:
        try:
            runpy.run_module("xsoftmax", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = int(end.code or 0)
    compiled = sum(each.is_start for _, each in compilations.buffer)
    found: dict[str, Any] = {"compiled": compiled, "peak_bytes": peak_bytes_so_far()}
    print(_MARK + json.dumps(found))
    return status


if __name__ == "__main__":
    sys.exit(_run())
