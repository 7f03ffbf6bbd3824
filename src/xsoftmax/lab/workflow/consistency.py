"""What the schema of a config cannot tell: that its parts fit each other, and the methods that are there."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.lab.workflow.task import LONGEST_NAME, Task
from xsoftmax.methods import AUTO, n_sampled_moved, renamed

REPEATS = 20
PERIODIC = re.compile(rf"(.+)\1{{{REPEATS - 1}}}\Z")  # Snakemake takes such a wildcard for a rule that needs itself


def check_defined(define: Mapping[str, Any], methods: Mapping[str, Any]) -> None:
    """Refuse methods of the config that take a name that is there, or are like one that is not."""
    for name, settings in define.items():
        if name in (*methods, AUTO):
            raise InputError(f"config: define: there is a method {name!r}; give this one another name")
        check_known(f"config: define: {name}: like: unknown method", [settings["like"]], methods)


def check_renamed(config: Mapping[str, Any], methods: Any, file: str) -> None:
    """Refuse keys of methods that have another name now, wherever they stand."""
    whole = {file: methods, "config: define": config.get("define"), "config: set": config.get("set")}
    for name, own in config["for"].items():
        whole[f"config: for: {name}: set"] = own.get("set")
    for where, given in whole.items():
        for method, settings in (given or {}).items() if isinstance(given, Mapping | None) else ():
            if isinstance(settings, Mapping) and (moved := renamed(settings)):
                raise InputError(f"{where}: {method}: {moved}")


def check_n_sampled(config: Mapping[str, Any]) -> None:
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


def check_used(config: dict[str, Any], tasks: Mapping[str, Task], known: Iterable[str]) -> None:
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
        check_known(f"{where}: unknown method", named, known)
        if unused := [name for name in named if name not in among]:
            raise InputError(f"{where}: {unused[0]} is not among methods; add it there or leave it out here")


def check_ranks(ranks: Mapping[str, int], tasks: Mapping[str, Task]) -> None:
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


def check_nodes(resources: Mapping[str, Mapping[str, int]], ranks: Mapping[str, int]) -> None:
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


def check_path_part(where: str, name: str) -> None:
    """Make sure that a name may be part of a path, and a wildcard of Snakemake."""
    if (n_bytes := len(name.encode())) > LONGEST_NAME:
        raise InputError(f"{where} {name[:40]!r}... has {n_bytes} bytes; {LONGEST_NAME} at most, as it names files")
    if PERIODIC.search(name):
        raise InputError(f"{where} {name!r} ends in {REPEATS} repeats, which Snakemake refuses; choose another name")


def check_known(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known; the message begins with ``where``."""
    for name in names:
        if name not in known:
            raise InputError(f"{where} {name!r}; {suggestion(name, known)}")
