"""A trained model: one HDF5 file, loadable without the data, no pickle."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from scipy.sparse import csc_array, issparse

from xsoftmax.data.mapped_array import MappedArray, can_map
from xsoftmax.data.names import Names
from xsoftmax.data.rows import row_not_finite
from xsoftmax.data.transform import Transform
from xsoftmax.data.transform_file import put_transform, transform_of
from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal import registry
from xsoftmax.internal.checksummed import opened, written_checksummed
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5 import attribute, put, put_text, text_of
from xsoftmax.internal.hdf5 import attributes as attributes_of
from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_below, check_number, check_starts
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.encoded import EncodedWeights
from xsoftmax.kernels.scores import (
    BLOCKS_OF_ROWS,
    CLASSES_AT_A_TIME,
    FEWEST_ROWS,
    ROWS_AT_A_TIME,
    Calibration,
    Copies,
    ScoreBlock,
    Scored,
    Scorer,
    add_log_q,
    correct,
    dense,
    score_each,
)
from xsoftmax.proposals._file import read_proposal

if TYPE_CHECKING:
    from xsoftmax.gpu.passes import Pass

# Scores that are held at once where the same ones are seen again and again.
MOST_HELD = 2**24
# Weights that are copied into the file at a time.
WRITTEN_AT_ONCE = 2**20
# So that weights lie in the file as they do in memory, and can be mapped.
ALIGNED = {"alignment_threshold": 1024, "alignment_interval": 64}


class DivergedError(InputError):
    """The fit diverged, so there is no model."""


@dataclass(frozen=True)
class Model:
    """A softmax classifier: scores = W x + b, corrected by log q(y | x) where the method's lack it, and calibrated.

    With an ``encoder``, x stands for what that makes of a row: see ``xsoftmax.kernels.encoded``.

    Attributes
    ----------
    W : ndarray or csc_array of shape (n_classes, n_features or dimension), float32, or None
        One class per row. None: the correction is all there is (a proposal as a classifier).
    class_names : sequence of str
    n_features : int
    b : ndarray of shape (n_classes,), float32, or None
        Biases; None: there are none.
    correction : Proposal or None
        The fitted proposal whose log-probabilities prediction adds (paper (e), eq. 5).
    calibration : Calibration or None
        What corrected scores are multiplied by; None: nothing.
    transform : Transform or None
        From raw rows to features.
    attributes : dict
        Dataset, method and what else is to be known of the fit.
    link : str
        How scores become probabilities: a module of ``xsoftmax.evaluation.links``.
    encoder : ndarray of shape (n_features, dimension), float32, or None
        The table that rows go through; None: they don't.
    place : str
        Where scores are made: by compiled code, "numba", or on PyTorch's "cpu" or "cuda". See ``scored_on``.
    """

    W: Any
    class_names: Sequence[str]
    n_features: int
    b: np.ndarray | None = None
    correction: Any = None
    transform: Transform | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    link: str = "softmax"
    calibration: Calibration | None = None
    encoder: np.ndarray | None = None
    place: str = NUMBA
    _kept: list[Copies] = field(default_factory=list, init=False, repr=False, compare=False)
    _held: dict[int, dict[int, list[ScoreBlock]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_rows(cls, rows: Any, class_names: Sequence[str], n_features: int, **others: Any) -> "Model":
        """Make a model of rows as solvers keep them, (n_classes, n_features + 1), the bias last.

        Nothing is copied; a ``csc_array`` stays sparse, ``EncodedWeights`` have their table beside them.
        ``bias=False`` says that the last column does not count.
        """
        has_bias = others.pop("bias", True)
        if isinstance(rows, EncodedWeights):
            others["encoder"], rows = rows.table, rows.rows
        if rows is None:
            return cls(None, class_names, n_features, **others)
        if issparse(rows):
            b = rows[:, [-1]].toarray()[:, 0] if has_bias else None
            n, shape = rows.indptr[-2], (rows.shape[0], rows.shape[1] - 1)
            W = csc_array((rows.data[:n], rows.indices[:n], rows.indptr[:-1]), shape=shape)
            return cls(W, class_names, n_features, b, **others)
        return cls(rows[:, :-1], class_names, n_features, rows[:, -1] if has_bias else None, **others)

    @property
    def rows(self) -> np.ndarray:
        """A copy of the weights with the bias as last column, 0 where there is none: (n_classes, n_columns + 1)."""
        rows = np.zeros((self.n_classes, self.n_columns + 1), np.float32)
        rows[:, :-1] = dense(self.W)
        if self.b is not None:
            rows[:, -1] = self.b
        return rows

    @property
    def bias(self) -> bool:
        """Whether there are biases."""
        return self.b is not None

    @contextmanager
    def unchanging(self, whole: bool = False) -> Iterator[None]:
        """Promise not to change the weights within: of a small model, what scoring copies of them is kept.

        Small is one that fits into the copy that scoring makes anyway. With ``whole`` the copy of any model is kept,
        as large as its weights: who scores a few sparse rows now and then does not pay for it each time.
        """
        self._kept.append(self._kept[-1] if self._kept else Copies())
        self._kept[-1].whole |= whole
        try:
            yield
        finally:
            self._kept.pop()

    @contextmanager
    def holding(self, X: Any) -> Iterator[None]:
        """Promise not to change the weights within: of these rows, if they have few, all scores are held at once.

        Few is ``MOST_HELD``. They are then computed once, whoever visits them in blocks of the usual size.
        """
        fresh = id(X) not in self._held and X.shape[0] * self.n_classes <= MOST_HELD
        if fresh:
            self._held[id(X)] = {}
        try:
            with self.unchanging():
                yield
        finally:
            if fresh:
                del self._held[id(X)]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def n_columns(self) -> int:
        """Number of weights of a class, its bias not counted."""
        return self.n_features if self.encoder is None else self.encoder.shape[1]

    @property
    def features_sha256(self) -> str | None:
        """What tells its features from others, as that of a transform; None where that is not known."""
        return self.attributes.get("features_sha256") if self.transform is None else self.transform.sha256

    def has_features(self, n_features: int, sha256: str | None) -> bool:
        """Whether features of that number and kind (as ``features_sha256``; None is any) mean to it what they say."""
        known = {sha256, self.features_sha256} - {None}
        return self.n_features == n_features and len(known) < 2

    def to_sparse(self) -> "Model":
        """The same model, of whose weights those that are not zero are held: ``W`` is a ``csc_array``."""
        return self._with_weights(None if self.W is None else csc_array(self.W))

    def to_dense(self) -> "Model":
        """The same model, all of whose weights are held: ``W`` is an array."""
        return self._with_weights(None if self.W is None else dense(self.W))

    def _with_weights(self, W: Any) -> "Model":
        return self if W is self.W else replace(self, W=W, place=NUMBA)

    def scored_on(self, place: str) -> "Model":
        """The same model, whose scores are made at a place, one of those of ``xsoftmax.gpu.device.place_of``.

        Raises
        ------
        InputError
            If its weights are sparse, or none, which only compiled code scores.
        """
        if place != NUMBA and (self.W is None or issparse(self.W)):
            weights = "no weights" if self.W is None else "sparse weights"
            raise InputError(f"device is {place}, and the model has {weights}, scored by compiled code; leave it out")
        return replace(self, place=place)

    def without_correction(self) -> "Model":
        """The same weights, not calibrated either: scores are what the method trained."""
        found = replace(self, correction=None, calibration=None)
        found._kept.extend(self._kept)
        return found

    def visit_scores(
        self,
        X: Any,
        visit: Callable[[ScoreBlock], Any],
        pool: ThreadPool | None = None,
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
        pool : ThreadPool, optional
            Of threads.
        classes_at_a_time, rows_at_a_time : int
            Size of a block; at other places than "numba" blocks have sizes of their own, and few classes are in one.

        Raises
        ------
        InputError
            If the rows do not have the model's number of features.
        """
        self._check_width(X)
        pool, sizes = pool or ThreadPool(), (classes_at_a_time, rows_at_a_time)
        held = self._held.get(id(X)) if sizes == (CLASSES_AT_A_TIME, ROWS_AT_A_TIME) else None
        if held is None:
            self._visit_scores(X, visit, pool, *sizes)
            return
        if not held:  # a row's blocks come from one thread, one after the other
            self._visit_scores(
                X, lambda block: held.setdefault(block.first_row, []).append(_copied(block)), pool, *sizes
            )
        blocks = list(held.values())
        pool.run([partial(_show, blocks[j :: pool.n_threads], visit) for j in range(pool.n_threads)])

    def _visit_scores(
        self,
        X: Any,
        visit: Callable[[ScoreBlock], Any],
        pool: ThreadPool,
        classes_at_a_time: int,
        rows_at_a_time: int,
    ) -> None:
        n_samples, scored, kept = X.shape[0], self._scored(), self._kept[-1] if self._kept else None
        if self.place != NUMBA:
            from xsoftmax.gpu import scoring

            scoring.visit(scored, X, self.place, visit, pool, kept)
            return
        scorer = Scorer(scored, X, kept)
        width = max(1, min(self.n_classes, classes_at_a_time))
        if width < self.n_classes:
            width = max(1, min(width, scorer.longest_stretch))
        n_rows = max(1, min(n_samples, rows_at_a_time, max(FEWEST_ROWS, -(-n_samples // BLOCKS_OF_ROWS))))
        firsts = range(0, n_samples, n_rows)
        shares = [firsts[j :: pool.n_threads] for j in range(min(pool.n_threads, len(firsts)))]
        for stretch in scorer.stretches(width):
            scorer.prepare(stretch)

            def score(firsts: range, stretch: range = stretch) -> None:
                buffer = np.empty(n_rows * width, np.float32)
                for first in firsts:
                    rows = slice(first, min(first + n_rows, n_samples))
                    for block in scorer.blocks(rows, stretch, width, buffer):
                        visit(block)

            pool.run([partial(score, share) for share in shares])

    def pass_on_device(self, X: Any, pool: ThreadPool | None = None, **asked: Any) -> "Pass":
        """Pass over all scores at a place of PyTorch's; what is ``asked``, see ``xsoftmax.gpu.passes.pass_over``."""
        from xsoftmax.gpu.passes import pass_over

        self._check_width(X)
        kept = self._kept[-1] if self._kept else None
        return pass_over(self._scored(), X, self.place, pool or ThreadPool(), kept, **asked)

    def _scored(self) -> Scored:
        return Scored(self.W, self.b, self.n_classes, self.n_columns, self.correction, self.calibration, self.encoder)

    def true_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Score of one class of each row, float32 of shape (n_samples,); equal to the others' up to rounding."""
        self._check_width(X)
        scores = self._linear_scores(X, y)
        # None: all the same, so that blocks of scores lack it, too
        if self.correction is not None and self.correction.log_q(X[:0], 0, 1) is not None:
            add_log_q(self.correction.kernel(X), y, scores)
        correct(scores, None, self.calibration, y)
        return scores

    def _linear_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Score one class of each row by the weights alone."""
        scores = np.zeros(len(y), np.float32)
        if self.W is not None:
            score_each(X, y, self.W, self.b, scores, self.encoder)
        return scores

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise InputError(f"rows have {X.shape[1]} features, the model {self.n_features}; prepare them alike")


def _copied(block: ScoreBlock) -> ScoreBlock:
    return block._replace(scores=block.scores.copy())


def _show(blocks_of_rows: Sequence[Sequence[ScoreBlock]], visit: Callable[[ScoreBlock], Any]) -> None:
    """Show copies of blocks, which may be changed."""
    for block in chain.from_iterable(blocks_of_rows):
        visit(_copied(block))


def save_model(model: Model, path: str | Path) -> None:
    """Write a model: aside, with a checksum, and renamed.

    Parameters
    ----------
    model : Model
    path : str or Path

    Raises
    ------
    OSError
        If it cannot be written; a file that was there is left as it was.
    """
    with written_checksummed(path, "model", **ALIGNED) as file:
        put(file, n_classes=model.n_classes, n_features=model.n_features, link=model.link)
        put_text(file, "attributes", json.dumps(model.attributes, sort_keys=True))
        Names.of(model.class_names).to_group(file.create_group("class_names"))
        if model.W is not None:
            _write_weights(file if model.encoder is None else file.create_group("encoded"), model.W)
        if model.encoder is not None:
            _write_rows(file.create_dataset("encoded/table", model.encoder.shape, np.float32), model.encoder)
        if model.b is not None:
            file.create_dataset("b", data=np.ascontiguousarray(model.b, np.float32))
        if model.correction is not None:
            put(file, correction=model.correction.name)
            model.correction.save(file.create_group("correction"))
        if model.calibration is not None:
            _write_calibration(file.create_group("calibration"), model.calibration)
        if model.transform is not None:
            put_transform(file.create_group("transform"), model.transform)


def load_model(path: str | Path, mapped: bool = False) -> Model:
    """Read a model, or a proposal that was fitted beforehand, as a model.

    Parameters
    ----------
    path : str or Path
    mapped : bool
        Whether weights that are all stored stay in the file, of which the system holds what is read, once for all
        programs. They must not be written to, and the file must not be changed; a new one of its name may take its
        place.

    Returns
    -------
    Model

    Raises
    ------
    InputError
        If the file is missing, damaged, not a model, or of another schema version; DivergedError if the fit diverged.
    """
    path = Path(path)
    with opened(path, ["model", "proposal"], "give the model.h5 of a fit, or train it again") as file:
        known = attributes_of(file)
        if known["kind"] == "proposal":
            return _proposal_as_model(path)
        attributes = dict(json.loads(text_of(file["attributes"])))
        if attributes.get("status") == "diverged":
            raise DivergedError(f"{path} holds no model: {attributes.get('message', 'the fit diverged')}")
        class_names, n_features = Names.from_group(file["class_names"]), int(known["n_features"])
        check_number(file, "n_classes", len(class_names))
        encoded = file.get("encoded")
        weights = file if encoded is None else encoded
        if "W" not in weights:
            raise ContentError(f"no weights, though the fit is {attributes.get('status', 'of no status')}")
        if (twice := class_names.repeated()) is not None:
            raise ContentError(f"two classes are named {twice[:40]!r}")
        if not class_names or "status" not in attributes:
            raise ContentError(f"{len(class_names)} classes, attributes {', '.join(attributes)}")
        b = None
        if "b" in file:
            check_array(file["b"], np.float32, len(class_names))
            b = file["b"][:]
        encoder = None if encoded is None else _read_table(encoded, n_features, path, mapped)
        shape = (len(class_names), n_features if encoder is None else encoder.shape[1])
        W = _read_weights(weights["W"], shape, path, mapped)
        if row_not_finite(W) is not None or (b is not None and row_not_finite(b) is not None):
            raise ContentError("weights that are NaN or infinite")
        return Model(
            W=W,
            class_names=class_names,
            n_features=n_features,
            b=b,
            correction=_restore(file, len(class_names), n_features),
            calibration=_read_calibration(file, len(class_names)),
            transform=transform_of(file["transform"], n_features) if "transform" in file else None,
            attributes=attributes,
            link=str(known["link"]),
            encoder=encoder,
        )


def _write_weights(file: h5py.Group, W: Any) -> None:
    """Store weights as they are: an array, or the three arrays of columns."""
    if not issparse(W):
        _write_rows(file.create_dataset("W", W.shape, np.float32), W)
        return
    W = csc_array(W)
    file.create_dataset("W/data", data=W.data.astype(np.float32, copy=False))
    file.create_dataset("W/indices", data=W.indices.astype(np.int32, copy=False))
    file.create_dataset("W/indptr", data=W.indptr.astype(np.int64))


def _read_weights(found: Any, shape: tuple[int, int], path: Path, mapped: bool) -> Any:
    """Read what ``_write_weights`` stored.

    Raises
    ------
    ContentError
        If it is none.
    """
    if isinstance(found, h5py.Dataset):
        check_array(found, np.float32, *shape)
        return _values(found, f"the weights of {path}", mapped)
    check_array(found["data"], np.float32, None)
    check_array(found["indices"], np.int32, len(found["data"]))
    check_array(found["indptr"], np.int64, shape[1] + 1)
    check_starts(found["indptr"], len(found["data"]))
    check_below(found["indices"], shape[0])
    check_free(sum(found[name].nbytes for name in ("data", "indices", "indptr")), f"the weights of {path}")
    W = csc_array((found["data"][:], found["indices"][:], found["indptr"][:]), shape=shape)
    W.check_format(full_check=True)
    return W


def _values(found: h5py.Dataset, what: str, mapped: bool) -> np.ndarray:
    """Read an array, or leave it where it is, if it lies there as in memory."""
    if mapped and can_map(found):
        return MappedArray(found).values
    check_free(found.nbytes, what)
    return found[:]


def _read_table(group: h5py.Group, n_features: int, path: Path, mapped: bool) -> np.ndarray:
    """Read the table of an encoder.

    Raises
    ------
    ContentError
        If it is none.
    """
    if "table" not in group:
        raise ContentError("weights behind an encoder's table, and no table")
    found = group["table"]
    check_array(found, np.float32, n_features, None)
    table = _values(found, f"the table of {path}", mapped)
    if not table.shape[1] or row_not_finite(table) is not None:
        raise ContentError("a table of no columns, or with rows that are NaN or infinite")
    return table


def _write_rows(dataset: h5py.Dataset, W: np.ndarray) -> None:
    """Write weights that may be a view of every other number: a block at a time, as a block is copied."""
    step = max(1, WRITTEN_AT_ONCE // max(1, W.shape[1]))
    for start in range(0, len(W), step):
        dataset[start : start + step] = W[start : start + step]


def _restore(file: h5py.File, n_classes: int, n_features: int) -> Any:
    if "correction" not in file.attrs:
        return None
    proposal = registry.load("xsoftmax.proposals", attribute(file, "correction"))
    return proposal.restore(file["correction"], n_classes, n_features)


def _write_calibration(group: h5py.Group, calibration: Calibration) -> None:
    put(group, inverse_temperature=float(calibration.inverse_temperature))
    if calibration.log_counts is not None:
        put(group, frequency=float(calibration.frequency))
        group.create_dataset("log_counts", data=calibration.log_counts)


def _read_calibration(file: h5py.File, n_classes: int) -> Calibration | None:
    if "calibration" not in file:
        return None
    group = file["calibration"]
    temperature = float(attribute(group, "inverse_temperature"))
    if "log_counts" not in group:
        return Calibration(temperature)
    check_array(group["log_counts"], np.float32, n_classes)
    log_counts = group["log_counts"][:]
    if not np.isfinite(log_counts).all():
        raise ContentError("numbers of rows that are NaN or infinite")
    return Calibration(temperature, float(attribute(group, "frequency")), log_counts)


def _proposal_as_model(path: Path) -> Model:
    """A proposal that was fitted beforehand is a classifier by itself, as the adversarial tree is."""
    stored = read_proposal(path)
    attributes = {"method": stored.settings["name"], "status": "finished"}
    attributes |= {key: stored.attributes[key] for key in ("dataset", "features_sha256")}
    n_features = int(stored.attributes["n_features"])
    return Model(None, stored.class_names, n_features, correction=stored.proposal, attributes=attributes)
