"""Negative sampling and the hierarchical softmax: step by step along the text, as word2vec's program goes."""

from functools import partial
from typing import Any

import numpy as np

from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals.frequency import alias_table
from xsoftmax.skip_gram.corpus import Corpus, kept_share
from xsoftmax.skip_gram.huffman import huffman
from xsoftmax.skip_gram.kernels import Negatives, Vectors, Workspace, train_chunk
from xsoftmax.skip_gram.settings import Settings
from xsoftmax.skip_gram.vectors import by_cache_lines

# Words that a thread takes at a time: windows do not reach beyond, as if a sentence ended there.
CHUNK = 2**14
CHUNKS_AT_ONCE = 8


class TextWalk:
    """Epochs over a text, in units of chunks.

    Parameters
    ----------
    corpus : Corpus
    settings : Settings
    vectors : Vectors
        They are changed.
    """

    def __init__(self, corpus: Corpus, settings: Settings, vectors: Vectors) -> None:
        self._tokens, self._settings, self._vectors = corpus.tokens, settings, vectors
        counts = corpus.vocabulary.counts
        self._output: Any = (
            huffman(counts)
            if settings.loss == "hierarchical-softmax"
            else Negatives(noise_table(counts, settings.power), settings.negatives)
        )
        self._kept = kept_share(counts, settings.subsample)
        self.n_units = -(-len(self._tokens) // CHUNK)
        self.at_once = CHUNKS_AT_ONCE * settings.threads
        width = vectors.inputs.shape[1]
        n_drawn = settings.negatives
        self._workspaces = [
            Workspace(np.empty(CHUNK, np.int32), np.empty(n_drawn, np.int64), by_cache_lines(1, width))
            for _ in range(settings.threads)
        ]
        self.n_pairs = np.zeros(1, np.int64)

    def arrays(self) -> dict[str, np.ndarray]:
        """What changes."""
        return {"inputs": self._vectors.inputs, "outputs": self._vectors.outputs, "n_pairs": self.n_pairs}

    def run(self, epoch: int, first: int, stop: int, pool: ThreadPool) -> None:
        """Take the steps of some chunks; each thread takes every so-many-th."""
        n = self._settings.threads
        tasks = [partial(self._chunks, epoch, range(first + j, stop, n), self._workspaces[j]) for j in range(n)]
        self.n_pairs += sum(pool.run(tasks))

    def _chunks(self, epoch: int, chunks: range, workspace: Workspace) -> int:
        n_pairs, total = 0, max(1, self._settings.epochs * self.n_units)
        for chunk in chunks:
            done = epoch * self.n_units + chunk
            rates = [np.float32(self._settings.rate_at(each / total)) for each in (done, done + 1)]
            begin, end = chunk * CHUNK, min((chunk + 1) * CHUNK, len(self._tokens))
            n_pairs += train_chunk(
                self._output,
                self._vectors,
                workspace,
                self._tokens,
                begin,
                end,
                self._kept,
                self._settings.windows(),
                self._settings.seed,
                epoch,
                *rates,
            )
        return n_pairs


def noise_table(counts: np.ndarray, power: float) -> np.ndarray:
    """Make the alias table of words by their counts to a power."""
    weights = counts.astype(np.float64) ** power
    return alias_table(weights / weights.sum())
