"""Who has started the processes that train one model together, and how they find each other.

`torchrun` and SLURM's `srun` tell each process its number in environment variables; ``joined`` makes a group of them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from xsoftmax.gpu.device import require
from xsoftmax.gpu.ranks import ALONE, SECONDS_VARIABLE, Group, World
from xsoftmax.internal.errors import InputError

# How long a rank waits for another one, unless an environment variable says otherwise.
SECONDS = 600
# Without it, PyTorch prints its own stack where a connection fails, before it raises an exception.
_NO_STACKS = ("TORCH_CPP_LOG_LEVEL", "FATAL")
# Of SLURM's jobs, which tell no port: that many from the first on, by the job's number.
FIRST_PORT, N_PORTS = 20_000, 10_000
BY_HAND = "start it with torchrun --nproc-per-node {n} -m xsoftmax …, or with srun --ntasks {n} python -m xsoftmax …"


def world_of(environment: Mapping[str, str], asked: int | None = None) -> World | None:
    """Read what torchrun or srun says of this process; None if it is on its own.

    Parameters
    ----------
    environment : mapping of str to str
        RANK and WORLD_SIZE of torchrun come before SLURM_PROCID and SLURM_STEP_NUM_TASKS of srun.
    asked : int, optional
        How many processes there have to be.

    Raises
    ------
    InputError
        If there are others than ``asked``, or a variable is missing or no number.
    """
    by_torchrun = "RANK" in environment or "WORLD_SIZE" in environment
    found = _of_torchrun(environment) if by_torchrun else _of_slurm(environment)
    n_ranks = 1 if found is None else found.n_ranks
    if asked is not None and asked != n_ranks:
        started = f"{n_ranks} process{'es' * (n_ranks > 1)} of it {'were' if n_ranks > 1 else 'was'} started"
        raise InputError(f"--ranks is {asked}, and {started}; {BY_HAND.format(n=asked)}")
    return found if n_ranks > 1 else None


def _of_torchrun(environment: Mapping[str, str]) -> World:
    rank, n_ranks = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    if not rank < n_ranks:
        raise InputError(f"RANK is {rank} and WORLD_SIZE {n_ranks}; ranks count from 0; {BY_HAND.format(n=n_ranks)}")
    local = _number(environment, "LOCAL_RANK") if "LOCAL_RANK" in environment else rank
    if n_ranks == 1:
        return World(rank, n_ranks, local, "", 0)
    if "MASTER_ADDR" not in environment:
        raise InputError("MASTER_ADDR is not set; it names the machine of rank 0, and torchrun sets it")
    return World(rank, n_ranks, local, environment["MASTER_ADDR"], _number(environment, "MASTER_PORT"))


def _of_slurm(environment: Mapping[str, str]) -> World | None:
    """A job's script itself has a number, too, but is no task of a step."""
    if environment.get("SLURM_STEP_NUM_TASKS", "1") == "1":
        return None
    number = {
        name: _number(environment, f"SLURM_{name}") for name in ("PROCID", "STEP_NUM_TASKS", "LOCALID", "JOB_ID")
    }
    nodes = environment.get("SLURM_STEP_NODELIST", "localhost")
    port = int(environment.get("MASTER_PORT", FIRST_PORT + number["JOB_ID"] % N_PORTS))
    address = environment.get("MASTER_ADDR") or first_node(nodes)
    return World(number["PROCID"], number["STEP_NUM_TASKS"], number["LOCALID"], address, port)


def first_node(nodes: str) -> str:
    """Name the first of SLURM's list of nodes, such as "gpu-[03-04,07],login"."""
    found = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\]([^,\[]*))?", nodes)
    return "".join(part or "" for part in found.groups()) if found else nodes


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not re.fullmatch(r"\d{1,9}", text):
        raise InputError(f"{name} is {text!r}; it is a number that torchrun or srun sets")
    return int(text)


@contextmanager
def joined(world: World | None, place: str, name: str) -> Iterator[Group]:
    """Make a group of the processes that were started together, for as long as this lasts.

    Parameters
    ----------
    world : World or None
        None: give ``ALONE``.
    place : {"numba", "cpu", "cuda"}
        Where the method trains. Each process takes a card of its own; tensors there go by nccl, others by gloo.
    name : str
        The method's.

    Raises
    ------
    InputError
        If compiled code is to train, the device is not there, or not all processes come within ``SECONDS``.
    """
    if world is None:
        yield ALONE
        return
    if place not in ("cpu", "cuda"):
        raise InputError(
            f"method {name}: {world.n_ranks} processes were started together, and compiled code trains in one; "
            "set device: cuda (or cpu), or start one process"
        )
    os.environ.setdefault(*_NO_STACKS)
    require(name, place)
    from xsoftmax.gpu.sharded import Ranks

    with Ranks.started(world, place, timedelta(seconds=patience(os.environ))) as ranks:
        yield ranks


def patience(environment: Mapping[str, str]) -> int:
    """Read how many seconds a rank waits for another one."""
    seconds = _number({SECONDS_VARIABLE: str(SECONDS), **environment}, SECONDS_VARIABLE)
    if not seconds:
        raise InputError(f"{SECONDS_VARIABLE} is 0; set it to 1 or more, such as {SECONDS}")
    return seconds
