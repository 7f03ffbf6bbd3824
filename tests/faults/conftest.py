import subprocess
import uuid
from pathlib import Path

import pytest

from faults.programs import N_CLASSES, clustered


@pytest.fixture(scope="session")
def data(prepare):
    """Prepared data on which a fit takes as long as its epochs say."""
    return prepare(*clustered(), N_CLASSES, n_validation=400, n_test=400)


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system of so many bytes, which takes root; it is gone with the test."""
    mounted = []

    def mount(n_bytes, name="disk"):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("NO RIGHT TO MOUNT HERE: full and read-only disks are not tested; run as root")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def read_only():
    """A function that takes the right to write away from what ``small_disk`` gave."""

    def remount(folder):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)

    return remount


@pytest.fixture
def little_memory():
    """A function that leaves a process so many bytes (a control group of the kernel), which takes root."""
    made = []

    def limit(pid, n_bytes):
        root, file = Path("/sys/fs/cgroup"), "memory.max"
        if (root / "memory").is_dir():
            root, file = root / "memory", "memory.limit_in_bytes"
        group = root / f"xsoftmax-{uuid.uuid4().hex}"
        try:
            group.mkdir()
            made.append(group)
            (group / file).write_text(str(n_bytes))
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            pytest.skip(
                f"NO RIGHT TO LIMIT MEMORY HERE ({error}): kills for want of memory are not tested; run as root"
            )

    yield limit
    for group in made:
        group.rmdir()
