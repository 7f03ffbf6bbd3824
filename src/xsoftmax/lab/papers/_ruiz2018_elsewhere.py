"""Ruiz et al. 2018: what it says of data sets that are not here, and what no fit here can tell."""

from collections.abc import Mapping
from typing import Any

from xsoftmax.lab.papers._ruiz2018_names import AR, LOGISTIC, METHODS, OVE, PROBIT
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.rules import not_tested

COLUMNS = (OVE, AR, PROBIT, LOGISTIC)
ABSENT = "the data set could not be downloaded from here"


def elsewhere(page: Page, paper: Mapping[str, Any]) -> None:
    """Tell the paper's numbers of EURLex-4K and AmazonCat-13K, and its claims of them."""
    page.section(
        "Tables 1 to 3: the data sets that are not here",
        "EURLex-4K and AmazonCat-13K could not be downloaded from here: all numbers are the paper's. On EURLex-4K "
        "the paper itself has softmax A&R behind OVE by both measures. Test log-likelihood / accuracy:",
    )
    scores = {key: row["scores"] for key, row in paper.items()}
    page.table(
        ["data set", *(METHODS[method] for method in COLUMNS)],
        [[key, *(_printed(row[method]) for method in COLUMNS)] for key, row in scores.items()],
    )
    page.text("Sizes, minibatches and times per epoch:")
    page.table(
        [
            "data set",
            *("training rows", "test rows", "features", "classes", "minibatch", "drawn classes", "iterations"),
            *(METHODS[method] for method in COLUMNS),
        ],
        [
            [key, *(f"{each:,}" for each in row["sizes"].values()), *(row["times"][method] for method in COLUMNS)]
            for key, row in paper.items()
        ],
    )
    _claims(page, scores)


def _claims(page: Page, scores: Mapping[str, Any]) -> None:
    for says, key in (
        ("On EURLex-4K softmax A&R does not outperform OVE in either metric", "EURLex-4K"),
        ("On AmazonCat-13K softmax A&R outperforms OVE in both metrics", "AmazonCat-13K"),
    ):
        printed = " against ".join(_printed(scores[key][method]) for method in (AR, OVE))
        page.claim(says, f"the paper: {printed}", not_tested(ABSENT))
    best = "; ".join(f"{key} {_printed(row[PROBIT])}" for key, row in scores.items())
    page.claim(
        "Multinomial probit A&R outperforms all other methods on EURLex-4K and AmazonCat-13K (by test "
        "log-likelihood)",
        f"the paper: {best}; by accuracy, of which the sentence does not speak, its softmax A&R is ahead on "
        "AmazonCat-13K",
        not_tested(ABSENT),
    )
    page.claim(
        "On EURLex-4K and AmazonCat-13K, too, softmax A&R provides a significantly tighter bound than OVE",
        "a figure without numbers",
        not_tested(ABSENT),
    )


def _printed(row: Mapping[str, float]) -> str:
    return f"{number(row['log_likelihood'], digits=3)} / {number(row['accuracy'], digits=3)}"


def untested(page: Page) -> None:
    """Name the paper's general statements that no fit here can judge."""
    for says, why in (
        (
            "A&R outperforms state-of-the-art algorithms at little extra cost of computation",
            "the paper compares with OVE and, in a footnote, with complementary sum sampling: see the row on a "
            "tighter bound and better predictions than existing approaches; of the cost see Table 2",
        ),
        (
            "Over wall-clock time, too, softmax A&R has a tighter bound than OVE on almost all data sets",
            "bounds are judged where they end, and are over epochs; fits need not have had the machine to "
            "themselves, which a comparison of times needs",
        ),
        (
            "Unlike many methods, A&R provides a bound on the log probability in place of an approximation",
            "it is by derivation and is not checked of other methods; of A&R and OVE see the row on rigorous bounds",
        ),
        (
            "Eq. 5 has no closed form for the multinomial probit, and for most models neither has the best q",
            "it is by derivation and is not checked here",
        ),
        (
            "On real data, too, A&R provides accurate estimates of the categorical probabilities",
            "the true probabilities of real rows are not known",
        ),
        (
            "The estimate of the bound itself from drawn classes is unbiased, and for probit and logistic the "
            "one-sample estimate of the gradient, too",
            "only the gradient of the softmax's bound is compared with what it estimates",
        ),
        (
            "The local step of the softmax is a natural-gradient step, as η is q's natural parameter; the gradients "
            "of the entropies of probit's and logistic's q are 0 in the location and 1/σ and 1/β in the scale",
            "it is by derivation and is not checked here",
        ),
        (
            "OVE's objective closely resembles logistic A&R's bound, but bounds the softmax, and A&R's another model",
            "it is by derivation and is not checked here; that each is below its own model's likelihood, see the row "
            "on rigorous bounds",
        ),
        (
            "Existing methods are specific to the softmax, and A&R is not",
            "other methods were not looked through; Table 3 has A&R for probit and logistic",
        ),
        (
            "With q the posterior the bound is tight for every model, not for the softmax alone",
            "it is by derivation and is not checked here; of the softmax see the row on q*",
        ),
        ("OVE has been shown to outperform other approaches", "it is about Titsias 2016"),
        (
            "Exponentials of the local step can be reused in the global step",
            "they are computed again here, and no time was measured",
        ),
    ):
        page.claim(says, "nothing was compared", not_tested(why))
    page.claim(
        "A step costs as many classes as are drawn, far below all K; the local variables take O(N) memory",
        "by construction a step scores the drawn classes and the true one, and a training row has two numbers for "
        "softmax and three for the other models, how often it was visited among them",
        not_tested("it would take times of fits alone on the machine, at several numbers of classes and draws"),
    )
    page.claim(
        "A&R is the first scalable approach for the multinomial probit and the multinomial logistic",
        "nothing was compared",
        not_tested("it is about the literature of its time"),
    )
    page.claim(
        "A&R extends to other additive-noise models, to regularizers and posterior inference of the weights, to "
        "importance sampling of classes, to the gradients of REINFORCE, and to parallel computation",
        "nothing was compared",
        not_tested("no fit here uses any of these"),
    )
