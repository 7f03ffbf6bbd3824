"""The report: one HTML page that holds everything, made from the files of an experiment."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined, Template
from plotly.offline import get_plotlyjs

from xsoftmax.internal.addresses import text_without_secrets
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.report.page.methods import joined, methods, origins
from xsoftmax.lab.report.page.sections import section
from xsoftmax.training.folders import commits

PROGRAMS = ("axes.js", "curves.js", "page.js")


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
    table, curves = (_table(_there(results / name)) for name in ("summary.csv", "curves.csv"))
    fits, searches = (
        json.loads(_there(results / name).read_text(encoding="utf-8")) for name in ("fits.json", "searches.json")
    )
    experiment, text = _config(config, results)
    return _template().render(
        experiment=experiment,
        n_fits=len(table),
        n_methods=table.method.nunique(),
        xsoftmax=joined(fit.get("versions", {}).get("xsoftmax") for fit in fits),
        commits=commits(fits),
        sections=[
            section(
                results / "figures",
                rows,
                curves[curves.dataset == name],
                [fit for fit in fits if fit["dataset"] == name],
                [search for search in searches if search["dataset"] == name],
            )
            for name, rows in table.groupby("dataset")
        ],
        methods=methods(fits),
        tracking=_tracking(results),
        config=text,
        origins=origins(fits),
        style=_own("page.css"),
        programs=[_own(name) for name in PROGRAMS],
        plotly=get_plotlyjs(),
    )


def _table(path: Path) -> pd.DataFrame:
    """Read the summary or the curves; a name is text, be it ``null`` or ``007``."""
    names = dict.fromkeys(("dataset", "method", "status"), str)
    return pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""])


def _template() -> Template:
    settings: Any = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(undefined=StrictUndefined, **settings).from_string(_own("page.html"))


def _own(name: str) -> str:
    """Read a file of this package."""
    return files("xsoftmax.lab.report.page").joinpath(name).read_text(encoding="utf-8")


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


def _tracking(results: Path) -> dict[str, Any] | None:
    path = results / "tracking.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
