"""What Yen et al. 2018 prove, on made-up scores: smoothing, the error of a search, Theorems 1 and 2.

Theorem 2 is of greedy message passing, Algorithm 2: how far its gap is from the bound.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.rules import judge_orders, not_tested
from xsoftmax.objectives import ScoredClasses
from xsoftmax.objectives.max_margin import MaxMargin

# Of the softmax, whose smoothness mu is 1; the true class is the first.
N_CLASSES, N_BLOCKS, N_DRAWS = 50, 4, 10
THRESHOLD = 1e-3  # tau_2
STEPS = (1, 2, 5, 10, 30)
# Smoothness of the margin: the paper's, of one label and of several. Scores below which none is retrieved.
SMOOTHINGS, BELOW = (1.0, 5.0), (0.5, 2.0, 4.0)
# Gaps that the steps printed after Theorem 2 are to suffice for, in nats.
GAPS = (1.0, 0.1)
# Numbers of labels: of one label, and of several about as many as a row has in the paper's Table 2.
LABELS = (1, 3)
# Dimension and numbers of points for distances.
DIMENSION, N_POINTS = 5, 20
# Of sums in double precision.
ROUNDING = 1e-9


class Passed(NamedTuple):
    """After some steps: how far the loss is above that of whole scores, and how far it may be."""

    gap: float
    bound: float


def messages(blocks: np.ndarray, steps: int, threshold: float) -> list[Passed]:
    """Pass messages between the scores of blocks, of shape (n_blocks, n_classes)."""
    n_blocks = len(blocks)
    best = blocks.mean(axis=0) - blocks
    passed, found = np.zeros_like(blocks), []
    whole = float(_loss(blocks.sum(axis=0)))
    for t in range(1, steps + 1):
        scores = n_blocks * (blocks + passed)
        slopes = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
        slopes[:, 0] -= 1
        active = (np.abs(slopes) > threshold).any(axis=0)
        share = 2 / (t + 2)
        passed[:, active] += share * (best - passed)[:, active]
        bound = 2 * n_blocks * (best**2).sum() / (t + 2) + 2 * threshold * np.log(t) * np.abs(best).sum()
        found.append(Passed(_decomposed(blocks, passed) - whole, float(bound)))
    return found


def _loss(scores: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(scores, axis=-1) - scores[..., 0]


def theory(page: Page) -> None:
    """Check what is proved on made-up scores, and name what is left out."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((N_DRAWS, N_BLOCKS, N_CLASSES))
    page.section(
        "Sections 2 and 3: what is proved",
        "These claims check proofs, and our code.",
        f"Checked on {N_DRAWS} draws of normal scores of {N_CLASSES} classes in {N_BLOCKS} blocks; the true class is "
        "the first.",
    )
    _distances(page, np.random.default_rng(1))
    _search_error(page, draws.sum(axis=1))
    _smoothing(page, draws.sum(axis=1), rng)
    _smoothness_of_cross_entropy(page)
    _theorem_1(page, draws, rng)
    _theorem_2(page, draws)
    _steps_that_suffice(page, draws)
    for says, why in (
        (
            "If the loss is strongly convex, too, gradients converge",
            "the paper leaves the analysis out, and no loss here has such a term",
        ),
        (
            "More blocks make search easier, and its approximations less accurate",
            "all searches here have the paper's number of blocks, though most of more columns",
        ),
        (
            "The number of classes that have to be retrieved falls rapidly with the number of blocks",
            "a query asks for K/100 classes here, as in the paper's experiments, however many blocks there are",
        ),
        (
            "Sampling has large variance where the loss has a skewed distribution over classes, which often leads to "
            "slow progress",
            "variances are not measured; what accuracy Sampled-Softmax reaches in equal time and per epoch is judged",
        ),
        (
            "The performance of data structures for search typically degrades in high dimensions",
            "all rows of a data set have the same dimension",
        ),
    ):
        page.claim(says, "–", not_tested(why))


def _distances(page: Page, rng: np.random.Generator) -> None:
    """Compare scores of eq. 1 with Mahalanobis distances."""
    x, y = rng.standard_normal((2, N_POINTS, DIMENSION))
    root = rng.standard_normal((DIMENSION, DIMENSION))
    M = root @ root.T
    W, features = _as_scores(x, y, M)
    apart = x[:, None] - y[None]
    off = np.abs(features @ W.T + np.einsum("ijk,kl,ijl->ij", apart, M, apart))
    page.claim(
        "Negative squared Mahalanobis distances are scores of eq. 1, with D = d + 2",
        f"d = {DIMENSION}, D = {W.shape[1]}: at most {off.max():.0e} off, of {off.size} pairs",
        judge_orders([bool(off.max() <= 1e3 * ROUNDING), W.shape[1] == DIMENSION + 2], "conditions"),
        "it is arithmetic, of random points and a random matrix",
    )


