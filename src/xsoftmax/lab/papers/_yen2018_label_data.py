"""The data of Yen et al. 2018's multilabel experiment, Table 2, beside ours."""

import math
from collections.abc import Mapping

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results


def label_data(results: Results, page: Page, paper: Mapping[str, float]) -> None:
    """Put the sizes of the paper's data set beside ours."""
    words = {"n_train": "training rows", "n_classes": "labels", "n_features": "words"}
    found = {fit.dataset: fit.status["data"] for fit in results.fits}
    names = sorted(found)
    n_labels = [found[name]["n_classes"] for name in names]
    *here, there = (number(math.sqrt(n), digits=0) for n in (*n_labels, paper["n_classes"]))
    bounds = f"{', '.join(here)}, and {there}"
    page.section(
        "Table 2: the data",
        "WikiLSHTC-325K has an entry, `config/datasets/`, for those who have it; it could not be downloaded where "
        f"this page was made. Here are data sets of {min(n_labels)} to {max(n_labels)} labels: bookmarked pages and "
        "entries of bibliographies with the tags that users gave them, and descriptions of Debian's packages with "
        "their debtags. By section 4 a search is at most as many times as fast as all labels as the root of their "
        f"number: in the order of the table {bounds} for the paper's. What a step costs besides scoring "
        "labels weighs more here.",
    )
    rows = [
        [text, number(paper[key], digits=0), *(number(found[name][key], digits=0) for name in names)]
        for key, text in words.items()
    ]
    per_row = [_labels_per_row(results, name) for name in names]
    per_class = [
        each * found[name]["n_train"] / found[name]["n_classes"] for name, each in zip(names, per_row, strict=True)
    ]
    for text, key, ours_ in (
        ("labels per row", "labels_per_row", per_row),
        ("rows per label", "rows_per_class", per_class),
    ):
        rows.append([text, *(number(each, digits=2) for each in (paper[key], *ours_))])
    page.table(["", "WikiLSHTC-325K", *names], rows)


def _labels_per_row(results: Results, dataset: str) -> float:
    """Give the mean number of labels of a training row; NaN without the rows."""
    if dataset not in results.prepared:
        return math.nan
    with results.data(dataset) as data:
        sets = data.split("train").label_sets
        return math.nan if sets is None else float(np.diff(sets.starts).mean())
