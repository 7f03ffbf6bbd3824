"""An estimator for rows that may have several labels."""

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.label_form import KINDS, LISTS, LabelForm
from xsoftmax.estimators.linear import LinearClassifier
from xsoftmax.evaluation.thresholds import best_threshold, labels_above
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.internal.threads import one_blas_thread
from xsoftmax.model import Model


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
        Stop once training has taken so many seconds, of which the fit of a proposal is part; evaluation and compiling
        do not count.
    verbose : bool
        Show progress on standard error.
    methods : str or path, optional
        A YAML file of methods of your own, which is laid over those that are shipped.

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
        methods: str | os.PathLike[str] | None = None,
    ) -> None:
        self.method = method
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.verbose = verbose
        self.methods = methods

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
        model = self._train(data, self._built_method(), seed, self._plan("ndcg_at_5"))
        with one_blas_thread():
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
        return {"threshold": float(self.threshold_), "labels": self._form.kind, "dtype": self._kind_of_labels()}

    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        threshold, kind = float(said["threshold"]), said["labels"]
        if not np.isfinite(threshold) or kind not in KINDS:
            raise ContentError(f"threshold {threshold}, labels {kind!r}")
        names = self.model_.class_names if kind == LISTS else [str(k) for k in range(self.model_.n_classes)]
        self.threshold_, self.classes_ = threshold, self._labels_of_kind(said["dtype"], names)
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
