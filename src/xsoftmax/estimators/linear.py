"""Estimators for scikit-learn: fit, predict, search and pipe as with its own."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from xsoftmax.data.dataset import ArrayDataset, features_of
from xsoftmax.data.normalization import Step
from xsoftmax.data.training_set import check_seed
from xsoftmax.estimators.stored import Stored, plain
from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.thresholds import values
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.parameters import as_type_of
from xsoftmax.internal.threads import ThreadPool, one_blas_thread
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.methods import Method, build_method, known_methods, merged
from xsoftmax.model import DivergedError, Model
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.callbacks.show_progress import ShowProgress
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan


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


class LinearClassifier(Stored, ClassifierMixin, BaseEstimator):
    """What estimators of linear models have in common: parameters, the fit, and scores."""

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
        return as_type_of("n_jobs", 1, plain(n_jobs))

    def _limit(self) -> float | None:
        return None if self.max_seconds is None else as_type_of("max_seconds", 0.0, plain(self.max_seconds))

    def _plan(self, judge: str) -> Plan:
        """Plan a fit that is looked at after each epoch, and keeps what the judge finds best."""
        epochs = as_type_of("epochs", 1, plain(self.epochs))
        patience = None if self.patience is None else as_type_of("patience", 1, plain(self.patience))
        at = tuple(range(1, epochs + 1))
        return Plan(epochs=epochs, at=at, patience=patience, judge=judge, threads=self._n_threads())

    def _train(
        self, data: ArrayDataset, method: Method, seed: int, plan: Plan, more: Sequence[Callback] = (), **begin: Any
    ) -> Model:
        """Fit a method, and give the model that the plan keeps; ``begin`` is what else ``fit`` takes."""
        callbacks: list[Callback] = [*([ShowProgress()] if self.verbose else []), *more]
        seconds = self._limit()
        limit = StopAfter(math.inf if seconds is None else seconds)
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
            of_scores = partial(values, self.model_.link)
            return self._of_all_classes(X, pool, of_scores, kind, "scores", "predict_top_k, which holds k scores")

    def _of_all_classes(
        self, X: Any, pool: ThreadPool, of_scores: Callable[[np.ndarray], Any], kind: Any, what: str, instead: str
    ) -> np.ndarray:
        """Give what is made of the scores of all classes, of shape (n_samples, n_classes), if there is memory."""
        shape = (X.shape[0], self.model_.n_classes)
        check_free(
            np.dtype(kind).itemsize * shape[0] * shape[1],
            f"{what} of {shape[0]} rows and {shape[1]} classes",
            f"give fewer rows at a time, or take {instead} for each row",
        )
        found = np.empty(shape, kind)

        def visit(block: ScoreBlock) -> None:
            found[block.first_row : block.first_row + len(block.scores)] = of_scores(block.scores)

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
        k = as_type_of("k", 1, plain(k))
        with self._scored(X) as (X, pool):
            found = top_k(self.model_, X, k, pool)
        return self.classes_[found.classes], found.probabilities


def shipped_method(name: str, changes: Mapping[str, Any], own: str | os.PathLike[str] | None = None) -> Method:
    """Build a method of those that are shipped, or of one's own file, which is laid over them."""
    known = known_methods(None if own is None else os.fspath(own))
    if name not in known:
        raise InputError(f"unknown method {name!r}; {suggestion(name, known)}")
    return build_method(name, merged(known[name], changes))
