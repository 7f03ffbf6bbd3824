"""What a measurement depends on beside our code: the machine, the versions, the load. No host names, no paths."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "h5py")
_CPUS = Path("/sys/devices/system/cpu")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def describe() -> dict[str, Any]:
    """Describe the machine as it is now; call it before measuring."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": caches(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "huge_pages": _chosen(_HUGE_PAGES),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "blas": _blas(),
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def commit() -> str | None:
    """Name the commit of our sources, with a plus sign if they were changed since; None outside a checkout."""
    here = Path(__file__).parent
    head = _output("git", "-C", str(here), "rev-parse", "--short=10", "HEAD")
    changed = _output("git", "-C", str(here), "status", "--porcelain", "--", ".")
    return head and head + ("+" if changed else "")


def caches() -> dict[str, int]:
    """Bytes of each cache that the first core sees, such as {"L1d": 49152}; empty if the system does not tell."""
    found = {}
    for cache in sorted((_CPUS / "cpu0" / "cache").glob("index*")):
        level, kind = (_read(cache / name) for name in ("level", "type"))
        size = _read(cache / "size")
        if size.endswith("K"):
            found[f"L{level}{ {'Data': 'd', 'Instruction': 'i'}.get(kind, '') }"] = int(size[:-1]) * 1024
    return found


def _processor() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _chosen(path: Path) -> str | None:
    """The word in brackets, as the kernel marks a choice."""
    return next((word.strip("[]") for word in _read(path).split() if word.startswith("[")), None)


def _blas() -> list[str]:
    """The BLAS libraries that are loaded; none where threadpoolctl, which finds them, is not installed."""
    try:
        from threadpoolctl import threadpool_info
    except ModuleNotFoundError:
        return []
    return [
        f"{found['internal_api']} {found['version']} {found.get('architecture', '')}".strip()
        for found in threadpool_info()
        if found["user_api"] == "blas"
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
