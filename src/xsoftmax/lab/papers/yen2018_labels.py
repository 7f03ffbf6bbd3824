"""Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018: section 5.2 and figure 2."""

from collections.abc import Mapping
from typing import Any

from xsoftmax.lab.papers._yen2018_label_data import label_data
from xsoftmax.lab.papers._yen2018_label_looks import METRIC, Looks, table
from xsoftmax.lab.papers._yen2018_label_rules import LabelJudge, apart, lead
from xsoftmax.lab.papers._yen2018_methods import (
    DECOMPOSED,
    EPOCHS,
    LARGE,
    LOSSES,
    MARGIN,
    MIPS,
    PAPER,
    SAMPLED,
    SOFTMAX,
    curves,
    rates,
    told,
)
from xsoftmax.lab.papers._yen2018_ways import HOW, with_best
from xsoftmax.lab.reproduction.estimates import Estimate, above
from xsoftmax.lab.reproduction.page import Page, ours
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested

MARGINS = (MARGIN, MIPS, DECOMPOSED)
# Levels, of which the paper says no more than words. By what share of the greater gain, beyond one label for all
# rows, a method may be behind another where it is similar, makes almost the same progress, or retains it; in shape.
KEEPS, NEARLY = -0.03, -0.2
# By what share another is ahead of one that is extremely slow; or by a large margin, half as much again; in shape.
HALF, THIRD, MORE = 0.5, 0.33, 0.03
# Times as fast: an order of magnitude, and what counts in its shape.
ORDER, ORDER_IN_SHAPE = 10.0, 2.0
# "Much slower" iterations: twice; and what counts in its shape. Of three products with all classes' weights a sparse
# gradient saves two, so that more than three times cannot be asked for.
TWICE, TWICE_IN_SHAPE = 2.0, 1.5


