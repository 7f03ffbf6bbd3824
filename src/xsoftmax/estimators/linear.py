"""Estimators for scikit-learn: fit, predict, search and pipe as with its own."""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from xsoftmax.data.dataset import ArrayDataset, features_of
from xsoftmax.data.normalization import Step
from xsoftmax.data.training_set import check_seed
from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.thresholds import values
from xsoftmax.internal.checksummed import reading
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.internal.parameters import as_type_of
from xsoftmax.internal.threads import ThreadPool, one_blas_thread
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.methods import Method, build_method, known_methods, merged
from xsoftmax.model import DivergedError, Model, load_model, save_model
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.callbacks.show_progress import ShowProgress
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

# What a model's file says of the estimator that wrote it.
ATTRIBUTE = "estimator"
# Kinds of labels that a file holds as text.
KINDS_OF_LABELS = "biufU"


class StopAfter(Callback):
    """Stop a fit after so many seconds of training; ``refused`` says why they are not enough for any."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.refused = seconds, ""

    def begin(self, fit: RunningFit) -> None:
        """Refuse seconds that are spent before the first step; of a plan in seconds the fit itself does."""
        if fit.plan.seconds is None and not fit.state.step:
            try:
                fit.preparations.check(fit.dataset, self.seconds)
            except InputError as error:  # which no callback may raise
                self.refused = str(error)
                fit.stop("stopped early", self.refused)

    def advanced(self, fit: RunningFit) -> None:
        """Look at the clock after each chunk."""
        if fit.state.seconds >= self.seconds:
            fit.stop("stopped early", f"max_seconds is {self.seconds:g}")


class LinearClassifier(ClassifierMixin, BaseEstimator, ABC):
    """What estimators of linear models have in common: parameters, the fit, scores, files."""

    method: str | Mapping[str, Any]
    methods: str | os.PathLike[str] | None
    epochs: int
    validation_fraction: float
    patience: int | None
    random_state: Any
    n_jobs: int | None
    max_seconds: float | None
    verbose: bool
    model_: Model
    classes_: np.ndarray
    history_: list[dict[str, float]]
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Check rows, and bring them to the form of kernels."""
        try:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
        return features_of(X, f"{self._name}: X", issparse(X))

    def _seed(self) -> int:
        if not isinstance(self.random_state, Integral):
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        check_seed(int(self.random_state))
        return int(self.random_state)

    def _held_out(self, n_samples: int, seed: int) -> np.ndarray:
        """Choose validation rows: bool of shape (n_samples,); one row at least remains for training."""
        fraction = self.validation_fraction
        if not isinstance(fraction, float | int) or not 0 <= fraction < 1:
            raise InputError(f"validation_fraction is {fraction!r}; set it to 0 or more, below 1")
        n_held = min(n_samples - 1, max(1, round(fraction * n_samples)) if fraction else 0)
        held = np.zeros(n_samples, bool)
        held[np.random.default_rng([seed, n_samples]).permutation(n_samples)[:n_held]] = True
        return held

    def _built_method(self, changes: Mapping[str, Any] | None = None) -> Method:
        """Build the method, of those that are shipped, or of the settings given, with some of these changed."""
        if isinstance(self.method, Mapping):
            return build_method("given", merged(self.method, changes or {}))
        return shipped_method(self.method, changes or {}, self.methods)

    def _pool(self) -> ThreadPool:
        return ThreadPool(self._n_threads())

    def _n_threads(self) -> int:
        """Count threads as scikit-learn does: -1 is one for each core that this process may use."""
        n_jobs = 1 if self.n_jobs is None else self.n_jobs
        n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if n_jobs == -1:
            return n_cores
        return as_type_of("n_jobs", 1, _plain(n_jobs))

    def _plan(self, judge: str) -> Plan:
        """Plan a fit that is looked at after each epoch, and keeps what the judge finds best."""
        epochs = as_type_of("epochs", 1, _plain(self.epochs))
        patience = None if self.patience is None else as_type_of("patience", 1, _plain(self.patience))
        at = tuple(range(1, epochs + 1))
        return Plan(epochs=epochs, at=at, patience=patience, judge=judge, threads=self._n_threads())

    def _train(
        self, data: ArrayDataset, method: Method, seed: int, plan: Plan, more: Sequence[Callback] = (), **begin: Any
    ) -> Model:
        """Fit a method, and give the model that the plan keeps; ``begin`` is what else ``fit`` takes."""
        callbacks: list[Callback] = [*([ShowProgress()] if self.verbose else []), *more]
        seconds = math.inf if self.max_seconds is None else as_type_of("max_seconds", 0.0, _plain(self.max_seconds))
        limit = StopAfter(seconds)
        with one_blas_thread():
            result = fit(data, method, seed, plan, callbacks=[*callbacks, limit], **begin)
        if limit.refused:
            raise InputError(limit.refused)
        if result.model is None:
            raise DivergedError(result.state.message)
        self.history_ = result.state.history
        attributes = {"dataset": data.name, "method": method.name, "seed": seed, "parameters": method.settings}
        attributes |= {"status": result.state.status, "message": result.state.message}
        return replace(result.model, attributes=attributes)

    @contextmanager
    def _scored(self, X: Any) -> Iterator[tuple[Any, ThreadPool]]:
        """Give checked rows, and threads that score them."""
        check_is_fitted(self, "model_")
        X, pool = self._scaled(self._rows(X), self._steps), self._pool()
        try:
            with one_blas_thread():
                yield X, pool
        finally:
            pool.close()

    @property
    def _steps(self) -> tuple[Step, ...]:
        """What makes features of rows."""
        return () if self.model_.transform is None else self.model_.transform.steps

    def _scaled(self, X: Any, steps: Sequence[Step]) -> Any:
        """Take steps with rows: a copy, if there are any."""
        if steps:
            n_bytes = 4 * (X.nnz if issparse(X) else X.size)
            check_free(n_bytes, f"a copy of {X.shape[0]} rows", "give fewer rows at a time, or set scale to False")
        for step in steps:
            X = step.apply(X)
        return X

    def _values(self, X: Any, kind: type[np.floating] = np.float32) -> np.ndarray:
        """Give what a threshold is compared with, of every class, of shape (n_samples, n_classes)."""
        with self._scored(X) as (X, pool):
            shape = (X.shape[0], self.model_.n_classes)
            check_free(
                np.dtype(kind).itemsize * shape[0] * shape[1],
                f"scores of {shape[0]} rows and {shape[1]} classes",
                "give fewer rows at a time, or take predict_top_k, which holds k scores for each row",
            )
            found = np.empty(shape, kind)

            def visit(block: ScoreBlock) -> None:
                rows = slice(block.first_row, block.first_row + len(block.scores))
                found[rows] = values(self.model_.link, block.scores)

            visit_whole_rows(self.model_, X, visit, pool)
        return found

    def predict_top_k(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best classes of every row, the best first, without holding all scores.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        k : int

        Returns
        -------
        classes : ndarray of shape (n_samples, k)
            Of ``classes_``; all of them if there are fewer than k.
        probabilities : ndarray of shape (n_samples, k), float64
            Of each class by itself with one-vs-rest; shares that sum to 1 over all classes with a softmax.

        Raises
        ------
        InputError
            If ``k`` is no number of classes.
        """
        k = as_type_of("k", 1, _plain(k))
        with self._scored(X) as (X, pool):
            found = top_k(self.model_, X, k, pool)
        return self.classes_[found.classes], found.probabilities

    def save(self, path: str | Path) -> None:
        """Write the model with all that is needed to predict: an HDF5 file with a checksum, which ``load`` reads.

        It is a model's file also for the command line, and for ``xsoftmax.model.load_model``.
        """
        check_is_fitted(self, "model_")
        said = {"class": self._name, "parameters": self._parameters()} | self._own_attributes()
        save_model(replace(self.model_, attributes=self.model_.attributes | {ATTRIBUTE: said}), path)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read what ``save`` wrote.

        Raises
        ------
        InputError
            If the file is missing, damaged, or no estimator of this class wrote it.
        """
        model = load_model(path)
        with reading(Path(path), f"write it with {cls.__name__}.save"):
            said = model.attributes.get(ATTRIBUTE)
            if not isinstance(said, dict) or said.get("class") != cls.__name__:
                raise ContentError(f"a model that no {cls.__name__} wrote")
            found = cls(**said["parameters"])
            found.model_, found.n_features_in_ = model, model.n_features
            if model.transform is not None and model.transform.feature_names:
                found.feature_names_in_ = np.array(model.transform.feature_names, dtype=object)
            found._take_attributes(said)
        return found

    def _parameters(self) -> dict[str, Any]:
        """Give the parameters as JSON; a generator of random numbers, callbacks and weights by label are left out."""
        found = {key: _plain(value) for key, value in self.get_params(deep=False).items()}
        for name, kept in (("random_state", int), ("callbacks", str), ("class_weight", str)):
            if not isinstance(found.get(name), kept):
                found |= {name: None} if name in found else {}
        return json.loads(json.dumps(found, default=_plain))

    def _kind_of_labels(self) -> str:
        """Say as what a file is to read labels, of which it holds the text."""
        kind = self.classes_.dtype
        if kind.kind not in KINDS_OF_LABELS:
            raise InputError(
                f"{self._name}: labels are {kind}, which a file cannot hold; fit with numbers or strings"
            )
        return kind.str

    def _labels_of_kind(self, kind: Any, names: Sequence[str]) -> np.ndarray:
        """Read labels from their text."""
        dtype, labels = np.dtype(kind), np.array(list(names))
        if dtype.kind not in KINDS_OF_LABELS:
            raise ContentError(f"labels of {dtype}")
        if dtype.kind == "b":
            return labels == "True"
        return labels if dtype.kind == "U" else labels.astype(dtype)

    @abstractmethod
    def _own_attributes(self) -> dict[str, Any]:
        """Give what else a file is to hold, as JSON."""

    @abstractmethod
    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        """Take what ``_own_attributes`` gave."""


def shipped_method(name: str, changes: Mapping[str, Any], own: str | os.PathLike[str] | None = None) -> Method:
    """Build a method of those that are shipped, or of one's own file, which is laid over them."""
    known = known_methods(None if own is None else os.fspath(own))
    if name not in known:
        raise InputError(f"unknown method {name!r}; {suggestion(name, known)}")
    return build_method(name, merged(known[name], changes))


def _plain(value: Any) -> Any:
    """Turn a number of NumPy, or a path, into what JSON has."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value
