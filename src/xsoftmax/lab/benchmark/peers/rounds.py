"""The order of runs: pilots of everybody, then rounds of final runs, peers and ours in turn, one at a time."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.peers.config import OURS, Benchmark, Entrant
from xsoftmax.lab.benchmark.peers.environments import NotInstallableError, python_of
from xsoftmax.lab.benchmark.peers.exports import export, prepared_file
from xsoftmax.lab.benchmark.peers.runs import run_job
from xsoftmax.lab.report.quality import RANKING

# Seconds that a run takes beside its training, and how many times its training a run takes: with looks and reruns.
PILOT_EXTRA, FINAL_EXTRA = 10.0, 20.0
PILOT_FACTOR, FINAL_FACTOR = 1.4, 2.0
LEAST_SECONDS = 0.2
WITHIN = 0.97  # of a limit of time: a run ends a step or two after its budget


@dataclass
class Rounds:
    """All runs of a benchmark.

    Attributes
    ----------
    benchmark : Benchmark
    folder : Path
        Of records: ``<data set>/<entrant>/pilot-<n>.json`` and ``run-<seed>.json``.
    environments : Path
    scratch : Path
        Of exported data.
    n_threads, repetitions : int
    clock : {"wall", "cpu"}
        What seconds of training are: ``cpu`` where other work may be done on the machine.
    minutes : float or None
        All is scaled to take about so long; nothing is begun later than that. Each data set has its share of what
        is left: where searches take longer than expected they are cut, so that final runs are not.
    limits_of : function
        From a data set and its entries to seconds, by what sets them: those of ours of which targets are asked have
        a run with each of these budgets, too.
    """

    benchmark: Benchmark
    folder: Path
    environments: Path
    scratch: Path
    n_threads: int = 1
    repetitions: int = 1
    clock: str = "wall"
    minutes: float | None = None
    limits_of: Callable[[str, dict[str, Any]], dict[str, float]] = lambda dataset, entries: {}
    pythons: dict[str | None, Path | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + 60 * self.minutes if self.minutes else math.inf

    def run(self) -> dict[str, Any]:
        """Do what has not been done; return everything by data set."""
        found: dict[str, Any] = {}
        ready = {name: self._export(name) for name in self.benchmark.datasets}
        waiting = [meta for meta in ready.values() if isinstance(meta, dict)]
        scale = self._scale(waiting)
        for name, meta in ready.items():
            if isinstance(meta, str):
                found[name] = {"unavailable": meta}
                continue
            deadline = self._share(waiting, scale)
            found[name] = {"data": {key: value for key, value in meta.items() if key != "source"}}
            found[name]["data"]["clock"] = self.clock
            found[name]["entrants"] = self._dataset(name, meta, scale * self.benchmark.seconds_on(name), deadline)
            waiting.remove(meta)
        return found

    def _share(self, waiting: list[dict[str, Any]], scale: float) -> float:
        """When the first of the data sets that wait is to be done: it has its share of the time that is left."""
        if self.minutes is None:
            return math.inf
        now, expected = time.monotonic(), [self.estimate([meta], scale) for meta in waiting]
        return now + (self._deadline - now) * expected[0] / max(sum(expected), 1e-9)

    def estimate(self, metas: list[dict[str, Any]], scale: float = 1.0) -> float:
        """Estimate the minutes that all runs take, with budgets scaled."""
        total = 0.0
        for meta in metas:
            final = self._scaled(self.benchmark.seconds_on(meta["name"]), scale)
            pilot = final * self.benchmark.pilot_share
            able = self._able(meta["storage"])
            for entrant in able:
                n = len(entrant.choices(meta["storage"]))
                total += (n if n > 1 else 0) * (PILOT_FACTOR * pilot + PILOT_EXTRA)
            total += self._seconds_of_finals(len(able), final)
        return total / 60

    def _seconds_of_finals(self, n_entrants: int, seconds: float) -> float:
        """What the final runs of a data set are expected to take."""
        return n_entrants * self.repetitions * (FINAL_FACTOR * seconds + FINAL_EXTRA)

    def _scale(self, metas: list[dict[str, Any]]) -> float:
        """How budgets are scaled to fit ``minutes``: at most by 1."""
        scale = 1.0
        if self.minutes:
            while scale > 0.02 and self.estimate(metas, scale) > self.minutes:
                scale *= 0.95
        print(f"budgets times {scale:.2f}; about {self.estimate(metas, scale):.0f} minutes", file=sys.stderr)
        return scale

    def _scaled(self, seconds: float, scale: float) -> float:
        return max(LEAST_SECONDS, seconds * scale)

    def _export(self, name: str) -> dict[str, Any] | str:
        try:
            return export(prepared_file(name), self.scratch / name, self.benchmark.rows)
        except (InputError, OSError) as error:
            return str(error).splitlines()[0].rstrip(":")

    def _able(self, storage: str) -> list[Entrant]:
        return [entrant for entrant in self.benchmark.entrants if not entrant.why_not(storage)]

    def _python(self, entrant: Entrant) -> Path | str:
        """Interpreter of an entrant, or why it has none."""
        if entrant.environment not in self.pythons:
            try:
                self.pythons[entrant.environment] = python_of(entrant.environment, self.environments)
            except NotInstallableError as error:
                self.pythons[entrant.environment] = str(error)
        return self.pythons[entrant.environment]

    def _dataset(self, name: str, meta: dict[str, Any], seconds: float, deadline: float) -> dict[str, Any]:
        """Everything on one data set; no pilot is begun that leaves too little time for the final runs."""
        storage, seconds = meta["storage"], max(LEAST_SECONDS, seconds)
        entries: dict[str, Any] = {}
        for entrant in self.benchmark.entrants:
            python = self._python(entrant)
            entry: dict[str, Any] = {"pilots": [], "runs": []}
            if reason := entrant.why_not(storage):
                entry["not_applicable"] = reason
            elif isinstance(python, str):
                entry["not_installable"] = python
            entries[entrant.name] = entry
        able = [entrant for entrant in self.benchmark.entrants if len(entries[entrant.name]) == 2]
        last_pilot = deadline - self._seconds_of_finals(len(able), seconds)
        for n, entrant in pilots(able, storage):
            if searched_enough(entries[entrant.name]["pilots"], seconds):
                continue
            done = self._record_of(name, entrant, f"pilot-{n}").exists()
            if n and not done and time.monotonic() > last_pilot:
                tried = len(entries[entrant.name]["pilots"])
                entries[entrant.name]["search_cut"] = (
                    f"time allowed {tried} of {len(entrant.choices(storage))} settings"
                )
                continue
            job = self._job(
                entrant, meta, "validation", entrant.choices(storage)[n], seconds * self.benchmark.pilot_share
            )
            self._do(entries[entrant.name], "pilots", entrant, job, f"pilot-{n}", 0)
        for seed in range(self.repetitions):
            for entrant in interleaved(able, seed):
                entry = entries[entrant.name]
                settings = chosen(entry["pilots"], entrant.choices(storage))
                if settings is None:
                    entry.setdefault("no_result", _why_nothing(entry["pilots"]))
                else:
                    self._do(
                        entry,
                        "runs",
                        entrant,
                        self._job(entrant, meta, "test", settings, seconds),
                        f"run-{seed}",
                        seed,
                    )
        self._in_limits(name, meta, entries, able)
        return entries

    def _in_limits(self, name: str, meta: dict[str, Any], entries: dict[str, Any], able: list[Entrant]) -> None:
        """Run ours once more within each limit of time: a rate that falls over a run is to have fallen by then."""
        today = {f"{OURS}-{method}" for method in self.benchmark.targets.get("today", [])}
        for kind, limit in self.limits_of(name, entries).items():
            for entrant in (entrant for entrant in able if entrant.is_ours and entrant.name not in today):
                entry, choices = entries[entrant.name], entrant.choices(meta["storage"])
                if (settings := chosen(entry["pilots"], choices)) is not None:
                    job = self._job(entrant, meta, "test", settings, WITHIN * limit)
                    self._do(entry, "limited", entrant, job, f"limited-{kind}", 0)

    def _job(
        self, entrant: Entrant, meta: dict[str, Any], split: str, settings: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        return {
            "worker": entrant.worker,
            "entrant": entrant.name,
            "peer": entrant.environment or entrant.worker,
            "packages": list(entrant.packages),
            "dataset": meta["name"],
            "data": str((self.scratch / meta["name"]).absolute()),
            "split": split,
            "settings": settings,
            "seconds": round(seconds, 3),
            "clock": self.clock,
            "methods": str(self.benchmark.methods.absolute()),
        }

    def _record_of(self, dataset: str, entrant: Entrant, name: str) -> Path:
        return self.folder.absolute() / dataset / entrant.name / f"{name}.json"

    def _do(
        self, entry: dict[str, Any], kind: str, entrant: Entrant, job: dict[str, Any], name: str, seed: int
    ) -> None:
        """Do one run and add it to an entry, unless time is up and it has not been done before."""
        python = self._python(entrant)
        assert isinstance(python, Path)
        path = self._record_of(job["dataset"], entrant, name)
        if time.monotonic() > self._deadline and not path.exists():
            entry["not_run"] = "time was up"
            return
        bounds = self.benchmark.limits(self.n_threads, job["seconds"])
        started = time.monotonic()
        record = run_job(job | {"seed": seed}, python, path, bounds, _stamp(python))
        entry.setdefault(kind, []).append(record)
        print(
            f"{job['dataset']} {entrant.name} {name}: {_said(record)} ({time.monotonic() - started:.0f} s)",
            file=sys.stderr,
        )


def pilots(entrants: list[Entrant], storage: str) -> Iterator[tuple[int, Entrant]]:
    """Go through the grids in step, so that all entrants' pilots are spread alike; one choice needs no pilot."""
    grids = {entrant.name: len(entrant.choices(storage)) for entrant in entrants}
    for n in range(max(grids.values(), default=0)):
        for entrant in interleaved(entrants, n):
            if 1 < grids[entrant.name] > n:
                yield n, entrant


