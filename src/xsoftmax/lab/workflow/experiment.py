"""What a config asks for: its data sets, methods and fits, what is searched, and the proposals that fits share."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from xsoftmax.advice.options import AutoOptions
from xsoftmax.data.config import DatasetConfig, load_config
from xsoftmax.evaluation.metrics import judging_columns
from xsoftmax.internal import registry
from xsoftmax.internal.addresses import all_without_secrets, stamped_without_secrets
from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.internal.shipped import descriptions, methods_file
from xsoftmax.methods import AUTO, Method, build_method, component_modules, merged, n_sampled_moved, renamed
from xsoftmax.proposals import parts_beforehand, settings_of
from xsoftmax.training.plan import Plan

# To JSON 1.0 is an integer; to the verbs, and as part of a path, it is not.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
SCHEMAS = Path(__file__).parent / "schemas"
READERS = "xsoftmax.data.readers"
PAPERS = "xsoftmax.lab.papers"
ADVICE = ROOT / "advice" / "model.json"
LONGEST_NAME = 200  # bytes; most file systems allow 255, and some files have more to their names
REPEATS = 20
PERIODIC = re.compile(rf"(.+)\1{{{REPEATS - 1}}}\Z")  # Snakemake takes such a wildcard for a rule that needs itself
PLANNED = "XSOFTMAX_PLAN"  # in the environment of jobs
PROSE = {"title", "description", "homepage", "licence", "citation"}
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


class Dataset(NamedTuple):
    """A data set, and the file that describes it."""

    file: Path
    content: DatasetConfig

    @property
    def local_files(self) -> list[str]:
        """Files of the user's own that it is made of; those in a folder one by one, as its date hides edits."""
        return [str(file) for file in self.content.local_files()]

    @property
    def sources(self) -> list[dict[str, Any]]:
        """What `download` depends on, as it may be printed and stored."""
        return [stamped_without_secrets(asdict(source)) for source in self.content.files]

    @property
    def settings(self) -> dict[str, Any]:
        """What `prepare` depends on."""
        settings = {key: value for key, value in asdict(self.content).items() if key not in PROSE}
        return settings | {"files": self.sources, "folder": str(self.file.parent)}

    @property
    def reader(self) -> str:
        """Name the module that reads it."""
        return f"{READERS}.{self.content.format.replace('-', '_')}"


