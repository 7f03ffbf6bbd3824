"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.2 and figure 2."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xsoftmax.lab.papers._yen2018_label_data import label_data
from xsoftmax.lab.papers._yen2018_methods import (
    DECOMPOSED,
    EPOCHS,
    KIND_TEXTS,
    LARGE,
    LOSS_TEXTS,
    LOSSES,
    MARGIN,
    MIPS,
    PAPER,
    SAMPLED,
    SECONDS,
    SOFTMAX,
    common_end,
    curves,
    is_looked_at,
    judge_least,
    kinds,
    quotient,
    rates,
    times_as_fast,
    told,
    trained,
    values_at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested

METRIC = "p_at_1"
TRAIN, TEST = f"train_{METRIC}", f"test_{METRIC}"
MARGINS = (MARGIN, MIPS, DECOMPOSED)
# Levels, of which the paper says no more than words. What is similar to another method's P@1, almost the same, or
# retains it: this share of it; and what does so in shape.
KEEPS, NEARLY = 0.97, 0.8
# Times as fast, or as good: an order of magnitude, and what counts in its shape.
ORDER, ORDER_IN_SHAPE = 10.0, 2.0
# "Much slower" iterations, and as good: twice; and what counts in its shape. Of three products with all classes'
# weights a sparse gradient saves two, so that more than three times cannot be asked for.
TWICE, TWICE_IN_SHAPE = 2.0, 1.5
# As good, if not twice: more.
MORE = 1.03


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's multilabel experiment beside ours."""
    settings = numbers["settings"]
    label_data(results, page, numbers["table_2"])
    of_paper = [f"{loss}-{kind}" for loss in LOSSES for kind in (PAPER, EPOCHS)]
    complete = [name for name in results.datasets if all(results.has(name, method) for method in of_paper)]
    looks = {dataset: _Looks(results, dataset) for dataset in complete}
    if looks:
        _claims(page, looks)
    page.section(
        "Figure 2: precision against time and epochs",
        "The paper does not say what accuracy is with several labels; here it is P@1, the share of rows whose "
        "highest label is one of theirs, of 5,000 training rows at most. SGD, equal seconds for all methods on a "
        "data set, of one thread (the paper's ten). Exact methods take the paper's minibatches of 10, along whose "
        "mean gradient they step; those that draw or search step row by row, at a tenth of the rate, so that ten "
        "steps are about as long as one of a minibatch. The hidden layer is a table with a vector for each word, of "
        f"as many columns as the paper's ({settings['dimension']}), of which a document has the weighted mean, "
        "without an activation, of which the paper says nothing; it begins at random. A drawn class is never one of "
        "the row's labels, and its score is corrected by the probability of being drawn.",
        "The softmax's loss is the sum of its labels' (eq. 2), the margin's one of all of them (eq. 3, its sign "
        f"corrected), smoothed by mu = {settings['smoothing']:g}; Decomp-MIPS has {settings['blocks']} blocks and "
        "passes messages once. The paper retrieves K/100 classes from 100 clusters for a query; with so few labels "
        "this would break its own rule (section 4: no more clusters than classes retrieved), so that the root of K "
        "are retrieved from as many clusters. A class that was not retrieved is left out of the loss, where the "
        "paper scores it as 0; [the page of one label](yen2018.md) tells why.",
        "The paper divides the initial rate by 1 + t, t counting iterations. Each method is trained in this way; "
        "with t counting epochs, which is ours; and from larger rates, where fits are finite. What the paper says "
        "of accuracy is judged in all of these, and seconds where t counts epochs. It prints no numbers of them: "
        "what counts as similar, slow or fast is our choice, as are the levels. A verdict compares methods as far "
        "as those that it compares have all come, and tables as far as all methods have, which may be less.",
        "A P@1 that several methods share to the last digit is most often that of naming one label for all rows: "
        "with t in iterations weights of some methods hardly move in our seconds. Such pairs are too close to tell, "
        "and their quotients of 1.00 say little.",
        "What the paper's abstract and introduction say of all its experiments is judged [with one "
        "label](yen2018.md) and [with words](yen2018-words.md).",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        curves(results, page, dataset, METRIC, "P@1")
        _table(results, page, dataset)
    page.section(
        "Initial rates and cooling",
        "The paper takes the best of three initial rates. So do methods here, once with t counting iterations, and "
        "once with t counting epochs; larger rates, with t counting epochs, were tried apart from these, by exact "
        "methods: those that step row by row have a larger rate of 1, which is not searched. Where a method has no "
        "larger rate, those that were tried before this run diverged. Rates of steps of one row are a tenth of the "
        "paper's. One seed, and a quarter to a third of the time; the best last P@1 of validation rows is taken, and "
        "of equal ones the lowest rate. A dash is a trial that diverged.",
        "When these fits were made, a rate changed between chunks only: where t counts iterations, of ten rows for "
        "all, the first 204 minibatches of exact methods, the first 400 rows of searches and the whole first epoch "
        "of Sampled-Softmax were at the initial rate. Methods are therefore not cooled alike, and none as fast as "
        "in the paper. Fits that are made now have the rate of each step.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        rates(results, page, dataset, "validation P@1")


class _Looks:
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

    def kinds(self, *losses: str) -> list[str]:
        """List the kinds of rates with which all of some losses were trained."""
        return kinds(self._results, self._dataset, *losses)

    def faster(self, fast: str, slow: str) -> Estimate:
        """Estimate how many times as fast a loss's epochs are as another's."""
        return times_as_fast(self._results, self._dataset, f"{fast}-{EPOCHS}", f"{slow}-{EPOCHS}")


Values = Mapping[str, Sequence[float | None]]


def _table(results: Results, page: Page, dataset: str) -> None:
    looks = _Looks(results, dataset)
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


def _claims(page: Page, looks: Mapping[str, _Looks]) -> None:
    def leads(says: str, first: Sequence[str], second: Sequence[str], by: str, why: str = "") -> None:
        """Claim that each of some losses is ahead of each of others."""
        texts, orders = {}, []
        for dataset, each in looks.items():
            for kind in KIND_TEXTS:
                pairs = [(a, b) for a in first for b in second if kind in each.kinds(a, b)]
                values = (
                    each.at_end(by, sorted({f"{loss}-{kind}" for pair in pairs for loss in pair})) if pairs else {}
                )
                found = {f"{loss}-{kind}": Estimate.of(values[f"{loss}-{kind}"]) for pair in pairs for loss in pair}
                orders += [above(found[f"{a}-{kind}"], found[f"{b}-{kind}"]) for a, b in pairs]
                if pairs:
                    sides = (dict.fromkeys(side) for side in zip(*pairs, strict=True))
                    texts[f"{dataset}, {KIND_TEXTS[kind]},"] = " against ".join(
                        ", ".join(number(found[f"{loss}-{kind}"].mean, digits=3) for loss in side) for side in sides
                    )
        measured = "training P@1 after equal epochs" if by == "epoch" else "test P@1 in equal time"
        finding = judge_orders(orders, "pairs of methods, each on a data set with a way to choose rates")
        page.claim(says, f"{measured}: {told(texts)}", finding, why)

    def shares(
        says: str,
        judged: Callable[[Values, str], Estimate],
        losses: tuple[str, str],
        by: str,
        levels: tuple[float, float],
        why: str,
    ) -> None:
        """Claim that a share of two losses' values reaches a level everywhere."""
        found = {
            f"{dataset}, {KIND_TEXTS[kind]},": judged(each.at_end(by, [f"{loss}-{kind}" for loss in losses]), kind)
            for dataset, each in looks.items()
            for kind in each.kinds(*losses)
        }
        text = told({where: ours(each, digits=2) for where, each in found.items()})
        measured = "of training P@1 after equal epochs" if by == "epoch" else "of test P@1 in equal time"
        page.claim(says, f"quotients {measured}: {text}", judge_least(found.values(), "quotients", *levels), why)

    def of(first: str, second: str) -> Callable[[Values, str], Estimate]:
        return lambda values, kind: quotient(values[f"{first}-{kind}"], values[f"{second}-{kind}"])

    def factors(says: str, fast: Sequence[str], slow: str, levels: tuple[float, float], why: str) -> None:
        """Claim that some losses' epochs are so many times as fast as another's, on all data sets."""
        found = {dataset: [each.faster(loss, slow) for loss in fast] for dataset, each in looks.items()}
        text = told({dataset: ", ".join(ours(each, digits=2) for each in some) for dataset, some in found.items()})
        every = [each for some in found.values() for each in some]
        page.claim(says, f"times as fast as {LOSS_TEXTS[slow]}: {text}", judge_least(every, "factors", *levels), why)

    leads(
        "Softmax has very good per-iteration progress, significantly more than Margin, MIPS and Decomp-MIPS",
        [SOFTMAX], MARGINS, "epoch", "larger rates count, too, where validation rows prefer the paper's",
    )  # fmt: skip
    factors(
        "Iterations of Softmax are much slower than the others', since its gradient is dense",
        MARGINS, SOFTMAX, (TWICE, TWICE_IN_SHAPE),
        "Margin, MIPS and Decomp-MIPS, by seconds per epoch; the backward pass, which is the paper's reason, is not "
        "timed alone, and Margin projects the scores of each row, as the paper's does",
    )  # fmt: skip
    shares(
        "In equal time Softmax performs similarly to Margin",
        lambda values, kind: _less(*(values[f"{loss}-{kind}"] for loss in (SOFTMAX, MARGIN))),
        (SOFTMAX, MARGIN), "seconds", (KEEPS, NEARLY), "the worse of both as a share of the better, seed by seed",
    )  # fmt: skip
    shares(
        "Per epoch Decomp-MIPS makes almost the same progress as the exact gradient of Margin",
        of(DECOMPOSED, MARGIN), (DECOMPOSED, MARGIN), "epoch", (KEEPS, NEARLY), "a quotient above 1 counts as kept",
    )  # fmt: skip
    leads(
        "MIPS has a significant drop in its training accuracy compared with Margin and Decomp-MIPS",
        [MARGIN, DECOMPOSED], [MIPS], "epoch",
        "the paper's reason is that MIPS runs for more iterations, which is not tested: it is compared where the "
        "slowest of the three ends",
    )  # fmt: skip
    factors(
        "The searches lead to an order of magnitude of speedup",
        (MIPS, DECOMPOSED), MARGIN, (ORDER, ORDER_IN_SHAPE),
        "MIPS and Decomp-MIPS, by seconds per epoch; by section 4 a search is the root of K times as fast at most",
    )  # fmt: skip
    shares(
        "Decomp-MIPS retains the accuracy of the exact method",
        of(DECOMPOSED, MARGIN), (DECOMPOSED, MARGIN), "seconds", (KEEPS, NEARLY), "a quotient above 1 counts as kept",
    )  # fmt: skip
    shares(
        "Sampled-Softmax has extremely slow progress per iteration",
        of(SOFTMAX, SAMPLED), (SOFTMAX, SAMPLED), "epoch", (TWICE, MORE),
        "P@1 of Softmax over that of Sampled-Softmax, half of which counts as extremely slow; other methods are not "
        "compared. With t in iterations its whole first epoch is at the initial rate, and 204 minibatches of Softmax",
    )  # fmt: skip
    factors(
        "Sampled-Softmax has fast iterations", [SAMPLED], SOFTMAX, (ORDER, ORDER_IN_SHAPE),
        "it draws one label in a hundred; ten times is our level",
    )  # fmt: skip
    leads(
        "Sampled-Softmax could not reach a comparable accuracy to other methods even after one day",
        (SOFTMAX, *MARGINS), [SAMPLED], "seconds",
        "ours are run for seconds; how far below is not judged, as the paper prints no numbers",
    )  # fmt: skip
    page.claim(
        "All methods are run for more than one day, and their curves are close to convergence on a linear scale",
        "–",
        not_tested("ours are run for seconds"),
        "in part from Figure 2's caption",
    )
    page.claim(
        "Training gives vectors of documents and words as by-products",
        "–",
        not_tested("they are not looked at"),
    )
    _own_claim(page, looks)


def _less(first: Sequence[float | None], second: Sequence[float | None]) -> Estimate:
    """Estimate the share of the better method's values that the worse has, seed by seed."""
    pairs = list(zip(first, second, strict=True))
    known = [None if a is None or b is None else (min(a, b), max(a, b)) for a, b in pairs]
    return quotient([pair and pair[0] for pair in known], [pair and pair[1] for pair in known])


def _own_claim(page: Page, looks: Mapping[str, _Looks]) -> None:
    """Tell whether larger rates help the softmax; where all of them diverge, the experiment has none."""
    small, large = f"{SOFTMAX}-{EPOCHS}", f"{SOFTMAX}-{LARGE}"
    found = {
        dataset: [Estimate.of(each.at_end("seconds", [large, small])[name]) for name in (large, small)]
        if large in each.known
        else None
        for dataset, each in looks.items()
    }
    orders = {dataset: above(*pair) if pair else False for dataset, pair in found.items()}
    page.claim(
        "Softmax gains from rates beyond the paper's",
        "test P@1 in equal time: "
        + told({dataset: " against ".join(map(ours, pair)) if pair else "–" for dataset, pair in found.items()}),
        judge_orders(orders if any(found.values()) else {}, "data sets"),
        "each at its best rate by validation rows; where every larger rate diverged in trials before this run, there "
        "is a dash, which counts as a loss",
        ours=True,
    )
