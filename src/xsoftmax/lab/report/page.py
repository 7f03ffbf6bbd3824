"""The report: one HTML page that holds everything, made from the files of an experiment."""

import base64
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined, Template

from xsoftmax.evaluation.metrics import title_of
from xsoftmax.internal.addresses import text_without_secrets
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import pruning_in_words
from xsoftmax.lab.report.appearance import appearances_of
from xsoftmax.lab.report.figures import GAP, PLOTS, SEARCHES
from xsoftmax.lab.report.reliability import RELIABILITY
from xsoftmax.lab.report.tables import (
    cell,
    cells,
    headings,
    number,
    ranking,
    shown,
    training_objectives,
    without_empty,
)
from xsoftmax.training.folders import DIVERGED, flatten

AXES = ("objective", "proposal", "optimizer")
SIZES = {
    "n_classes": "classes",
    "n_features": "features",
    "n_train": "training examples",
    "n_validation": "validation examples",
    "n_test": "test examples",
}
DROPPED = {
    "n_dropped_empty": "empty examples dropped",
    "n_dropped_unlabelled": "examples without a label dropped",
    "n_dropped_unseen_validation": "validation examples of classes unseen in training dropped",
    "n_dropped_unseen_test": "test examples of classes unseen in training dropped",
}


def page(results: Path, config: Path) -> str:
    """Make the report of one experiment.

    Parameters
    ----------
    results : Path
        A folder that `compare` has filled; a ``tracking.json`` in it is read too.
    config : Path
        The experiment's YAML file, shown word for word.

    Raises
    ------
    InputError
        If `compare` has not been run, or the config is not YAML.
    """
    table = without_empty(_summary(_there(results / "summary.csv")))
    statuses = json.loads(_there(results / "fits.json").read_text(encoding="utf-8"))
    searches = json.loads(_there(results / "searches.json").read_text(encoding="utf-8"))
    experiment, text = _config(config, results)
    return _template().render(
        experiment=experiment,
        n_fits=len(table),
        n_methods=table.method.nunique(),
        xsoftmax=_said(status.get("versions", {}).get("xsoftmax") for status in statuses),
        commits=sorted({_short(status["git_commit"]) for status in statuses if status.get("git_commit")}),
        headings=headings(table),
        fit_headings=["method", "seed", *(heading for _, heading, _ in shown(table)), "epochs", "status"],
        sections=[
            {
                **_section(results, name, rows, statuses),
                "searches": [_search(each) for each in searches if each["dataset"] == name],
            }
            for name, rows in table.groupby("dataset")
        ],
        methods=_methods(statuses),
        tracking=_tracking(results),
        config=text,
        origins=_origins(statuses),
    )


def _summary(path: Path) -> pd.DataFrame:
    """Read the summary; a name is text, be it ``null`` or ``007``."""
    names = dict.fromkeys(("dataset", "method", "status"), str)
    return pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""])


def _short(commit: str) -> str:
    """Shorten a commit; a plus sign behind it, for uncommitted changes, stays."""
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _template() -> Template:
    text = files("xsoftmax.lab.report").joinpath("page.html").read_text(encoding="utf-8")
    settings: Any = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(undefined=StrictUndefined, **settings).from_string(text)


def _there(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} is missing; run `python -m xsoftmax compare` first")
    return path


def _config(path: Path, results: Path) -> tuple[str, str]:
    """Read the config: the experiment's name, and the text without what is secret in addresses."""
    try:
        text = path.read_text(encoding="utf-8")
        said = yaml.safe_load(text)
    except FileNotFoundError:
        raise InputError(f"config {path} is missing; name the experiment's YAML file") from None
    except yaml.YAMLError as error:
        raise InputError(f"config {path} is not YAML: {error}; mend it") from None
    name = said.get("experiment") if isinstance(said, dict) else None
    return str(name or results.resolve().name), text_without_secrets(text)


def _section(results: Path, dataset: Any, rows: pd.DataFrame, statuses: Sequence[dict]) -> dict[str, Any]:
    ranked = ranking(rows)
    appearances = appearances_of(ranked.method)
    of_dataset = [status for status in statuses if status["dataset"] == dataset]
    return {
        "dataset": dataset,
        "sizes": _sizes(of_dataset[0].get("data", {})) if of_dataset else "",
        "best": _best(ranked),
        "messages": [_message(status) for status in of_dataset if status["status"] == DIVERGED],
        "pruned": [_pruned(status) for status in of_dataset if status.get("pruning")],
        "rows": [{"cells": cells(row), "color": appearances[row.method].color} for _, row in ranked.iterrows()],
        "objectives": [_objective_cells(row) for _, row in training_objectives(rows).iterrows()],
        "several_seeds": bool((ranked.seeds > 1).any()),
        "fits": [_fit_cells(row) for _, row in rows.iterrows()],
        "figures": list(_figures(results / "figures", dataset)),
    }


