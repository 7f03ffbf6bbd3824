"""Compare fits: write the tables and figures of an experiment."""

import json
from collections.abc import Iterable
from pathlib import Path

from xsoftmax.report import tables
from xsoftmax.report.figures import write_figures
from xsoftmax.report.fits import read_fits
from xsoftmax.report.output import write_whole


def compare(folders: Iterable[Path], results: Path) -> None:
    """Compare fits and write what a report is made from.

    Parameters
    ----------
    folders : iterable of Path
        Fit directories that `train` and `evaluate` have filled.
    results : Path
        Gets ``summary.csv`` (a row per fit), ``summary.md`` (the ranking), ``curves.csv`` (a row per fit and
        recorded epoch), ``fits.json`` (the status of each fit) and ``figures/``. The same fits give the same
        bytes.
    """
    fits = read_fits(folders)
    summary, curves = tables.summary(fits), tables.curves(fits)
    write_whole(results / "summary.csv", summary.to_csv(index=False))
    write_whole(results / "curves.csv", curves.to_csv(index=False))
    write_whole(results / "summary.md", tables.markdown_table(summary))
    write_whole(results / "fits.json", json.dumps([fit.status for fit in fits], indent=1) + "\n")
    write_figures(curves, summary, results / "figures")