@dataclass(frozen=True)
class Task:
    """What is asked on one data set.

    Attributes
    ----------
    seeds : list of int
    budget, evaluate : dict
        As in the config.
    budgets : dict
        Of methods whose fits train for longer, or less long, than the others'.
    changes : dict
        What the config changes of each method.
    methods : dict
        Settings of each method, changes included; of ``auto``, those of all that it chooses among.
    likes : dict
        Where the config defines a method: the one of the methods file that it is like.
    built : dict
        The same methods, but for ``auto``, as training builds them.
    search : dict
        As in the config: how settings are searched, if they are.
    grid : dict
        Of methods whose settings are searched, the changes that are tried, by the name of the trial.
    """

    seeds: list[int]
    budget: dict[str, Any]
    evaluate: dict[str, Any]
    budgets: dict[str, dict[str, Any]]
    changes: dict[str, dict[str, Any]]
    methods: dict[str, dict[str, Any]]
    likes: dict[str, str]
    built: dict[str, Method]
    search: dict[str, Any]
    grid: dict[str, dict[str, dict[str, Any]]]

    def proposals(self, method: str) -> dict[str, dict[str, Any]]:
        """Settings of the proposals of ``method`` that are fitted beforehand, by a name made of their parameters.

        Methods with equal ones share them.
        """
        if method == AUTO:  # if it takes one, it fits it
            return {}
        return _proposals_of(self.built[method])

    @property
    def all_proposals(self) -> dict[str, dict[str, Any]]:
        """Settings of all proposals of the methods that are fitted beforehand, by name, in order."""
        found = {name: settings for method in self.methods for name, settings in self.proposals(method).items()}
        return dict(sorted(found.items()))

    def components(self, method: str) -> list[str]:
        """Name the modules of the library that make up ``method``, one per axis."""
        return component_modules(self.methods[method])

    def settings(self, method: str, point: str | None = None) -> dict[str, Any]:
        """Return all that the training of ``method`` depends on, or a trial of it."""
        settings = {key: value for key, value in self.methods[method].items() if key != "source"}
        return merged(settings, self.grid[method][point]) if point is not None else settings

    def device(self, method: str) -> str:
        """Tell where ``method`` asks to be trained, or ``auto`` to choose."""
        return self.changes.get(AUTO, {}).get("device", "numba") if method == AUTO else self.built[method].device

    def budget_of(self, method: str) -> dict[str, Any]:
        """Return how long fits of ``method`` train."""
        return self.budgets.get(method, self.budget)

    def trial_budget_of(self, method: str) -> dict[str, Any]:
        """Return how long trials of ``method`` train: as its fits do, unless the search says otherwise."""
        return self.search.get("budget", self.budget_of(method))

    def plan_of(self, method: str) -> dict[str, Any]:
        """Return how long fits of ``method`` train, and when they are looked at."""
        return self.budget_of(method) | self.evaluate

    @property
    def plan(self) -> dict[str, Any]:
        """Return how long fits train, and when they are looked at; of methods with budgets of their own, these."""
        return self.budget | self.evaluate | ({"budgets": self.budgets} if self.budgets else {})


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
        schema = _schema("config")
        config = {key: part["default"] for key, part in schema["properties"].items() if "default" in part} | config
        _check(config, schema, "config")
        _check_path_part("config: experiment:", config["experiment"])
        for key in ("for", "define"):
            config[key] = {name: own for name, own in config[key].items() if own is not None}
        file = methods_file(folder)
        methods = _read(file)
        _check_renamed(config, methods, str(file))
        _check(methods, _schema("methods"), str(file))
        if AUTO in methods:
            raise InputError(f"{file}: {AUTO} stands for what the advice chooses; rename the method")
        _check_defined(config["define"], methods)
        if config["paper"] is not None:
            _check_known("config: paper: unknown paper", [config["paper"]], registry.names(PAPERS))
        _check_n_sampled(config)
        datasets = _datasets(config["datasets"], folder)
        _check_known("config: for: unknown data set", config["for"], datasets)
        tasks = {name: _task(config, name, methods) for name in datasets}
        for name, task in tasks.items():
            for each in task.methods:
                _check_path_part("config: methods:", each)
            _check_path_part(f"{datasets[name].file}: name", name)
        _check_used(config, tasks, [*methods, *config["define"], AUTO])
        _check_ranks(config["ranks"], tasks)
        _check_nodes(config["resources"], config["ranks"])
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
    _check_known(f"{where}: methods: unknown method", names, [*methods, *config["define"], AUTO])
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
        _check(settings, _schema("methods")["$defs"]["method"], f"{where}: set: {name}")
    built = {name: _built(where, name, settings) for name, settings in points.items()}
    search = _search(config, own)
    _check_known(f"{where}: search: by: unknown column", [search["by"]] if "by" in search else [], judging_columns())
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


def _check_defined(define: Mapping[str, Any], methods: Mapping[str, Any]) -> None:
    for name, settings in define.items():
        if name in (*methods, AUTO):
            raise InputError(f"config: define: there is a method {name!r}; give this one another name")
        _check_known(f"config: define: {name}: like: unknown method", [settings["like"]], methods)


