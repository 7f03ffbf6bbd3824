"""Ruiz et al. 2018, sections 2 and 3: what the paper derives, by arithmetic on made-up scores."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.integrate import quad

from xsoftmax.lab.reproduction.estimates import Estimate
from xsoftmax.lab.reproduction.page import AFTER, Page
from xsoftmax.lab.reproduction.rules import judge_level

# Equal but for rounding and the error of the integrals, in nats or relatively.
EQUAL = 1e-6
N_CLASSES, N_DRAWN = 20, 3
# q's parameter, as a multiple of the best one.
MULTIPLES = (0.5, 1.0, 3.0)
# The true class's score where scores are needed and not their distances from it: any other would do.
SCORE = 0.7


def theory(page: Page) -> None:
    """Compare both sides of the paper's equations."""
    page.section(
        "Sections 2 and 3: the equations",
        f"Both sides, for the softmax of {N_CLASSES} standard normal scores, each class in turn the true one. "
        "Integrals are numerical, and the estimate by drawn classes is the mean over every set that can be drawn. "
        "The algorithms draw one set for their local and their global step; here q is kept while the gradient is "
        "averaged, as in section 2.1. The log-concavity bound puts a tangent of the logarithm, log a + (z − a) / "
        "a ≥ log z, in place of log z, where z is the sum of e^score over all classes; a is here η times e^score of "
        "the true class. All this is derived, so that equal sides are no evidence of ours: the checks compare the "
        "paper's formulas with each other, and the last one its weighting of drawn classes, which is an identity of "
        "sums.",
    )
    gaps = [np.delete(scores, k) - scores[k] for scores in [_scores()] for k in range(N_CLASSES)]
    for says, distance in {
        "With standard Gumbel errors the marginal of the augmented model (eq. 5) is the softmax": _marginal,
        "The softmax's bound has the closed form of eq. 8": _closed_form,
        "Eq. 8 coincides with the log-concavity bound (Bouchard 2007; Blei and Lafferty 2007)": _log_concavity,
        "The bound is tight at q*, a Gumbel distribution at log η*": _tightness,
        "With q kept, the gradient of the softmax estimated from drawn classes is unbiased (here: its slope along "
        "the true class's score, at q*)": _bias,
    }.items():
        claim_equal(page, says, max(distance(each) for each in gaps), AFTER if distance is _log_concavity else "")


def claim_equal(page: Page, says: str, distance: float, why: str = "") -> None:
    """Claim that two sides are equal, which are so far apart at most."""
    of = "the largest distance of both sides"
    level = judge_level(Estimate.exact(distance), at_most=EQUAL, of=of)
    page.claim(says, f"at most {distance:.0e} apart", replace(level, n=f"{of}: {distance:.0e}"), why)


def _scores() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(N_CLASSES)


def _integral(of: Callable[[float], float], middle: float) -> float:
    """Integrate over the error, whose densities here have their mass around ``middle``."""
    return quad(of, middle - 8, middle + 45, points=[middle], epsabs=1e-10, epsrel=1e-10, limit=500)[0]


def _log_density(error: float) -> float:
    return float(-error - np.exp(-error))


def _log_joint(error: float, gaps: np.ndarray) -> float:
    """Eq. 6: log phi of the error, and log Phi of it against each other class."""
    return _log_density(error) - float(np.exp(gaps - error).sum())


def _eta(gaps: np.ndarray) -> float:
    """Return the best parameter of q; minus its logarithm is the softmax's log-likelihood."""
    return 1 + float(np.exp(gaps).sum())


def _marginal(gaps: np.ndarray) -> float:
    integral = _integral(lambda error: np.exp(_log_joint(error, gaps)), float(np.log(_eta(gaps))))
    return abs(float(np.log(integral)) + float(np.log(_eta(gaps))))


def bound(gaps: np.ndarray, eta: float) -> float:
    """Integrate eq. 7 with a Gumbel distribution at log eta."""
    middle = float(np.log(eta))

    def term(error: float) -> float:
        log_q = _log_density(error - middle)
        return float(np.exp(log_q)) * (_log_joint(error, gaps) - log_q)

    return _integral(term, middle)


def closed_form(gaps: np.ndarray, eta: float) -> float:
    """Eq. 8."""
    return float(1 - np.log(eta) - _eta(gaps) / eta)


def _closed_form(gaps: np.ndarray) -> float:
    etas = [multiple * _eta(gaps) for multiple in MULTIPLES]
    return max(abs(bound(gaps, eta) - closed_form(gaps, eta)) for eta in etas)


def _log_concavity(gaps: np.ndarray) -> float:
    """Compare eq. 8 with the true class's score minus a tangent of the logarithm at a = eta e^score."""
    z = float(np.exp(SCORE) * _eta(gaps))
    distances = []
    for eta in (multiple * _eta(gaps) for multiple in MULTIPLES):
        a = eta * float(np.exp(SCORE))
        tangent = float(np.log(a)) + (z - a) / a
        distances.append(abs(SCORE - tangent - closed_form(gaps, eta)))
    return max(distances)


def _tightness(gaps: np.ndarray) -> float:
    return abs(bound(gaps, _eta(gaps)) + float(np.log(_eta(gaps))))


def _bias(gaps: np.ndarray) -> float:
    """Average the estimated slope along the true class's score over all sets of drawn classes, q held."""
    slopes = np.exp(gaps) / _eta(gaps)
    sets = np.array(list(combinations(range(len(gaps)), N_DRAWN)))
    estimates = len(gaps) / N_DRAWN * slopes[sets].sum(axis=1)
    return abs(float(estimates.mean() / slopes.sum()) - 1)
