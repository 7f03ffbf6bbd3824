"""What vectors are worth on pairs that they were not trained on: the likelihood, and negative sampling's loss.

The likelihood of a hierarchical softmax is that of its paths, which sum up to 1; of all others, of the softmax of
their scores. Both are exact.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import scan, sum_exp
from xsoftmax.kernels.mathematics import softplus
from xsoftmax.kernels.products import inner_product
from xsoftmax.skip_gram.collapsed import SCORES_AT_ONCE
from xsoftmax.skip_gram.corpus import Corpus, kept_share
from xsoftmax.skip_gram.counts import collapsed_counts, counted
from xsoftmax.skip_gram.huffman import Huffman
from xsoftmax.skip_gram.settings import Settings

DRAWS_SEED = 12345


def known_pairs(training: Corpus, rest: Corpus, settings: Settings) -> csr_array:
    """Collapse the pairs of held-out sentences whose words both occur in training, thinned out as in training."""
    kept = kept_share(training.vocabulary.counts, settings.subsample)
    tokens = training.tokens[training.tokens >= 0]
    occurs = np.bincount(tokens, minlength=len(training.vocabulary.words)) > 0
    pairs = collapsed_counts(rest, settings.windows(), kept, settings.seed).tocoo()
    x, y = pairs.coords
    known = occurs[x] & occurs[y]
    return csr_array((pairs.data[known], (x[known], y[known])), pairs.shape)


def log_likelihood(inputs: np.ndarray, outputs: np.ndarray, pairs: csr_array, tree: Huffman | None = None) -> float:
    """As ``log_likelihoods``, of one set of pairs."""
    return log_likelihoods(inputs, outputs, [pairs], tree)[0]


def log_likelihoods(
    inputs: np.ndarray, outputs: np.ndarray, sets: Sequence[csr_array], tree: Huffman | None = None
) -> list[float]:
    """Mean of log p(y | x), in nats, over each of some sets of pairs: minus eq. 9 of Yen et al. 2018.

    Parameters
    ----------
    inputs, outputs : ndarray of shape (n_words, dimension), float32
        With a tree the outputs are of inner nodes, (n_words - 1, dimension).
    sets : sequence of csr_array of shape (n_words, n_words)
    tree : Huffman, optional
        Of a hierarchical softmax.
    """
    if tree is not None:
        return [path_log_likelihood(tree, inputs, outputs, counted(pairs)) for pairs in sets]
    sums, step = np.empty(len(inputs)), max(1, SCORES_AT_ONCE // len(inputs))
    for first in range(0, len(inputs), step):
        log_sums(inputs[first : first + step] @ outputs.T, sums[first : first + step])
    return [softmax_log_likelihood(inputs, outputs, sums, counted(pairs)) for pairs in sets]


@njit(**OPTIONS)
def log_sums(scores, out):
    """Write the logarithm of the sum of exponentials of each row, float32, to ``out``, float64."""
    for b in range(out.size):
        highest = scan(scores[b], np.float32(0)).highest
        out[b] = np.float64(highest) + math.log(sum_exp(scores[b], highest))


@njit(**OPTIONS)
def softmax_log_likelihood(inputs, outputs, sums, counted):
    """Mean over pairs of s_xy less the logarithm of the sum for x."""
    total = 0.0
    for x in range(inputs.shape[0]):
        for place in range(counted.starts[x], counted.starts[x + 1]):
            score = inner_product(inputs[x], outputs[counted.neighbours[place]])
            total += np.float64(counted.shares[place]) * (np.float64(score) - sums[x])
    return total


@njit(**OPTIONS)
def path_log_likelihood(tree, inputs, outputs, counted):
    """Mean over pairs of the log-probability of the path to y, by the tree of ``kernels``' steps."""
    total = 0.0
    for x in range(inputs.shape[0]):
        for place in range(counted.starts[x], counted.starts[x + 1]):
            y, loss = counted.neighbours[place], 0.0
            for at in range(tree.starts[y], tree.starts[y + 1]):
                score = inner_product(inputs[x], outputs[tree.nodes[at]])
                loss += softplus(np.float64(score if tree.sides[at] else -score))
            total -= np.float64(counted.shares[place]) * loss
    return total


def sampled_loss(
    inputs: np.ndarray,
    outputs: np.ndarray,
    pairs: csr_array,
    counts: np.ndarray,
    negatives: int = 5,
    draws: int = 200,
) -> float:
    """Mean over pairs of ``softplus(-s_xy) + sum over n negatives softplus(s_xk)``, in nats.

    Parameters
    ----------
    inputs, outputs, pairs
        As of ``log_likelihood``, without a tree.
    counts : ndarray of shape (n_words,), int64
        Of the training text, by whose power .75 negatives are drawn: once for each x, the same for all models.
    negatives, draws : int
        Negatives of a pair, and how many are drawn for each x, over whose mean the loss is.
    """
    known, n = counted(pairs), len(inputs)
    weights = counts.astype(np.float64) ** 0.75
    drawn = np.random.default_rng(DRAWS_SEED).choice(n, (n, draws), p=weights / weights.sum())
    sampled, step = 0.0, max(1, SCORES_AT_ONCE // n)
    for first in range(0, n, step):
        scores = inputs[first : first + step] @ outputs.T
        rows = np.arange(first, first + len(scores))
        noise = np.logaddexp(0, np.take_along_axis(scores, drawn[rows], axis=1)).mean(axis=1, dtype=np.float64)
        of_true = [
            known.shares[slice(*known.starts[x : x + 2])]
            @ np.logaddexp(0, -scores[x - first, known.neighbours[slice(*known.starts[x : x + 2])]])
            for x in rows
        ]
        sampled += float(np.sum(of_true, dtype=np.float64) + negatives * (known.of_inputs[rows] @ noise))
    return sampled
