"""How claims of Yen et al. 2018 on several labels are judged: who leads, quotients of P@1, and factors of times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xsoftmax.lab.papers._yen2018_label_looks import Looks, Values
from xsoftmax.lab.papers._yen2018_methods import KIND_TEXTS, LOSS_TEXTS, WAYS, judge_least, told
from xsoftmax.lab.papers._yen2018_ways import Orders, alone, each_way, tally
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above, quotient
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.rules import Finding, judge_orders

Share = Callable[[Values, str], Estimate]


@dataclass(frozen=True)
class LabelJudge:
    """Adds claims to a page, each judged on all data sets and in all ways to choose rates."""

    page: Page
    looks: Mapping[str, Looks]

    def leads(self, says: str, first: Sequence[str], second: Sequence[str], by: str, why: str) -> None:
        """Claim that each of some losses is ahead of each of others, where the two that are compared end.

        Where both are alike they may have learned nothing, and are left out.
        """
        texts: dict[str, str] = {}
        orders: Orders = []
        n_alike = 0
        named = [loss for side in (first, second) if len(side) > 1 for loss in side]
        for dataset, each in self.looks.items():
            for way in WAYS:
                pairs = [(a, b) for a in first for b in second if way in each.kinds(a, b)]
                values = {pair: each.of_two(by, way, pair) for pair in pairs}
                found = {pair: tuple(map(Estimate.of, both)) for pair, both in values.items() if not _alike(*both)}
                n_alike += len(pairs) - len(found)
                orders = [*orders, *((way, above(*both)) for both in found.values())]
                if found:
                    texts[f"{dataset}, {KIND_TEXTS[way]},"] = ", ".join(
                        _against(pair, both, named) for pair, both in found.items()
                    )
        left_out = f"; {n_alike} pairs that are alike to the last digit are left out" if n_alike else ""
        measured = "training P@1 after equal epochs" if by == "epoch" else "test P@1 in equal time"
        finding = judge_orders(
            [order for _, order in orders], "pairs of methods, each on a data set with a way to choose rates"
        )
        here = f"{measured}: {told(texts)}; {tally(orders)}"
        self.page.claim(says, here, finding, f"{why}{left_out}; {alone(orders)}")

    def shares(
        self, says: str, share: Share, losses: tuple[str, str], by: str, levels: tuple[float, float], why: str
    ) -> None:
        """Claim that a share of two losses' values reaches a level everywhere.

        Where both are alike they may have learned nothing, and are left out.
        """

        def judge(values: Iterable[Estimate]) -> Finding:
            return judge_least(values, "quotients", *levels)

        found: dict[str, tuple[str, Estimate]] = {}
        alike = []
        for dataset, each in self.looks.items():
            for way in each.kinds(*losses):
                where = f"{dataset}, {KIND_TEXTS[way]}"
                if _alike(*each.of_two(by, way, losses)):
                    alike.append(where)
                else:
                    found[where] = way, share(each.at_end(by, [f"{loss}-{way}" for loss in losses]), way)
        parts = [told({f"{where},": ours(each, digits=2) for where, (_, each) in found.items()})] if found else []
        parts += [f"left out as alike to the last digit: {'; '.join(alike)}"] if alike else []
        measured = "of training P@1 after equal epochs" if by == "epoch" else "of test P@1 in equal time"
        self.page.claim(
            says,
            f"quotients {measured}: {'; '.join(parts)}",
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
        on: Callable[[Looks], bool] = lambda looks: True,
    ) -> None:
        """Claim that some losses' epochs are so many times as fast as another's, on all data sets that can tell."""
        found = self._times(fast, slow, on)
        every = [each for some in found.values() for each in some]
        self.page.claim(says, _times_told(found, slow), judge_least(every, "factors", *levels), why)

    def faster(self, says: str, fast: Sequence[str], slow: str, why: str) -> None:
        """Claim that some losses' epochs are faster than another's, by whatever factor."""
        found = self._times(fast, slow, lambda looks: True)
        orders = [above(each, Estimate.exact(1)) for some in found.values() for each in some]
        self.page.claim(says, _times_told(found, slow), judge_orders(orders, "factors, each beside 1"), why)

    def _times(self, fast: Sequence[str], slow: str, on: Callable[[Looks], bool]) -> dict[str, list[Estimate]]:
        return {
            dataset: [each.faster(loss, slow) for loss in fast] for dataset, each in self.looks.items() if on(each)
        }


def of(first: str, second: str) -> Share:
    """Divide a loss's values by another's, seed by seed."""
    return lambda values, way: quotient(values[f"{first}-{way}"], values[f"{second}-{way}"])


def less(first: str, second: str) -> Share:
    """Give the share of the better loss's values that the worse has, seed by seed."""

    def share(values: Values, way: str) -> Estimate:
        pairs = list(zip(values[f"{first}-{way}"], values[f"{second}-{way}"], strict=True))
        known = [None if a is None or b is None else (min(a, b), max(a, b)) for a, b in pairs]
        return quotient([pair and pair[0] for pair in known], [pair and pair[1] for pair in known])

    return share


def _alike(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    """Tell whether two losses come to the same in all seeds, to the last digit."""
    return list(first) == list(second) and None not in first


def _against(losses: tuple[str, str], values: Iterable[Estimate], named: Sequence[str]) -> str:
    """Tell two values, with the names of those losses that are not the same in all pairs."""
    parts = [
        number(each.mean, digits=3) + (f" ({LOSS_TEXTS[loss]})" if loss in named else "")
        for loss, each in zip(losses, values, strict=True)
    ]
    return " against ".join(parts)


def _times_told(found: Mapping[str, Sequence[Estimate]], slow: str) -> str:
    text = told({dataset: ", ".join(ours(each, digits=2) for each in some) for dataset, some in found.items()})
    return f"times as fast as {LOSS_TEXTS[slow]}: {text}"
