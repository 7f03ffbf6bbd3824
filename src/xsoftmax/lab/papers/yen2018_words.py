"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.3 and figure 3."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from xsoftmax.lab.papers._yen2018_methods import (
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
# What is progress like another's: this share of the way down from where both begin, as seeds differ by a hundredth or
# two; and what is so in shape.
LIKE, NEARLY = 0.97, 0.8
# Times as fast that count, in shape, as the paper's factor of 5: what a clock shows without doubt.
IN_SHAPE = 2.0
# A large margin between objectives, in nats: each pair is a tenth likelier; and in shape, a hundredth.
LARGE_MARGIN, MARGIN = 0.1, 0.01


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
        "The objective is eq. 9 in nats: minus the mean of log p(y given x) over the pairs that are left of the "
        "training text as seed 0 drops words; other seeds, and later epochs of NEG and HS, keep others. p is the "
        "exact softmax of all scores. NEG does not fit these: it minimises another loss. HS has no scores of words, "
        "and p is the product along a word's path; how the paper measures HS it does not say. GD, GD-MIPS and "
        "GD-Decomp-MIPS begin with an epoch of NEG, which counts. Seconds are the processor's, of one thread (the "
        "paper has 24 cores); counting the pairs is part of them, looks are not; they are rough where other "
        "programs share the machine. Between looks values are linear. Dashed lines are ours.",
        "Where NEG is compared after equal seconds, it is read where it ends, since its rate falls until then; a fit "
        "that ended sooner counts with its last value.",
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
        "out for the test. Dimension, 100, window, 8, and the threshold of subsampling, 0.0001, are the paper's. "
        "Words count that occur five times or more; of gcide, of the 16,000 most frequent. NEG and HS are the "
        "paper's Word2vec-Neg and Word2vec-HS, in our code, not word2vec's program. Frequent words are dropped by "
        "that program's rule, which keeps t/f more of a word's occurrences than the paper's formula, and never more "
        "than all, f being its frequency; the window of each centre is drawn from 1 to 8. NEG draws 5, 15 or 25 "
        f"words for a pair, whichever is best on validation sentences (the paper: {', '.join(map(str, drawn))}). "
        "The epoch of NEG that GD begins with draws 5.",
        "GD moves all input vectors, then all output vectors, which is an epoch. How long the paper's steps are it "
        "does not say; ours are a multiple of the gradient of each vector over a bound on its curvature. GD-MIPS "
        "looks, for each word, at K/20 classes in the nearest of 100 clusters of output vectors. GD-Decomp-MIPS "
        "does so in each of four blocks of 25 columns, with one round of messages, and takes the classes with a "
        "probability above 0.001 in some block's softmax. For words the paper gives only K/20: clusters and one "
        "round are those of its section 5, four blocks those of 5.2, 0.001 that of its margin losses. For the "
        "softmax, its section 4 describes another rule, without a fixed threshold.",
        "The words that stand near a word in the text always count. Classes that are found get their whole score, "
        "as messages with eta 1 would give; the paper moves them by eta 2/3, and scores blocks that did not find a "
        "class as 0. Classes that are not found add nothing (*none*), or e to the 0 each as in the paper (*zero*), "
        "whichever is better on validation sentences. *Bound* (*mean*) is ours: they add a lower bound of what they "
        "really add, by Jensen's inequality, weighed by frequency, which costs one product.",
    )
    found = {fit.dataset: fit.status["data"] for fit in results.fits}
    words = {"n_classes": "vocabulary", "n_words": "words for training", "n_pairs": "distinct pairs"}
    rows = [
        [text, f"≈ {numbers['table_3'][key]:,.0f}" if key in numbers["table_3"] else "not given"]
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
        """Give what two methods come to, seed by seed.

        After as many epochs, or seconds, as both have; after as many seconds as NEG has where it is the other, as its
        rate falls until it ends. What ended sooner has its last value.
        """
        ends = (other,) if (by, other) == ("seconds", NEG) else (one, other)
        end = common_end(self._results, self._dataset, ends, by)
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

    def lead(self, one: str, other: str, by: str) -> Estimate:
        """Estimate by how many nats one method's objective is below another's."""
        pairs = zip(*self.pair(one, other, by), strict=True)
        return Estimate.of(None if here is None or there is None else there - here for here, there in pairs)

    def faster(self, fast: str, slow: str) -> Estimate:
        """Estimate how many times as fast a method's epochs are as another's."""
        return times_as_fast(self._results, self._dataset, fast, slow)


def _of_two(looks: Mapping[str, _Looks], one: str, other: str, by: str) -> str:
    return told(
        {dataset: " against ".join(ours(Estimate.of(each)) for each in x.pair(one, other, by))
         for dataset, x in looks.items()}
    )  # fmt: skip


def _lower(looks: Mapping[str, _Looks], methods: Iterable[str], other: str, by: str) -> Finding:
    """Judge whether methods come to a lower objective than another one, on each corpus."""
    orders = [x.is_lower(one, other, by) for one in methods for x in looks.values()]
    return judge_orders(orders, "corpora" if len(orders) == len(looks) else "comparisons")


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
    for other, why in ((NEG, "NEG minimises another loss"), (HS, "HS is measured by its paths")):
        page.claim(
            f"After the first epoch, GD converges faster per epoch than {METHODS[other]}",
            f"objective {_of_two(looks, GD, other, 'epoch')}",
            _lower(looks, [GD], other, "epoch"),
            f"after as many epochs as both have; lower is better; {why}",
        )
    for other in (NEG, HS):
        page.claim(
            f"So do GD-MIPS and GD-Decomp-MIPS, than {METHODS[other]}",
            "; ".join(f"{METHODS[one]}: {_of_two(looks, one, other, 'epoch')}" for one in (MIPS, DECOMPOSED)),
            _lower(looks, [MIPS, DECOMPOSED], other, "epoch"),
            "after as many epochs as both have",
        )
    factors = {dataset: x.faster(DECOMPOSED, GD) for dataset, x in looks.items()}
    page.claim(
        f"Iterations of GD-Decomp-MIPS are {times:g} times faster than GD's",
        "times as fast: " + told({dataset: ours(each, digits=2) for dataset, each in factors.items()}),
        judge_least(factors.values(), "factors", times, IN_SHAPE),
        "by seconds per epoch, the warm-up and the epoch after it left out; the paper has ≈ 451,000 words and 24 "
        "cores",
    )
    page.claim(
        "GD-Decomp-MIPS has a significantly better objective than GD-MIPS for the same training time",
        f"objective {_of_two(looks, DECOMPOSED, MIPS, 'seconds')}",
        _lower(looks, [DECOMPOSED], MIPS, "seconds"),
        "after as many seconds as both have",
    )
    page.claim(
        "The collapsed objective is equivalent to the one of Mikolov et al. 2013",
        "–",
        not_tested("it is the same sum, whose terms are grouped; the paper has no experiment for it"),
    )


def _of_the_abstract(page: Page, looks: Mapping[str, _Looks]) -> None:
    leads = {dataset: x.lead(DECOMPOSED, NEG, "seconds") for dataset, x in looks.items()}
    page.claim(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        f"objective of GD-Decomp-MIPS and NEG {_of_two(looks, DECOMPOSED, NEG, 'seconds')}; nats below NEG's: "
        + told({dataset: ours(each) for dataset, each in leads.items()}),
        judge_least(leads.values(), "leads", LARGE_MARGIN, MARGIN),
        f"when NEG ends; {LARGE_MARGIN:g} nats is our level, at which each pair is a tenth likelier, since the paper "
        "prints no number",
    )
    page.claim(
        "The technique consistently improves the accuracy of search-based approximation of the gradient",
        f"objective of GD-Decomp-MIPS and GD-MIPS {_of_two(looks, DECOMPOSED, MIPS, 'epoch')}",
        _lower(looks, [DECOMPOSED], MIPS, "epoch"),
        "after as many epochs as both have; after equal time it is judged above",
    )
    page.claim(
        "It is orders of magnitude faster than other strategies of gradient approximation such as sampling",
        "–",
        not_tested("NEG's run is too short to show a factor of 100: GD-Decomp-MIPS begins with an epoch of it"),
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
            _lower(looks, [one], other, "seconds"),
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
    for name, why in (
        ("implicit", "; Fagan and Iyengar 2018 name models like word2vec's as a case where it might be fruitful"),
        ("u-max", ""),
    ):
        if all_have(name):
            better(name, NEG, f"when NEG ends, which minimises another loss{why}")


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
                *_where_it_ends(results, dataset, name),
                ours(results.estimate(dataset, name, f"end.{OBJECTIVE}")),
                ours(results.estimate(dataset, name, f"end.{TEST}")),
            ]
            for name, text in known.items()
        ],
    )


