"""The data, curves and tables of Yen et al. 2018's experiment with words."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.figures import Line, Panel, figure_of, lines_of
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results, middle

NEG, HS, GD, MIPS, DECOMPOSED = "neg", "hs", "gd", "mips", "decomposed"
PAPER = {NEG: "NEG", HS: "HS", GD: "GD", MIPS: "GD-MIPS", DECOMPOSED: "GD-Decomp-MIPS"}
BOUNDS = {"mips-bound": "GD-MIPS, bound", "decomposed-bound": "GD-Decomp-MIPS, bound"}
OURS = BOUNDS | {"implicit": "implicit SGD", "u-max": "U-max"}
METHODS = PAPER | OURS
COLORS = {NEG: "#56b4e9", HS: "#009e73", GD: "#0072b2", MIPS: "#cc79a7", DECOMPOSED: "#e69f00"}
COLORS |= {"implicit": "#000000", "u-max": "#8c8c8c"}
OBJECTIVE, TEST = "objective", "test_log_likelihood"
WITH_NOISE = "objective_with_noise"  # of NEG, with the logarithm of the noise's frequency added to its scores


def data(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the sizes of the corpora beside the paper's, and say how methods are trained."""
    drawn = numbers["settings"]["negatives"]
    found = {fit.dataset: fit.status["data"] for fit in results.fits}
    names = sorted(found)
    page.section(
        "Table 3: the data",
        "The paper's corpus is of news, and far larger. `books` is War and Peace, `gcide` a quarter of the entries "
        "of a dictionary (Debian's dict-gcide; `dpkg-deb -x` unpacks gcide.dict.dz). A sentence is a paragraph here, "
        "out of which no window reaches; every tenth is held out for the test. Dimension, 100, window, 8, and the "
        "threshold of subsampling, 0.0001, are the paper's. Words count that occur five times or more; of gcide, of "
        "the whole dictionary's 16,000 most frequent those that are in its quarter. The first lines below are sizes, "
        "the last the objectives, in nats, of equal probabilities for all words, of the frequencies with which words "
        "stand near any other, and of the epoch of NEG that GD begins with.",
    )
    words = {"n_classes": "vocabulary", "n_words": "words for training", "n_pairs": "distinct pairs"}
    rows = [
        [text, f"≈ {numbers['table_3'][key]:,.0f}" if key in numbers["table_3"] else "not given"]
        + [number(found[name][key], digits=0) for name in names]
        for key, text in words.items()
    ]
    levels = {
        "objective of equal probabilities": [math.log(found[name]["n_classes"]) for name in names],
        "objective of frequencies": [found[name]["frequencies_objective"] for name in names],
        "objective where GD begins": [_at_start(results, name) for name in names],
    }
    rows += [[text, "not given", *(number(each) for each in values)] for text, values in levels.items()]
    page.table(["", "BillionW", *names], rows)
    page.section(
        "The methods",
        "NEG and HS are the "
        "paper's Word2vec-Neg and Word2vec-HS, in our code, not word2vec's program. Frequent words are dropped by "
        "that program's rule, which keeps t/f more of a word's occurrences than the paper's formula, and never more "
        "than all, f being its frequency; the window of each centre is drawn from 1 to 8. NEG draws 5, 15 or 25 "
        f"words for a pair, whichever is best on validation sentences (the paper: {', '.join(map(str, drawn))}). "
        "The epoch of NEG that GD begins with draws 5, and its rate falls from 0.025 to almost 0 within it, so that "
        "it is not the first epoch of NEG's curve.",
        "GD moves all input vectors, then all output vectors, which is an epoch. How long the paper's steps are it "
        "does not say; ours are a multiple of the gradient of each vector over a bound on its curvature. Input and "
        "output vectors are two tables, as 5.3 has it; eq. 8 has one. GD-MIPS looks, for each word, which is our "
        "reading of *batch query*, at K/20 classes in the nearest of 100 clusters of output vectors, which are made "
        "anew each epoch. GD-Decomp-MIPS does so in each of four blocks of 25 columns, with one round of messages, "
        "and takes the classes with a probability above a threshold in some block's softmax: 0.001, or 0, whichever "
        "is better on validation sentences. For words the paper gives only K/20: clusters and one "
        "round are those of its section 5, four blocks those of 5.2, 0.001 that of its margin losses. For the "
        "softmax, its section 4 describes another rule, without a fixed threshold.",
        "The words that stand near a word in the text always count. Classes that are found get their whole score, "
        "as messages with eta 1 would give; the paper moves them by eta 2/3, and scores blocks that did not find a "
        "class as 0. To the softmax's sum of exponentials, classes that are not found add nothing (*none*), or e to "
        "the 0 each as in the paper (*zero*), whichever is better on validation sentences. *Bound* (*mean*) is ours: "
        "they add a lower bound of what they really have there, by Jensen's inequality, weighed by frequency, which "
        "costs one product.",
    )


