"""How claims of Yen et al. 2018 on several labels are judged: who leads, by what share, and factors of times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xsoftmax.lab.papers._yen2018_label_looks import Gains, Looks
from xsoftmax.lab.papers._yen2018_methods import KIND_TEXTS, LOSS_TEXTS, WAYS, judge_least, told
from xsoftmax.lab.papers._yen2018_ways import Orders, alone, each_way, tally
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.rules import Finding, judge_orders

# Further factors that are told with a claim of factors: of which losses, beside which one.
Also = tuple[str, Sequence[str], str]


@dataclass(frozen=True)
class LabelJudge:
    """Adds claims to a page, each judged on all data sets and in all ways to choose rates."""

    page: Page
    looks: Mapping[str, Looks]

    def leads(self, says: str, first: Sequence[str], second: Sequence[str], by: str, why: str) -> None:
        """Claim that each of some losses is ahead of each of others, where the two that are compared end.

        Where neither has learned anything they are left out.
        """
        texts: dict[str, str] = {}
        orders: Orders = []
        n_left_out = 0
        named = [loss for side in (first, second) if len(side) > 1 for loss in side]
        for dataset, each in self.looks.items():
            for way in WAYS:
                pairs = [(a, b) for a in first for b in second if way in each.kinds(a, b)]
                learned = [pair for pair in pairs if not _learned_nothing(each.gains(by, way, pair))]
                n_left_out += len(pairs) - len(learned)
                found = {pair: [Estimate.of(values) for values in each.of_two(by, way, pair)] for pair in learned}
                orders = [*orders, *((way, above(*both)) for both in found.values())]
                if found:
                    texts[f"{dataset}, {KIND_TEXTS[way]},"] = ", ".join(
                        _against(pair, both, named) for pair, both in found.items()
                    )
        left_out = f"; {n_left_out} pairs are left out as neither has learned" if n_left_out else ""
        measured = "training P@1 after equal epochs" if by == "epoch" else "test P@1 in equal time"
        finding = judge_orders(
            [order for _, order in orders], "pairs of methods, each on a data set with a way to choose rates"
        )
        here = f"{measured}: {told(texts)}; {tally(orders)}"
        self.page.claim(says, here, finding, f"{why}{left_out}; {alone(orders)}")

    def shares(
        self, says: str, share: Callable[[Gains], Estimate], losses: tuple[str, str], by: str,
        levels: tuple[float, float], why: str,
    ) -> None:  # fmt: skip
        """Claim that a share of two losses' gains reaches a level everywhere.

        Where neither has learned anything they are left out.
        """

        def judge(values: Iterable[Estimate]) -> Finding:
            return judge_least(values, "shares", *levels)

        found: dict[str, tuple[str, Estimate]] = {}
        left_out = []
        for dataset, each in self.looks.items():
            for way in each.kinds(*losses):
                where, gains = f"{dataset}, {KIND_TEXTS[way]}", each.gains(by, way, losses)
                if _learned_nothing(gains):
                    left_out.append(where)
                else:
                    found[where] = way, share(gains)
        parts = [told({f"{where},": ours(each, digits=2) for where, (_, each) in found.items()})] if found else []
        parts += [f"left out as neither has learned: {'; '.join(left_out)}"] if left_out else []
        measured = "of training P@1 after equal epochs" if by == "epoch" else "of test P@1 in equal time"
        self.page.claim(
            says,
            f"share of the greater gain, {measured}: {'; '.join(parts)}",
            judge(each for _, each in found.values()),
            f"{why}; {each_way(list(found.values()), judge)}",
        )

    def factors(
        self,
        says: str,
        fast: Sequence[str],
        slow: str,
        levels: tuple[float, float],
        why: str,
        also: Also,
        on: Callable[[Looks], bool] = lambda looks: True,
    ) -> None:
        """Claim that some losses' epochs are so many times as fast as another's, on all data sets that can tell.

        What it would be of others, too, is told.
        """

        def judge(found: Mapping[str, Mapping[str, Estimate]]) -> Finding:
            return judge_least([each for some in found.values() for each in some.values()], "factors", *levels)

        found, words, others = self._times(fast, slow, on), also[0], self._times(*also[1:], on)
        told_also = f"{words} *{judge(others).verdict}*" + (
            f": {_times_told(others, also[2])}" if slow != also[2] else ""
        )
        self.page.claim(says, _times_told(found, slow), judge(found), f"{why}; {told_also}")

    def faster(self, says: str, fast: Sequence[str], slow: str, why: str) -> None:
        """Claim that some losses' epochs are faster than another's, by whatever factor."""
        found = self._times(fast, slow, lambda looks: True)
        orders = [above(each, Estimate.exact(1)) for some in found.values() for each in some.values()]
        self.page.claim(says, _times_told(found, slow), judge_orders(orders, "factors, each beside 1"), why)

    def sooner(self, says: str, fast: str, slow: str, finding: Finding, why: str) -> None:
        """Tell how many times as soon a loss is at the test P@1 that both reach, where one has learned."""
        found = {
            f"{dataset}, {KIND_TEXTS[way]},": ours(each.sooner(way, fast, slow), digits=2)
            for dataset, each in self.looks.items()
            for way in each.kinds(fast, slow)
            if not _learned_nothing(each.gains("seconds", way, (fast, slow)))
        }
        here = f"times as soon as {LOSS_TEXTS[slow]} at the test P@1 that both reach: {told(found) or '–'}"
        self.page.claim(says, here, finding, why)

    def _times(self, fast: Sequence[str], slow: str, on: Callable[[Looks], bool]) -> dict[str, dict[str, Estimate]]:
        return {
            dataset: {LOSS_TEXTS[loss]: each.faster(loss, slow) for loss in fast}
            for dataset, each in self.looks.items()
            if on(each)
        }


def lead(gains: Gains) -> Estimate:
    """Subtract the second gain from the first, as a share of the greater one, seed by seed; from -1 to 1."""
    return Estimate.of(None if a is None or b is None else (a - b) / max(a, b) for a, b in gains)


def apart(gains: Gains) -> Estimate:
    """Give minus the distance of two gains, as a share of the greater one, seed by seed; from -1 to 0."""
    return Estimate.of(None if a is None or b is None else -abs(a - b) / max(a, b) for a, b in gains)


def _learned_nothing(gains: Gains) -> bool:
    """Tell whether with some seed neither of two losses is better than one label for all rows."""
    return (0.0, 0.0) in gains


def _against(losses: tuple[str, str], values: Iterable[Estimate], named: Sequence[str]) -> str:
    """Tell two values, with the names of those losses that are not the same in all pairs."""
    parts = [
        ours(each) + (f" ({LOSS_TEXTS[loss]})" if loss in named else "")
        for loss, each in zip(losses, values, strict=True)
    ]
    return " against ".join(parts)


def _times_told(found: Mapping[str, Mapping[str, Estimate]], slow: str) -> str:
    text = told(
        {
            dataset: ", ".join(f"{ours(each, digits=2)} ({name})" for name, each in some.items())
            for dataset, some in found.items()
        }
    )
    return f"times as fast as {LOSS_TEXTS[slow]}: {text}"
