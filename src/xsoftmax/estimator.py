"""Estimators for scikit-learn: fit, predict, search and pipe as with its own."""

import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from xsoftmax.data.dataset import ArrayDataset, Dataset, Split, features_of
from xsoftmax.data.label_form import KINDS, LISTS, LabelForm
from xsoftmax.data.training_set import check_seed
from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.thresholds import best_threshold, labels_above, values
from xsoftmax.internal.checksummed import reading
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.internal.parameters import as_type_of
from xsoftmax.internal.shipped import methods_file
from xsoftmax.internal.threads import ThreadPool, one_blas_thread
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.methods import Method, build_method, read_methods
from xsoftmax.model import DivergedError, Model, load_model, save_model
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.callbacks.show_progress import ShowProgress
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

# What a model's file says of the estimator that wrote it.
ATTRIBUTE = "estimator"


class StopAfter(Callback):
    """Stop a fit after so many seconds of training."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def advanced(self, fit: RunningFit) -> None:
        """Look at the clock after each chunk."""
        if fit.state.seconds >= self.seconds:
            fit.stop("stopped early", f"max_seconds is {self.seconds:g}")


class LinearClassifier(ClassifierMixin, BaseEstimator, ABC):
    """What estimators of linear models have in common: parameters, the fit, scores, files."""

    method: str | Mapping[str, Any]
    epochs: int
    validation_fraction: float
    patience: int | None
    random_state: Any
    n_jobs: int | None
    max_seconds: float | None
    verbose: bool
    model_: Model
    classes_: np.ndarray
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

    def _built_method(self) -> Method:
        """Build the method, of those that are shipped, or of the settings given."""
        if isinstance(self.method, Mapping):
            return build_method("given", self.method)
        known = read_methods(methods_file())
        if self.method not in known:
            raise InputError(f"unknown method {self.method!r}; {suggestion(self.method, known)}")
        return build_method(self.method, known[self.method])

    def _pool(self) -> ThreadPool:
        return ThreadPool(self._n_threads())

    def _n_threads(self) -> int:
        """Count threads as scikit-learn does: -1 is one for each core that this process may use."""
        n_jobs = 1 if self.n_jobs is None else self.n_jobs
        n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if n_jobs == -1:
            return n_cores
        return as_type_of("n_jobs", 1, _plain(n_jobs))

    def _train(self, data: ArrayDataset, seed: int, judge: str) -> Model:
        """Fit the method, and give the model that the judge finds best."""
        epochs = as_type_of("epochs", 1, _plain(self.epochs))
        patience = None if self.patience is None else as_type_of("patience", 1, _plain(self.patience))
        at = tuple(range(1, epochs + 1))
        plan = Plan(epochs=epochs, at=at, patience=patience, judge=judge, threads=self._n_threads())
        callbacks: list[Callback] = [ShowProgress()] if self.verbose else []
        if self.max_seconds is not None:
            callbacks.append(StopAfter(as_type_of("max_seconds", 0.0, _plain(self.max_seconds))))
        method = self._built_method()
        result = fit(data, method, seed, plan, callbacks=callbacks)
        if result.model is None:
            raise DivergedError(result.state.message)
        attributes = {"dataset": data.name, "method": method.name, "seed": seed, "parameters": method.settings}
        attributes |= {"status": result.state.status, "message": result.state.message}
        return replace(result.model, attributes=attributes)

    @contextmanager
    def _scored(self, X: Any) -> Iterator[tuple[Any, ThreadPool]]:
        """Give checked rows, and threads that score them."""
        check_is_fitted(self, "model_")
        X, pool = self._rows(X), self._pool()
        try:
            with one_blas_thread():
                yield X, pool
        finally:
            pool.close()

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
        """Give the parameters as JSON; a generator of random numbers is left out."""
        found = {key: _plain(value) for key, value in self.get_params(deep=False).items()}
        if not isinstance(found["random_state"], int):
            found["random_state"] = None
        return json.loads(json.dumps(found, default=_plain))

    @abstractmethod
    def _own_attributes(self) -> dict[str, Any]:
        """Give what else a file is to hold, as JSON."""

    @abstractmethod
    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        """Take what ``_own_attributes`` gave."""


class MultiLabelClassifier(LinearClassifier):
    """A linear classifier for rows that may have several labels of very many.

    Parameters
    ----------
    method : str or mapping
        Name of a method in ``config/methods.yaml``, or the settings of one. It must take rows with several labels.
    epochs : int
        Passes over the training rows.
    validation_fraction : float
        Share of the rows that are not trained on: they choose which epoch's weights are kept, by nDCG@5, and the
        threshold. 0: weights are the last, and training rows choose the threshold, too low or too high as it may be.
    patience : int or None
        Stop after so many epochs without a gain.
    random_state : int, RandomState or None
        Of validation rows, of the order of training rows, and of classes drawn.
    n_jobs : int or None
        Threads; -1 takes all cores. With more than 1, methods that draw classes differ in bits from fit to fit.
    max_seconds : float or None
        Stop once training has taken so many seconds; evaluation and compiling do not count.
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; of an indicator matrix the numbers of its columns.
    threshold_ : float
        A row has the labels whose log-odds reach it or, with a softmax, whose share's logarithm does. It gives
        validation rows the highest micro-F1, and may be set to another number: log(p / (1 - p)) for probability p.
    model_ : Model
    n_features_in_ : int
    """

    threshold_: float
    _form: LabelForm

    def __init__(
        self,
        method: str | Mapping[str, Any] = "one-vs-rest",
        *,
        epochs: int = 10,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = 1,
        max_seconds: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        return tags

    def fit(self, X: Any, y: Any) -> "MultiLabelClassifier":
        """Train on rows, each with all of its labels.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array or sparse array of shape (n_samples, n_classes); or list of lists or sets
            0 or 1 for each class, or the labels of each row. Rows without any are left out, with a warning.

        Raises
        ------
        InputError
            If shapes differ, rows have one label each, a number is none, or the method does not take such rows;
            ``DivergedError`` if weights grew beyond all bounds.
        """
        X, y = self._rows(X, reset=True), _given(y, self._name)
        form = LabelForm.of(y, f"{self._name}: y")
        labels = self._indicator(y, X, form)
        with_labels = np.diff(labels.indptr) > 0
        if not with_labels.all():
            X, labels = _labelled(X, labels, with_labels, self._name)
        seed = self._seed()
        held = self._held_out(X.shape[0], seed)
        validation = (X[held], labels[held]) if held.any() else None
        names = list(getattr(self, "feature_names_in_", []))
        data = Dataset.from_arrays(
            X[~held],
            labels[~held],
            validation=validation,
            classes=form.classes.tolist(),
            feature_names=names,
            name=self._name,
        )
        with one_blas_thread():
            model = self._train(data, seed, "ndcg_at_5")
            self.threshold_ = self._chosen_threshold(model, data.split("validation" if held.any() else "train"))
        self.model_, self.classes_, self._form = model, form.classes, form
        return self

    def predict(self, X: Any) -> Any:
        """Give each row the labels whose scores reach ``threshold_``; there may be none.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_classes), int64; or list of lists
            As ``y`` was given to ``fit``.
        """
        return self._form_of_fit().given(self._labels(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Tell how far above the threshold every label is, float32 of shape (n_samples, n_classes).

        With one-vs-rest these are log-odds, and with a softmax logarithms of the classes' shares, each less
        ``threshold_``: ``predict`` gives a row the labels of which it is above 0.

        Raises
        ------
        InputError
            If there is no memory for all; ``predict_top_k`` needs less.
        """
        found = self._values(X)
        found -= np.float32(self.threshold_)
        return found

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each label by itself, float64 of shape (n_samples, n_classes).

        It is below 1, as no score makes a label certain: what float64 would round to 1 is the number next below.

        Raises
        ------
        InputError
            If the method has none, or there is no memory for all; ``predict_top_k`` needs less.
        """
        check_is_fitted(self, "model_")
        if self.model_.link != "sigmoid":
            raise InputError(
                f"method {self.model_.attributes['method']}: probabilities are of a {self.model_.link}, and sum to 1 "
                "over all labels, so that none is that of a label by itself; take decision_function, predict_top_k, "
                "or method one-vs-rest"
            )
        found = self._values(X, np.float64)
        return np.minimum(expit(found, out=found), np.nextafter(1.0, 0.0), out=found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Give the share of rows whose labels are all right and no others: scikit-learn's, for several labels.

        With many labels hardly any row is; searches may take ``scoring="f1_micro"``, which the threshold is for.
        """
        found = self._labels(X)
        true = self._indicator(_given(y, self._name), found, self._form)
        return float(accuracy_score(true, found, sample_weight=sample_weight))

    def _chosen_threshold(self, model: Model, rows: Split) -> float:
        assert rows.label_sets is not None  # rows of an indicator have sets, whatever is in these
        pool = self._pool()
        try:
            return best_threshold(model, rows.X, rows.label_sets, pool)
        finally:
            pool.close()

    def _labels(self, X: Any) -> csr_array:
        with self._scored(X) as (X, pool):
            return labels_above(self.model_, X, self.threshold_, pool)

    def _form_of_fit(self) -> LabelForm:
        check_is_fitted(self, "model_")
        return self._form

    def _indicator(self, y: Any, X: Any, form: LabelForm) -> csr_array:
        found = form.indicator(y, f"{self._name}: y")
        if found.shape[0] != X.shape[0]:
            raise InputError(
                f"{self._name}: X has {X.shape[0]} rows, y {found.shape[0]}, inconsistent numbers of samples; give "
                "labels for each row"
            )
        return found

    def _own_attributes(self) -> dict[str, Any]:
        kind = self.classes_.dtype
        if kind.kind not in "iufU":
            raise InputError(
                f"{self._name}: labels are {kind}, which a file cannot hold; fit with numbers or strings"
            )
        return {"threshold": float(self.threshold_), "labels": self._form.kind, "dtype": kind.str}

    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        threshold, kind, dtype = float(said["threshold"]), said["labels"], np.dtype(said["dtype"])
        if not np.isfinite(threshold) or kind not in KINDS or dtype.kind not in "iufU":
            raise ContentError(f"threshold {threshold}, labels {kind!r} of {dtype}")
        names = np.array(list(self.model_.class_names)) if kind == LISTS else np.arange(self.model_.n_classes)
        self.threshold_, self.classes_ = threshold, names if dtype.kind == "U" else names.astype(dtype)
        self._form = LabelForm(kind, self.classes_)


def _given(y: Any, name: str) -> Any:
    """Take labels as they are, a table of another library as an array."""
    if y is None:
        raise InputError(f"{name} requires y to be passed, but the target y is None; give labels for each row")
    return y if issparse(y) or isinstance(y, list | tuple) else np.asarray(y)


def _labelled(X: Any, labels: csr_array, chosen: np.ndarray, name: str) -> tuple[Any, csr_array]:
    """Leave out rows that have no label, and say how many."""
    n_samples, n_kept = chosen.size, int(chosen.sum())
    if not n_kept:
        raise InputError(f"{name}: none of {n_samples} rows has a label; give some that have")
    said = f"{name}: {n_samples - n_kept} of {n_samples} rows have no label and are left out of training"
    warnings.warn(said, UserWarning, stacklevel=3)
    return X[chosen], labels[chosen]


def _plain(value: Any) -> Any:
    """Turn a number of NumPy into one of Python."""
    return value.item() if isinstance(value, np.generic) else value
