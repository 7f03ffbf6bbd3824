"""Greedy message passing of Yen et al. 2018, Algorithm 2, on made-up scores: how far it is from Theorem 2's bound."""

from typing import NamedTuple

import numpy as np

from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.rules import judge_orders

# Of the softmax, whose smoothness mu is 1; the true class is the first.
N_CLASSES, N_BLOCKS, N_DRAWS = 50, 4, 10
THRESHOLD = 1e-3  # tau_2
STEPS = (1, 2, 5, 10, 30)


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
        found.append(Passed(float(_loss(n_blocks * (blocks + passed)).mean()) - whole, float(bound)))
    return found


def _loss(scores: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(scores, axis=-1) - scores[..., 0]


def theorem_2(page: Page) -> None:
    """Compare the gaps of messages between made-up blocks with the theorem's bound."""
    rng = np.random.default_rng(0)
    draws = [messages(rng.standard_normal((N_BLOCKS, N_CLASSES)), max(STEPS), THRESHOLD) for _ in range(N_DRAWS)]
    page.section(
        "Theorem 2: what messages come to",
        f"{N_DRAWS} draws of normal scores of {N_CLASSES} classes in {N_BLOCKS} blocks, the loss of a softmax, "
        f"slopes above {THRESHOLD:g}; the largest gap to the loss of whole scores, in nats, and the least bound.",
    )
    worst = {t: max(draw[t - 1].gap for draw in draws) for t in STEPS}
    rows = [[str(t), number(worst[t]), number(min(draw[t - 1].bound for draw in draws), digits=0)] for t in STEPS]
    page.table(["steps", "gap", "bound"], rows)
    page.claim(
        "Greedy message passing converges to the loss, its gap after t steps below Theorem 2's bound",
        f"largest gap {number(worst[1])} nats after one step, {number(worst[STEPS[-1]])} after {STEPS[-1]}",
        judge_orders([draw[t - 1].gap <= draw[t - 1].bound for draw in draws for t in STEPS], "gaps"),
        "the bound is weak, as the paper says",
    )