def _search(search: dict[str, Any]) -> dict[str, Any]:
    """Take a search apart: which method, how it was tried, and a row for each trial, the chosen one marked."""
    (unit, amount), column = next(iter(search["budget"].items())), title_of(search["by"])
    rows = [
        {
            "name": _listed(flatten(trial["settings"])),
            "value": _tried(trial["value"]),
            "chosen": trial["name"] == search["name"],
        }
        for trial in search["trials"]
    ]
    return {
        "method": search["method"],
        "how": f"{search['rows']:,} training rows, seed {search['seed']}, {amount:g} {unit}; by {column}",
        "rows": rows,
    }


def _tried(value: float | None) -> str:
    return DIVERGED if value is None else number(value, digits=4)


def _sizes(data: dict[str, Any]) -> str:
    """Say how large a data set is, and what was dropped where that is known."""
    said = [f"{data[name]:,} {words}" for name, words in SIZES.items() if data.get(name) is not None]
    return " · ".join(said + [f"{data[name]:,} {words}" for name, words in DROPPED.items() if data.get(name)])


def _best(ranked: pd.DataFrame) -> str:
    """Say which methods came out best."""
    well = ranked[ranked["rank"].notna() & (ranked.diverged == 0)]
    if well.empty:
        return ""
    likely = well.iloc[0]
    right = well.sort_values("test_accuracy", ascending=False, kind="stable").iloc[0]
    return (
        f"Best test log-likelihood: {likely.method}, {number(likely.test_log_likelihood, digits=3)} nats after "
        f"{number(likely.seconds)} s of training. Best accuracy: {right.method}, "
        f"{number(right.test_accuracy, digits=3)} after {number(right.seconds)} s."
    )


def _message(status: dict[str, Any]) -> str:
    said = status.get("message") or f"{status['method']} diverged at step {status.get('step')}"
    return f"{status['method']}, seed {status['seed']}: {said.removeprefix(status['method']).strip()}"


def _pruned(status: dict[str, Any]) -> str:
    return f"{status['method']}, seed {status['seed']}, {pruning_in_words(status['pruning'])}"


def _fit_cells(row: Any) -> list[str]:
    numbers = [cell(row, *column) for column in shown(row)]
    return [row.method, str(row.seed), *numbers, "–" if pd.isna(row.epochs) else f"{row.epochs:g}", row.status]


def _objective_cells(row: Any) -> list[str]:
    """Write a row of `training_objectives`: method, its objective's own name, and two numbers."""
    digits = {"training_objective": None, "train_log_likelihood": 3}
    numbers = [number(row[name], row[f"{name}_sd"], shown) for name, shown in digits.items()]
    return [row.method, row.objective_name, *numbers]


def _figures(folder: Path, dataset: Any) -> Iterable[dict[str, str]]:
    for plot in (*PLOTS, *SEARCHES, GAP, RELIABILITY):
        path = folder / f"{dataset}_{plot.name}.svg"
        if path.exists():
            yield {"title": plot.title, "data": base64.b64encode(path.read_bytes()).decode()}


def _methods(statuses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
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
            "color": appearances[method].color,
        }
        rows.append(row)
    return rows


def _axis(parameters: Any) -> tuple[str, str]:
    """Take an entry of the parameters apart: its name, and the rest in words."""
    if not isinstance(parameters, dict):
        return str(parameters), ""
    rest = flatten({name: value for name, value in parameters.items() if name != "name"})
    return str(parameters.get("name", "")), _listed(rest)


def _rest(parameters: dict[str, Any]) -> str:
    """List the settings beside the three axes."""
    entries = {name: _axis(value) for name, value in parameters.items()}
    return "; ".join(f"{name}: {', '.join(filter(None, parts))}" for name, parts in entries.items())


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items() if value is not None)


def _tracking(results: Path) -> dict[str, Any] | None:
    path = results / "tracking.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _origins(statuses: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """List versions, machine, commit and threads; where fits differ, all values."""
    flat = [
        flatten(status.get("versions", {}))
        | flatten(_readable(status.get("machine", {})))
        | {"threads": status.get("threads"), "git commit": status.get("git_commit")}
        for status in statuses
    ]
    names = dict.fromkeys(name for row in flat for name in row)
    rows = [(name.replace("_", " "), _said(row.get(name) for row in flat)) for name in names]
    return [(name, value) for name, value in rows if value]


def _readable(machine: dict[str, Any]) -> dict[str, Any]:
    size = machine.get("memory_bytes")
    rest = {name: value for name, value in machine.items() if name != "memory_bytes"}
    return rest | ({"memory": f"{size / 2**30:.1f} GiB"} if size else {})


def _said(values: Iterable[Any]) -> str:
    """Join the different values, each once."""
    return ", ".join(sorted({str(value) for value in values if value is not None}))
