"""Ruiz, Titsias, Dieng and Blei, Augment and reduce, ICML 2018: tables 1 to 3, figure 2, sections 2, 3 and 4.1."""

from collections.abc import Mapping
from typing import Any

from xsoftmax.lab.papers._ruiz2018_abstract import existing_approaches
from xsoftmax.lab.papers._ruiz2018_bounds import figure_2
from xsoftmax.lab.papers._ruiz2018_elsewhere import elsewhere, untested
from xsoftmax.lab.papers._ruiz2018_local_steps import as_published, entropy
from xsoftmax.lab.papers._ruiz2018_names import AR, DATASETS, LOGISTIC, METHODS, OVE, PROBIT, iterations
from xsoftmax.lab.papers._ruiz2018_table_3 import table_3
from xsoftmax.lab.papers._ruiz2018_theory import theory
from xsoftmax.lab.papers._ruiz2018_toy import toy
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results, middle
from xsoftmax.lab.reproduction.rules import not_tested


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's tables and figures beside ours."""
    _table_1(results, page, numbers["table_1"])
    table_3(results, page, numbers["table_3"], numbers["elsewhere"])
    elsewhere(page, numbers["elsewhere"])
    as_published(results, page, numbers["table_3"])
    entropy(results, page)
    _table_2(results, page, numbers["table_2"])
    figure_2(results, page)
    toy(results, page, numbers["toy"], numbers["toy_iterations"])
    theory(page)
    existing_approaches(results, page)
    untested(page)


def _table_1(results: Results, page: Page, paper: Mapping[str, Any]) -> None:
    page.section(
        "Table 1: data sets and iterations",
        "A row of Bibtex has its first label only, in the paper and here; the paper has more classes left, and fewer "
        "test rows. The paper does not say which drawings of Omniglot are test rows; here they are the last four of "
        "each character. Omniglot's ink is 1 and its paper 0; the paper says only that images are resized. Bibtex is "
        "Mulan's copy, whose order of labels, and with it a row's first one, may not be that of the paper's copy. "
        "The authors published their copies, bitbucket.org/franrruiz/augment-reduce-data, which could not be "
        "downloaded from here.",
    )
    rows = []
    for key in (each for each in paper if each in results.prepared):
        with results.data(key) as data:
            here = [data.n_samples("train"), data.n_samples("test"), data.n_features, data.n_classes]
        settings = results.of(key, AR)[0].status["parameters"]
        here += [settings["batch"]["size"], settings["proposal"]["n_sampled"], iterations(results, key)]
        rows.append([DATASETS[key], *(f"{a:,} / {b:,}" for a, b in zip(paper[key].values(), here, strict=True))])
    headings = ["training rows", "test rows", "features", "classes", "minibatch", "drawn classes", "iterations"]
    page.table(["data set, paper / ours", *headings], rows)


def _table_2(results: Results, page: Page, paper: Mapping[str, Any]) -> None:
    page.section(
        "Table 2: time per epoch",
        "Seconds, medians over seeds. Our fits need not have had the machine to themselves, as the workflow starts "
        "as many side by side as there are cores: their times show a size, and no order of methods follows from "
        "them.",
    )
    rows, ratios = [], {}
    for key, times in paper.items():
        there = {method: seconds for method, seconds in times.items() if results.has(key, method)}
        here = {method: middle(results.values(key, method, "fit.seconds_per_epoch")) for method in there}
        for method, theirs in there.items():
            ratios[key, method] = here[method] / here[OVE]
            cells = [number(theirs, digits=3), number(here[method], digits=3)]
            cells += [number(theirs / times[OVE], digits=2), number(ratios[key, method], digits=2)]
            rows.append([DATASETS[key], METHODS[method], *cells])
    page.table(["data set", "method", "paper (s)", "ours (s)", "paper / OVE", "ours / OVE"], rows)
    for says, methods in {
        "In general softmax A&R is almost as fast as OVE": (AR,),
        "Multinomial probit and logistic A&R are slightly slower because of the local step, but still competitive": (
            PROBIT,
            LOGISTIC,
        ),
    }.items():
        found = [ratio for (_, method), ratio in ratios.items() if method in methods]
        page.claim(
            says,
            f"{min(found):.2f} to {max(found):.2f} times OVE's time per epoch" if found else "",
            not_tested("fits need not have had the machine to themselves, which a comparison of times needs"),
        )
