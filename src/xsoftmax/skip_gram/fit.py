"""Fit vectors to a text: epochs in units, a checkpoint now and then, the same bits after a resume."""

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.internal.progress import Progress
from xsoftmax.internal.threads import ThreadPool, one_blas_thread
from xsoftmax.skip_gram.collapsed import CollapsedDescent
from xsoftmax.skip_gram.corpus import Corpus, kept_share
from xsoftmax.skip_gram.counts import collapsed_counts
from xsoftmax.skip_gram.kernels import Vectors
from xsoftmax.skip_gram.pair_steps import PairSteps
from xsoftmax.skip_gram.settings import OF_PAIRS, Settings
from xsoftmax.skip_gram.text_walk import TextWalk
from xsoftmax.skip_gram.vectors import Embedding, new_vectors
from xsoftmax.training.checkpoint import check_checkpoint, read_checkpoint, write_checkpoint

READ_AT_ONCE = 2**20


class Method(Protocol):
    """What goes over a text: ``n_units`` units an epoch, of which ``run`` takes up to ``at_once``."""

    n_units: int
    at_once: int

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that changes, to be read and written."""

    def run(self, epoch: int, first: int, stop: int, pool: ThreadPool) -> None:
        """Do some units of an epoch."""


@dataclass(frozen=True)
class Fitted:
    """Vectors, and what it took: seconds of training, this process's own, and the epochs in them."""

    embedding: Embedding
    seconds: float
    epochs: float


def fit(
    corpus: Corpus,
    settings: Settings,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
    stop: threading.Event | None = None,
) -> Fitted:
    """Train vectors.

    Parameters
    ----------
    checkpoint : Path, optional
        To resume from, if it is of this fit, and to write to; the caller removes it.
    stop : Event, optional
        Once set, a checkpoint is written and the fit ends.

    Raises
    ------
    InputError
        If settings are no settings, memory does not suffice, or the fit diverges.
    StoppedError
        If it was told to stop.
    """
    vectors = new_vectors(len(corpus.vocabulary.words), settings.dimension, settings.seed)
    method = method_of(corpus, settings, vectors)
    total, done = settings.epochs * method.n_units, 0
    identity = _identity(corpus, settings) if checkpoint else ""
    if checkpoint:
        check_checkpoint(checkpoint)
        found = read_checkpoint(checkpoint, identity, lambda arrays: _restore(method.arrays(), arrays))
        done = min(int(found["done"]), total) if found else 0
    if settings.warmed and not done:
        warm_up(corpus, settings, vectors, stop)
    pool, began, first = ThreadPool(settings.threads), time.perf_counter(), done
    written = time.monotonic()
    with one_blas_thread(), Progress("embed", "epochs", done / method.n_units, settings.epochs) as progress:
        while done < total:
            epoch, unit = divmod(done, method.n_units)
            last = min(unit + method.at_once, method.n_units)
            method.run(epoch, unit, last, pool)
            done += last - unit
            progress.move_to(done / method.n_units)
            if last == method.n_units:
                _check_finite(vectors, settings, done // method.n_units)
            asked = stop is not None and stop.is_set() and done < total
            if checkpoint and (asked or time.monotonic() - written >= checkpoint_seconds) and done < total:
                write_checkpoint(checkpoint, identity, method.arrays(), {"done": done})
                written = time.monotonic()
            if asked:
                raise StoppedError(f"at epoch {done / method.n_units:.2f}; the same command goes on from there")
    pool.close()
    seconds = time.perf_counter() - began
    return Fitted(_embedding(corpus, settings, vectors), seconds, (done - first) / method.n_units)


def method_of(corpus: Corpus, settings: Settings, vectors: Vectors) -> Any:
    """Make what trains: along the text, or over its collapsed counts."""
    if settings.loss in ("negative-sampling", "hierarchical-softmax"):
        return TextWalk(corpus, settings, vectors)
    kept = kept_share(corpus.vocabulary.counts, settings.subsample)
    counts = collapsed_counts(corpus, settings.windows(), kept, settings.seed)
    if counts.nnz == 0:
        raise InputError("no two words of the vocabulary stand near each other; raise window or subsample")
    return (
        PairSteps(counts, settings, vectors)
        if settings.loss in OF_PAIRS
        else CollapsedDescent(counts, settings, vectors)
    )


def warm_up(corpus: Corpus, settings: Settings, vectors: Vectors, stop: threading.Event | None = None) -> None:
    """Train by negative sampling for some epochs first, from which other losses begin, as in Yen et al. 2018."""
    first = replace(settings, loss="negative-sampling", learning_rate=None, epochs=settings.warmed, warm_epochs=0)
    found, n = fit(corpus, first, stop=stop).embedding, settings.dimension
    vectors.inputs[:, :n], vectors.outputs[:, :n] = found.inputs, found.outputs


def _embedding(corpus: Corpus, settings: Settings, vectors: Vectors) -> Embedding:
    n, n_outputs = settings.dimension, len(vectors.outputs) - (settings.loss == "hierarchical-softmax")
    words = corpus.vocabulary.words
    return Embedding(words, vectors.inputs[:, :n].copy(), vectors.outputs[:n_outputs, :n].copy())


def _check_finite(vectors: Vectors, settings: Settings, epoch: int) -> None:
    if not (np.isfinite(vectors.inputs).all() and np.isfinite(vectors.outputs).all()):
        raise InputError(
            f"{settings.loss} diverged in epoch {epoch}: vectors are infinite or NaN; lower learning_rate"
            f" (now {settings.rate:g})"
        )


def _identity(corpus: Corpus, settings: Settings) -> str:
    """Tell one fit from all others: by settings, vocabulary, text and code."""
    digest = hashlib.sha256(json.dumps([asdict(settings), fingerprint(__name__)]).encode())
    digest.update("\n".join(corpus.vocabulary.words).encode())
    for first in range(0, len(corpus.tokens), READ_AT_ONCE):
        digest.update(corpus.tokens[first : first + READ_AT_ONCE].tobytes())
    return digest.hexdigest()


def _restore(own: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> None:
    for name, array in own.items():
        if name not in found or found[name].shape != array.shape or found[name].dtype != array.dtype:
            raise ContentError(f"{name} is not of this fit")
    for name, array in own.items():
        array[...] = found[name][...]
