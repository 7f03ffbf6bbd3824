"""What MLflow is told of a fit: tags, parameters and metrics, as plain values."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from xsoftmax.training.folders import Fit, flatten
from xsoftmax.training.search import Search

Point: TypeAlias = tuple[str, Any, int, int]
DIGEST = 32  # characters of a checksum; MLflow takes 36


def tags(fit: Fit, content: str) -> dict[str, str]:
    """Say which fit it is, by the hash of its files too, and how it ended."""
    named = {"dataset": fit.dataset, "method": fit.method, "seed": str(fit.seed), "fit": content}
    named["status"] = fit.status["status"]
    named["mlflow.source.name"] = "xsoftmax"
    if fit.status.get("objective_name"):
        named["objective_name"] = fit.status["objective_name"]
    if fit.status.get("git_commit"):
        named["mlflow.source.git.commit"] = fit.status["git_commit"]
    if fit.status.get("message"):
        named["mlflow.note.content"] = fit.status["message"]
    return named


def search_tags(search: Search, content: str) -> dict[str, str]:
    """Say which search it is, by the hash of its trials too."""
    named = {"dataset": search.dataset, "method": search.method, "seed": "search", "fit": content}
    return named | {"mlflow.source.name": "xsoftmax", "best": search.chosen["name"]}


def chosen(search: Search) -> list[tuple[str, str]]:
    """List the settings that were chosen, by their dotted names, and by which column."""
    flat = flatten(search.chosen["settings"]) | {"by": search.chosen["by"], "trials": len(search.trials)}
    return [(name, str(value)) for name, value in flat.items()]


def parameters(fit: Fit) -> list[tuple[str, str]]:
    """List the settings, sizes, versions and machine, nested ones by their dotted names."""
    status = fit.status
    groups = ("data", "versions", "machine")
    flat = flatten(status.get("parameters", {})) | flatten({name: status.get(name, {}) for name in groups})
    names = ("dataset", "method", "seed", "objective_name", "epochs", "budget", "n_parameters", "git_commit")
    flat |= flatten({name: status.get(name) for name in (*names, "fingerprint")})
    return [(name, str(value)) for name, value in flat.items() if value is not None]


def settings(fit: Fit) -> list[tuple[str, str]]:
    """List the settings of the method alone, by which models are told apart."""
    flat = flatten(fit.status.get("parameters", {}))
    return [(name, str(value)) for name, value in flat.items() if value is not None]


def data_set(fit: Fit) -> dict[str, str]:
    """Describe the prepared data, in the words of MLflow's ``Dataset``; nothing if the status has no checksum."""
    checksum = fit.status.get("data_sha256")
    if not checksum:
        return {}
    source = {"tags": {"mlflow.source.name": f"xsoftmax prepare, of {fit.dataset}", "sha256": checksum}}
    return {
        "name": fit.dataset,
        "digest": checksum[:DIGEST],
        "source_type": "code",
        "source": json.dumps(source),
        "profile": json.dumps(fit.status.get("data", {})),
    }


def curve(fit: Fit, start: int) -> list[Point]:
    """List name, value, time and step of what was measured on the way.

    A point's time is the start plus its seconds of training, so that MLflow's relative time is training time.
    The training objective is logged twice: as ``objective``, and under its own name, since only like objectives
    can be compared.
    """
    history, own_name = fit.history, metric_name(fit.status.get("objective_name"))
    if own_name and "objective" in history:
        history = history.assign(**{f"objective/{own_name}": history["objective"]})
    points: list[Point] = []
    for row in history.to_dict("records"):
        now = start + int(1000 * row["seconds"])
        points += [(str(name), row[name], now, int(row["step"])) for name in row if name != "step"]
    return [point for point in points if _is_number(point[1])]


def final(fit: Fit, start: int) -> list[Point]:
    """List name, value, time and step of the measures of the model that was kept."""
    measures = {
        f"final_{split}_{name}": value
        for split in ("validation", "test")
        for name, value in fit.metrics.get(split, {}).items()
    }
    return _at_the_end(fit, start, measures)


def machine(fit: Fit, start: int) -> list[Point]:
    """List name, value, time and step of the use of the machine."""
    peak = fit.status.get("peak_memory_bytes")
    names = ("threads", "seconds_per_epoch", "seconds", "setup_seconds")
    system = {f"system/{name}": fit.status.get(name) for name in names}
    return _at_the_end(fit, start, system | {"system/peak_memory_megabytes": peak and peak / 1e6})


def _at_the_end(fit: Fit, start: int, measures: Mapping[str, Any]) -> list[Point]:
    step, end = int(fit.status.get("step") or 0), start + int(1000 * (fit.status.get("seconds") or 0))
    return [(name, value, end, step) for name, value in measures.items() if _is_number(value)]


def metric_name(words: str | None) -> str:
    """Turn words into what MLflow takes as the name of a metric."""
    return re.sub(r"[^\w.-]+", "_", words or "", flags=re.ASCII).strip("_")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
