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


def softmax_objective(inputs, outputs, counts, allowed=None):
    """Eq. 9 of Yen et al. 2018; ``allowed[x]``: the classes that the sum is over, all if there is none."""
    total = 0.0
    for x in range(len(inputs)):
        scores = outputs @ inputs[x]
        some = range(len(outputs)) if allowed is None else allowed[x]
        log_sum = np.log(sum(np.exp(scores[k]) for k in some)) if len(some) else 0.0
        total += sum(counts[x, y] * (log_sum - scores[y]) for y in range(len(outputs)))
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