def tell(results: Results, page: Page, numbers: Mapping[str, Any]) -> None:
    """Put the paper's multilabel experiment beside ours."""
    settings = numbers["settings"]
    results = with_best(results)
    label_data(results, page, numbers["table_2"])
    of_paper = [f"{loss}-{kind}" for loss in LOSSES for kind in (PAPER, EPOCHS)]
    complete = [name for name in results.datasets if all(results.has(name, method) for method in of_paper)]
    looks = {dataset: Looks(results, dataset) for dataset in complete}
    if looks:
        _claims(page, looks)
    page.section(
        "Figure 2: precision against time and epochs",
        "The paper does not say what accuracy is with several labels; here it is P@1, the share of rows whose "
        "highest label is one of theirs, of 5,000 training rows at most. SGD, equal seconds for all methods on a "
        "data set (4 on bibtex-sets, 10 on the others), of one thread (the paper's ten). Exact methods take the "
        "paper's minibatches of 10, along whose mean gradient, which is our reading, they step. Our searches and "
        "draws are made for one row: methods with them step row by row, at a tenth of the rate, so that ten "
        "steps are about as long as one of a minibatch. Between the two kinds the gradient's estimate and the batch "
        "differ at once.",
        "The hidden layer is a table with a vector for each word, of "
        f"as many columns as the paper's ({settings['dimension']}). A document has their mean, weighted by its "
        "features, where the paper's fully-connected layer would give the weighted sum, which is longer, and so are "
        "its steps; without an activation, of which the paper says nothing. Vectors of words begin at random, those "
        "of labels at 0, and each label has a bias, of which the paper says nothing either. A drawn class is never "
        "one of the row's labels, and its score is corrected by the probability of being drawn. As many are drawn as "
        "a search retrieves, as in the paper; that they are drawn for each row is our reading.",
        "The softmax's loss is the sum of its labels' (eq. 2), the margin's one of all of them (eq. 3, its sign "
        f"corrected), smoothed by mu = {settings['smoothing']:g}; Decomp-MIPS has {settings['blocks']} blocks, "
        "passes messages once, and scores the classes that it finds as a whole. The paper retrieves K/100 classes "
        "from 100 clusters for a query; with so few labels this would break its own rule (section 4: no more "
        "clusters than classes retrieved), so that the root of K are retrieved from as many clusters, and drawn for "
        "Sampled-Softmax: 8, 4 and 3 % of the labels, in the order of Table 2, where the paper has 1 %. A class that "
        "was not retrieved is left out of the loss, where the paper scores it as 0; [the page of one "
        "label](yen2018.md) tells why, and what else differs from the paper's text. Labels that moved are indexed "
        "anew every 400 rows, which is ours. The paper is about hundreds of thousands of labels and more; what is "
        "said of speed here is so at the sizes of Table 2.",
        "The paper divides the initial rate by 1 + t, t counting iterations. Each method is trained in this way; "
        "with t counting epochs, which is ours; and from larger rates, where there are finite ones. Seconds are "
        "judged where t counts epochs. The paper prints no numbers: what counts as similar, slow or fast is our "
        "choice, as are the levels. Rules and levels were chosen before the run, when results of earlier ones were "
        "known. An order, or a share, compares two methods as far as both have "
        "come, and tables compare all as far as all have, which may be less. Differences and their intervals are "
        "over seeds; rows are not compared in pairs.",
        HOW,
        "A method may come to no more than naming one label for all rows: with t in iterations, as all steps of n "
        "minibatches are together as long as about 1 + log n first ones, and where validation rows prefer the lowest "
        "rate. So progress is a gain: P@1 beyond what the label of most of these rows would have if it were named "
        "for all; who is below has gained nothing. How far one method is ahead of another is the difference of their "
        "gains, as a share of the greater one. Where with some seed neither has gained, two are not compared: it is "
        "no sign that one keeps what the other has, nor that none is ahead.",
        "What the paper's abstract and introduction say of all its experiments is judged [with one "
        "label](yen2018.md) and [with words](yen2018-words.md), too.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        curves(results, page, dataset, METRIC, "P@1")
        table(results, page, dataset)
    page.section(
        "Initial rates and cooling",
        "The paper takes the best of three initial rates. So do methods here, once with t counting iterations, and "
        "once with t counting epochs; larger rates, with t counting epochs, were tried apart from these: 10 and 100. "
        "Where a method has no larger rate, those that were tried before this run diverged: of Softmax 2, 5 and 10, "
        "and of Sampled-Softmax 3 and 10. Steps of one row have a tenth of these rates. One seed, and a quarter to "
        "three tenths of the time; the best last P@1 of validation rows is taken, and of equal ones the lowest rate. "
        "A dash is a trial that diverged.",
        "Where t counts iterations, of ten rows for all, the rate of methods that step row by row falls within ten "
        "rows, too: their first ten steps are together 0.72 as long as a first minibatch's, the tenth ten 0.96 as "
        "long as a tenth one's.",
    )
    for dataset in results.datasets:
        page.text(f"### {dataset}")
        rates(results, page, dataset, "validation P@1")


def _claims(page: Page, looks: Mapping[str, Looks]) -> None:
    judge = LabelJudge(page, looks)
    leads, shares, factors = judge.leads, judge.shares, judge.factors
    leads(
        "Softmax has very good per-iteration progress, significantly more than Margin, MIPS and Decomp-MIPS",
        [SOFTMAX], MARGINS, "epoch",
        "each pair is compared where the first of both ends; significantly is by the interval",
    )  # fmt: skip
    factors(
        "Iterations of Softmax are much slower than the others', since its gradient is dense",
        MARGINS, SOFTMAX, (TWICE, TWICE_IN_SHAPE),
        "Margin, MIPS and Decomp-MIPS, by seconds per epoch; the backward pass, which is the paper's reason, is not "
        "timed alone, and Margin projects the scores of each row, as the paper's does; much slower is twice, as of "
        "three products with all weights a sparse gradient saves two",
        ("of the searches alone the verdict would be", (MIPS, DECOMPOSED), SOFTMAX),
    )  # fmt: skip
    shares(
        "In equal time Softmax performs similarly to Margin",
        apart, (SOFTMAX, MARGIN), "seconds", (KEEPS, NEARLY),
        "minus the distance of both, seed by seed",
    )  # fmt: skip
    shares(
        "Per epoch Decomp-MIPS makes almost the same progress as the exact gradient of Margin",
        lead, (DECOMPOSED, MARGIN), "epoch", (KEEPS, NEARLY),
        "Decomp-MIPS's lead over Margin, seed by seed; one above 0 counts as the same",
    )  # fmt: skip
    leads(
        "MIPS has a significant drop in its training accuracy compared with Margin and Decomp-MIPS",
        [MARGIN, DECOMPOSED], [MIPS], "epoch",
        "the paper's reason is that MIPS runs for more iterations, which is not tested: each pair is compared "
        "where the first of both ends, so that beside Margin MIPS is seen before it has run on; significantly is by "
        "the interval. The introduction says of searches in "
        "general that they often sacrifice accuracy for efficiency",
    )  # fmt: skip
    factors(
        "The searches lead to an order of magnitude of speedup",
        (MIPS, DECOMPOSED), MARGIN, (ORDER, ORDER_IN_SHAPE),
        "MIPS and Decomp-MIPS, by seconds per epoch, which include indexing; the paper may mean the time to an "
        "accuracy, as it says this *overall*. By section 4 a search is the root of K times as fast at most. A query "
        "here scores as many centroids as labels, twice the root of K rows: a data set on which these are not a "
        "tenth of all labels at most is left out",
        ("beside Softmax, whose iterations are the paper's slow ones, the verdict would be",
         (MIPS, DECOMPOSED), SOFTMAX),
        on=lambda each: each.fewer_rows() >= ORDER,
    )  # fmt: skip
    shares(
        "Decomp-MIPS retains the accuracy of the exact method",
        lead, (DECOMPOSED, MARGIN), "seconds", (KEEPS, NEARLY),
        "Decomp-MIPS's lead over Margin, seed by seed; one above 0 counts as retained",
    )  # fmt: skip
    shares(
        "Sampled-Softmax has extremely slow progress per iteration",
        lead, (SOFTMAX, SAMPLED), "epoch", (HALF, MORE),
        "Softmax's lead over Sampled-Softmax, seed by seed; half of Softmax's progress counts as extremely slow; "
        "other methods are not compared",
    )  # fmt: skip
    judge.faster(
        "Sampled-Softmax has fast iterations", [SAMPLED], SOFTMAX,
        "by seconds per epoch; fast is faster than Softmax's, as the paper says neither than which nor how much",
    )  # fmt: skip
    leads(
        "Sampled-Softmax could not reach a comparable accuracy to other methods even after one day",
        (SOFTMAX, *MARGINS), [SAMPLED], "seconds",
        "ours are run for seconds; how far below is not judged, as the paper prints no numbers",
    )  # fmt: skip
    leads(
        "The technique consistently improves the accuracy of search-based approximation of the gradient",
        [DECOMPOSED], [MIPS], "seconds",
        "from the abstract, and, as *significantly* and of document tagging, the introduction; Decomp-MIPS against "
        "MIPS; after equal epochs it is part of a claim above",
    )  # fmt: skip
    shares(
        "The technique outperforms sampling-based approximation of the gradient by a large margin",
        lead, (DECOMPOSED, SAMPLED), "seconds", (THIRD, MORE),
        "from the abstract; Decomp-MIPS's lead over Sampled-Softmax, seed by seed; a gain half as large again, which "
        "is a third of the greater one, is our level",
    )  # fmt: skip
    judge.sooner(
        "It is orders of magnitude faster than other strategies of gradient approximation such as sampling",
        DECOMPOSED, SAMPLED,
        not_tested("the first look is after a sixteenth of the time, too late to tell a factor of 100"),
        "from the introduction, of document tagging, too; of Decomp-MIPS; no time before the first look counts; "
        "where a factor is below 1, Sampled-Softmax is there sooner",
    )  # fmt: skip
    page.claim(
        "The gradient typically is concentrated on a relatively small number of labels, and the margin's is very "
        "sparse",
        "–",
        not_tested("slopes of these fits are not counted; [with one label](yen2018.md) they are"),
        "from the introduction, and sections 4 and 5",
    )
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


def _own_claim(page: Page, looks: Mapping[str, Looks]) -> None:
    """Tell whether larger rates help the softmax; where all of them diverge, the experiment has none."""
    small, large = f"{SOFTMAX}-{EPOCHS}", f"{SOFTMAX}-{LARGE}"
    found = {
        dataset: [Estimate.of(each.at_end("seconds", [large, small])[name]) for name in (large, small)]
        if large in each.known
        else None
        for dataset, each in looks.items()
    }
    orders = {dataset: _gains(*pair) if pair else False for dataset, pair in found.items()}
    page.claim(
        "Softmax gains from a rate of 10, beyond the paper's",
        "test P@1 in equal time: "
        + told({dataset: " against ".join(map(ours, pair)) if pair else "–" for dataset, pair in found.items()}),
        judge_orders(orders if any(found.values()) else {}, "data sets"),
        "against the paper's rate that validation rows prefer; 100 was tried, too. Where both diverged in trials "
        "before this run, they were not run, and there is a dash; that counts as a loss, as does one that diverged "
        "here",
        ours=True,
    )


def _gains(large: Estimate, small: Estimate) -> bool | None:
    return False if small.n and not large.n else above(large, small)