def _check_renamed(config: Mapping[str, Any], methods: Any, file: str) -> None:
    """Refuse keys of methods that have another name now, wherever they stand."""
    whole = {file: methods, "config: define": config.get("define"), "config: set": config.get("set")}
    for name, own in config["for"].items():
        whole[f"config: for: {name}: set"] = own.get("set")
    for where, given in whole.items():
        for method, settings in (given or {}).items() if isinstance(given, Mapping | None) else ():
            if isinstance(settings, Mapping) and (moved := renamed(settings)):
                raise InputError(f"{where}: {method}: {moved}")


def _check_n_sampled(config: Mapping[str, Any]) -> None:
    """Refuse the number of drawn classes where it once was, among the objective's parameters."""
    places = {"config": config} | {f"config: for: {name}": own for name, own in config["for"].items()}
    for where, own in places.items():
        for key in ("define", "set"):
            for method, changes in own.get(key, {}).items():
                if moved := n_sampled_moved(changes):
                    raise InputError(
                        f"{where}: {key}: {method}: objective.n_sampled is proposal.n_sampled now; write {moved}"
                    )
        for method, grid in (own.get("search") or {}).get("grid", {}).items():
            if values := grid.get("objective.n_sampled"):
                raise InputError(
                    f"{where}: search: grid: {method}: objective.n_sampled is proposal.n_sampled now; write "
                    f"proposal.n_sampled: {values}"
                )


def _check_used(config: dict[str, Any], tasks: Mapping[str, Task], known: Iterable[str]) -> None:
    """Make sure that whatever is said of a method is said of one that is trained."""
    everywhere = {name for task in tasks.values() for name in task.methods}
    if config["reference"] not in (None, *everywhere):
        raise InputError(f"config: reference: {config['reference']!r} is not among methods; add it there")
    for name in config["once"]:
        if name not in everywhere:
            raise InputError(f"config: once: {name!r} is not among methods; add it there or leave it out here")
    places: list[tuple[str, Any, Iterable[str]]] = [
        (f"config: {key}", config[key], everywhere) for key in ("define", "set", "ranks", "budgets")
    ]
    places += [("config: search: grid", (config["search"] or {}).get("grid", {}), everywhere)]
    places += [
        (f"config: for: {name}: search: grid", (own.get("search") or {}).get("grid", {}), tasks[name].methods)
        for name, own in config["for"].items()
    ]
    places += [
        (f"config: for: {name}: {key}", own.get(key, {}), tasks[name].methods)
        for name, own in config["for"].items()
        for key in ("set", "budgets")
    ]
    for where, named, among in places:
        _check_known(f"{where}: unknown method", named, known)
        if unused := [name for name in named if name not in among]:
            raise InputError(f"{where}: {unused[0]} is not among methods; add it there or leave it out here")


def _check_ranks(ranks: Mapping[str, int], tasks: Mapping[str, Task]) -> None:
    """Make sure that methods of several processes are trained by PyTorch, and are none that a search tries."""
    for task in tasks.values():
        for name in set(ranks) & set(task.methods):
            where = f"config: ranks: {name}"
            if task.device(name) not in ("cuda", "cpu") or name == AUTO:
                raise InputError(
                    f"{where}: {ranks[name]} processes train on device cuda or cpu; write set: {{{name}: {{device: "
                    "cuda}}, or leave it out here"
                )
            if name in task.grid:
                raise InputError(f"{where}: trials of a search train in one process; leave {name} out here or there")


def _check_nodes(resources: Mapping[str, Mapping[str, int]], ranks: Mapping[str, int]) -> None:
    """Make sure that nodes are those of fits by several processes, of which each node gets as many."""
    for rule, asked in resources.items():
        if "nodes" not in asked:
            continue
        where, nodes = f"config: resources: {rule}: nodes:", asked["nodes"]
        if rule != "train" or not ranks:
            raise InputError(f"{where} only fits with ranks run on several nodes; add ranks: {{softmax: {nodes}}}")
        for name, n in ranks.items():
            if n % nodes:
                raise InputError(
                    f"{where} {n} ranks of {name} do not divide among {nodes} nodes; take ranks: "
                    f"{{{name}: {nodes * -(-n // nodes)}}}, or other nodes"
                )


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
        if _proposals_of(point) != _proposals_of(built[method]):
            raise InputError(
                f"{where}: parameters of a proposal that is fitted beforehand cannot be searched; name a method "
                "for each"
            )
        name = "_".join(f"{key}-{value}" for key, value in zip(grid, values, strict=True))
        _check_path_part(f"{where}: the trial", name)
        found[name] = changes
    return found


