"""What a config asks for: its data sets, methods and fits, what is searched, and the proposals that fits share."""

import hashlib
import json
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from xsoftmax.advice.options import AutoOptions
from xsoftmax.data.config import load_config
from xsoftmax.data.reading import READERS, check_description
from xsoftmax.evaluation.metrics import judging_columns
from xsoftmax.internal import registry
from xsoftmax.internal.addresses import all_without_secrets
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.internal.shipped import descriptions, methods_file
from xsoftmax.lab.workflow.config_schema import check_by_schema, read, schema_of
from xsoftmax.lab.workflow.consistency import (
    check_defined,
    check_known,
    check_n_sampled,
    check_nodes,
    check_path_part,
    check_ranks,
    check_renamed,
    check_used,
)
from xsoftmax.lab.workflow.task import Dataset, Task, proposals_of
from xsoftmax.methods import AUTO, Method, build_method, merged
from xsoftmax.training.plan import Plan

PAPERS = "xsoftmax.lab.papers"
ADVICE = ROOT / "advice" / "model.json"
PLANNED = "XSOFTMAX_PLAN"  # in the environment of jobs
FIT = "fits/{dataset}/{method}/seed-{seed}"  # folders below an experiment's results
SEARCH = "search/{dataset}/{method}"


class Fit(NamedTuple):
    """One training run; its folder is ``FIT``."""

    dataset: str
    method: str
    seed: int


class Trial(NamedTuple):
    """One training run of a search; its folder is ``SEARCH``, and below it the point's."""

    dataset: str
    method: str
    point: str


@dataclass(frozen=True)
class Experiment:
    """A validated config, together with the data sets that it names and what is asked on each."""

    config: dict[str, Any]
    datasets: dict[str, Dataset]
    tasks: dict[str, Task]

    @classmethod
    def from_config(cls, config: dict[str, Any], folder: Path = Path("config")) -> "Experiment":
        """Check ``config`` against its schema, and against the methods and data sets in ``folder`` or shipped.

        Raises
        ------
        InputError
            If anything is wrong; the message names the key.
        """
        schema = schema_of("config")
        config = {key: part["default"] for key, part in schema["properties"].items() if "default" in part} | config
        check_by_schema(config, schema, "config")
        check_path_part("config: experiment:", config["experiment"])
        for key in ("for", "define"):
            config[key] = {name: own for name, own in config[key].items() if own is not None}
        file = methods_file(folder)
        methods = read(file)
        check_renamed(config, methods, str(file))
        check_by_schema(methods, schema_of("methods"), str(file))
        if AUTO in methods:
            raise InputError(f"{file}: {AUTO} stands for what the advice chooses; rename the method")
        check_defined(config["define"], methods)
        if config["paper"] is not None:
            check_known("config: paper: unknown paper", [config["paper"]], registry.names(PAPERS))
        check_n_sampled(config)
        datasets = _datasets(config["datasets"], folder)
        check_known("config: for: unknown data set", config["for"], datasets)
        tasks = {name: _task(config, name, methods) for name in datasets}
        for name, task in tasks.items():
            for each in task.methods:
                check_path_part("config: methods:", each)
            check_path_part(f"{datasets[name].file}: name", name)
        check_used(config, tasks, [*methods, *config["define"], AUTO])
        check_ranks(config["ranks"], tasks)
        check_nodes(config["resources"], config["ranks"])
        return cls(config, datasets, tasks)

    def check_unchanged(self, environment: MutableMapping[str, str], variable: str = PLANNED) -> None:
        """Make sure that a job is told by the config that it was planned by.

        Jobs of a cluster read the config again, each when it starts; what Snakemake itself read stands in their
        environment, in a variable of each experiment.

        Raises
        ------
        InputError
            If someone has edited the config, or a file that it names, in between.
        """
        plan = {"config": self.config, "plan": self.plan()}
        digest = hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()
        if environment.setdefault(variable, digest) != digest:
            raise InputError(
                "config: changed since this run began; what it planned before is not what the files say now. "
                "Let it end, or stop it, and start snakemake again: nothing that is done is lost"
            )

    @property
    def shown_config(self) -> dict[str, Any]:
        """The config as it may be printed and stored: without passwords in addresses."""
        return all_without_secrets(self.config)

    @property
    def name(self) -> str:
        """Name of the experiment: its folder under ``results/``."""
        return self.config["experiment"]

    @property
    def results(self) -> str:
        """Name the folder of all that is made for this experiment."""
        return f"results/{self.name}"

    def n_ranks(self, method: str) -> int:
        """Count the processes that train ``method`` together."""
        return self.config["ranks"].get(method, 1)

    @property
    def n_nodes(self) -> int | None:
        """Count the nodes of a cluster that a fit by several processes is spread over; None leaves it to SLURM."""
        return self.config["resources"].get("train", {}).get("nodes")

    def fits(self) -> Iterator[Fit]:
        """Go through all combinations of data set, method and seed."""
        for dataset, task in self.tasks.items():
            for method in task.methods:
                for seed in self.seeds(dataset, method):
                    yield Fit(dataset, method, seed)

    def seeds(self, dataset: str, method: str) -> list[int]:
        """List the seeds that a method is trained with."""
        seeds = self.tasks[dataset].seeds
        return seeds[:1] if method in self.config["once"] else seeds

    def trials(self) -> Iterator[Trial]:
        """Go through all that is tried on the way to the methods' settings."""
        for dataset, task in self.tasks.items():
            for method, points in task.grid.items():
                for point in points:
                    yield Trial(dataset, method, point)

    def fit_folders(self, results: str) -> list[str]:
        """Name the folders of all fits below ``results``, in order."""
        return [f"{results}/{FIT.format(**fit._asdict())}" for fit in self.fits()]

    def search_folders(self, results: str) -> list[str]:
        """Name the folders of all searches below ``results``, in order."""
        return sorted({f"{results}/{SEARCH.format(**trial._asdict())}" for trial in self.trials()})

    def arguments(self, results: str) -> list[str]:
        """Give the words by which verbs are told of all fits and searches, which may not be where a rule says."""
        searches = self.search_folders(results)
        return [*self.fit_folders(results), *(["--searches", *searches] if searches else [])]

    def plan(self) -> dict[str, Any]:
        """Return what each kind of job depends on; DVC takes its parameters from here."""
        return {
            "download": {name: dataset.sources for name, dataset in self.datasets.items()},
            "prepare": {name: dataset.settings for name, dataset in self.datasets.items()},
            "proposal": {name: task.all_proposals for name, task in self.tasks.items()},
            "train": {
                name: {method: task.settings(method) for method in task.methods} for name, task in self.tasks.items()
            },
            "budget": {name: task.plan for name, task in self.tasks.items()},
            "search": {name: {"search": task.search, **task.grid} for name, task in self.tasks.items()},
        }


