"""Resident memory of a worker's process, as Linux counts it."""

import ctypes
import gc
from pathlib import Path


def memory(field_name: str) -> int:
    """Bytes: ``VmRSS`` now, or ``VmHWM``, the most since the last ``forget_peak``."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field_name))


def give_back() -> None:
    """Give free memory to the system, as far as the C library can: what needs memory later then shows."""
    gc.collect()
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def forget_peak() -> None:
    """Start the kernel's record of the largest resident size anew; where that is not allowed it counts from start."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return
