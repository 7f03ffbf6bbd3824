"""Compare fits: write the tables and figures of an experiment."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text
from xsoftmax.lab.report import tables
from xsoftmax.lab.report.evaluated import check_evaluated
from xsoftmax.lab.report.figures import write_figures
from xsoftmax.lab.report.reliability import write_reliability
from xsoftmax.training.folders import Fit, read_fits
from xsoftmax.training.search import Search


def compare(
    folders: Iterable[Path], results: Path, reference: str | None = None, searches: Sequence[Search] = ()
) -> None:
    """Compare fits and write what a report is made from.

    Parameters
    ----------
    folders : iterable of Path
        Fit directories that `train` and `evaluate` have filled.
    results : Path
        Gets ``summary.csv`` (a row per fit), ``summary.md`` and ``summary.html`` (the ranking), ``curves.csv`` (a row
        per fit and recorded epoch), ``fits.json`` (the status of each fit, with what `evaluate` said under
        ``metrics``), ``searches.json`` (what was tried, and what chosen) and ``figures/``. The same fits give the
        same bytes.
    reference : str, optional
        A method: how far the others' training objective is above its best is drawn as well.
    searches : sequence of Search

    Raises
    ------
    InputError
        If a fit can't be read, or its data set's name would lead a figure into another folder.
    """
    fits = read_fits(folders)
    for fit in fits:
        _check_name(fit)
        check_evaluated(fit)
        if fit.method == reference and not (fit.status.get("message") or "").startswith("converged"):
            print(
                f"warning: the reference {reference} on {fit.dataset} has not converged in {fit.status.get('epoch')} "
                "epochs: gaps and distances are to where it stands; give it a larger budget",
                file=sys.stderr,
            )
    summary, curves = tables.summary(fits), tables.curves(fits, reference)
    texts = {
        "summary.csv": summary.to_csv(index=False),
        "curves.csv": curves.to_csv(index=False),
        "summary.md": tables.markdown_table(summary),
        "summary.html": tables.html_page(summary),
        "fits.json": json.dumps([fit.status | {"metrics": fit.metrics} for fit in fits], indent=1) + "\n",
        "searches.json": json.dumps([_tried(search) for search in searches], indent=1) + "\n",
    }
    for name, text in texts.items():
        write_text(results / name, text)
    write_figures(curves, summary, results / "figures", write_reliability(fits, results / "figures"))


def _check_name(fit: Fit) -> None:
    """Refuse a data set's name that is more than one part of a path: a status may come from anyone."""
    if not isinstance(fit.dataset, str) or not fit.dataset or Path(fit.dataset).name != fit.dataset:
        where = fit.folder / "status.json"
        raise InputError(
            f"{where}: dataset {fit.dataset!r} is part of the figures' paths; give it a name without slashes"
        )


def _tried(search: Search) -> dict[str, Any]:
    trial = search.trials[0].status
    trained = {"rows": trial["data"]["n_train"], "seed": trial["seed"], "budget": trial["budget"]}
    return {"dataset": search.dataset, "method": search.method, **trained, **search.chosen}
