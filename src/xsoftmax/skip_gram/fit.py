"""Fit vectors to a text: epochs in units, a checkpoint now and then, the same bits after a resume."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
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
from xsoftmax.skip_gram.settings import HIERARCHICAL, NEGATIVE, OF_PAIRS, Settings
from xsoftmax.skip_gram.text_walk import TextWalk
from xsoftmax.skip_gram.vectors import Embedding, new_vectors
from xsoftmax.training.checkpoint import check_checkpoint, read_checkpoint, write_checkpoint

READ_AT_ONCE = 2**20


class DivergedError(InputError):
    """Vectors are no longer finite."""


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
    each_epoch: Callable[[int, Embedding], None] | None = None,
) -> Fitted:
    """Train vectors.

    Parameters
    ----------
    checkpoint : Path, optional
        To resume from, if it is of this fit, and to write to; the caller removes it.
    stop : Event, optional
        Once set, a checkpoint is written and the fit ends.
    each_epoch : callable, optional
        Is told how many epochs are over, those of the warm-up too, and a copy of the vectors.

    Raises
    ------
    InputError
        If settings are no settings, memory does not suffice, or the fit diverges.
    StoppedError
        If it was told to stop.
    """
    vectors = new_vectors(len(corpus.vocabulary.words), settings.dimension, settings.seed)
    stages = _stages(corpus, settings, vectors)
    arrays = {name: array for stage in stages for name, array in stage.method.arrays().items()}
    total, done = sum(stage.n_units for stage in stages), 0
    identity = _identity(corpus, settings) if checkpoint else ""
    if checkpoint:
        check_checkpoint(checkpoint)
        found = read_checkpoint(checkpoint, identity, partial(_restore, arrays), _Done)
        done = min(found.done, total) if found else 0
    pool, began, epochs = ThreadPool(settings.threads), time.perf_counter(), 0.0
    written = time.monotonic()
    with one_blas_thread(), Progress("embed", "%", 100 * done / max(total, 1), 100.0) as progress:
        while done < total:
            stage, epoch, unit = _place(stages, done)
            n_units = stage.method.n_units
            last = min(unit + stage.method.at_once, n_units)
            stage.method.run(epoch, unit, last, pool)
            done, epochs = done + last - unit, epochs + (last - unit) / n_units
            progress.move_to(100 * done / total)
            if last == n_units:
                _check_finite(vectors, stage.settings, epoch + 1)
                if each_epoch is not None:
                    each_epoch(round(epochs), _embedding(corpus, settings, vectors))
            asked = stop is not None and stop.is_set() and done < total
            if checkpoint and (asked or time.monotonic() - written >= checkpoint_seconds) and done < total:
                write_checkpoint(checkpoint, identity, arrays, {"done": done})
                written = time.monotonic()
            if asked:
                raise StoppedError(f"at {done / total:.1%} of the fit; the same command goes on from there")
    pool.close()
    return Fitted(_embedding(corpus, settings, vectors), time.perf_counter() - began, epochs)


@dataclass(frozen=True)
class _Done:
    """Progress in a checkpoint: units, of all stages."""

    done: int


@dataclass(frozen=True)
class _Stage:
    method: Any
    settings: Settings

    @property
    def n_units(self) -> int:
        """Units of all its epochs."""
        return self.settings.epochs * self.method.n_units


def _stages(corpus: Corpus, settings: Settings, vectors: Vectors) -> list[_Stage]:
    """Plan negative sampling for some epochs first, from which other losses begin, as in Yen et al. 2018."""
    first = replace(settings, loss=NEGATIVE, learning_rate=None, epochs=settings.warmed, warm_epochs=0)
    stages = [first, settings] if settings.warmed else [settings]
    return [_Stage(method_of(corpus, each, vectors), each) for each in stages]


def _place(stages: list[_Stage], done: int) -> tuple[_Stage, int, int]:
    """Say which stage, epoch and unit come after so many units."""
    for stage in stages:
        if done < stage.n_units:
            return stage, *divmod(done, stage.method.n_units)
        done -= stage.n_units
    raise IndexError(done)


def method_of(corpus: Corpus, settings: Settings, vectors: Vectors) -> Any:
    """Make what trains: along the text, or over its collapsed counts."""
    if settings.loss in (NEGATIVE, HIERARCHICAL):
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


def _embedding(corpus: Corpus, settings: Settings, vectors: Vectors) -> Embedding:
    n, n_outputs = settings.dimension, len(vectors.outputs) - (settings.loss == HIERARCHICAL)
    words = corpus.vocabulary.words
    return Embedding(words, vectors.inputs[:, :n].copy(), vectors.outputs[:n_outputs, :n].copy())


def _check_finite(vectors: Vectors, settings: Settings, epoch: int) -> None:
    if not (np.isfinite(vectors.inputs).all() and np.isfinite(vectors.outputs).all()):
        raise DivergedError(
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