def _at_start(results: Results, dataset: str) -> float:
    """Give the objective after the epoch of NEG that GD begins with; NaN where GD is not there."""
    if not results.has(dataset, GD):
        return math.nan
    return middle(float(fit.history[OBJECTIVE].iloc[0]) for fit in results.of(dataset, GD) if len(fit.history))


def curves(results: Results, page: Page, dataset: str) -> None:
    """Draw objectives and held-out likelihoods against epochs and time."""
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


def table(results: Results, page: Page, dataset: str) -> None:
    """Tell where each method ends."""
    known = {method: text for method, text in METHODS.items() if results.has(dataset, method)}
    ends = {name: results.estimate(dataset, name, f"end.{OBJECTIVE}") for name in known}
    page.text("Where each ends; seconds per epoch are medians:")
    noise = []
    if NEG in known:
        end = ours(results.estimate(dataset, NEG, f"end.{WITH_NOISE}"))
        noise = [["NEG, the noise's frequency in its scores", "–", "–", "–", end, "–"]]
    page.table(
        ["method", "epochs", "seconds", "seconds per epoch", "objective", "held-out log-likelihood"],
        [
            [
                text,
                *_where_it_ends(results, dataset, name),
                ours(ends[name]),
                ours(results.estimate(dataset, name, f"end.{TEST}")),
            ]
            for name, text in known.items()
        ]
        + noise,
    )
    frequencies = next(fit.status["data"]["frequencies_objective"] for fit in results.fits if fit.dataset == dataset)
    worse = [known[name] for name, end in ends.items() if end.n and end.mean > frequencies]
    if worse:
        page.text(
            f"Above the objective of frequencies, {number(frequencies)}, which takes no vectors, end "
            f"{', '.join(worse)}: orders among these are orders of models that are worse than none."
        )


def _where_it_ends(results: Results, dataset: str, method: str) -> list[str]:
    """Write epochs, seconds and seconds of an epoch: medians over the seeds that did not diverge."""
    fits = [fit.status for fit in results.of(dataset, method) if not fit.diverged]
    columns = {"epoch": 0, "seconds": None, "seconds_per_epoch": None}
    return [number(middle(fit[column] for fit in fits), digits=digits) for column, digits in columns.items()]


def choices(results: Results, page: Page) -> None:
    """Tell what was tried, and came to what."""
    page.section(
        "Learning rates",
        "Log-likelihood of the pairs of a tenth of the training sentences, after training on the others, one seed; "
        "the best is taken. No sentence of the test has a part in it. Rates of the GD methods are factors of the "
        "step described above and stay constant; others fall linearly to almost 0. Trials are as long as fits. A "
        "dash: GD, NEG, HS, implicit SGD and U-max search for no classes, and only blocks have a threshold. The "
        "minutes at the top are without these trials.",
    )
    rows, seen, edges = [], set(), []
    for fit in results.fits:
        if (fit.dataset, fit.method) in seen or not fit.status.get("trials"):
            continue
        seen.add((fit.dataset, fit.method))
        parameters = fit.status["parameters"]
        chosen = {key: parameters[key] for key in ("learning_rate", "missing", "negatives", "least_slope")}
        name = METHODS.get(fit.method, fit.method)
        rates = [trial["learning_rate"] for trial in fit.status["trials"]]
        if min(rates) < max(rates) and chosen["learning_rate"] in (min(rates), max(rates)):
            end = "least" if chosen["learning_rate"] == min(rates) else "greatest"
            edges.append(f"{name} on {fit.dataset} the {end}, {chosen['learning_rate']:g}")
        for trial in fit.status["trials"]:
            is_chosen = " (chosen)" * all(trial[key] == value for key, value in chosen.items())
            missing = trial["missing"] if fit.method in METHODS and trial["found_by"] != "all" else "–"
            least = f"{trial['least_slope']:g}" if trial["found_by"] == "blocks" else "–"
            value = "diverged" if trial["value"] is None else number(trial["value"], digits=3)
            drawn = f"{trial['negatives']}" if fit.method == NEG else "–"
            rate = f"{trial['learning_rate']:g}"
            rows.append([fit.dataset, name, rate, drawn, missing, least, value + is_chosen])
    head = ["corpus", "method", "rate", "drawn words", "not found", "threshold", "validation log-likelihood"]
    page.table(head, rows)
    if edges:
        page.text(f"At an end of their grids are the rates of: {'; '.join(edges)}. Others beyond might be better.")