def _where_it_ends(results: Results, dataset: str, method: str) -> list[str]:
    """Write epochs, seconds and seconds of an epoch: medians over the seeds that did not diverge."""
    fits = [fit.status for fit in results.of(dataset, method) if not fit.diverged]
    columns = {"epoch": 0, "seconds": None, "seconds_per_epoch": None}
    return [number(middle(fit[column] for fit in fits), digits=digits) for column, digits in columns.items()]


def _choices(results: Results, page: Page) -> None:
    """Tell what was tried, and came to what."""
    page.section(
        "Learning rates",
        "Log-likelihood of the pairs of a tenth of the training sentences, after training on the others, one seed; "
        "the best is taken. No sentence of the test has a part in it. Rates of the GD methods are factors of the "
        "step described above and stay constant; they are tried for three epochs after the one of NEG, fewer than "
        "the final fits. Others fall linearly to almost 0, and are tried over all epochs. A dash: GD, NEG, HS, "
        "implicit SGD and U-max search for no classes. The minutes at the top are without these trials.",
    )
    rows, seen = [], set()
    for fit in results.fits:
        if (fit.dataset, fit.method) in seen or not fit.status.get("trials"):
            continue
        seen.add((fit.dataset, fit.method))
        parameters = fit.status["parameters"]
        chosen = {key: parameters[key] for key in ("learning_rate", "missing", "negatives")}
        for trial in fit.status["trials"]:
            is_chosen = " (chosen)" * all(trial[key] == value for key, value in chosen.items())
            missing = trial["missing"] if fit.method in METHODS and trial["found_by"] != "all" else "–"
            value = "diverged" if trial["value"] is None else number(trial["value"], digits=3)
            name = METHODS.get(fit.method, fit.method)
            drawn = f"{trial['negatives']}" if fit.method == NEG else "–"
            rows.append([fit.dataset, name, f"{trial['learning_rate']:g}", drawn, missing, value + is_chosen])
    page.table(["corpus", "method", "rate", "drawn words", "not found", "validation log-likelihood"], rows)
