"""What an experiment has left, as the pages of papers ask for it: means over seeds, curves, models and data."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from xsoftmax.data.store import Prepared, open_prepared
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.reproduction.estimates import Difference, Estimate, paired
from xsoftmax.model import Model, load_model
from xsoftmax.training.folders import Fit, read_fits
from xsoftmax.training.search import Search, read_search

MOST_ROWS = 10_000  # of the test rows in paired comparisons: all of most data sets


@dataclass(frozen=True)
class Results:
    """All fits of an experiment.

    Attributes
    ----------
    name : str
        The experiment's.
    fits : list of Fit
    searches : list of Search
    prepared : mapping of str to Path
        The prepared file of each data set.
    """

    name: str
    fits: Sequence[Fit]
    searches: Sequence[Search]
    prepared: Mapping[str, Path]

    @classmethod
    def read(cls, name: str, fits: Iterable[Path], searches: Iterable[Path], prepared: Iterable[Path]) -> "Results":
        """Read folders of fits and searches; prepared files are named as their data sets."""
        found = [read_search(folder) for folder in searches]
        return cls(name, read_fits(fits), found, {path.stem: path for path in prepared})

    @classmethod
    def find(cls, name: str, root: Path = Path()) -> "Results":
        """Read all that the workflow has left of an experiment in a working tree, as ``fits.json`` lists it.

        Raises
        ------
        InputError
            If the experiment has not been run there.
        """
        folder = root / "results" / name
        try:
            statuses = json.loads((folder / "fits.json").read_text(encoding="utf-8"))
        except OSError:
            raise InputError(f"no results of {name} in {root.absolute()}; run its config first") from None
        fits = [folder / "fits" / fit["dataset"] / fit["method"] / f"seed-{fit['seed']}" for fit in statuses]
        searches = sorted(path.parent for path in folder.glob("search/*/*/chosen.json"))
        datasets = {fit["dataset"] for fit in statuses}
        return cls.read(name, fits, searches, [root / "data/prepared" / f"{dataset}.h5" for dataset in datasets])

    @cached_property
    def datasets(self) -> list[str]:
        """Name the data sets that there are fits of."""
        return sorted({fit.dataset for fit in self.fits})

    def has(self, dataset: str, method: str) -> bool:
        """Tell whether a method was trained on a data set."""
        return any((fit.dataset, fit.method) == (dataset, method) for fit in self.fits)

    def of(self, dataset: str, method: str) -> list[Fit]:
        """Give the fits of a method on a data set, one for each seed.

        Raises
        ------
        InputError
            If there is none.
        """
        found = [fit for fit in self.fits if (fit.dataset, fit.method) == (dataset, method)]
        if not found:
            raise InputError(f"{self.name}: no fit of {method} on {dataset}, which the paper's page needs; add it")
        return found

    def values(self, dataset: str, method: str, measure: str) -> list[float | None]:
        """Give a measure of each seed's fit; None where it diverged.

        ``measure`` is a path such as ``test.accuracy``, into metrics, or ``fit.seconds`` into the status, or
        ``end.objective``, of the last look at the fit.
        """
        return [value(fit, measure) for fit in self.of(dataset, method)]

    def estimate(self, dataset: str, method: str, measure: str) -> Estimate:
        """Give the mean of a measure over seeds; that of a fit that draws nothing and has converged is exact."""
        return self._mean(dataset, method, self.values(dataset, method, measure))

    def bound(self, dataset: str, method: str) -> Estimate:
        """Give the mean over seeds of what a method maximises, where it ended: minus its objective."""
        losses = self.values(dataset, method, "end.objective")
        return self._mean(dataset, method, [None if loss is None else -loss for loss in losses])

    def _mean(self, dataset: str, method: str, values: Sequence[float | None]) -> Estimate:
        found = Estimate.of(values)
        return Estimate.exact(found.mean) if found.n == 1 and self.is_optimum(dataset, method) else found

    def is_optimum(self, dataset: str, method: str) -> bool:
        """Tell whether the fits of a method ended where its tolerance was met, which no seed changes."""
        return all(str(fit.status.get("message", "")).startswith("converged") for fit in self.of(dataset, method))

    def difference(self, dataset: str, first: str, second: str, measure: str, times: float = 1.0) -> Difference:
        """Subtract ``times`` a method's ``log_likelihood`` or ``accuracy`` from another's of the same test rows.

        It is above 0 where the first is more than so many times the second; see ``paired``.

        Of many test rows ``MOST_ROWS`` are looked at, evenly spaced.

        Parameters
        ----------
        dataset, first, second : str
        measure : {"log_likelihood", "accuracy"}
        times : float
        """
        a, b = (self._rows(dataset, method, measure) for method in (first, second))
        if not a or not b:
            return Difference(math.nan, math.nan)
        optima = [self.is_optimum(dataset, method) for method in (first, second)]
        return paired(a, [times * rows for rows in b], optima)

    def _rows(self, dataset: str, method: str, measure: str) -> list[np.ndarray]:
        found = [_scored(fit.folder, self._file(dataset)) for fit in self.of(dataset, method) if not fit.diverged]
        return [log_likelihood if measure == "log_likelihood" else hits for log_likelihood, hits in found]

    def curve(self, dataset: str, method: str) -> pd.DataFrame:
        """Give the mean over seeds of every evaluation that all seeds have, those that diverged left out."""
        histories = [fit.history for fit in self.of(dataset, method) if not fit.diverged]
        if not histories:
            return pd.DataFrame()
        common = min(len(history) for history in histories)
        stacked = pd.concat([history.iloc[:common].assign(evaluation=range(common)) for history in histories])
        return stacked.groupby("evaluation").mean(numeric_only=True)

    def search(self, dataset: str, method: str) -> Search:
        """Give the search for a method's settings on a data set.

        Raises
        ------
        InputError
            If there was none.
        """
        for search in self.searches:
            if (search.dataset, search.method) == (dataset, method):
                return search
        raise InputError(f"{self.name}: no search for {method} on {dataset}, which the paper's page needs")

    def data(self, dataset: str) -> Prepared:
        """Open a prepared data set, which the caller closes."""
        return open_prepared(self._file(dataset))

    def _file(self, dataset: str) -> Path:
        if dataset not in self.prepared:
            message = f"{self.name}: no prepared file of {dataset}, whose rows the paper's page looks at; name it"
            raise InputError(f"{message} after --data")
        return self.prepared[dataset]

    def models(self, dataset: str, method: str) -> Iterator[Model]:
        """Load the models of a method, those of seeds that diverged left out."""
        for fit in self.of(dataset, method):
            if not fit.diverged:
                yield load_model(fit.folder / "model.h5")


@cache
def _scored(folder: Path, prepared: Path) -> tuple[np.ndarray, np.ndarray]:
    """Give the log-likelihood of test rows, and whether the true class scores highest."""
    with open_prepared(prepared) as data:
        test = data.split("test")
    every = -(-len(test.y) // MOST_ROWS)
    found = score_rows(load_model(folder / "model.h5"), test.X[::every], test.y[::every])
    return found.log_likelihood, (found.rank == 0).astype(float)


def value(fit: Fit, measure: str) -> float | None:
    """Give one measure of one fit; see ``Results.values``."""
    where, *path = measure.split(".")
    if where == "end":
        column = fit.history.get(path[0])
        found = None if fit.diverged or column is None or column.empty else float(column.iloc[-1])
        return found if found is not None and math.isfinite(found) else None
    inner: Any = fit.status if where == "fit" else fit.metrics.get(where)
    for key in path:
        inner = inner.get(key) if isinstance(inner, Mapping) else None
    return None if fit.diverged and where != "fit" else inner


def middle(values: Iterable[float | None]) -> float:
    """Median of those values that are there: for times, which a busy machine makes longer."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return median(finite) if finite else math.nan


def first_at(curve: pd.DataFrame, column: str, level: float, by: str = "seconds") -> float:
    """Tell when a curve first reaches a level, by linear interpolation between evaluations; NaN if it does not."""
    if curve.empty:
        return math.nan
    y, x = curve[column].to_numpy(), curve[by].to_numpy()
    reached = np.flatnonzero(y >= level)
    if not reached.size:
        return math.nan
    i = reached[0]
    if i == 0:
        return float(x[0])
    return float(x[i - 1] + (level - y[i - 1]) / (y[i] - y[i - 1]) * (x[i] - x[i - 1]))
