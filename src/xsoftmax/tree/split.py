"""Which classes below a node go right: the first guess, and the re-split of eq. 9 (Bamler and Mandt 2020)."""

import math

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS

POWER_STEPS = 50
# Squared cosine beyond which two vectors count as parallel.
PARALLEL = 1.0 - 1e-12


@njit(**OPTIONS)
def initial_direction(node, delta):
    """Project the classes' sums on the dominant eigenvector of their covariance.

    Without features the counts take the projection's place.
    """
    n_classes, d = node.sums.shape
    k = d - 1
    if k == 0:
        for y in range(n_classes):
            delta[y] = node.counts[y]
        return
    mean = np.zeros(k)
    for y in range(n_classes):
        for i in range(k):
            mean[i] += node.sums[y, i] / n_classes
    covariance = np.zeros((k, k))
    for y in range(n_classes):
        for i in range(k):
            centred = node.sums[y, i] - mean[i]
            for j in range(k):
                covariance[i, j] += centred * (node.sums[y, j] - mean[j])
    vector = _dominant_eigenvector(covariance)
    for y in range(n_classes):
        delta[y] = 0.0
        for i in range(k):
            delta[y] += node.sums[y, i] * vector[i]


@njit(**OPTIONS)
def _dominant_eigenvector(matrix):
    """Power iteration from the row of the largest diagonal entry; approximate, it only starts the ascent.

    It ends early where the vector turns no more, as it does at once with two classes: those are half of all nodes.
    """
    k = matrix.shape[0]
    largest = 0
    for i in range(k):
        if matrix[i, i] > matrix[largest, largest]:
            largest = i
    vector = matrix[largest].copy()
    product = np.zeros(k)
    square = _dot(vector, vector)
    for _ in range(POWER_STEPS):
        if square == 0.0:
            break
        scale = 1.0 / math.sqrt(square)
        product.fill(0.0)
        for i in range(k):
            for j in range(k):
                product[j] += scale * vector[i] * matrix[i, j]
        along, before, square = _dot(vector, product), square, _dot(product, product)
        vector, product = product, vector
        if along * along >= PARALLEL * before * square:
            break
    return vector


@njit(**OPTIONS)
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(**OPTIONS)
def mark_right(delta, n_left, right):
    """Send the ``n_left`` classes of smallest delta left, of equal ones the first; the others go right."""
    if n_left == 0:
        right.fill(True)
        return
    threshold = smallest(delta.copy(), n_left - 1)
    n_ties = n_left
    for y in range(delta.size):
        n_ties -= delta[y] < threshold
    for y in range(delta.size):
        right[y] = delta[y] > threshold
        if delta[y] == threshold:
            right[y] = n_ties <= 0
            n_ties -= 1


@njit(**OPTIONS)
def smallest(values, rank):
    """Find the value of a rank, from 0, by Hoare's selection; permutes ``values``."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@njit(**OPTIONS)
def write_signs(node):
    """Spread the split from classes to points."""
    position = 0
    for y in range(node.right.size):
        sign = np.float32(1) if node.right[y] else np.float32(-1)
        for _ in range(node.counts[y]):
            node.signs[position] = sign
            position += 1


@njit(**OPTIONS)
def update_split(node, delta, keys, low, high, work):
    """Split for the present weights; return the gain and correct the gradient for it.

    As many classes go left as have a negative Delta, but ``low`` to ``high``: those of the smallest ``keys``. With
    ``delta`` itself as keys that is the best split, eq. 9. With others it may be worse than the present one, which
    then stays, unlike in the authors' program: the objective never falls, so that the fit ends.
    """
    n_classes, d = node.sums.shape
    n_left = 0
    for y in range(n_classes):
        total = 0.0
        for i in range(d):
            total += node.sums[y, i] * node.w[i]
        delta[y] = total
        n_left += total < 0.0
    right = np.empty(n_classes, np.bool_)
    mark_right(keys, min(max(n_left, low), high), right)
    gain = 0.0
    for y in range(n_classes):
        gain += delta[y] * (np.float64(right[y]) - np.float64(node.right[y]))
    if gain <= 1e-9 * node.signs.size:
        return 0.0
    for y in range(n_classes):
        if right[y] != node.right[y]:
            sign = 1.0 if right[y] else -1.0
            for i in range(d):
                work.gradient[i] += sign * node.sums[y, i]
        node.right[y] = right[y]
    write_signs(node)
    return gain
