import numpy as np
import pytest

from xsoftmax.skip_gram.corpus import END, Corpus, Vocabulary


def corpus_of(sentences, n_words):
    tokens = np.array([k for words in sentences for k in [*words, END]], np.int32)
    counts = np.maximum(np.bincount(tokens[tokens >= 0], minlength=n_words), 1)
    return Corpus(Vocabulary(tuple(f"w{k}" for k in range(n_words)), counts, int(counts.sum())), tokens)


@pytest.fixture
def make_corpus():
    """Make a corpus of sentences of numbers."""
    return corpus_of


@pytest.fixture(scope="session")
def groups():
    """Sentences of words of one of four groups each, five words a group."""
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 5, 12) + 5 * rng.integers(0, 4) for _ in range(1500)]
    return corpus_of([words.tolist() for words in sentences], 20)
