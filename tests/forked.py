"""Programs in forked children of one that has imported what they need: each is new, but its start takes no seconds.

``run`` is ``subprocess.run`` for ``python -m …``, ``python -c …`` and ``snakemake``. A server, started anew for each
environment that is asked for, imports modules and runs nothing; each program is a child of it, with its own folder,
environment, limits and files for what it prints, and ends as any program does: by its status or by a signal. Where
the start itself is tried (imports, variables that are read by them, signals to groups, closed files), or where the
order of sets has to differ from program to program, use ``subprocess``.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

# For Snakemake nothing of ours: a copy of this repository has its own.
MODULES = {
    "xsoftmax": (
        "xsoftmax.cli",
        *(f"xsoftmax.commands.{verb}" for verb in ("evaluate", "prepare", "proposal", "train")),
    ),
    "snakemake": (
        "snakemake.cli",
        "jsonschema",
        "numba",
        "pandas",
        "scipy.linalg",
        "scipy.sparse",
        "smart_open",
        "yaml",
    ),
}
# Variables that are read when they are needed; with any other one a program gets a server of its own.
LATE = ("PYTEST_", "MLFLOW_TRACKING_URI", "MLFLOW_HTTP", "SLURM_", "XSOFTMAX_CHECKPOINT", "DVC_")
MOST_SERVERS = 3


def xsoftmax(*words: object) -> list[str]:
    """Give the command of a verb."""
    return [sys.executable, "-m", "xsoftmax", *map(str, words)]


def run(
    words: Sequence[object],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    timeout: float = 600,
    imports: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever that is; ``limits`` by their number in ``resource``.

    ``imports`` are modules that it will need, for the programs after it.
    """
    words = [str(word) for word in words]
    module = "snakemake" if words[0] == "snakemake" else "xsoftmax"
    arguments = ["-m", *words] if module == "snakemake" else words[1:]
    assert arguments[0] in ("-m", "-c"), words
    asked = {
        "words": arguments,
        "cwd": str(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "limits": dict(limits or {}),
        "imports": list(imports),
    }
    printed = {"mode": "w+", "encoding": "utf-8"}
    with tempfile.TemporaryFile(**printed) as out, tempfile.TemporaryFile(**printed) as err:
        returncode = _server(module, asked["env"]).run(asked, [out.fileno(), err.fileno()], timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, returncode, out.read(), err.read())


class _Server:
    """A program that forks others."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno()), *MODULES[module]]
            self.program = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def run(self, asked: dict[str, object], files: list[int], timeout: float) -> int:
        """Have a program run, and return how it ended."""
        socket.send_fds(self.channel, [json.dumps(asked).encode()], files)
        pid = int(self.channel.recv(64))
        if not select.select([self.channel], [], [], timeout)[0]:
            os.kill(pid, 9)
            self.channel.recv(64)
            raise subprocess.TimeoutExpired(asked["words"], timeout)
        return int(self.channel.recv(64))

    def stop(self) -> None:
        """End the server."""
        self.channel.close()
        self.program.wait()


_servers: dict[tuple, _Server] = {}


@atexit.register
def _stop_all() -> None:
    for server in _servers.values():
        server.stop()


def _server(module: str, environment: dict[str, str]) -> _Server:
    early = {name: value for name, value in environment.items() if not name.startswith(LATE)}
    key = (module, *sorted(early.items()))
    found = _servers.pop(key, None) or _Server(module, early)
    if len(_servers) == MOST_SERVERS:
        _servers.pop(next(iter(_servers))).stop()
    _servers[key] = found  # the last one is the latest that was used
    return found


def _serve(channel: socket.socket) -> tuple[dict, list[int]]:
    """Fork for each program that is asked for; return in the child."""
    while True:
        message, files, _, _ = socket.recv_fds(channel, 2**20, 2)
        if not message:
            os._exit(0)
        asked = json.loads(message)
        for module in asked["imports"]:
            importlib.import_module(module)
        gc.freeze()  # what is here is not looked through again by each child
        pid = os.fork()
        if pid == 0:
            channel.close()
            return asked, files
        for file in files:
            os.close(file)
        channel.send(str(pid).encode())
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _become(asked: dict, files: list[int]) -> None:
    """Be the program from here to the end."""
    for number, file in enumerate([os.open(os.devnull, os.O_RDONLY), *files]):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for limit, value in asked["limits"].items():
        resource.setrlimit(int(limit), (value, value))
    status = _status_of(*asked["words"])
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # to take all modules apart takes as long as many a program


def _status_of(how: str, what: str, *words: str) -> int:
    """Run a program, and give the status with which Python would end."""
    sys.argv = [what if how == "-m" else "-c", *words]
    sys.path[0] = str(Path.cwd()) if how == "-m" else ""
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = program = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(program))
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 255
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as of a program: it is told, and ends it
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    for _module in sys.argv[2:]:
        importlib.import_module(_module)
    _become(*_serve(socket.socket(fileno=int(sys.argv[1]))))
