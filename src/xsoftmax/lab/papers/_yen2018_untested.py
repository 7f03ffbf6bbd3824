"""What Yen et al. 2018 say and is not tested with one label, and where their text is not what we compute."""

from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.rules import not_tested

# A claim, why it is not tested, and perhaps where it is from or what is told instead.
UNTESTED = (
    (
        "Neither Softmax nor Margin finishes an epoch in a day",
        "the data, of 672,000 classes, are not to be had, and those of faces-5k end an epoch in seconds",
        "",
    ),
    (
        "Low rank is usually not true of multiclass classification, as each row has one right answer",
        "no model here has a structure over its classes",
        "from the introduction",
    ),
    (
        "Even where a structure over classes is valid, it is hard to construct from data, and takes heuristics or "
        "annotation",
        "no model here has a structure over its classes",
        "from the introduction",
    ),
    (
        "Confusing classes, which matter most, have small probabilities of being sampled",
        "probabilities of being drawn are uniform here",
        "from the introduction",
    ),
    (
        "Gradients of the max-margin loss without smoothing, and of the triplet loss, are sparse, so that tau_2 may "
        "be 0",
        "losses here are smoothed, and none is of triplets",
        "",
    ),
    (
        "A sparse model that is kept during training finds classes in problems of high input dimension only",
        "no model here is kept sparse",
        "from the introduction",
    ),
    (
        "Losses and gradients are dominated by positive labels and the highest negative ones; of the cross-entropy "
        "slopes fall exponentially with the score",
        "it is arithmetic; how concentrated slopes are is judged",
        "",
    ),
    (
        "A query takes time that is typically sublinear in the number of classes",
        "queries are not timed apart from the rest of an epoch",
        "from section 2.1; how many rows a query scores is told beside the speedup",
    ),
    (
        "A round of messages can be computed in time sublinear in the number of classes, as scores and messages are "
        "sparse",
        "messages are not timed apart from the rest of an epoch",
        "from section 3.1",
    ),
    (
        "A decomposed retrieval is off by at most B tau_1 times the loss's Lipschitz constant",
        "the error of a search is checked for whole scores only",
        "",
    ),
    ("Smoothing by mu in [1, 5] and a threshold tau_2 of 0.001 work well", "no others were tried", ""),
    ("Decomposition costs far fewer operations than all scores", "operations are not counted, see times", ""),
    ("Retrieving the highest Q is more efficient than retrieving by a threshold", "searches here have one form", ""),
    (
        "Where about as many rows of W are updated as classes are retrieved, a larger minibatch keeps the method "
        "effective, as what is re-indexed is bounded by K, and the cost of the index becomes insignificant",
        "minibatches are of 10",
        "",
    ),
    (
        "A query retrieves the root of K classes at least, so that its speedup is bounded by that root",
        "it is arithmetic, and what a query scores is told beside the speedup",
        "",
    ),
    (
        "Exact search takes time exponential in the dimension, and hashing depends on it implicitly",
        "searches here are in clusters, as the paper's",
        "",
    ),
    ("The smoothed margin and its gradient follow from the largest few scores", "it is arithmetic", ""),
    ("Scores are projected onto the bi-simplex in O(K log K)", "it is arithmetic", ""),
    (
        "Search is unnecessary in the early stage, where one can begin with sampling",
        "searches here begin at once",
        "",
    ),
    (
        "All methods are run for more than one day, and their curves are close to convergence on a linear scale",
        "ours are run for seconds",
        "in part from Figure 1's caption",
    ),
)


def untested(page: Page) -> None:
    """List what is not tested, and why."""
    for says, why, more in UNTESTED:
        page.claim(says, "–", not_tested(why), more)


def corrected(page: Page) -> None:
    """Tell where the paper's text differs from what is computed."""
    page.section(
        "What differs from the paper's text",
        "The margin in eqs. 3 and 7 is printed with its sign reversed; ours is the loss that eqs. 10 and 11 belong "
        "to. Theorem 1 prints D for the number of classes. The number of steps that is to suffice after Theorem 2 is "
        "printed with a factor of 1/4, where the bound gives 4. Algorithm 1 scores classes that it did not retrieve "
        "as 0: unless the retrieved ones are clearly above 0, as early in training they are not, the margin then "
        "spreads its slopes over all that it did not retrieve. Ours leaves those out of the projection. It retrieves "
        "the highest scores, as section 4 does, not those far from 0 on either side, and shows the loss whole scores "
        "of the classes found, where Algorithm 2 takes the mean of the gradients of eight blocks.",
    )
