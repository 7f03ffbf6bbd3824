"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.3 and figure 3."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from xsoftmax.lab.papers._yen2018_methods import (
    SECONDS,
    common_end,
    judge_least,
    quotient,
    times_as_fast,
    told,
    values_at,
)
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import Finding, judge_orders, not_tested

NEG, HS, GD, MIPS, DECOMPOSED = "neg", "hs", "gd", "mips", "decomposed"
PAPER = {NEG: "NEG", HS: "HS", GD: "GD", MIPS: "GD-MIPS", DECOMPOSED: "GD-Decomp-MIPS"}
BOUNDS = {"mips-bound": "GD-MIPS, bound", "decomposed-bound": "GD-Decomp-MIPS, bound"}
OURS = BOUNDS | {"implicit": "implicit SGD", "u-max": "U-max"}
METHODS = PAPER | OURS
COLORS = {NEG: "#56b4e9", HS: "#009e73", GD: "#0072b2", MIPS: "#cc79a7", DECOMPOSED: "#e69f00"}
COLORS |= {"implicit": "#000000", "u-max": "#8c8c8c"}
OBJECTIVE, TEST = "objective", "test_log_likelihood"
# What is progress like another's: this share of the way down from where both begin; and what is so in shape.
LIKE, NEARLY = 0.97, 0.8
# Times as fast that count, in shape, as the paper's factor.
IN_SHAPE = 2.0


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's experiment with words beside ours."""
    _data(results, page, numbers)
    datasets = [name for name in results.datasets if all(results.has(name, method) for method in PAPER)]
    looks = {dataset: _Looks(results, dataset) for dataset in datasets}
    if looks:
        _claims(page, looks, numbers["times_faster"])
        _of_the_abstract(page, looks)
        _own_claims(page, looks)
    page.section(
        "Figure 3: the collapsed objective against epochs and time",
        "The objective is eq. 9, over the training pairs: minus the mean of log p(y given x), in nats, of the exact "
        "softmax of all scores; of HS, whose paths sum up to 1, of its paths. GD and what follows it begin with an "
        "epoch of NEG, which counts. Seconds are the processor's, of one thread (the paper's 24); "
        "collapsing the pairs is part of them, looks are not; they are rough where other programs share the machine. "
        "Dashed lines are ours.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        _curves(results, page, dataset)
        _table(results, page, dataset)
    _choices(results, page)


def _data(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    drawn = numbers["settings"]["negatives"]
    page.section(
        "Table 3: the data",
        "The paper's corpus is of news, and far larger. `books` is War and Peace, `gcide` a quarter of the entries "
        "of a dictionary (Debian's dict-gcide; `dpkg-deb -x` unpacks gcide.dict.dz). Every tenth sentence is held "
        "out for the test. Window, dimension and threshold are the paper's; frequent words are dropped by the rule "
        "of word2vec's program, which keeps t/f more of a word's occurrences than the paper's formula, f being its "
        "frequency, and the window of each centre is drawn from 1 to 8. "
        f"NEG draws {drawn[0]} words for a pair, the fewest of the numbers of which the paper takes the best "
        f"({', '.join(map(str, drawn))}).",
        "GD-MIPS asks the clusters of output vectors that are nearest to a word, of 100, for K/20 classes. "
        "GD-Decomp-MIPS asks those of each of four blocks of 25 columns for K/80, and takes the classes with a "
        "probability of more than 0.001 in some block's softmax. Beside the classes found, those that stand near a "
        "word always count. What is found is scored as a whole; for Decomp-MIPS this is what messages with eta 1 "
        "come to. Classes that are not found count nothing, or e to the 0 each as in the paper, whichever is better "
        "on validation sentences. *Bound* is ours: they count what Jensen's inequality gives for their sum, weighed "
        "by frequency, which costs one product.",
    )
    found = {fit.dataset: fit.status["data"] for fit in results.fits}
    words = {"n_classes": "vocabulary", "n_words": "words for training", "n_pairs": "distinct pairs"}
    rows = [
        [text, number(numbers["table_3"].get(key, float("nan")), digits=0)]
        + [number(found[name][key], digits=0) for name in sorted(found)]
        for key, text in words.items()
    ]
    page.table(["", "BillionW", *sorted(found)], rows)


class _Looks:
    """Of one corpus, what claims are judged by: objectives after equal epochs and times, and times of epochs."""

    def __init__(self, results: Results, dataset: str) -> None:
        self._results, self._dataset = results, dataset

    def has(self, method: str) -> bool:
        """Tell whether a method was trained."""
        return self._results.has(self._dataset, method)

    def pair(self, one: str, other: str, by: str) -> list[list[float | None]]:
        """Give what two methods come to after as many epochs, or seconds, as both have, seed by seed."""
        end = common_end(self._results, self._dataset, (one, other), by)
        return [values_at(self._results, self._dataset, each, OBJECTIVE, by, end) for each in (one, other)]

    def is_lower(self, one: str, other: str, by: str) -> bool | None:
        """Tell whether one method comes to a lower objective than another; one that diverges does not."""
        first, second = map(Estimate.of, self.pair(one, other, by))
        return False if first.n_diverged else above(second, first)

    def progress(self, one: str, other: str) -> Estimate:
        """Estimate what share of another's way down a method makes, from the epoch of NEG that both begin with."""
        starts = values_at(self._results, self._dataset, other, OBJECTIVE, "epoch", 1.0)
        ways = [
            [None if start is None or end is None else start - end for start, end in zip(starts, ends, strict=True)]
            for ends in self.pair(one, other, "epoch")
        ]
        return quotient(*ways)

    def faster(self, fast: str, slow: str) -> Estimate:
        """Estimate how many times as fast a method's epochs are as another's."""
        return times_as_fast(self._results, self._dataset, fast, slow)


def _of_two(looks: Mapping[str, _Looks], one: str, other: str, by: str) -> str:
    return told(
        {dataset: " against ".join(ours(Estimate.of(each)) for each in x.pair(one, other, by))
         for dataset, x in looks.items()}
    )  # fmt: skip


def _every(
    looks: Mapping[str, _Looks], judge: Callable[[_Looks], Iterable[bool | None]], of: str = "corpora"
) -> Finding:
    return judge_orders([order for each in looks.values() for order in judge(each)], of)


def _shares(page: Page, looks: Mapping[str, _Looks], says: str, method: str) -> None:
    """Claim that a method goes as far down per epoch as GD, which is ours to say."""
    shares = {dataset: x.progress(method, GD) for dataset, x in looks.items()}
    page.claim(
        says,
        "share of the way that GD goes down: " + told({name: ours(each, digits=2) for name, each in shares.items()}),
        judge_least(shares.values(), "shares", LIKE, NEARLY),
        "from the epoch of NEG on, after as many epochs as both have",
        ours=True,
    )


def _claims(page: Page, looks: Mapping[str, _Looks], times: float) -> None:
    searches = (MIPS, DECOMPOSED)
    page.claim(
        "After the first epoch, GD converges faster per epoch than NEG and HS",
        f"objective, NEG: {_of_two(looks, GD, NEG, 'epoch')}; HS: {_of_two(looks, GD, HS, 'epoch')}",
        _every(looks, lambda x: [x.is_lower(GD, other, "epoch") for other in (NEG, HS)], "pairs on a corpus"),
        "after as many epochs as both have; lower is better",
    )
    page.claim(
        "So do GD-MIPS and GD-Decomp-MIPS",
        "; ".join(
            f"{METHODS[one]}, {METHODS[other]}: {_of_two(looks, one, other, 'epoch')}"
            for one in searches
            for other in (NEG, HS)
        ),
        _every(
            looks,
            lambda x: [x.is_lower(one, other, "epoch") for one in searches for other in (NEG, HS)],
            "pairs on a corpus",
        ),
        "after as many epochs as both have",
    )
    factors = {dataset: x.faster(DECOMPOSED, GD) for dataset, x in looks.items()}
    page.claim(
        f"Iterations of GD-Decomp-MIPS are {times:g} times faster than GD's",
        "times as fast: " + told({dataset: ours(each, digits=2) for dataset, each in factors.items()}),
        judge_least(factors.values(), "factors", times, IN_SHAPE),
        "by seconds per epoch; the paper has 451,000 words, and more are spared where there are more",
    )
    page.claim(
        "GD-Decomp-MIPS has a significantly better objective than GD-MIPS for the same training time",
        f"objective {_of_two(looks, DECOMPOSED, MIPS, 'seconds')}",
        _every(looks, lambda x: [x.is_lower(DECOMPOSED, MIPS, "seconds")]),
        "after as many seconds as both have",
    )


def _of_the_abstract(page: Page, looks: Mapping[str, _Looks]) -> None:
    page.claim(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        f"objective of GD-Decomp-MIPS and NEG {_of_two(looks, DECOMPOSED, NEG, 'seconds')}",
        _every(looks, lambda x: [x.is_lower(DECOMPOSED, NEG, "seconds")]),
        "after as many seconds as both have; by how large a margin is not judged, as the paper prints no numbers",
    )
    page.claim(
        "Many more negative classes have a gradient of significant size than in the other experiments",
        "–",
        not_tested("slopes of these fits are not counted"),
    )
    page.claim(
        "In early iterates the gradient is quite evenly distributed over candidates",
        "–",
        not_tested("GD begins after an epoch of NEG, as in the paper"),
    )


def _own_claims(page: Page, looks: Mapping[str, _Looks]) -> None:
    def better(one: str, other: str, why: str) -> None:
        page.claim(
            f"{METHODS[one]} has a better objective than {METHODS[other]} for the same training time",
            f"objective {_of_two(looks, one, other, 'seconds')}",
            _every(looks, lambda x: [x.is_lower(one, other, "seconds")]),
            why,
            ours=True,
        )

    def all_have(name: str) -> bool:
        return all(x.has(name) for x in looks.values())

    _shares(page, looks, "Per epoch GD-Decomp-MIPS makes progress like GD's", DECOMPOSED)
    for name in filter(all_have, BOUNDS):
        says = f"With the bound, per epoch {METHODS[name].split(',')[0]} makes progress like GD's"
        _shares(page, looks, says, name)
        better(name, GD, "after as many seconds as both have")
    for name in filter(all_have, ("implicit", "u-max")):
        better(name, NEG, "after as many seconds as both have; Fagan and Iyengar 2018 name skip-gram as promising")


def _curves(results: Results, page: Page, dataset: str) -> None:
    panels = [
        Panel(title, _lines(results, dataset, measure, x), text, says, x_scale="log")
        for title, measure, x, text, says in (
            ("training pairs", OBJECTIVE, "epoch", "epochs", "objective (nats)"),
            ("training pairs", OBJECTIVE, "seconds", "training time (s)", "objective (nats)"),
            ("held-out pairs", TEST, "seconds", "training time (s)", "log-likelihood (nats)"),
        )
    ]
    page.figure(f"objective-{dataset}", figure_of(panels), "Means and ranges over seeds")


def _lines(results: Results, dataset: str, column: str, x: str) -> list[Line]:
    found = []
    for line in lines_of(results, dataset, METHODS, column, x):
        name = line.method or ""
        color = COLORS[name.removesuffix("-bound")]
        found.append(replace(line, style={"color": color, "linestyle": "--" if name in OURS else "-"}))
    return found


def _table(results: Results, page: Page, dataset: str) -> None:
    known = {method: text for method, text in METHODS.items() if results.has(dataset, method)}
    page.text("Where each ends; seconds per epoch are medians:")
    page.table(
        ["method", "epochs", "seconds", "seconds per epoch", "objective", "held-out log-likelihood"],
        [
            [
                text,
                number(middle(results.values(dataset, name, "fit.epoch")), digits=0),
                number(middle(results.values(dataset, name, "fit.seconds"))),
                number(middle(results.values(dataset, name, SECONDS))),
                ours(results.estimate(dataset, name, f"end.{OBJECTIVE}")),
                ours(results.estimate(dataset, name, f"end.{TEST}")),
            ]
            for name, text in known.items()
        ],
    )


def _choices(results: Results, page: Page) -> None:
    """Tell what was tried, and came to what."""
    page.section(
        "Learning rates",
        "Log-likelihood of the pairs of a tenth of the training sentences, after training on the others, one seed; "
        "the best is taken. No sentence of the test has a part in it. Rates of GD and what follows it are multiples "
        "of a step by curvature, and constant; three epochs are trained then. Others fall linearly over all epochs.",
    )
    rows, seen = [], set()
    for fit in results.fits:
        if (fit.dataset, fit.method) in seen or not fit.status.get("trials"):
            continue
        seen.add((fit.dataset, fit.method))
        parameters = fit.status["parameters"]
        chosen = {key: parameters[key] for key in ("learning_rate", "missing")}
        for trial in fit.status["trials"]:
            is_chosen = " (chosen)" * all(trial[key] == value for key, value in chosen.items())
            missing = trial["missing"] if fit.method in METHODS and trial["found_by"] != "all" else "–"
            value = "diverged" if trial["value"] is None else number(trial["value"], digits=3)
            name = METHODS.get(fit.method, fit.method)
            rows.append([fit.dataset, name, f"{trial['learning_rate']:g}", missing, value + is_chosen])
    page.table(["corpus", "method", "rate", "not found", "validation log-likelihood"], rows)
