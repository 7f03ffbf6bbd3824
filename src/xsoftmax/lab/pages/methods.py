"""The generated parts of the documentation's pages about methods, for ``marked_blocks``."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.marked_blocks import Writers
from xsoftmax.lab.pages.catalogue import Entry, axes_markdown, markdown_table, members_markdown, one_of
from xsoftmax.lab.pages.data_keys import keys_markdown, readers_markdown
from xsoftmax.lab.pages.searches import regrets_markdown

PAGES = Path("docs/methods")
OUTCOME = PAGES / "figures" / "outcome.csv"


def writers(entries: Sequence[Entry], page: Path, outcome: Path | None = None) -> Writers:
    """Give the writers of the blocks of one page.

    Parameters
    ----------
    entries : sequence of Entry
        All methods.
    page : Path
        The file they stand in: links are relative to it.
    outcome : Path, optional
        Table that the verb `figures` wrote; ``OUTCOME`` if not given.

    Returns
    -------
    dict
        ``methods``, ``axes`` and ``members``: tables; ``method NAME``, ``settings NAME``, ``outcome NAME``: a
        method's row of the table, its settings with defaults filled in, how it ended in the run of the figures;
        ``search NAME:KEY``: see ``regrets_markdown``; ``keys`` and ``readers``: of data sets' files.
    """

    def link(name: str) -> str:
        return os.path.relpath(PAGES / f"{name}.md", page.parent)

    return {
        "methods": lambda _: markdown_table(entries, link),
        "axes": lambda _: axes_markdown(),
        "members": lambda _: members_markdown(),
        "method": lambda name: _statistics(one_of(entries, name)),
        "settings": lambda name: _settings(one_of(entries, name)),
        "outcome": lambda name: _outcome(outcome or OUTCOME, name),
        "search": regrets_markdown,
        "keys": lambda _: keys_markdown(),
        "readers": lambda _: readers_markdown(),
    }


def _statistics(entry: Entry) -> str:
    cells = entry.cells
    statistics = {
        "from": entry.source,
        "axes": " × ".join([entry.objective, entry.proposal, entry.optimizer]),
        "unbiased for": entry.unbiased_for,
        "rows per sample": cells["rows"] + (f"; a draw costs {entry.draw}" if entry.draw else ""),
        "extra memory": cells["memory"],
    }
    lines = ["|  |  |", "| --- | --- |", *(f"| {key} | {value} |" for key, value in statistics.items())]
    return "\n".join(lines)


def _settings(entry: Entry) -> str:
    text = yaml.safe_dump({entry.name: entry.settings}, sort_keys=False, default_flow_style=None, width=110)
    return f"```yaml\n{text.rstrip()}\n```"


def _outcome(path: Path, name: str) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            found = {row["method"]: row for row in csv.DictReader(file)}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; `python -m xsoftmax figures` writes it") from None
    if name not in found:
        raise InputError(f"{path}: no method {name!r}; run the experiment of the figures with it")
    row = found[name]
    place = f"On {row['dataset']}, with {row['set']}" if row["set"] else f"On {row['dataset']}, with these settings"
    if not row["test_log_likelihood"]:
        return f"{place}, it {row['status']}."
    value = f"{float(row['test_log_likelihood']):.3f}".replace("-", "−")
    accuracy = f"{float(row['test_accuracy']):.3f}"
    return (
        f"{place}, after {float(row['epochs']):g} epochs in {float(row['seconds']):.3g} s: "
        f"test log-likelihood {value} nats, accuracy {accuracy}; {row['status']}."
    )
