"""Words and their weights: texts to sparse counts, cut and weighed as scikit-learn's TfidfVectorizer does."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

ANALYZERS = ("word", "char", "char_wb")
# The analyzer of categories: a row is a sequence of cells, and each is a word with the number of its column.
CELLS = "cells"
MOST_IN_A_ROW = 10


class Cut(NamedTuple):
    """How a text is cut into words.

    Attributes
    ----------
    token : str
        Regular expression of a word; of characters it says nothing.
    analyzer : str
        One of ``ANALYZERS``, as scikit-learn has them, or ``CELLS``.
    ngram_range : tuple of two int
        How many words or characters in a row are counted as one, at least and at most.
    """

    token: str
    analyzer: str = "word"
    ngram_range: tuple[int, ...] = (1, 1)

    @property
    def problem(self) -> str:
        """Say what is wrong with the numbers of words in a row, or nothing."""
        range_ = self.ngram_range
        if len(range_) == 2 and 1 <= range_[0] <= range_[1] <= MOST_IN_A_ROW:
            return ""
        return f"{list(range_)}; give two rising numbers from 1 to {MOST_IN_A_ROW}, such as [1, 2]"


def count_words(texts: Iterable[Any], cut: Cut) -> tuple[csr_array, list[str]]:
    """Count the words of lower-cased texts, or the cells of rows.

    Returns
    -------
    counts : csr_array of shape (n_texts, n_words), float32
    words : list of str
        In order.
    """
    counter = _counter(cut)
    try:
        counts = counter.fit_transform(texts)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        return csr_array((sum(1 for _ in texts), 0), dtype=np.float32), []
    return csr_array(counts), counter.get_feature_names_out().tolist()


def known_words_counter(cut: Cut, words: Sequence[str]) -> Callable[[Iterable[Any]], csr_array]:
    """Give a function that counts the words of a given vocabulary in texts; others are passed over."""
    if not words:
        return _no_words
    return partial(_counted, _counter(cut, list(words)))


def _counter(cut: Cut, words: list[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(
        lowercase=True,
        token_pattern=cut.token if cut.analyzer == "word" else None,
        analyzer=_numbered if cut.analyzer == CELLS else cut.analyzer,
        ngram_range=tuple(cut.ngram_range),
        dtype=np.float32,
        vocabulary=words,
    )


def _numbered(cells: Sequence[str]) -> list[str]:
    return [f"{column}={cell}" for column, cell in enumerate(cells)]


def _no_words(texts: Iterable[Any]) -> csr_array:
    return csr_array((sum(1 for _ in texts), 0), dtype=np.float32)


def _counted(counter: Any, texts: Iterable[Any]) -> csr_array:
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