def _task(config: dict[str, Any], dataset: str, methods: Mapping[str, Any]) -> Task:
    """Put together what holds for all data sets and what for this one."""
    own, where = config["for"].get(dataset, {}), f"config: for: {dataset}" if dataset in config["for"] else "config"
    budget, evaluate = own.get("budget", config["budget"]), own.get("evaluate", config["evaluate"])
    evaluate = {key: value for key, value in config["evaluate"].items() if key == "keep"} | evaluate
    names = own.get("methods", config["methods"])
    every = config["budgets"] | own.get("budgets", {})
    budgets = {name: of_method for name, of_method in every.items() if name in names}
    for each in (budget, *budgets.values()):
        _check_evaluations(each, evaluate, where)
    check_known(f"{where}: methods: unknown method", names, [*methods, *config["define"], AUTO])
    likes = {name: config["define"][name]["like"] for name in names if name in config["define"]}
    defined = {name: _defined(config, name) for name in likes}
    named = {name: change for name, change in merged(config["set"], own.get("set", {})).items() if name in names}
    changes = merged(defined, named)
    chosen = {
        name: _candidates(changes.get(name, {}))
        if name == AUTO
        else merged(methods[likes.get(name, name)], changes.get(name, {}))
        for name in names
    }
    points = {name: settings for name, settings in chosen.items() if name != AUTO}
    for name, settings in points.items():
        check_by_schema(settings, schema_of("methods")["$defs"]["method"], f"{where}: set: {name}")
    built = {name: _built(where, name, settings) for name, settings in points.items()}
    search = _search(config, own)
    check_known(f"{where}: search: by: unknown column", [search["by"]] if "by" in search else [], judging_columns())
    grid = {
        name: _points(name, grid, chosen, built) for name, grid in search.get("grid", {}).items() if name in names
    }
    seeds = own.get("seeds", config["seeds"])
    return Task(seeds, budget, evaluate, budgets, changes, chosen, likes, built, search, grid)


