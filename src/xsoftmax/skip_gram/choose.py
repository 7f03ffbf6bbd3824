"""Choose settings by what they do on sentences of the training text that are left out for that."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.errors import InputError
from xsoftmax.skip_gram.corpus import Corpus, held_out
from xsoftmax.skip_gram.fit import DivergedError, fit
from xsoftmax.skip_gram.held_out import known_pairs, log_likelihoods, sampled_loss
from xsoftmax.skip_gram.huffman import huffman
from xsoftmax.skip_gram.settings import HIERARCHICAL, NEGATIVE, Settings
from xsoftmax.skip_gram.vectors import Embedding

# Every so-many-th sentence is for validation.
VALIDATION = 10


class Trial(NamedTuple):
    """Settings, and the value they came to on validation sentences, higher being better; None if they diverged."""

    settings: Settings
    value: float | None


def likelihood(embedding: Embedding, settings: Settings, pairs: csr_array, counts: np.ndarray) -> float:
    """Mean log-likelihood of pairs, as the loss of ``settings`` defines it."""
    return likelihoods(embedding, settings, [pairs], counts)[0]


def likelihoods(
    embedding: Embedding, settings: Settings, sets: Sequence[csr_array], counts: np.ndarray
) -> list[float]:
    """Mean log-likelihoods of some sets of pairs."""
    tree = huffman(counts) if settings.loss == HIERARCHICAL else None
    assert embedding.outputs is not None
    return log_likelihoods(embedding.inputs, embedding.outputs, sets, tree)


def likelihoods_with_noise(
    embedding: Embedding, settings: Settings, sets: Sequence[csr_array], counts: np.ndarray
) -> list[float]:
    """As ``likelihoods``, of scores of negative sampling that have the logarithm of the noise's frequency added.

    Where its loss is least, a score is log p(y | x) less that, up to a number (Levy and Goldberg 2014).
    """
    assert embedding.outputs is not None
    ones = np.ones((len(counts), 1), np.float32)
    logs = (settings.power * np.log(np.maximum(counts, 1))).astype(np.float32)[:, None]
    return log_likelihoods(np.hstack([embedding.inputs, ones]), np.hstack([embedding.outputs, logs]), sets)


def own_value(embedding: Embedding, settings: Settings, pairs: csr_array, counts: np.ndarray) -> float:
    """What a loss strives for: of negative sampling minus its sampled loss, the log-likelihood of all others."""
    if settings.loss == NEGATIVE:
        assert embedding.outputs is not None
        return -sampled_loss(embedding.inputs, embedding.outputs, pairs, counts, settings.negatives)
    return likelihood(embedding, settings, pairs, counts)


def try_out(
    corpus: Corpus,
    candidates: Iterable[Settings],
    every: int = VALIDATION,
    value: Callable[[Embedding, Settings, csr_array, np.ndarray], float] = own_value,
) -> list[Trial]:
    """Train with each of some settings on all sentences but every so-many-th, and measure on those.

    Parameters
    ----------
    corpus : Corpus
        For training: no sentence that is to tell in the end how good vectors are.
    value : callable
        Of an embedding, its settings, collapsed pairs and the counts of words; higher is better.
    """
    training, rest = held_out(corpus, every)
    trials = []
    for settings in candidates:
        pairs = known_pairs(training, rest, settings)
        if pairs.nnz == 0:
            raise InputError(f"no pair of words in a {every}th of the sentences to choose by; give one learning rate")
        try:
            embedding = fit(training, settings).embedding
        except DivergedError:
            trials.append(Trial(settings, None))
        else:
            trials.append(Trial(settings, value(embedding, settings, pairs, training.vocabulary.counts)))
    return trials


def best(trials: Iterable[Trial]) -> Settings:
    """Take the settings of the highest value, the first of equals.

    Raises
    ------
    InputError
        If all diverged.
    """
    known = [(trial.value, trial.settings) for trial in trials if trial.value is not None]
    if not known:
        raise InputError("training diverged with all of the settings tried; lower the learning rates")
    return max(known, key=lambda each: each[0])[1]
