"""Yen et al. 2018, several labels: what claims are judged by, and the table of all methods."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from xsoftmax.lab.papers._yen2018_methods import (
    EPOCHS,
    MIPS,
    SECONDS,
    common_end,
    is_looked_at,
    kinds,
    sooner,
    times_as_fast,
    trained,
    values_at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.training.evaluator import LOOKED_AT
from xsoftmax.training.plan import SUBSET

METRIC = "p_at_1"
TRAIN, TEST = f"train_{METRIC}", f"test_{METRIC}"


class Looks:
    """Of one data set, what claims are judged by: progress after equal epochs and times, and times of epochs."""

    def __init__(self, results: Results, dataset: str) -> None:
        self._results, self._dataset = results, dataset
        self.known = trained(results, dataset)

    def end(self, x: str, names: Iterable[str]) -> float:
        """Tell how far all of some methods have come, in epochs or seconds."""
        return common_end(self._results, self._dataset, names, x)

    def at_end(self, x: str, names: Sequence[str]) -> "Values":
        """Give P@1 of training rows where all of some methods have come to in epochs, of test rows in seconds."""
        metric, end = TRAIN if x == "epoch" else TEST, self.end(x, names)
        return {name: values_at(self._results, self._dataset, name, metric, x, end) for name in names}

    def of_two(self, x: str, kind: str, losses: tuple[str, str]) -> list[Sequence[float | None]]:
        """Give P@1 of two losses with one kind of rates, seed by seed, where the first of them ends."""
        names = [f"{loss}-{kind}" for loss in losses]
        values = self.at_end(x, names)
        return [values[name] for name in names]

    def gains(self, x: str, kind: str, losses: tuple[str, str]) -> "Gains":
        """Give how far P@1 of two losses is above that of one label for all rows, seed by seed; 0 where below."""
        least = self._one_label[TRAIN if x == "epoch" else TEST]
        first, second = (
            [None if value is None else max(0.0, value - least) for value in values]
            for values in self.of_two(x, kind, losses)
        )
        return list(zip(first, second, strict=True))

    @cached_property
    def _one_label(self) -> Mapping[str, float]:
        return one_label(self._results, self._dataset)

    def sooner(self, kind: str, fast: str, slow: str) -> Estimate:
        """Estimate how many times as soon a loss comes to the test P@1 that two reach."""
        return sooner(self._results, self._dataset, f"{fast}-{kind}", f"{slow}-{kind}", TEST)

    def kinds(self, *losses: str) -> list[str]:
        """List the kinds of rates with which all of some losses were trained."""
        return kinds(self._results, self._dataset, *losses)

    def fewer_rows(self) -> float:
        """Tell how many times as few rows a search scores as there are labels: the centroids and as many labels."""
        return math.sqrt(self._results.of(self._dataset, f"{MIPS}-{EPOCHS}")[0].status["data"]["n_classes"]) / 2

    def faster(self, fast: str, slow: str) -> Estimate:
        """Estimate how many times as fast a loss's epochs are as another's."""
        return times_as_fast(self._results, self._dataset, f"{fast}-{EPOCHS}", f"{slow}-{EPOCHS}")


Values = Mapping[str, Sequence[float | None]]
Gains = Sequence[tuple[float | None, float | None]]


def one_label(results: Results, dataset: str) -> dict[str, float]:
    """Give P@1 of naming the label of most rows for all: of the training rows that are looked at, and of test."""
    with results.data(dataset) as data:
        train, test = data.split("train"), data.split("test")
        looked_at = np.random.default_rng(LOOKED_AT).permutation(train.n_samples)[:SUBSET]
        rows = {TRAIN: train.with_labels_of(None, looked_at), TEST: test}
        return {name: split.class_counts(data.n_classes).max() / len(split.y) for name, split in rows.items()}


def table(results: Results, page: Page, dataset: str) -> None:
    looks = Looks(results, dataset)
    by_epoch, by_time = (looks.at_end(x, list(looks.known)) for x in ("epoch", "seconds"))
    end = looks.end("epoch", looks.known)
    page.text(
        f"After {number(end, digits=1)} epochs, which all have come to, by linear interpolation between looks, and "
        "after equal times; a dash where not all seeds had been looked at by then, no error where they agree to the "
        "last digit. Seconds per epoch are medians over seeds:"
    )
    page.table(
        ["method", "training P@1, equal epochs", "test P@1, equal times", "epochs in that time", "seconds per epoch"],
        [
            [
                text,
                ours(Estimate.of(by_epoch[name])) if is_looked_at(results, dataset, name, "epoch", end) else "–",
                ours(Estimate.of(by_time[name])),
                number(middle(_epochs(results, dataset, name)), digits=1),
                number(middle(results.values(dataset, name, SECONDS))),
            ]
            for name, text in looks.known.items()
        ],
    )


def _epochs(results: Results, dataset: str, name: str) -> list[float | None]:
    return [None if fit.diverged else float(fit.status["epoch"]) for fit in results.of(dataset, name)]
