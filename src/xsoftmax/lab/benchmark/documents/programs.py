"""Who takes part: ours, and peers; each run is a process of its own, limited in time and memory."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from xsoftmax.internal.files import write_json
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.lab.benchmark.documents import ours
from xsoftmax.lab.benchmark.peers.config import Entrant
from xsoftmax.lab.benchmark.peers.environments import NotInstallableError, python_of
from xsoftmax.lab.benchmark.peers.rounds import chosen
from xsoftmax.lab.benchmark.peers.runs import Limits, limits, read_record, run_job
from xsoftmax.methods import component_modules

# Loading, compiling and evaluation may take that many seconds, and so many times the seconds of training.
START_SECONDS, OTHERS = 120.0, 2.0
WORKER = "xsoftmax.lab.benchmark.documents.worker"


class Program(Protocol):
    """A program that trains."""

    name: str

    def train(self, folder: Path, seconds: float, memory_gb: float) -> dict[str, Any]:
        """Train on the texts of a folder and say how that went: ``status``, ``message``, and what was measured.

        Of a run that came to a result: ``seconds`` of training, ``peak_bytes`` of its process, ``accuracy`` on test
        rows, ``settings``; of ours, ``setup_seconds`` of these before the first step, ``epochs``, ``recall`` of the
        shortlists and ``n_weights`` that are not zero, too.
        """
        ...


class Ours:
    """The package itself, with ``ours.settings()``; its seconds are those of a ``clock``, ``wall`` or ``cpu``."""

    name = "xsoftmax"

    def __init__(self, clock: str = "wall") -> None:
        self._clock = clock

    def train(self, folder: Path, seconds: float, memory_gb: float) -> dict[str, Any]:
        """See ``Program``; a run that is there already is not done again."""
        method = ours.settings()
        job = {"data": str((folder / "exported/data.h5").absolute()), "method": method, "epochs": ours.EPOCHS}
        job |= {"clock": self._clock, "memory_bytes": int(memory_gb * 2**30)}
        sources = fingerprint(WORKER, *component_modules(method))
        identity = hashlib.sha256((json.dumps(job, sort_keys=True) + sources).encode()).hexdigest()[:16]
        path = folder / f"xsoftmax-{identity}.json"
        if (record := read_record(path)) is not None:
            return record
        try:
            done = subprocess.run(
                [sys.executable, "-m", WORKER],
                input=json.dumps(job),
                capture_output=True,
                text=True,
                timeout=START_SECONDS + (1 + OTHERS) * seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return {"status": "stopped", "message": f"ended after {error.timeout:.0f} s"}
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            return {"status": "failed", "message": said[-1][:300]}
        found = {"status": "finished", "message": "", "settings": method} | json.loads(done.stdout)
        write_json(path, found)
        return found


class Peer:
    """Another program; of the settings of its grid, that which was best on the first validation rows is kept."""

    def __init__(self, entrant: Entrant, environments: Path, clock: str = "wall") -> None:
        self.name = entrant.name
        self._entrant, self._environments, self._clock = entrant, environments, clock
        self._settings: dict[str, Any] | None = None

    def train(self, folder: Path, seconds: float, memory_gb: float) -> dict[str, Any]:
        """See ``Program``."""
        try:
            python = python_of(self._entrant.environment, self._environments)
        except NotInstallableError as error:
            return {"status": "not installable", "message": str(error)}
        bounds = limits(1, seconds, START_SECONDS, 1.0)
        bounds = replace(bounds, memory_bytes=int(memory_gb * 2**30))
        choices = self._entrant.choices("csr")
        if self._settings is None:
            pilots = [
                self._run(python, folder, f"pilot-{n}", "validation", it, bounds) for n, it in enumerate(choices)
            ]
            self._settings = chosen(pilots, choices)
        if self._settings is None:
            return {"status": "nothing", "message": "no setting gave a result"}
        record = self._run(python, folder, "run", "test", self._settings, bounds)
        found = {"status": record["status"], "message": record["message"], "settings": self._settings}
        if record["curve"]:
            last = record["curve"][-1]
            found |= {"seconds": last["seconds"], "accuracy": last["accuracy"], "peak_bytes": record["peak_bytes"]}
        return found

    def _run(
        self, python: Path, folder: Path, name: str, split: str, settings: dict[str, Any], bounds: Limits
    ) -> dict[str, Any]:
        job = {
            "worker": self._entrant.worker,
            "entrant": self.name,
            "peer": self._entrant.environment,
            "packages": list(self._entrant.packages),
            "dataset": folder.name,
            "data": str((folder / "exported").absolute()),
            "split": split,
            "settings": settings,
            "seconds": bounds.wall_seconds,
            "seed": 0,
            "clock": self._clock,
        }
        return run_job(job, python, folder.absolute() / self.name / f"{name}.json", bounds)