def _search(config: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """How settings are searched on a data set; empty if they are not."""
    if "search" in own and own["search"] is None:
        return {}
    return merged(config["search"] or {}, own.get("search", {}))


def _defined(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Settings by which a method differs from the one that it is like."""
    return {key: value for key, value in config["define"].get(name, {}).items() if key != "like"}


def _points(
    method: str, grid: Mapping[str, list[Any]], chosen: Mapping[str, Any], built: Mapping[str, Method]
) -> dict[str, dict[str, Any]]:
    """List the points of a grid, each with the changes of the method that it stands for."""
    where = f"config: search: grid: {method}"
    if method == AUTO:
        raise InputError(f"{where}: {AUTO} searches by itself; leave it out")
    found = {}
    for values in product(*grid.values()):
        changes: dict[str, Any] = {}
        for key, value in zip(grid, values, strict=True):
            changes = merged(changes, _nested(key.split("."), value))
        point = _built(where, method, merged(chosen[method], changes))
        if proposals_of(point) != proposals_of(built[method]):
            raise InputError(
                f"{where}: parameters of a proposal that is fitted beforehand cannot be searched; name a method "
                "for each"
            )
        name = "_".join(f"{key}-{value}" for key, value in zip(grid, values, strict=True))
        check_path_part(f"{where}: the trial", name)
        found[name] = changes
    return found


def _nested(keys: list[str], value: Any) -> dict[str, Any]:
    return {keys[0]: _nested(keys[1:], value) if keys[1:] else value}


def _datasets(entries: list[str], folder: Path) -> dict[str, Dataset]:
    known = descriptions(folder)
    datasets: dict[str, Dataset] = {}
    for entry in entries:
        file = Path(entry) if entry.endswith((".yaml", ".yml")) else known.get(entry)
        if file is None:
            either = [*known, "a path ending in .yaml"]
            raise InputError(f"config: datasets: no {entry!r}; {suggestion(entry, either)}")
        if not file.is_file():
            raise InputError(f"config: datasets: no file {entry!r} in {Path.cwd()}; paths begin where snakemake runs")
        content = load_config(file)
        check_known(f"{file}: format: unknown reader", [content.format], registry.names(READERS))
        check_description(content)
        if content.name in datasets:
            raise InputError(
                f"config: datasets: two are named {content.name!r}: {datasets[content.name].file}, {file}"
            )
        datasets[content.name] = Dataset(file, content)
    return datasets


def _candidates(changes: dict[str, Any]) -> dict[str, Any]:
    """Settings of ``auto``: all methods that it chooses among, by name, and what else was asked."""
    candidates = json.loads(ADVICE.read_text(encoding="utf-8"))["candidates"]
    among = AutoOptions.from_settings(changes, "config: set: auto").among or list(candidates)
    check_known("config: set: auto: among: nothing was measured of", among, candidates)
    return {**changes, "among": {name: candidates[name] for name in among}}


def _built(where: str, name: str, settings: dict[str, Any]) -> Method:
    """Build a method as the training will, to hear now what is wrong with it."""
    try:
        return build_method(name, settings)
    except InputError as error:
        reason = str(error).removeprefix(f"method {name}: ")
        raise InputError(f"{where}: method {name}: {reason}") from error


def _check_evaluations(budget: dict[str, Any], evaluate: dict[str, Any], where: str) -> None:
    try:
        Plan(**budget, at=tuple(evaluate.get("at", ())), **({"judge": evaluate["by"]} if "by" in evaluate else {}))
    except InputError as error:
        raise InputError(f"{where}: budget, evaluate: {error}") from error
    for unit, limit in budget.items():
        for value in evaluate.get("at", ()):
            if value > limit:
                raise InputError(
                    f"{where}: evaluate.at: {value} is beyond budget.{unit}, {limit}; leave it out or train longer"
                )
