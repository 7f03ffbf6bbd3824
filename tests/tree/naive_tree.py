"""Slow references for the tree, from the equations of Bamler and Mandt 2020, section 3."""

from itertools import combinations

import numpy as np


def log_sigmoid(t):
    return -np.logaddexp(0.0, -t)


def node_objective(X, labels, right, w, b, ridge):
    """Eq. 8 for the points below a node, less r/2 (|w|^2 + b^2); ``right`` is indexed by label."""
    total = 0.0
    for x, label in zip(X.astype(np.float64), labels, strict=True):
        total += log_sigmoid((1 if right[label] else -1) * (x @ w + b))
    return total - ridge / 2 * (w @ w + b * b)


def best_split(X, labels, n_labels, w, b, ridge, low, high):
    """The largest objective over all splits with low to high labels on the left."""
    best = -np.inf
    for n_left in range(low, high + 1):
        for left in combinations(range(n_labels), n_left):
            right = [label not in left for label in range(n_labels)]
            best = max(best, node_objective(X, labels, right, w, b, ridge))
    return best


def log_probabilities(z, weights, class_of_leaf):
    """log p(y|z) for all classes, by walking down to every leaf; padding leaves are returned beside them."""
    n_leaves = len(class_of_leaf)
    result = np.full(max(class_of_leaf) + 1, np.nan)
    padding = []
    for leaf, label in enumerate(class_of_leaf):
        total, low, high, node = 0.0, 0, n_leaves, 1
        while high - low > 1:
            middle = (low + high) // 2
            score = float(z.astype(np.float64) @ weights[node, :-1] + weights[node, -1])
            if leaf >= middle:
                total, low, node = total + log_sigmoid(score), middle, 2 * node + 1
            else:
                total, high, node = total + log_sigmoid(-score), middle, 2 * node
        if label >= 0:
            result[label] = total
        else:
            padding.append(total)
    return result, np.array(padding)
