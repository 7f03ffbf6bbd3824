"""What is shown of each benchmark suite; one file per suite, of its name.

A file has ``blocks(content)``, the Markdown of generated blocks by their names (lower case letters), and
``figures(content)``, figures by the name of the block that shows them; ``content`` is what the suite wrote as JSON.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import matplotlib as mpl
import pandas as pd
import seaborn as sns

from xsoftmax.lab.report.figures import SETTINGS

STYLE = SETTINGS | {"font.size": 8.5, "axes.titlesize": 9, "legend.fontsize": 8.5, "svg.fonttype": "none"}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: int) -> str:
    """Write a Markdown table whose last ``right`` columns are aligned to the right."""
    marks = ["---"] * (len(headings) - right) + ["--:"] * right
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (headings, marks, *rows))


def promised(limit: float | None, value: float) -> str:
    """Write the largest value that is promised, and whether it is kept; a dash where nothing is."""
    if limit is None or pd.isna(limit):
        return "–"
    return f"{limit:g}" if value <= limit else f"{limit:g}, **not met**"


@contextmanager
def style() -> Iterator[None]:
    """Draw as all figures of this project are drawn."""
    with mpl.rc_context(), sns.axes_style("ticks", {"axes.grid": True, "grid.color": "#e6e6e6"}):
        mpl.rcParams.update(STYLE)
        yield
