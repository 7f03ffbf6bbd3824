"""How much memory may still be taken, asked before it is: by the machine, by a container or job, and by `ulimit`."""

import resource
from collections.abc import Iterator
from pathlib import Path

import psutil

from xsoftmax.internal.errors import InputError

MB = 2**20
GROUPS = Path("/sys/fs/cgroup")


def free_bytes() -> int:
    """Tell how many bytes this process may still take."""
    return max(0, min([psutil.virtual_memory().available, *_left_of_group(), *_left_of_ulimit()]))


def check_free(n_bytes: int, what: str, remedy: str = "free some, or take a larger machine") -> None:
    """Make sure that so much memory is there before it is taken.

    Raises
    ------
    InputError
        If it is not; says for what, how much, and what to do.
    """
    free = free_bytes()
    if n_bytes > free:
        raise InputError(f"{what}: {n_bytes // MB:,} MB of memory, {free // MB:,} MB are free; {remedy}")


def _left_of_ulimit() -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield limit - psutil.Process().memory_info().vms


def _left_of_group() -> Iterator[int]:
    """What is left of the limits of this process's control groups, pages of files not counted: they make room."""
    for folder, limit, used, cached in _groups():
        try:
            most, now = (folder / limit).read_text(encoding="ascii").strip(), int((folder / used).read_bytes())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        except (OSError, ValueError):
            continue
        if most != "max":
            yield int(most) - now + sum(int(stat.get(name, 0)) for name in cached)


def _groups() -> Iterator[tuple[Path, str, str, tuple[str, str]]]:
    """Name the folders of the control groups around this process, from its own upwards, and their files."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds == "":
            top, names = GROUPS, ("memory.max", "memory.current", ("inactive_file", "active_file"))
        elif "memory" in kinds.split(","):
            top = GROUPS / "memory"
            files = ("total_inactive_file", "total_active_file")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", files)
        else:
            continue
        own = top / path.strip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(top):
                yield folder, *names
