"""A trained model: one HDF5 file, loadable without the data, no pickle."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numba import njit

from xsoftmax import __version__, registry
from xsoftmax.data.names import Names
from xsoftmax.data.transform import Transform
from xsoftmax.errors import InputError
from xsoftmax.files import written_aside
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.minibatch import score_block
from xsoftmax.kernels.rows import Csr, dot, features_of
from xsoftmax.kernels.steps import log_probability
from xsoftmax.threads import Team

SCHEMA_VERSION = 1
# A block of scores is 2 MB: what a core's cache holds. Smaller ones slow down the matrix product.
ROWS_AT_A_TIME = 512
CLASSES_AT_A_TIME = 1024
# Few rows are cut into so many blocks, for threads to share, but not into such as slow down the product.
BLOCKS_OF_ROWS = 4
FEWEST_ROWS = 256
# Classes for which corrections are computed in one go: those that differ from row to row have costs of their own.
CLASSES_OF_A_STRETCH = 32768
# Weights that are copied at a time, a row per feature, for sparse rows: all of a small model, a part of a larger one.
SMALL_MODEL = 2**24
FEWEST_WEIGHTS = 2**21
PART_OF_WEIGHTS = 32
TILE = 32
WRITTEN_AT_ONCE = 2**20


class DivergedError(InputError):
    """The fit diverged, so there is no model."""


class ScoreBlock(NamedTuple):
    """Scores of rows ``first_row``... for classes ``first_class``..., float32 in C order."""

    first_row: int
    first_class: int
    scores: np.ndarray


@dataclass(frozen=True)
class Model:
    """A softmax classifier: scores = W x + b, and where the method's scores lack it, + log q(y | x).

    Attributes
    ----------
    W : ndarray of shape (n_classes, n_features + 1), float32, or None
        One class per row; the last column is the bias. None: the correction is all there is (a tree).
    class_names : sequence of str
    n_features : int
    bias : bool
        Whether the last column counts.
    correction : Proposal or None
        The fitted proposal whose log-probabilities prediction adds (paper (e), eq. 5).
    transform : Transform or None
        From raw rows to features.
    attributes : dict
        Dataset, method and what else is to be known of the fit.
    link : str
        How scores become probabilities: a module of ``xsoftmax.evaluation.links``.
    """

    W: np.ndarray | None
    class_names: Sequence[str]
    n_features: int
    bias: bool = True
    correction: Any = None
    transform: Transform | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    link: str = "softmax"
    _kept: list[dict[range, np.ndarray]] = field(default_factory=list, init=False, repr=False, compare=False)

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """Promise not to change the weights within: of a small model, what scoring copies of them is kept.

        Small is one that fits into the copy that scoring makes anyway.
        """
        self._kept.append(self._kept[-1] if self._kept else {})
        try:
            yield
        finally:
            self._kept.pop()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def without_correction(self) -> "Model":
        """The same weights, whose scores are what the method trained."""
        found = replace(self, correction=None)
        found._kept.extend(self._kept)
        return found

    def visit_scores(
        self,
        X: Any,
        visit: Callable[[ScoreBlock], Any],
        team: Team | None = None,
        classes_at_a_time: int = CLASSES_AT_A_TIME,
        rows_at_a_time: int = ROWS_AT_A_TIME,
    ) -> None:
        """Score all classes for all rows, block by block, and show each block to ``visit``.

        Every row sees its classes in rising order. With several threads, ``visit`` is called from all of them, each
        with rows of its own; blocks, and so the bits of scores, do not depend on how many there are. A thread holds
        one block at a time, and of sparse rows all share a copy of the weights of a few thousand classes.

        Parameters
        ----------
        X : sparse array or ndarray of shape (n_samples, n_features), float32
        visit : callable
            It may change the scores that it is shown, but not keep them.
        team : Team, optional
            Of threads.
        classes_at_a_time, rows_at_a_time : int
            Size of a block.

        Raises
        ------
        InputError
            If the rows do not have the model's number of features.
        """
        self._check_width(X)
        team, n_samples = team or Team(), X.shape[0]
        scorer = Scorer(self, X)
        width = max(1, min(self.n_classes, classes_at_a_time))
        if width < self.n_classes:
            width = max(1, min(width, scorer.longest_stretch))
        n_rows = max(1, min(n_samples, rows_at_a_time, max(FEWEST_ROWS, -(-n_samples // BLOCKS_OF_ROWS))))
        firsts = range(0, n_samples, n_rows)
        shares = [firsts[j :: team.n_threads] for j in range(min(team.n_threads, len(firsts)))]
        for stretch in scorer.stretches(width):
            scorer.prepare(stretch)

            def score(firsts: range, stretch: range = stretch) -> None:
                buffer = np.empty(n_rows * width, np.float32)
                for first in firsts:
                    rows = slice(first, min(first + n_rows, n_samples))
                    for block in scorer.blocks(rows, stretch, width, buffer):
                        visit(block)

            team.run([partial(score, share) for share in shares])

    def true_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Score of one class of each row, float32 of shape (n_samples,); equal to the others' up to rounding."""
        self._check_width(X)
        scores = np.zeros(len(y), np.float32)
        if self.W is not None:
            score_each(features_of(X, self.bias), y, self.W, scores)
        if self.correction is not None:
            add_log_q(self.correction.kernel(X), y, scores)
        return scores

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise InputError(f"rows have {X.shape[1]} features, the model {self.n_features}; prepare them alike")


