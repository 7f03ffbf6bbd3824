"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.3 and figure 3."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xsoftmax.lab.papers._yen2018_methods import (
    judge_least,
    told,
)
from xsoftmax.lab.papers._yen2018_word_looks import WordLooks
from xsoftmax.lab.papers._yen2018_word_tables import (
    BOUNDS,
    DECOMPOSED,
    GD,
    HS,
    METHODS,
    MIPS,
    NEG,
    OBJECTIVE,
    PAPER,
    WITH_NOISE,
    choices,
    curves,
    data,
    table,
)
from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import AFTER, Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import Finding, judge_orders, not_tested

# What is progress like another's: this share of the way down from where both begin, as seeds differ by a hundredth or
# two; and what is so in shape.
LIKE, NEARLY = 0.97, 0.8
# Times as fast that count, in shape, as the paper's factor of 5: what a clock shows without doubt.
IN_SHAPE = 2.0
# A large margin between objectives, in nats: each pair is a tenth likelier; and in shape, a hundredth.
LARGE_MARGIN, MARGIN = 0.1, 0.01


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's experiment with words beside ours."""
    data(results, page, numbers)
    datasets = [name for name in results.datasets if all(results.has(name, method) for method in PAPER)]
    looks = {dataset: WordLooks(results, dataset) for dataset in datasets}
    if looks:
        _claims(page, looks, numbers["times_faster"])
        _of_the_abstract(page, looks)
        _own_claims(page, looks)
    page.section(
        "Figure 3: the collapsed objective against epochs and time",
        "The objective is eq. 9 in nats: minus the mean of log p(y given x) over the pairs that are left of the "
        "training text as seed 0 drops words; other seeds, and later epochs of NEG and HS, keep others. p is the "
        "exact softmax of all scores. How the paper measures NEG and HS it does not say. NEG minimises another loss, "
        "and where that is least, its scores leave out how often a word is drawn, so that their softmax is far off; "
        "beside verdicts on NEG stands what they would be if the logarithm of that frequency were added to its "
        "scores. HS has no scores of words, and p is the product along a word's path: before its first step this is "
        "near the frequencies already. GD, GD-MIPS and "
        "GD-Decomp-MIPS begin with an epoch of NEG, which counts. Seconds are the processor's, of one thread (the "
        "paper has 24 cores); counting the pairs is part of them, measuring the objective is not; they are rough "
        "where other programs share the machine. Between measurements values are linear. Dashed lines are ours.",
        "Where NEG is compared after equal seconds, it is read where it ends, seed by seed, since its rate falls "
        "until then; a fit that ended sooner counts with its last value. Significantly is by the interval over "
        "seeds.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        curves(results, page, dataset)
        table(results, page, dataset)
    choices(results, page)


def _of_two(looks: Mapping[str, WordLooks], one: str, other: str, by: str) -> str:
    return told(
        {dataset: " against ".join(ours(Estimate.of(each)) for each in x.pair(one, other, by))
         for dataset, x in looks.items()}
    )  # fmt: skip


def _lower(
    looks: Mapping[str, WordLooks], methods: Iterable[str], other: str, by: str, measure: str = OBJECTIVE
) -> Finding:
    """Judge whether methods come to a lower objective than another one, on each corpus."""
    orders = [x.is_lower(one, other, by, measure) for one in methods for x in looks.values()]
    return judge_orders(orders, "corpora" if len(orders) == len(looks) else "comparisons")


def _with_noise(looks: Mapping[str, WordLooks], methods: Iterable[str], other: str, by: str) -> str:
    """Say what a verdict would be with the noise's frequency in NEG's scores; nothing of another than NEG."""
    if other != NEG:
        return ""
    verdict = _lower(looks, methods, other, by, WITH_NOISE).verdict
    levels = " by levels" if by == "epoch" else ""
    return f"; with the noise's frequency in NEG's scores the verdict{levels} would be *{verdict}*"


def _faster_per_epoch(
    page: Page, looks: Mapping[str, WordLooks], says: str, methods: Sequence[str], other: str, why: str
) -> None:
    """Claim that methods converge faster per epoch after the first one: they go further down from there."""
    orders = [x.goes_further(one, other) for one in methods for x in looks.values()]
    ways = {
        one: told(
            {
                name: " against ".join(ours(Estimate.of(each)) for each in x.ways(one, other))
                for name, x in looks.items()
            }
        )
        for one in methods
    }
    page.claim(
        says,
        "nats down from the first epoch: "
        + "; ".join(f"{METHODS[one]}: {text}" for one, text in ways.items())
        + "; objective: "
        + "; ".join(f"{METHODS[one]}: {_of_two(looks, one, other, 'epoch')}" for one in methods),
        judge_orders(orders, "comparisons"),
        f"after as many epochs as both have{why}; by the objective there, of which less is better, the verdict would "
        f"be *{_lower(looks, methods, other, 'epoch').verdict}*{_with_noise(looks, methods, other, 'epoch')}"
        f"{_diverged(looks, methods, other, 'epoch')}; an earlier run was judged by objectives, and its fits of "
        f"{METHODS[other]} were these: {AFTER}",
    )


def _diverged(looks: Mapping[str, WordLooks], methods: Iterable[str], other: str, by: str) -> str:
    """Say where seeds of a method diverged, so that it counts as not lower whatever the others come to."""
    found = {(one, name): Estimate.of(x.pair(one, other, by)[0]) for one in methods for name, x in looks.items()}
    return "".join(
        f"; {METHODS[one]} diverged with {each.n_diverged} of {each.n + each.n_diverged} seeds on {name}, at a rate "
        "that one seed chose on fewer sentences, which counts as reversed, whatever its other seeds come to"
        for (one, name), each in found.items()
        if each.n_diverged
    )


def _shares(page: Page, looks: Mapping[str, WordLooks], says: str, method: str) -> None:
    """Claim that a method goes as far down per epoch as GD, which is ours to say."""
    shares = {dataset: x.progress(method, GD) for dataset, x in looks.items()}
    page.claim(
        says,
        "share of the way that GD goes down: " + told({name: ours(each, digits=2) for name, each in shares.items()}),
        judge_least(shares.values(), "shares", LIKE, NEARLY),
        "from the epoch of NEG on, after as many epochs as both have",
        ours=True,
    )


def _claims(page: Page, looks: Mapping[str, WordLooks], times: float) -> None:
    notes = {
        other: f"; {why}; an epoch of {METHODS[other]} has a step for each pair, of GD and its searches one for each "
        "vector, and the paper's text has about a thousand times as many words; how long GD's steps are the paper "
        "does not say; GD and its searches begin where their epoch of NEG ends, as Table 3 has it, from which the "
        "way down to the frequencies is short and quick"
        for other, why in (
            (NEG, "NEG minimises another loss"),
            (HS, "HS is measured by its paths, and begins near the objective of frequencies"),
        )
    }
    for says, methods in (
        ("After the first epoch, GD converges faster per epoch than", [GD]),
        ("GD-MIPS and GD-Decomp-MIPS, too, converge faster per epoch than", [MIPS, DECOMPOSED]),
    ):
        for other, why in notes.items():
            _faster_per_epoch(page, looks, f"{says} {METHODS[other]}", methods, other, why)
    factors = {dataset: x.faster(DECOMPOSED, GD) for dataset, x in looks.items()}
    page.claim(
        f"Iterations of GD-Decomp-MIPS are {times:g} times faster than GD's",
        "times as fast: " + told({dataset: ours(each, digits=2) for dataset, each in factors.items()}),
        judge_least(factors.values(), "factors", times, IN_SHAPE),
        "by seconds per epoch, the warm-up and the epoch after it left out. A block retrieves K/20 classes, four up "
        "to a fifth of all, whatever K is; those that pass, and the words that stand near, are scored one by one, "
        "twice an epoch, while GD is one dense product; clusters, which are made anew each epoch, count. The "
        "threshold was chosen by likelihood, not by time: "
        + told({dataset: f"{x.threshold(DECOMPOSED):g}" for dataset, x in looks.items()})
        + ", of which 0 lets all pass that are found. The paper has 24 cores",
    )
    page.claim(
        "GD-Decomp-MIPS has a significantly better objective than GD-MIPS for the same training time",
        f"objective: {_of_two(looks, DECOMPOSED, MIPS, 'seconds')}",
        _lower(looks, [DECOMPOSED], MIPS, "seconds"),
        "after as many seconds as both have, though rates were chosen for fits of all their epochs; where each ends: "
        + _of_two(looks, DECOMPOSED, MIPS, "end")
        + _diverged(looks, [DECOMPOSED], MIPS, "seconds"),
    )
    page.claim(
        "The collapsed objective is equivalent to the one of Mikolov et al. 2013",
        "–",
        not_tested("it is the same sum, whose terms are grouped; the paper has no experiment for it"),
    )


def _of_the_abstract(page: Page, looks: Mapping[str, WordLooks]) -> None:
    leads, with_noise = (
        {dataset: x.lead(DECOMPOSED, NEG, measure) for dataset, x in looks.items()}
        for measure in (OBJECTIVE, WITH_NOISE)
    )
    corrected = judge_least(with_noise.values(), "leads", LARGE_MARGIN, MARGIN).verdict
    page.claim(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        f"objective of GD-Decomp-MIPS and NEG: {_of_two(looks, DECOMPOSED, NEG, 'end')}; nats below NEG's: "
        + told({dataset: ours(each) for dataset, each in leads.items()}),
        judge_least(leads.values(), "leads", LARGE_MARGIN, MARGIN),
        "from the abstract; where each ends, after "
        + told({dataset: x.seconds(DECOMPOSED, NEG) for dataset, x in looks.items()})
        + f"; {LARGE_MARGIN:g} nats is our level, at "
        "which each pair is a tenth likelier, since the paper prints no number; with the noise's frequency in NEG's "
        f"scores the verdict would be *{corrected}*",
    )
    page.claim(
        "The technique significantly improves the accuracy of the search-based gradient",
        "–",
        not_tested("gradients of these fits are not compared; [with one label](yen2018.md) they are"),
        "from the introduction, of word embedding, too",
    )
    page.claim(
        "The technique consistently improves the accuracy of search-based approximation of the gradient",
        f"objective of GD-Decomp-MIPS and GD-MIPS: {_of_two(looks, DECOMPOSED, MIPS, 'epoch')}",
        _lower(looks, [DECOMPOSED], MIPS, "epoch"),
        "from the abstract; read as that of models, by the objective; after as many epochs as both have; after equal "
        "time it is judged above" + _diverged(looks, [DECOMPOSED], MIPS, "epoch"),
    )
    page.claim(
        "It is orders of magnitude faster than other strategies of gradient approximation such as sampling",
        f"objective of GD-Decomp-MIPS and NEG where each ends: {_of_two(looks, DECOMPOSED, NEG, 'end')}; after "
        + told({dataset: x.seconds(DECOMPOSED, NEG) for dataset, x in looks.items()}),
        not_tested("NEG's run is too short to show a factor of 100: GD-Decomp-MIPS begins with an epoch of it"),
        "from the introduction; where GD-Decomp-MIPS ends above NEG, it does not come to its objective in that time",
    )
    page.claim(
        "Many more negative classes have a gradient of significant size than in the other experiments",
        "–",
        not_tested("slopes of these fits are not counted"),
        "from 5.3",
    )
    page.claim(
        "In early iterates the gradient is quite evenly distributed over candidates",
        "–",
        not_tested("GD begins after an epoch of NEG, as in the paper"),
        "from sections 4 and 5.3",
    )


def _own_claims(page: Page, looks: Mapping[str, WordLooks]) -> None:
    def better(one: str, other: str, why: str) -> None:
        page.claim(
            f"{METHODS[one]} has a better objective than {METHODS[other]} for the same training time",
            f"objective: {_of_two(looks, one, other, 'seconds')}",
            _lower(looks, [one], other, "seconds"),
            f"{why}{_with_noise(looks, [one], other, 'seconds')}{_diverged(looks, [one], other, 'seconds')}",
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
