"""Skip-gram in short loops, from the papers' equations; no code of src."""

import heapq
from collections import Counter

import numpy as np


def pair_counts(sentences, window, dynamic):
    """How often each word stands near each other one; weighed by how often a drawn window reaches it, if dynamic."""
    found = Counter()
    for words in sentences:
        for i, x in enumerate(words):
            for j, y in enumerate(words):
                if i != j and abs(i - j) <= window:
                    found[x, y] += (window - abs(i - j) + 1) / window if dynamic else 1
    return found


def cost_of_huffman(counts):
    """Sum over words of count times the length of its code."""
    heap, total = list(counts), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        total += joined
        heapq.heappush(heap, joined)
    return total


def negative_sampling_loss(inputs, outputs, x, y, negatives):
    """Of one pair; negatives that are y itself do not count."""
    loss = np.log1p(np.exp(-inputs[x] @ outputs[y]))
    return loss + sum(np.log1p(np.exp(inputs[x] @ outputs[k])) for k in negatives if k != y)


def path_loss(inputs, outputs, x, nodes, sides):
    """Of one pair, by the hierarchical softmax: side 0 is the likelier the higher the score."""
    return sum(
        np.log1p(np.exp(inputs[x] @ outputs[n] * (1 if side else -1))) for n, side in zip(nodes, sides, strict=True)
    )


def softmax_objective(inputs, outputs, counts, allowed=None, missing="none"):
    """Eq. 9 of Yen et al. 2018; ``allowed[x]``: the classes that the sum is over, all if there is none.

    ``missing``: what each other class k adds, "none", "zero" e^0, "mean" q(k) e^m, m being the mean of their
    s_xk - log q(k) by q(k).
    """
    total, q = 0.0, counts.sum(axis=0) / counts.sum()
    for x in range(len(inputs)):
        scores = outputs @ inputs[x]
        some = list(range(len(outputs))) if allowed is None else allowed[x]
        others = [k for k in range(len(outputs)) if k not in some]
        terms = [np.exp(scores[k]) for k in some]
        if missing == "zero":
            terms += [1.0 for k in others]
        if missing == "mean" and (weight := sum(q[k] for k in others)) > 0:
            mean = sum(q[k] * (scores[k] - np.log(q[k])) for k in others if q[k] > 0) / weight
            terms += [q[k] * np.exp(mean) for k in others]
        total += sum(counts[x, y] * (np.log(sum(terms)) - scores[y]) for y in range(len(outputs)) if counts[x, y])
    return total / counts.sum()


def slopes(function, values, h=1e-5):
    """Central differences by every entry."""
    found = np.zeros_like(values)
    for place in np.ndindex(*values.shape):
        before = values[place]
        values[place] = before + h
        above = function()
        values[place] = before - h
        found[place] = (above - function()) / (2 * h)
        values[place] = before
    return found