def _as_scores(x: np.ndarray, y: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the paper's rows of W for points y, and its features of points x."""
    one = np.ones((len(x), 1))
    squares = [np.einsum("ik,kl,il->i", each, M, each)[:, None] for each in (x, y)]
    return np.hstack([-squares[1], 2 * y @ M, -np.ones((len(y), 1))]), np.hstack([one, x, squares[0]])


def _search_error(page: Page, scores: np.ndarray) -> None:
    worst = {}
    for name, loss in (("margin", _hinge), ("cross-entropy", _loss)):
        kept = [(below, _retrieved(scores, below)) for below in BELOW]
        worst[name] = max(float(np.max(np.abs(loss(each) - loss(scores)) / below)) for below, each in kept)
    page.claim(
        "The error of a loss that scores the classes below a threshold as 0 is bounded by the threshold times the "
        "loss's Lipschitz constant, 2 for the max-margin loss, O(P log K) for the cross-entropy of P labels",
        "largest error, in thresholds: " + "; ".join(f"{name} {number(each)}" for name, each in worst.items()),
        judge_orders([each <= 2 for each in worst.values()], "losses"),
        f"thresholds {', '.join(f'{each:g}' for each in BELOW)}; of one label, that of the cross-entropy is 2, too; "
        "more labels were not tried",
    )


def _retrieved(scores: np.ndarray, below: float) -> np.ndarray:
    """Put scores that are not retrieved at 0; that of the true class is known."""
    kept = np.where(np.abs(scores) > below, scores, 0)
    kept[:, 0] = scores[:, 0]
    return kept


def _hinge(scores: np.ndarray) -> np.ndarray:
    return np.maximum(scores[:, 1:].max(axis=1) + 1 - scores[:, 0], 0)


def _smoothing(page: Page, scores: np.ndarray, rng: np.random.Generator) -> None:
    away = scores + rng.standard_normal(scores.shape)
    distances = np.linalg.norm(scores - away, axis=1)
    gaps, ratios = [], []
    for mu in SMOOTHINGS:
        (value, slopes), (_, others) = (_margin(each, mu) for each in (scores, away))
        gaps += list((_hinge(scores) - value) / mu)
        ratios += list(mu * np.linalg.norm(slopes - others, axis=1) / distances)
    page.claim(
        "Smoothing by mu makes the margin's gradient Lipschitz with constant 1/mu, and moves the loss by O(mu)",
        f"largest change of the gradient {number(max(ratios))} of the bound; losses {number(min(gaps))} to "
        f"{number(max(gaps))} mu below the hinge",
        judge_orders(
            [-ROUNDING <= gap <= 1 + ROUNDING for gap in gaps] + [r <= 1 + ROUNDING for r in ratios], "bounds"
        ),
        f"mu {' and '.join(f'{each:g}' for each in SMOOTHINGS)}; O(mu) is at most mu here",
    )


def _margin(scores: np.ndarray, smoothing: float) -> tuple[np.ndarray, np.ndarray]:
    """Give the smoothed margin and its slopes, that of the true class first."""
    n, m = len(scores), scores.shape[1] - 1
    classes = np.broadcast_to(np.arange(1, m + 1), (n, m))
    given = ScoredClasses(scores[:, 0], np.zeros(n), classes, scores[:, 1:], np.ones((n, m)), np.zeros((n, m)))
    loss = MaxMargin(smoothing)
    at = loss.settle(np, np.empty((n, 0)), given)
    return loss.value(np, at, given), np.concatenate([-at.sum(axis=1, keepdims=True), at], axis=1)


def _smoothness_of_cross_entropy(page: Page) -> None:
    """Look for a row of scores at which the Hessian of eq. 2 has an eigenvalue above 1."""
    largest = {labels: float(np.linalg.eigvalsh(_hessian(_two_tied(), labels))[-1]) for labels in LABELS}
    page.claim(
        "For the cross-entropy (eq. 2) mu is 1",
        "largest eigenvalue of its Hessian where two classes are tied above the others: "
        + "; ".join(f"{n} {'label' if n == 1 else 'labels'} {number(each)}" for n, each in largest.items()),
        judge_orders([each <= 1 + ROUNDING for each in largest.values()], "numbers of labels"),
        "it has to be 1/mu at most; eq. 2 is a sum over labels, so that its Hessian is that of one label times their "
        "number P, and mu is 2/P; rows of the paper's section 5.2 have 3 labels on average",
    )


def _two_tied() -> np.ndarray:
    return np.concatenate([np.full(2, 100.0), np.zeros(N_CLASSES - 2)])


def _hessian(scores: np.ndarray, n_labels: int) -> np.ndarray:
    """Give the Hessian of the cross-entropy of so many labels; which they are does not matter."""
    p = np.exp(scores - np.logaddexp.reduce(scores))
    return n_labels * (np.diag(p) - np.outer(p, p))


def _theorem_1(page: Page, draws: np.ndarray, rng: np.random.Generator) -> None:
    above_, least = [], []
    for blocks in draws:
        whole = float(_loss(blocks.sum(axis=0)))
        moves = rng.standard_normal(blocks.shape)
        for messages_ in (np.zeros_like(blocks), moves - moves.mean(axis=0)):
            above_.append(_decomposed(blocks, messages_) - whole)
        least.append(abs(_decomposed(blocks, blocks.mean(axis=0) - blocks) - whole))
    page.claim(
        "Theorem 1: the loss is the least value of a sum of losses of blocks, over messages between them",
        f"with other messages {number(min(above_))} nats above the loss at least, with the best {max(least):.0e} off",
        judge_orders([gap >= 0 for gap in above_] + [gap <= ROUNDING for gap in least], "values"),
        "of the softmax, without messages and with random ones, and with those of the paper's proof",
    )


def _decomposed(blocks: np.ndarray, passed: np.ndarray) -> float:
    return float(_loss(len(blocks) * (blocks + passed)).mean())


def _theorem_2(page: Page, scores: np.ndarray) -> None:
    draws = [messages(blocks, max(STEPS), THRESHOLD) for blocks in scores]
    page.text(
        f"Messages by Algorithm 2, the loss of a softmax, slopes above {THRESHOLD:g}: the largest gap to the loss of "
        "whole scores, in nats, and the least bound of Theorem 2."
    )
    worst = {t: max(draw[t - 1].gap for draw in draws) for t in STEPS}
    rows = [[str(t), number(worst[t]), number(min(draw[t - 1].bound for draw in draws), digits=0)] for t in STEPS]
    page.table(["steps", "gap", "bound"], rows)
    page.claim(
        "Greedy message passing is guaranteed to converge, its gap after t steps below Theorem 2's bound",
        f"largest gap {number(worst[1])} nats after one step, {number(worst[STEPS[-1]])} after {STEPS[-1]}",
        judge_orders([draw[t - 1].gap <= draw[t - 1].bound for draw in draws for t in STEPS], "gaps"),
        "to the loss of the scores that were retrieved, here all, where the paper says to the original loss; with a "
        "fixed tau_2 the bound grows with ln t; the paper calls it quite weak",
    )


def _steps_that_suffice(page: Page, draws: np.ndarray) -> None:
    """Pass messages for as many steps as the paper prints, with the threshold that it prints, for each gap."""
    ends = {gap: [_printed(blocks, gap) for blocks in draws] for gap in GAPS}
    found = {gap: max(end.gap for end in some) for gap, some in ends.items()}
    bounds = {gap: max(end.bound for end in some) / gap for gap, some in ends.items()}
    page.claim(
        "T = B s / (4 mu epsilon) steps with tau_2 = epsilon / (4 a ln T) suffice for a gap of epsilon, where s is "
        "the sum of the squares, and a of the sizes, of the best messages",
        "largest gap after T steps: " + "; ".join(f"{each:.1g} for epsilon {gap:g}" for gap, each in found.items()),
        judge_orders([end.gap <= gap for gap, some in ends.items() for end in some], "gaps"),
        "of these made-up scores only: as printed it does not follow from Theorem 2, whose bound after T steps is up "
        f"to {number(max(bounds.values()), digits=1)} epsilon here; see the last section",
    )


def _printed(blocks: np.ndarray, epsilon: float) -> Passed:
    """Give the gap and Theorem 2's bound after the printed number of steps, mu being 1."""
    best = blocks.mean(axis=0) - blocks
    steps = int(np.ceil(len(blocks) * (best**2).sum() / (4 * epsilon)))
    threshold = epsilon / (4 * np.log(steps) * np.abs(best).sum())
    return messages(blocks, steps, float(threshold))[-1]
