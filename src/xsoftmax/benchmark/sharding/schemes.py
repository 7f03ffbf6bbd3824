"""Ways to train with classes spread over nodes: what each node computes, moves in memory and sends for a batch.

A class, its weights and their accumulators live on one node; a row lives on the node of its class, its home. n is the
number of nodes, D that of features, m that of drawn classes. No formula of what a sampled method sends has a K.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from xsoftmax.benchmark.sharding.rates import N_FEATURES, N_SAMPLED, TREE_CLASSES, Rates

FLOAT = 4
COMPONENTS = 16
BYTES_OF_A_LEAF = FLOAT * (COMPONENTS + 1) + 8  # weights of a node, a leaf's class, a class's leaf
BYTES_OF_A_LEVEL = 128  # a cache line of weights and one of the bias


class Problem(NamedTuple):
    """Sizes of what is trained; features and drawn classes are those of the rates."""

    n_classes: int
    batch_size: int = 1024


class Work(NamedTuple):
    """What the busiest node does for one batch.

    Attributes
    ----------
    core_seconds : float
        Of one core, at the measured rate.
    memory_bytes : float
        Read and written.
    sent_bytes : float
    rounds : int
        Of messages that wait for those before.
    """

    core_seconds: float
    memory_bytes: float
    sent_bytes: float
    rounds: int


def exact_bytes(n_features: int, n_nodes: int) -> float:
    """Bytes sent for a row: to every other node the row, back its maximum and sum, out the log-partition."""
    return (n_nodes - 1) * FLOAT * (n_features + 3)


def routed_bytes(n_features: int, n_sampled: int, n_nodes: int) -> float:
    """Expected bytes sent for a row: itself to each owner of a drawn class; class, place, score, coefficient."""
    away = 1 - 1 / n_nodes
    owners = (n_nodes - 1) * (1 - away**n_sampled)
    return FLOAT * (owners * n_features + 4 * n_sampled * away)


def stratified_bytes(n_features: int, n_nodes: int, n_visited: int = 1) -> float:
    """Expected bytes sent for a row: itself and its true score to each node it visits, back a sum of coefficients."""
    return n_visited * (1 - 1 / n_nodes) * FLOAT * (n_features + 2)


def fullest(batch_size: int, n_nodes: int) -> float:
    """Expected rows of a batch on the fullest node, over their mean; nodes' numbers are taken as independent."""
    at_most = binom.cdf(np.arange(batch_size), batch_size, 1 / n_nodes)
    return float((1 - at_most**n_nodes).sum() * n_nodes / batch_size)


def exact(problem: Problem, rates: Rates, n_nodes: int) -> Work:
    """Softmax over all classes: each node does its own for every row.

    Weights are read for scores, and they and their accumulators are read and written once for a batch.
    """
    share = problem.n_classes / n_nodes
    own = problem.batch_size / n_nodes * fullest(problem.batch_size, n_nodes)
    return Work(
        core_seconds=problem.batch_size * share * rates.busy_pair,
        memory_bytes=5 * FLOAT * (N_FEATURES + 1) * share,
        sent_bytes=own * exact_bytes(N_FEATURES, n_nodes),
        rounds=3,
    )


def routed(problem: Problem, rates: Rates, n_nodes: int) -> Work:
    """Any sampled method: the home draws, owners score and move, the home knows all scores of its row."""
    sent = routed_bytes(N_FEATURES, N_SAMPLED, n_nodes)
    return _sampled(problem, n_nodes, rates.busy_step, step_bytes(), sent, 3)


def routed_tree(problem: Problem, rates: Rates, n_nodes: int) -> Work:
    """As ``routed`` with draws from a tree whose top is everywhere and whose branches are with their classes.

    What is sent is at most this: likely classes are often on the same node. The row's components go with it.
    """
    levels = n_levels(problem.n_classes)
    draw = rates.busy_tree_draw * levels / n_levels(TREE_CLASSES)
    moved = step_bytes() + N_SAMPLED * levels * BYTES_OF_A_LEVEL
    sent = routed_bytes(N_FEATURES + COMPONENTS, N_SAMPLED, n_nodes)
    return _sampled(problem, n_nodes, rates.busy_step + N_SAMPLED * draw, moved, sent, 3)


def stratified(problem: Problem, rates: Rates, n_nodes: int) -> Work:
    """One-vs-each and others that are sums over classes: a row visits one node, which draws from its own share."""
    sent = stratified_bytes(N_FEATURES, n_nodes)
    return _sampled(problem, n_nodes, rates.busy_step, step_bytes(), sent, 2)


def _sampled(problem: Problem, n_nodes: int, seconds: float, moved: float, sent: float, rounds: int) -> Work:
    rows = problem.batch_size / n_nodes * fullest(problem.batch_size, n_nodes)
    return Work(rows * seconds, rows * moved, rows * sent, rounds)


def step_bytes(n_features: int = N_FEATURES, n_sampled: int = N_SAMPLED) -> float:
    """Bytes of memory that a sampled step touches: weights and accumulators read and written, the row read."""
    return FLOAT * ((n_sampled + 1) * 4 * (n_features + 1) + n_features)


def n_levels(n_classes: int) -> int:
    """Decisions from a tree's root to a leaf."""
    return (n_classes - 1).bit_length()


SCHEMES: dict[str, Callable[[Problem, Rates, int], Work]] = {
    "exact": exact,
    "routed": routed,
    "routed, tree": routed_tree,
    "stratified": stratified,
}
