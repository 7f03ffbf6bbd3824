"""Words and their weights: texts to sparse counts, cut and weighed as scikit-learn's TfidfVectorizer does."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array


def count_words(texts: Iterable[str], token: str) -> tuple[csr_array, list[str]]:
    """Count the words of lower-cased texts.

    Parameters
    ----------
    token : str
        Regular expression of a word.

    Returns
    -------
    counts : csr_array of shape (n_texts, n_words), float32
    words : list of str
        In order.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(lowercase=True, token_pattern=token, dtype=np.float32)
    try:
        counts = counter.fit_transform(texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        return csr_array((sum(1 for _ in texts), 0), dtype=np.float32), []
    return csr_array(counts), counter.get_feature_names_out().tolist()


def known_words_counter(token: str, words: Sequence[str]) -> Callable[[Iterable[str]], csr_array]:
    """Give a function that counts the words of a given vocabulary in texts; others are passed over."""
    from sklearn.feature_extraction.text import CountVectorizer

    if not words:
        return _no_words
    counter = CountVectorizer(lowercase=True, token_pattern=token, dtype=np.float32, vocabulary=list(words))
    return partial(_counted, counter)


def _no_words(texts: Iterable[str]) -> csr_array:
    return csr_array((sum(1 for _ in texts), 0), dtype=np.float32)


def _counted(counter: Any, texts: Iterable[str]) -> csr_array:
    return csr_array(counter.transform(texts))


def document_frequency(counts: csr_array) -> np.ndarray:
    """Count, for each word, the texts that contain it."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def inverse_document_frequency(counts: csr_array) -> np.ndarray:
    """Weigh words as scikit-learn does, ``log((1 + n) / (1 + df)) + 1``; float32."""
    weights = np.log((1 + counts.shape[0]) / (1 + document_frequency(counts))) + 1
    return weights.astype(np.float32)


def kept_words(counts: csr_array, min_df: int, max_features: int | None) -> np.ndarray:
    """Choose columns: words in at least ``min_df`` texts, of these the ``max_features`` most frequent."""
    kept = np.flatnonzero(document_frequency(counts) >= min_df)
    if max_features is not None and kept.size > max_features:
        total = np.asarray(counts.sum(axis=0)).ravel()[kept]
        kept = np.sort(kept[np.argsort(-total, kind="stable")[:max_features]])
    return kept
