"""What SLURM says of jobs, and what a test does to them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from workflow.checkout import Checkout

# Snakemake waits for ever for a job that can never start, and may not end on SIGTERM.
COMMAND = ["timeout", "--signal=INT", "--kill-after=20", "600", "snakemake", "--profile", "slurm"]
QUICK = ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "20"]
# Half a minute of training, so that there is something to interrupt.
LONG = {
    "experiment": "long",
    "datasets": ["digits"],
    "methods": ["softmax"],
    "budget": {"epochs": 30_000},
    "evaluate": {"points": 3},
}
OFTEN = {"XSOFTMAX_CHECKPOINT_SECONDS": "0.5"}
# Of an experiment.
CHECKPOINT = "scratch/{}/digits/softmax/seed-0.h5"
FIT = "results/{}/fits/digits/softmax/seed-0"


def write(tree: Checkout, config: dict[str, object]) -> None:
    """Write an experiment's config into a working tree."""
    (tree.folder / "config.yaml").write_text(yaml.safe_dump(config))


def log_of(tree: Checkout, experiment: str = "long") -> str:
    """Read what a fit has printed in its last attempt."""
    return (tree.folder / f"logs/{experiment}/train/digits/softmax/seed-0.log").read_text()


def slurm(*words: str) -> str:
    """Run one of SLURM's commands, and return what it printed."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def jobs(*auxiliary: str) -> list[str]:
    """List the ids of jobs in these states."""
    return slurm("squeue", "--noheader", "--format=%i", "--states", ",".join(auxiliary)).split()


def nodes() -> list[str]:
    """Name the nodes."""
    return slurm("sinfo", "--noheader", "--Node", "--partition=cpu", "--format=%N").split()


def take_node(state: str) -> None:
    """Let the last node go down, or be drained."""
    slurm("scontrol", "update", f"nodename={nodes()[-1]}", f"state={state}", "reason=test")


def return_node() -> None:
    """Let it come back, unless it did so by itself."""
    name = nodes()[-1]

    def the_node_is_up() -> bool:
        words = ["scontrol", "update", f"nodename={name}", "state=resume"]
        subprocess.run(words, check=False, capture_output=True)
        return slurm("sinfo", "--noheader", f"--nodes={name}", "--partition=cpu", "--format=%t").strip() in (
            "idle",
            "mix",
            "alloc",
        )

    wait(the_node_is_up)


def wait(what: Callable[[], object], seconds: float = 120) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"after {seconds} s still not: {what.__name__}"
        time.sleep(0.1)


def wait_for_checkpoint(path: Path) -> None:
    """Wait until a fit has written a checkpoint that was not there before."""
    before = path.stat().st_mtime_ns if path.exists() else 0

    def a_new_checkpoint() -> bool:
        return path.exists() and path.stat().st_mtime_ns != before

    wait(a_new_checkpoint)


@contextmanager
def snakemake(tree: Checkout, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run snakemake on the cluster beside the test; nothing of it is left afterwards."""
    program = tree.start(*COMMAND, *QUICK, *words, **environment)
    try:
        yield program
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        subprocess.run(["scancel", "--user", str(os.getuid())], check=True)
        wait(lambda: not jobs("PENDING", "RUNNING", "COMPLETING"))
