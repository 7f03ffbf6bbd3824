"""What Fagan and Iyengar 2018 say and no run here tests, with the reason."""

from collections.abc import Sequence

from xsoftmax.lab.papers._fagan2018_losses import joined, named
from xsoftmax.lab.papers._fagan2018_names import NOT_HERE, U_MAX
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.lab.reproduction.rules import not_tested

STEPS = "no fit records its steps; tests compare them with numerical solutions"
OF_TABLES = (
    ("U-max performs better than Implicit SGD on AmazonCat", "AmazonCat-13K cannot be had here"),
    (
        f"Tables 2 and 3, and the orders above, on {joined(map(named, NOT_HERE))}",
        "these data sets cannot be had here",
    ),
    (
        "OVE and IS with one row and one class a step perform virtually as with 100 and 5, but slower",
        "they were not run so; NCE was, see Figure 3",
    ),
)
OF_METHODS = (
    (
        "Biased methods prematurely plateau",
        "without a penalty no optimum is known; with one there are fits of OVE alone, which are judged above",
    ),
    (
        "For small enough rates U-max converges to the optimum, in expectation at least as fast as SGD (Theorem 1)",
        "no fit measures rates of convergence, and without a penalty the greatest rate that the theorem allows is 0",
    ),
    (
        "A step of Implicit SGD is smaller than vanilla SGD's (Proposition 1)",
        STEPS,
    ),
    (
        "The size of Implicit SGD's step is in the order of the difference of the scores less u (Proposition 2)",
        STEPS,
    ),
    (
        "An implicit step of n rows and m classes takes time O(n (n + m) (D + n log 1/ε)) (Proposition 3)",
        "all fits of Implicit SGD here are of one row and one class a step",
    ),
    (
        "An implicit step of one row and one class takes two inner products and a bounded number of evaluations of a "
        "bisection (Proposition 4)",
        "the step here is solved by Newton's method, whose evaluations are not recorded",
    ),
    (
        "The work of an iteration of U-max and of Implicit SGD does not depend on the numbers of classes and rows",
        "times at several sizes were not taken",
    ),
    (
        "Stochastic gradients of the proposed double sum tend to be smaller, and it converges faster for it",
        "gradients were not recorded",
    ),
    (
        "The large gradients of vanilla SGD vary much, which makes it slow, unreliable and inefficient; OVE, NCE and "
        "IS do not have them",
        "gradients were not recorded",
    ),
    (
        "U-max's δ trades the size of gradients for the rate, and Theorem 1 explains its huge log-losses at rates of "
        "1,000 and 10,000",
        "one δ was run, and no step was recorded",
    ),
    (
        "Implicit SGD converges at rates similar to vanilla SGD's",
        "it is by theorems of others; no fit measures rates of convergence",
    ),
    (
        "Where U-max's guard raises u, the objective falls by at least δ²/2 (Lemma 5)",
        "it is by derivation, and no fit records its steps",
    ),
    (
        "An implicit step of several rows and classes may be much slower than one of vanilla SGD or U-max",
        "all fits of Implicit SGD here are of one row and one class a step",
    ),
    (
        "The double sum is jointly convex, and projected SGD on it converges at O(1/T) (Lemmas 1 to 4)",
        "it is by derivation and is not checked here",
    ),
    (
        "The remedy of Raman et al., O(NKD) at the end of each epoch, undoes the gain, and their method is slower by "
        "a factor of K; U-max and Implicit SGD have no such extra work",
        "that they have none is by construction; no method with it was run",
    ),
    (
        "U-max and Implicit SGD are the first two unbiased algorithms whose steps do not depend on the numbers of "
        "classes and rows",
        "it is about the literature of its time",
    ),
    (
        "Vanilla SGD on the double sum of Raman et al. is unstable",
        "vanilla SGD was run on the proposed sum alone; on that of Raman et al. only U-max was",
    ),
    (
        "Stochastic composition optimization has the same stability issues as vanilla SGD (Appendix B)",
        "no fit of this experiment is by the method `composition`",
    ),
)


def of_tables(page: Page) -> None:
    """Tell what is said of the tables and was not tested."""
    _claim(page, OF_TABLES)


def of_methods(results: Results, page: Page) -> None:
    """Tell what is said of the methods and was not tested."""
    _claim(page, OF_METHODS)
    of_u_max = [fit for fit in results.fits if fit.method.startswith(U_MAX)]
    diverged = sum(fit.diverged for fit in of_u_max)
    implicit = sum(fit.diverged for fit in results.fits if fit.method.startswith("implicit"))
    _claim(
        page,
        [
            (
                "The magnitude of U-max's gradients is bounded",
                f"gradients were not recorded; of the {len(of_u_max)} fits of U-max {diverged or 'none'} diverged",
            ),
            (
                "Implicit SGD effectively cannot overflow",
                f"no number of fits shows it; of those here {implicit or 'none'} diverged",
            ),
        ],
    )


def _claim(page: Page, claims: Sequence[tuple[str, str]]) -> None:
    for says, why in claims:
        page.claim(says, "nothing was compared", not_tested(why))
