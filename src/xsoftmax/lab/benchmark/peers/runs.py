"""One run: a worker in a process of its own, pinned, limited in time and memory; its record is kept."""

import hashlib
import json
import os
import resource
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import xsoftmax
from xsoftmax.internal.files import write_json
from xsoftmax.internal.fingerprint import fingerprint

WORKERS = Path(__file__).parent / "workers"
SOURCES = Path(xsoftmax.__file__).parent.parent
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NPROC",
)


@dataclass(frozen=True)
class Limits:
    """Where a run may run, and how much it may take.

    Attributes
    ----------
    cores : list of int
        It is pinned to these, and told to use as many threads.
    wall_seconds : float
        Once it trains: then it should end.
    start_seconds : float
        For loading and compiling, beside these. A process that takes longer is ended, and what its curve holds so
        far is kept.
    memory_bytes : int
        Of address space.
    """

    cores: list[int]
    wall_seconds: float
    start_seconds: float
    memory_bytes: int


def limits(n_threads: int, wall_seconds: float, start_seconds: float, memory_share: float) -> Limits:
    """Limits of a run with so many threads: on the last cores, since the system likes the first."""
    cores = sorted(os.sched_getaffinity(0))[-n_threads:]
    return Limits(cores, wall_seconds, start_seconds, int(memory_share * psutil.virtual_memory().total))


def run_job(
    job: Mapping[str, Any], python: Path, path: Path, bounds: Limits, extra_identity: str = ""
) -> dict[str, Any]:
    """Do one run, unless ``path`` holds it already; return its record.

    Parameters
    ----------
    job : dict
        What the worker is told: ``worker, entrant, peer, dataset, data, split, settings, seconds, seed, packages``.
    python : Path
        Interpreter of the peer's environment.
    path : Path
        Where the record is kept; the worker's output goes beside it.
    bounds : Limits
    extra_identity : str
        What else the run depends on.
    """
    whole = dict(job) | {"threads": len(bounds.cores), "wall_seconds": bounds.wall_seconds, "output": str(path)}
    identity = _identity(job, len(bounds.cores), extra_identity)
    found = read_record(path)
    if found is not None and found.get("identity") == identity and found["status"] != "running":
        return found
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    job_file = path.with_suffix(".job")
    job_file.write_text(json.dumps(whole))
    message = _start(job["worker"], python, job_file, path.with_suffix(".log"), bounds)
    record = read_record(path) or _nothing(whole)
    if record["status"] == "running":
        record |= {"status": "stopped" if record["curve"] else "nothing", "message": message}
    record |= {"identity": identity}
    write_json(path, record)
    job_file.unlink()
    return record


def read_record(path: Path) -> dict[str, Any] | None:
    """Read a run's record; None if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _start(worker: str, python: Path, job: Path, log: Path, bounds: Limits) -> str:
    """Run a worker to its end or the limit; return why it ended early."""
    script = WORKERS / f"run_{worker.replace('-', '_')}.py"

    def confine() -> None:
        os.sched_setaffinity(0, bounds.cores)
        resource.setrlimit(resource.RLIMIT_AS, (bounds.memory_bytes, bounds.memory_bytes))

    environment = _environment(len(bounds.cores), ours=worker == "xsoftmax")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [str(python), str(script), str(job)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=confine,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=bounds.wall_seconds + bounds.start_seconds)
        except subprocess.TimeoutExpired:
            return f"ended after {bounds.wall_seconds + bounds.start_seconds:.0f} s"
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    return f"the process ended with status {status}: {_last_line(log)}"


def _environment(n_threads: int, ours: bool) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= dict.fromkeys(THREAD_VARIABLES, str(n_threads))
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    flag = "false" if n_threads == 1 else "true"
    environment["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={flag} intra_op_parallelism_threads={n_threads}"
    return environment | ({"PYTHONPATH": str(SOURCES)} if ours else {})


def _identity(job: Mapping[str, Any], n_threads: int, extra: str) -> str:
    """Hash of what a run depends on."""
    digest = hashlib.sha256(json.dumps([dict(job), n_threads, extra], sort_keys=True).encode())
    worker = job["worker"].replace("-", "_")
    names = "protocol.py", "protocol_*.py", f"run_{worker}.py", f"{worker}_*.py"
    for path in (path for name in names for path in sorted(WORKERS.glob(name))):
        digest.update(path.read_bytes())
    if job["worker"] == "xsoftmax":
        for module in ("xsoftmax.training.fit", "xsoftmax.advice.choice"):
            digest.update(fingerprint(module).encode())
        digest.update(Path(job["methods"]).read_bytes())
    return digest.hexdigest()[:16]


def _nothing(job: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: job[key] for key in ("dataset", "entrant", "peer", "split", "settings", "seed", "threads")}
    return kept | {
        "budget_seconds": job["seconds"],
        "status": "running",
        "message": "",
        "curve": [],
        "peak_bytes": None,
    }


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
