"""Yen et al. 2018, several labels: what claims are judged by, and the table of all methods."""

import math
from collections.abc import Iterable, Mapping, Sequence

from xsoftmax.lab.papers._yen2018_methods import (
    EPOCHS,
    MIPS,
    SECONDS,
    common_end,
    is_looked_at,
    kinds,
    times_as_fast,
    trained,
    values_at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle

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
                number(middle(results.values(dataset, name, "fit.epoch")), digits=1),
                number(middle(results.values(dataset, name, SECONDS))),
            ]
            for name, text in looks.known.items()
        ],
    )