def weights_copied(size: int) -> int:
    """Count the weights, of so many, that scoring sparse rows copies at a time."""
    return size if size <= SMALL_MODEL else min(SMALL_MODEL, max(FEWEST_WEIGHTS, size // PART_OF_WEIGHTS))


class Scorer:
    """Scores of the rows of ``X`` for all classes of a model, in parts."""

    def __init__(self, model: Model, X: Any) -> None:
        self._model, self._X = model, X
        self._features = None if model.W is None else features_of(X, model.bias)
        self._feature_major = np.empty((0, 0), np.float32)

    @property
    def longest_stretch(self) -> int:
        """How many classes are to be looked at as one, unless they are a block."""
        W = self._model.W
        if W is None or not isinstance(self._features, Csr) or self._corrects_by_row():
            return CLASSES_OF_A_STRETCH
        return min(CLASSES_OF_A_STRETCH, weights_copied(W.size) // W.shape[1])

    def stretches(self, width: int) -> Iterator[range]:
        """Cut the classes into stretches of whole blocks: what ``prepare`` and the correction look at as one."""
        K, length = self._model.n_classes, max(1, self.longest_stretch // width) * width
        return (range(first, min(first + length, K)) for first in range(0, K, length))

    def _corrects_by_row(self) -> bool:
        correction = self._model.correction
        return correction is not None and registry.load("xsoftmax.proposals", correction.name).MEMBER.by_row

    def prepare(self, stretch: range) -> None:
        """Copy the weights of some classes for sparse rows: a row per feature makes their scores sums of rows."""
        model = self._model
        if not isinstance(self._features, Csr) or model.W is None:
            return
        self._feature_major = np.empty((0, 0), np.float32)  # free the last one first
        small = len(stretch) == model.n_classes and model.W.size <= SMALL_MODEL
        kept = model._kept[-1] if model._kept and small else {}
        if stretch not in kept:
            kept[stretch] = transposed(model.W[stretch.start : stretch.stop])
        self._feature_major = kept[stretch]

    def blocks(self, rows: slice, stretch: range, width: int, buffer: np.ndarray) -> Iterator[ScoreBlock]:
        """Scores of ``rows`` for the classes of a prepared stretch, in blocks that lie in ``buffer``."""
        n, log_q, correction = rows.stop - rows.start, None, self._model.correction
        write = self._writer(rows, stretch)
        if correction is not None:
            log_q = correction.log_q(self._X[rows], stretch.start, stretch.stop)
        for first in range(stretch.start, stretch.stop, width):
            last = min(first + width, stretch.stop)
            scores = buffer[: n * (last - first)].reshape(n, last - first)
            write(first, last, scores)
            if log_q is not None:
                scores += log_q[:, first - stretch.start : last - stretch.start]
            yield ScoreBlock(rows.start, first, scores)

    def _writer(self, rows: slice, stretch: range) -> Callable[[int, int, np.ndarray], Any]:
        """What writes the scores of ``rows`` for some classes, first to last, without correction."""
        features, W = self._features, self._model.W
        if W is None or features is None:
            return lambda first, last, scores: scores.fill(0)
        if isinstance(features, Csr):
            samples, copy = np.arange(rows.start, rows.stop), self._feature_major
            return lambda first, last, scores: score_block(features, samples, copy, first - stretch.start, scores)
        inputs = np.empty((rows.stop - rows.start, W.shape[1]), np.float32)
        inputs[:, :-1], inputs[:, -1] = features.X[rows], features.constant
        return lambda first, last, scores: np.matmul(inputs, W[first:last].T, out=scores)


@njit(**OPTIONS)
def score_each(features, y, W, scores):
    """Write the score of class y[i] for each sample i, with W of shape (n_classes, n_features + 1)."""
    for i in range(y.size):
        scores[i] = dot(features, i, W[y[i]])


@njit(**OPTIONS)
def add_log_q(proposal, y, scores):
    """Add the log-probability of class y[i] under a proposal to each sample's score."""
    for i in range(y.size):
        scores[i] += log_probability(proposal, i, np.int64(y[i]))


@njit(**OPTIONS)
def transposed(W):
    """Copy of the transpose, tile by tile."""
    n, m = W.shape
    out = np.empty((m, n), W.dtype)
    for first in range(0, n, TILE):
        for column in range(0, m, TILE):
            for k in range(first, min(first + TILE, n)):
                for d in range(column, min(column + TILE, m)):
                    out[d, k] = W[k, d]
    return out


def save_model(model: Model, path: Path) -> None:
    """Write a model, aside and renamed."""
    with written_aside(path) as aside, h5py.File(aside, "w") as file:
        file.attrs.update(
            {
                "kind": "model",
                "schema_version": SCHEMA_VERSION,
                "xsoftmax_version": __version__,
                "n_classes": model.n_classes,
                "n_features": model.n_features,
                "bias": model.bias,
                "link": model.link,
                "attributes": json.dumps(model.attributes, sort_keys=True),
            }
        )
        names = file.create_dataset("class_names", (model.n_classes,), h5py.string_dtype("ascii"))
        known = model.class_names
        (known if isinstance(known, Names) else Names(known)).write(names)
        if model.W is not None:
            _write_rows(file.create_dataset("W", model.W.shape, np.float32), model.W)
        if model.correction is not None:
            file.attrs["correction"] = model.correction.name
            model.correction.save(file.create_group("correction"))
        if model.transform is not None:
            model.transform.to_group(file.create_group("transform"))


def load_model(path: Path) -> Model:
    """Read a model, or a tree as a model.

    Raises
    ------
    InputError
        If the file is missing, is not a model, or is of another schema version; DivergedError if the fit diverged.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; train a model first")
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise InputError(f"{path}: not an HDF5 file ({error}); give a model.h5") from error
    with file:
        kind, version = file.attrs.get("kind"), file.attrs.get("schema_version")
        if kind == "tree":
            return _tree_as_model(path)
        if kind != "model":
            raise InputError(f"{path}: holds {kind!r}, not a model; give a model.h5")
        if version != SCHEMA_VERSION:
            raise InputError(f"{path}: model version {version}, this program reads {SCHEMA_VERSION}; train it again")
        attributes = json.loads(file.attrs["attributes"])
        if "W" not in file:
            raise DivergedError(f"{path} holds no model: {attributes['message']}")
        return Model(
            W=file["W"][:],
            class_names=Names.read(file["class_names"]),
            n_features=int(file.attrs["n_features"]),
            bias=bool(file.attrs["bias"]),
            correction=_restore(file),
            transform=Transform.from_group(file["transform"]) if "transform" in file else None,
            attributes=attributes,
            link=str(file.attrs.get("link", "softmax")),
        )


def _write_rows(dataset: h5py.Dataset, W: np.ndarray) -> None:
    """Write weights that may be a view of every other number: a block at a time, as a block is copied."""
    step = max(1, WRITTEN_AT_ONCE // W.shape[1])
    for start in range(0, len(W), step):
        dataset[start : start + step] = W[start : start + step]


def _restore(file: h5py.File) -> Any:
    if "correction" not in file.attrs:
        return None
    return registry.load("xsoftmax.proposals", file.attrs["correction"]).restore(file["correction"])


def _tree_as_model(path: Path) -> Model:
    """The adversarial tree, which is a classifier by itself."""
    trees = registry.load("xsoftmax.proposals", "tree")  # by name: most models have nothing to do with trees
    stored = trees.read_tree(path)
    attributes = {"dataset": stored.attributes["dataset"], "method": "tree", "status": "finished"}
    n_features = stored.attributes["n_features"]
    return Model(None, stored.class_names, n_features, False, trees.FittedTree(stored.tree), None, attributes)