def searched_enough(records: list[dict[str, Any]], seconds: float) -> bool:
    """Whether pilots are to end: the last one gave no result, or its first only after what a final run gets."""
    return bool(records) and (not records[-1]["curve"] or records[-1]["curve"][0]["seconds"] > seconds)


def interleaved(entrants: list[Entrant], turn: int = 0) -> list[Entrant]:
    """Order peers with ours evenly between them; each turn begins elsewhere."""
    peers = [entrant for entrant in entrants if not entrant.is_ours]
    ours = [entrant for entrant in entrants if entrant.is_ours]
    places = [((i + 0.5) / len(group), entrant) for group in (peers, ours) for i, entrant in enumerate(group)]
    order = [entrant for _, entrant in sorted(places, key=lambda pair: pair[0])]
    cut = (turn * len(order)) // 3 % max(1, len(order))
    return order[cut:] + order[:cut]


def chosen(records: list[dict[str, Any]], choices: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Settings of the best pilot on the way: by log-likelihood; without one, by accuracy.

    Where rows have several labels, by the mean of P@k and PSP@k for k = 1, 3, 5.
    """
    if len(choices) == 1:
        return choices[0]
    with_points = [record for record in records if record["curve"]]
    if not with_points:
        return None
    return max(with_points, key=_quality)["settings"]


def _quality(record: dict[str, Any]) -> tuple[float, float, float]:
    curve = record["curve"]
    ranked = [mean(point[name] for name in RANKING) for point in curve if RANKING.keys() <= point.keys()]
    likelihoods = [point["log_likelihood"] for point in curve if point["log_likelihood"] is not None]
    best = max(point["accuracy"] for point in curve)
    return max(ranked, default=-math.inf), max(likelihoods, default=-math.inf), best


def _why_nothing(records: list[dict[str, Any]]) -> str:
    messages = [record["message"] for record in records if record["message"]]
    return messages[-1] if messages else "no pilot gave a result"


def _said(record: dict[str, Any]) -> str:
    if not record["curve"]:
        return f"{record['status']}, {record['message']}"
    last = record["curve"][-1]
    nats = "" if last["log_likelihood"] is None else f"{last['log_likelihood']:.4f} nats, "
    return f"{record['status']}, at the end {nats}accuracy {last['accuracy']:.4f}, {last['seconds']:.2f} s"


def _stamp(python: Path) -> str:
    """What a peer's environment was made from."""
    stamp = python.parent.parent / "requirements.sha256"
    return stamp.read_text(encoding="utf-8") if stamp.exists() else ""
