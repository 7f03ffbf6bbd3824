"""Yen et al. 2018, words: what claims are judged by, objectives after equal epochs and times, and times of epochs."""

from xsoftmax.lab.papers._yen2018_methods import common_end, times_as_fast, values_at
from xsoftmax.lab.papers._yen2018_word_tables import NEG, OBJECTIVE
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above, quotient
from xsoftmax.lab.reproduction.results import Results, middle


class WordLooks:
    """Of one corpus, what claims are judged by: objectives after equal epochs and times, and times of epochs."""

    def __init__(self, results: Results, dataset: str) -> None:
        self._results, self._dataset = results, dataset

    def has(self, method: str) -> bool:
        """Tell whether a method was trained."""
        return self._results.has(self._dataset, method)

    def pair(self, one: str, other: str, by: str, measure: str = OBJECTIVE) -> list[list[float | None]]:
        """Give what two methods come to, seed by seed.

        After as many ``epoch``s, or ``seconds``, as both have; where NEG is the other, after as many seconds as its
        fit of that seed has, as its rate falls until it ends. What ended sooner has its last value. Or where each
        ends, by ``end``.
        """
        if by == "end":
            return [self._results.values(self._dataset, each, f"end.{measure}") for each in (one, other)]
        end: float | list[float] = common_end(self._results, self._dataset, (one, other), by)
        if (by, other) == ("seconds", NEG):
            end = [float(fit.history[by].iloc[-1]) for fit in self._results.of(self._dataset, NEG)]
        return [values_at(self._results, self._dataset, each, measure, by, end) for each in (one, other)]

    def is_lower(self, one: str, other: str, by: str, measure: str = OBJECTIVE) -> bool | None:
        """Tell whether one method comes to a lower objective than another; one that diverges does not."""
        first, second = map(Estimate.of, self.pair(one, other, by, measure))
        return False if first.n_diverged else above(second, first)

    def ways(self, one: str, other: str, begins: str | None = None) -> list[list[float | None]]:
        """Give how far down two methods go from the first epoch on, their own or that of one, seed by seed.

        Both after as many epochs as both have.
        """
        starts = [
            values_at(self._results, self._dataset, begins or each, OBJECTIVE, "epoch", 1.0) for each in (one, other)
        ]
        return [
            [None if start is None or end is None else start - end for start, end in zip(*both, strict=True)]
            for both in zip(starts, self.pair(one, other, "epoch"), strict=True)
        ]

    def goes_further(self, one: str, other: str) -> bool | None:
        """Tell whether a method goes further down than another from its first epoch on."""
        first, second = map(Estimate.of, self.ways(one, other))
        return False if first.n_diverged else above(first, second)

    def progress(self, one: str, other: str) -> Estimate:
        """Estimate what share of another's way down a method makes, from the epoch of NEG that both begin with."""
        return quotient(*self.ways(one, other, begins=other))

    def lead(self, one: str, other: str, measure: str) -> Estimate:
        """Estimate by how many nats one method's objective is below another's, where each ends."""
        pairs = zip(*self.pair(one, other, "end", measure), strict=True)
        return Estimate.of(None if here is None or there is None else there - here for here, there in pairs)

    def seconds(self, *methods: str) -> str:
        """Tell after how many seconds some methods end: medians over seeds."""
        found = [middle(self._results.values(self._dataset, each, "fit.seconds")) for each in methods]
        return " and ".join(f"{number(each)} s" for each in found)

    def threshold(self, method: str) -> float:
        """Give the slope from which a class counts that blocks retrieve, which all seeds share."""
        return float(self._results.of(self._dataset, method)[0].status["parameters"]["least_slope"])

    def faster(self, fast: str, slow: str) -> Estimate:
        """Estimate how many times as fast a method's epochs are as another's."""
        return times_as_fast(self._results, self._dataset, fast, slow)
