"""What the page says of the methods and of where the fits were made."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from xsoftmax.lab.report.appearance import appearances_of
from xsoftmax.lab.report.page.curves import color_of
from xsoftmax.training.folders import flatten

AXES = ("objective", "proposal", "optimizer")


def methods(statuses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one row per method; several where its parameters differ between data sets."""
    appearances = appearances_of(status["method"] for status in statuses)
    found: dict[tuple[str, str], list[str]] = {}
    for status in statuses:
        key = (status["method"], json.dumps(status.get("parameters", {}), sort_keys=True))
        found.setdefault(key, []).append(status["dataset"])
    variants = [method for method, _ in found]
    rows = []
    for (method, text), datasets in sorted(found.items()):
        parameters = json.loads(text)
        rest = {name: value for name, value in parameters.items() if name not in (*AXES, "source")}
        row: dict[str, Any] = {axis: _axis(parameters.get(axis, {})) for axis in AXES}
        only = ", ".join(sorted(set(datasets))) if variants.count(method) > 1 else ""
        row |= {
            "method": method,
            "source": parameters.get("source"),
            "datasets": only,
            "rest": _rest(rest),
            "color": color_of(appearances[method]),
        }
        rows.append(row)
    return rows


def listed(parameters: dict[str, Any]) -> str:
    """List parameters that are set."""
    return ", ".join(f"{name} {value}" for name, value in parameters.items() if value is not None)


def origins(statuses: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """List versions, machine, commit and threads; where fits differ, all values."""
    flat = [
        flatten(status.get("versions", {}))
        | flatten(_readable(status.get("machine", {})))
        | {"threads": status.get("threads"), "git commit": status.get("git_commit")}
        for status in statuses
    ]
    names = dict.fromkeys(name for row in flat for name in row)
    rows = [(name.replace("_", " "), joined(row.get(name) for row in flat)) for name in names]
    return [(name, value) for name, value in rows if value]


def joined(values: Iterable[Any]) -> str:
    """Join the different values, each once."""
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def _axis(parameters: Any) -> tuple[str, str]:
    """Take an entry of the parameters apart: its name, and the rest in words."""
    if not isinstance(parameters, dict):
        return str(parameters), ""
    rest = flatten({name: value for name, value in parameters.items() if name != "name"})
    return str(parameters.get("name", "")), listed(rest)


def _rest(parameters: dict[str, Any]) -> str:
    """List the settings beside the three axes."""
    entries = {name: _axis(value) for name, value in parameters.items()}
    return "; ".join(f"{name}: {', '.join(filter(None, parts))}" for name, parts in entries.items())


def _readable(machine: dict[str, Any]) -> dict[str, Any]:
    size = machine.get("memory_bytes")
    rest = {name: value for name, value in machine.items() if name != "memory_bytes"}
    return rest | ({"memory": f"{size / 2**30:.1f} GiB"} if size else {})