def _nested(keys: list[str], value: Any) -> dict[str, Any]:
    return {keys[0]: _nested(keys[1:], value) if keys[1:] else value}


def _proposals_of(method: Method) -> dict[str, dict[str, Any]]:
    return {_name_of(settings): settings for settings in map(settings_of, parts_beforehand(method.proposal))}


def _name_of(settings: Mapping[str, Any]) -> str:
    """Name a proposal by its parameters, as a file is called; by a hash of them if they are many, or nested."""
    values = {key: value for key, value in settings.items() if key != "name"}
    whole = json.dumps(values, sort_keys=True)
    named = "_".join([settings["name"], *(f"{key}-{json.dumps(value)}" for key, value in values.items())])
    if len(named) <= LONGEST_NAME and not any(isinstance(value, dict | str) for value in values.values()):
        return named
    return f"{settings['name']}_{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


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
        _check_known(f"{file}: format: unknown reader", [content.format], registry.names(READERS))
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
    _check_known("config: set: auto: among: nothing was measured of", among, candidates)
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


def _check_path_part(where: str, name: str) -> None:
    """Make sure that a name may be part of a path, and a wildcard of Snakemake."""
    if (n_bytes := len(name.encode())) > LONGEST_NAME:
        raise InputError(f"{where} {name[:40]!r}... has {n_bytes} bytes; {LONGEST_NAME} at most, as it names files")
    if PERIODIC.search(name):
        raise InputError(f"{where} {name!r} ends in {REPEATS} repeats, which Snakemake refuses; choose another name")


def _check_known(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{where} {name!r}; {suggestion(name, known)}")


def _check(value: Any, schema: dict[str, Any], source: str) -> None:
    error = best_match(_Validator(schema).iter_errors(value))
    if error is not None:
        where = [".".join(map(str, error.path))] if error.path else []
        raise InputError(": ".join([source, *where, _meaning(error)]) + _example(error, schema))


def _meaning(error: ValidationError) -> str:
    """Say what a schema finds wrong, in words for those who have not read it."""
    if error.validator == "not":
        return f"give one of {' and '.join(error.validator_value['required'])}, not both"
    if error.validator == "additionalProperties" and "properties" in error.schema:
        known = error.schema["properties"]
        unknown = next(key for key in error.instance if key not in known)
        return f"unknown key {unknown!r}; {suggestion(unknown, known)}"
    return error.message


def _example(error: ValidationError, schema: dict[str, Any]) -> str:
    """Show the key of the schema that is meant with a value that is right, if the schema has one."""
    known = schema.get("properties", {})
    if error.path:
        meant = [str(error.path[0])]
    elif error.validator == "required":
        meant = [key for key in error.validator_value if key not in error.instance]
    else:
        meant = [near for key in error.instance if key not in known for near in get_close_matches(key, known, n=1)]
    part = known.get(meant[0], {}) if meant else {}
    for name in part.get("$ref", "").removeprefix("#/").split("/") if "$ref" in part else ():
        part = schema[name] if name == "$defs" else schema["$defs"][name]
    if not part.get("examples"):
        return ""
    return f"; for example {yaml.safe_dump({meant[0]: part['examples'][0]}, default_flow_style=True)[1:-2]}"


def _schema(name: str) -> dict[str, Any]:
    return _read(SCHEMAS / f"{name}.schema.yaml")


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_yaml(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}") from error
