"""A copy of this repository in which tests run the workflow and edit files."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import forked

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

TINY = """\
experiment: tiny
datasets: [digits]
methods: [softmax, adversarial, one-vs-each]
budget: {epochs: 1}
evaluate: {points: 1}
set: {one-vs-each: {optimizer: {name: sgd, learning_rate: 1.0e+38}}}  # diverges
"""


class Checkout:
    """A working tree of its own: all files that git tracks or would, none that it ignores; or a copy of another."""

    def __init__(self, folder: Path, original: Path | None = None) -> None:
        self.folder = folder
        if original:
            shutil.copytree(original, folder, symlinks=True, dirs_exist_ok=True)
            return
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=REPOSITORY, check=True, capture_output=True, text=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if os.path.lexists(REPOSITORY / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / name, folder / name, follow_symlinks=False)
        (folder / "tiny.yaml").write_text(TINY)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program of our environment in the working tree."""
        where = {"cwd": self.folder, "env": _environment(environment)}
        if command[0] in ("snakemake", "python"):
            return forked.run(command, **where)
        return subprocess.run(command, **where, capture_output=True, text=True, check=False)

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Start a program of our environment in the working tree, as the first of a process group.

        What it prints is in its attribute ``log``, a file of the working tree.
        """
        log = self.folder / f"printed-{time.monotonic_ns()}"
        where = {"cwd": self.folder, "env": _environment(environment), "start_new_session": True}
        with log.open("w") as printed:
            program = subprocess.Popen(command, **where, stdout=printed, stderr=printed, text=True)
        program.log = log
        return program

    def snakemake(self, *arguments: str, config: str = "tiny.yaml") -> str:
        """Run snakemake, which must succeed, and return what it printed."""
        done = self.run("snakemake", "--configfile", config, "--cores", "2", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def jobs(self, *arguments: str, config: str = "tiny.yaml") -> dict[str, int]:
        """Count by rule what snakemake would run."""
        printed = self.snakemake("--dry-run", *arguments, config=config)
        table = re.search(r"^Job stats:\n.*\n-.*\n((?:.+\n)+)", printed, re.MULTILINE)
        rows = [line.split() for line in table[1].splitlines()] if table else []
        return {rule: int(count) for rule, count in rows if rule not in ("all", "total")}

    @contextlib.contextmanager
    def rewritten(self, name: str, text: str) -> Iterator[None]:
        """Give a file another text, and put it back afterwards, date included."""
        path = self.folder / name
        before, date = path.read_text(), path.stat()
        path.write_text(text)
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(date.st_atime_ns, date.st_mtime_ns))

    def edited(self, name: str, old: str, new: str) -> contextlib.AbstractContextManager[None]:
        """Replace a text in a file for a while."""
        text = (self.folder / name).read_text()
        assert old in text, f"{name} does not contain {old!r}"
        return self.rewritten(name, text.replace(old, new, 1))

    def edited_yaml(self, name: str, change: Callable[[Any], Any]) -> contextlib.AbstractContextManager[None]:
        """Change what a YAML file says for a while; ``change`` alters the content in place."""
        content = yaml.safe_load((self.folder / name).read_text())
        change(content)
        return self.rewritten(name, yaml.safe_dump(content, sort_keys=False))


def finished_tree(factory: pytest.TempPathFactory) -> Checkout:
    """Copy a working tree where the tiny experiment has run, which is run once for all workers of pytest-xdist."""
    common = factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    original, done = common / "finished", common / "finished.done"
    with (common / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(original, ignore_errors=True)
            Checkout(original).snakemake()
            done.touch()
    return Checkout(factory.mktemp("finished"), original)


def _environment(changes: dict[str, str]) -> dict[str, str]:
    """Give the environment of a user's shell, not of the Snakemake or make that may run these tests."""
    apart = ("SNAKEMAKE", "MLFLOW", "MAKE", "XSOFTMAX_PLAN", "XSOFTMAX_CONFIG")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(apart)}
    return kept | {"PATH": f"{BIN}:{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"} | changes
