"""Steps of skip-gram: a pair (x, y) of the text moves the input vector of x and a few output vectors.

Negative sampling (Mikolov et al. 2013): of k in {y, negatives},

    L = softplus(-s_xy) + sum over negatives softplus(s_xk),   dL / ds = sigmoid(s) - [k = y]

Hierarchical softmax: the same of the inner nodes on y's path in a Huffman tree. Rows are a multiple of 16 float32
wide, so that a step is whole cache lines, and as long as the products take: a score and an exchange for each output.

A chunk of the text is what one thread takes at a time. Random numbers follow from (seed, epoch, chunk), so that a
chunk's steps depend on nothing else but the vectors.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, PART
from xsoftmax.kernels.cache_lines import exchange, hand_over, inner, prefetch_row
from xsoftmax.kernels.dispatch import implements, lean
from xsoftmax.kernels.mathematics import sigmoid
from xsoftmax.kernels.random import below, low_bits, next_u64, start, stream, uniform
from xsoftmax.skip_gram.huffman import Huffman

_ONE, _ZERO = np.float32(1), np.float32(0)


class Negatives(NamedTuple):
    """``n`` words for each pair from an alias table, uint64 of shape (n_words,): see ``proposals/frequency.py``."""

    table: np.ndarray
    n: int


class Window(NamedTuple):
    """Up to ``most`` words on either side; ``dynamic``: a number from 1 to that, drawn for each centre."""

    most: int
    dynamic: bool


class Vectors(NamedTuple):
    """Input and output vectors, float32 of shape (n_words, width), width a multiple of 16."""

    inputs: np.ndarray
    outputs: np.ndarray


class Workspace(NamedTuple):
    """Of one thread: words of a chunk, int32; drawn words, int64; a change of an input vector, (1, width)."""

    words: np.ndarray
    drawn: np.ndarray
    change: np.ndarray


@njit(**PART)
def draw_word(table, rng):
    """Draw a word from an alias table; return the new random state and the word."""
    rng, bits = next_u64(rng)
    k = below(bits, table.size)
    entry = table[k]
    if low_bits(bits) >= low_bits(entry):
        k = np.int64(entry >> np.uint64(32))
    return rng, k


@njit(**LEAN)
def thin(tokens, first, stop, kept, rng, words):
    """Write what subsampling leaves of a chunk, and ends of sentences, to ``words``; return the state, how many."""
    n = np.int64(0)
    for position in range(first, stop):
        k = tokens[position]
        if k < 0 or kept[k] >= _ONE:
            words[n] = k
            n += 1
        else:
            rng, bits = next_u64(rng)
            words[n] = k
            n += np.int64(uniform(bits) < kept[k])
    return rng, n


@njit(**PART)
def reach(window, rng):
    """Draw how far the window of a centre goes."""
    if not window.dynamic:
        return rng, np.int64(window.most)
    rng, bits = next_u64(rng)
    return rng, np.int64(1) + below(bits, window.most)


@njit(**PART)
def bounds(words, n, i, far):
    """First word and stop of the window around word i, within its sentence."""
    begin = i
    while begin > 0 and i - begin < far and words[begin - 1] >= 0:
        begin -= 1
    end = i + 1
    while end < n and end - i <= far and words[end] >= 0:
        end += 1
    return begin, end


@lean
def step(output, vectors, workspace, x, y, rate, rng):
    """Move vectors by the gradient of pair (x, y), ``rate`` long; return the new random state."""


@njit(**PART)
def push(vectors, change, x, k, label, rate):
    """Move output k towards ``label``, and note what that asks of input x."""
    score = inner(vectors.inputs, x, vectors.outputs, k)
    exchange(vectors.inputs, x, change, np.int64(0), vectors.outputs, k, rate * (label - sigmoid(score)))


@implements(step, Negatives)
def _step_negatives(output, vectors, workspace, x, y, rate, rng):
    for j in range(output.n):
        rng, k = draw_word(output.table, rng)
        workspace.drawn[j] = k
        prefetch_row(vectors.outputs, k)
    push(vectors, workspace.change, x, y, _ONE, rate)
    for j in range(output.n):
        k = workspace.drawn[j]
        if k != y:
            push(vectors, workspace.change, x, k, _ZERO, rate)
    hand_over(workspace.change, np.int64(0), vectors.inputs, x)
    return rng


@implements(step, Huffman)
def _step_huffman(output, vectors, workspace, x, y, rate, rng):
    for place in range(output.starts[y], output.starts[y + 1]):
        label = _ONE - np.float32(output.sides[place])
        push(vectors, workspace.change, x, np.int64(output.nodes[place]), label, rate)
    hand_over(workspace.change, np.int64(0), vectors.inputs, x)
    return rng


@njit(**LEAN)
def train_chunk(output, vectors, workspace, tokens, first, stop, kept, window, seed, epoch, rate, last_rate):
    """Take the steps of all pairs of a chunk, the rate falling from one to the other; return how many pairs."""
    rng, n = thin(tokens, first, stop, kept, start(stream(seed, epoch), first), workspace.words)
    words, n_pairs = workspace.words, 0
    slope = (last_rate - rate) / np.float32(max(n, 1))
    for i in range(n):
        if words[i] >= 0:
            rng, far = reach(window, rng)
            begin, end = bounds(words, n, i, far)
            x, now = np.int64(words[i]), rate + slope * np.float32(i)
            for j in range(begin, end):
                if j != i:
                    rng = step(output, vectors, workspace, x, np.int64(words[j]), now, rng)
            n_pairs += end - begin - 1
    return n_pairs
