"""An estimator for rows of one label each."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from xsoftmax.advice.choice import choice_for
from xsoftmax.data.dataset import ArrayDataset, Dataset
from xsoftmax.data.normalization import Step, fit_steps
from xsoftmax.data.training_set import LARGEST_SEED
from xsoftmax.estimators.labels import check_none_missing
from xsoftmax.estimators.linear import LinearClassifier, shipped_method
from xsoftmax.estimators.stored import text_of_label
from xsoftmax.estimators.warm_start import start_from
from xsoftmax.evaluation import links
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import one_blas_thread
from xsoftmax.methods import AUTO, Method, untried_by_auto
from xsoftmax.training.beginning import mean_length
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.epoch_sampler import resampled
from xsoftmax.training.plan import Plan

# What ``partial_fit`` takes for ``auto``, which needs all rows to choose: all classes where they are few.
FOR_PARTS, FOR_MANY_CLASSES, MANY_CLASSES = "softmax", "sampled-softmax", 10_000
# Validation rows without which a race tells chance: the softmax over all classes is taken.
LEAST_FOR_A_RACE = 200
# Rows are of about unit length if the root mean square of theirs is within this factor of 1.
UNIT = 2.0


class SoftmaxClassifier(LinearClassifier):
    """A linear softmax classifier over very many classes.

    Parameters
    ----------
    method : str or mapping
        ``auto``, which lets methods race on the rows and takes the one that makes validation rows likeliest, or the
        softmax over all classes if these are fewer than 200; the name of a method in ``config/methods.yaml``; or the
        settings of one.
    epochs : int
        Passes over the training rows, at most.
    early_stopping : bool
        Whether rows are kept apart that choose the epoch whose weights are kept, by their log-likelihood, and end the
        fit when it gains no more. Without it the weights are those of the last epoch.
    validation_fraction : float
        Share of the rows that are kept apart if ``early_stopping``.
    patience : int or None
        Epochs without a gain after which the fit ends; None: it ends after ``epochs``.
    scale : bool
        Whether rows that are not of about unit length, as methods want them, are brought to it: dense ones by the
        means and deviations of features, sparse ones by one number. It takes a copy of the rows.
    class_weight : mapping of label to float, "balanced" or None
        What the rows of a class count, times their ``sample_weight``; ``balanced``: all classes count alike.
    warm_start : bool
        Whether ``fit`` begins with the weights of the fit before; classes that are new begin at zero.
    random_state : int, RandomState or None
        Of validation rows, of the order of training rows, and of classes drawn.
    n_jobs : int or None
        Threads; -1 takes all cores. With more than 1, methods that draw classes differ in bits from fit to fit.
    max_seconds : float or None
        Stop once training has taken so many seconds, of which the fit of a proposal is part; evaluation and compiling
        do not count. ``auto`` chooses for this time, so that its choice may differ from fit to fit.
    verbose : bool
        Show progress on standard error.
    callbacks : sequence of Callback or None
        What else hangs on a fit: see ``xsoftmax.training.callbacks``.
    methods : str or path, optional
        A YAML file of methods of your own, which is laid over those that are shipped.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    model_ : Model
        Its ``attributes`` say which method was chosen.
    history_ : list of dict
        A row for each evaluation of the last fit.
    n_features_in_ : int
    """

    # What ``partial_fit`` goes on from, and how many parts it has had.
    _carried: Mapping[str, Any] | None = None
    _n_parts: int = 0

    def __init__(
        self,
        method: str | Mapping[str, Any] = AUTO,
        *,
        epochs: int = 20,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        patience: int | None = 4,
        scale: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = 1,
        max_seconds: float | None = None,
        verbose: bool = False,
        callbacks: Sequence[Callback] | None = None,
        methods: str | os.PathLike[str] | None = None,
    ) -> None:
        self.method = method
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scale = scale
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.verbose = verbose
        self.callbacks = callbacks
        self.methods = methods

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SoftmaxClassifier":
        """Train on rows.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            What rows count: they are visited as often in an epoch as it says. Rows of 0 are left out.

        Raises
        ------
        InputError
            If shapes differ, there is one class only, a number is none, or memory does not suffice;
            ``DivergedError`` if weights grew beyond all bounds.
        """
        before = self.model_ if self.warm_start and hasattr(self, "model_") else None
        X, y, weight = self._labelled_rows(X, y, sample_weight, reset=before is None)
        classes = np.unique(y) if before is None else np.union1d(self.classes_, y)
        seed = self._seed()
        held = self._held_out(X.shape[0], seed) if self.early_stopping else np.zeros(X.shape[0], bool)
        steps = self._steps_for(X[~held] if held.any() else X) if before is None else self._steps
        data = self._dataset(self._scaled(X, steps), y, weight, classes, held, steps)
        start = None if before is None else start_from(before, self.classes_, classes, data)
        method, plan, proposal = self._choice(data, seed)
        model = self._train(data, method, seed, plan, self.callbacks or (), proposal=proposal, start=start)
        self.classes_, self.model_, self._carried = classes, model, None
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "SoftmaxClassifier":
        """Train on some rows once, and go on from there with the next ones; what the optimizer keeps is kept, too.

        After ``fit`` it goes on from its weights. The method is the one named or, for ``auto``, the softmax over all
        classes, over drawn ones where there are more than 10,000. Nothing is kept apart, averaged or calibrated.

        Parameters
        ----------
        X, y, sample_weight
            As of ``fit``.
        classes : array of shape (n_classes,), optional
            All labels; needed by the first call.

        Raises
        ------
        InputError
            As of ``fit``; and if a label is unknown, or the method keeps a number for each row.
        """
        fresh = not hasattr(self, "model_")
        if fresh and classes is None:
            raise InputError(
                f"{self._name}: classes must be passed on the first call to partial_fit; give all labels"
            )
        if classes is not None:
            known = np.unique(classes)
            if not fresh and not np.array_equal(known, self.classes_):
                raise InputError(
                    f"{self._name}: classes is not the same as on last call to partial_fit; leave it out, or let fit "
                    "begin with these weights by warm_start"
                )
        X, y, weight = self._labelled_rows(X, y, sample_weight, reset=fresh)
        known, carried, n_before = self.classes_ if not fresh else known, self._carried, self._n_parts
        steps = self._steps_for(X) if fresh else self._steps
        data = self._dataset(self._scaled(X, steps), y, weight, known, np.zeros(X.shape[0], bool), steps)
        start = None if fresh or carried is not None else start_from(self.model_, known, known, data)
        take, plan = _Take(), Plan(epochs=1, keep="last", rows=1, threads=self._n_threads())
        seed = (self._seed() + n_before) % LARGEST_SEED
        more = [*(self.callbacks or ()), take]
        method = self._method_for_parts(len(known))
        model = self._train(data, method, seed, plan, more, start=start, carried=carried)
        self.classes_, self.model_, self._carried, self._n_parts = known, model, take.taken, n_before + 1
        return self

    def _choice(self, data: ArrayDataset, seed: int) -> tuple[Method, Plan, Any]:
        """Give the method, chosen for the rows if it is ``auto``, how long to train it, and its proposal if known."""
        plan = self._plan("log_likelihood")
        if not self.early_stopping:
            plan = replace(plan, patience=None, keep="last")
        if self.method != AUTO:
            return self._built_method(), plan, None
        if untried := untried_by_auto(None if self.methods is None else os.fspath(self.methods)):
            warnings.warn(f"{self._name}: {untried}", stacklevel=3)
        if data.n_samples("validation") < LEAST_FOR_A_RACE:
            return shipped_method(FOR_PARTS, {}, self.methods), plan, None
        seconds = self._limit()
        asked = plan if seconds is None else replace(plan, epochs=None, at=(), seconds=seconds)
        with one_blas_thread():
            found = choice_for(data, seed, asked)
        plan = found.planned(asked)
        at = plan.at if seconds is None else found.evaluations(plan.spent)
        return replace(found.method, name=found.name), replace(plan, at=at), found.proposal

    def predict(self, X: Any) -> np.ndarray:
        """Give the best class of each row, an array of shape (n_samples,) of ``classes_``.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Raises
        ------
        InputError
            If rows do not have the number of features that ``fit`` has seen, or a number is none.
        """
        return self.predict_top_k(X, 1)[0][:, 0]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Give logarithms of all classes' probabilities, float64 of shape (n_samples, n_classes).

        Raises
        ------
        InputError
            If there is no memory for all, or probabilities are of each class by itself; ``predict_top_k`` and
            ``log_proba_of`` need less.
        """
        with self._scored(X) as (X, pool):
            self._check_sum_to_one()
            every, link = np.arange(self.model_.n_classes), links.load(self.model_.link)

            def of_scores(scores: np.ndarray) -> Any:
                return link.log_probabilities(scores, np.broadcast_to(every, scores.shape))

            instead = "predict_top_k, or log_proba_of, which hold a few"
            return self._of_all_classes(X, pool, of_scores, np.float64, "probabilities", instead)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give all classes' probabilities, float64 of shape (n_samples, n_classes); see ``predict_log_proba``."""
        found = self.predict_log_proba(X)
        return np.exp(found, out=found)

    def log_proba_of(self, X: Any, y: Any) -> np.ndarray:
        """Give the log-probability of each row's own class, float64 of shape (n_samples,), in nats.

        Exact over all classes, of which a block of scores is held at a time.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, as ``fit`` has seen them.

        Raises
        ------
        InputError
            If a label is unknown, or shapes differ.
        """
        with self._scored(X) as (X, pool):
            self._check_sum_to_one()
            y = column_or_1d(np.asarray(y))
            self._check_numbers(X, y)
            places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
            if (unknown := np.flatnonzero(self.classes_[places] != y)).size:
                said = f"{self._name}: row {unknown[0] + 1} is of class {y[unknown[0]]}, which fit has not seen"
                raise InputError(f"{said}; leave it out")
            return score_rows(self.model_, X, places.astype(np.int32), pool).log_likelihood

    def decision_function(self, X: Any) -> np.ndarray:
        """Give scores by which classes are compared, float32 of shape (n_samples, n_classes).

        Logarithms of shares of the softmax; of two classes the second's less the first's, of shape (n_samples,).
        """
        found = self._values(X)
        return found[:, 1] - found[:, 0] if len(self.classes_) == 2 else found

    def _check_sum_to_one(self) -> None:
        if self.model_.link == "sigmoid":
            raise InputError(
                f"method {self.model_.attributes['method']}: probabilities are of each class by itself, and do not "
                "sum to 1; take decision_function or predict_top_k, another method, or MultiLabelClassifier"
            )

    def _labelled_rows(self, X: Any, y: Any, weight: Any, reset: bool) -> tuple[Any, np.ndarray, Any]:
        """Check rows, labels and weights; leave out rows of weight 0."""
        if y is None:
            raise InputError(f"{self._name} requires y to be passed, but the target y is None; give labels")
        lists = (each for each in y if isinstance(each, list | tuple | set)) if isinstance(y, Sequence) else ()
        if issparse(y) or any(isinstance(each, set) or len(each) != 1 for each in lists):
            raise InputError(f"{self._name}: y has several labels for a row; take MultiLabelClassifier")
        try:
            y = column_or_1d(y, warn=True)
            check_none_missing(self._name, y)
            check_classification_targets(y)
            y = np.array(y.tolist()) if y.dtype == object else y  # texts, of which a file knows the length
            X = self._rows(X, reset=reset)
            self._check_numbers(X, y)
            if weight is None and self.class_weight is None:
                return X, y, None
            weight = _check_sample_weight(weight, X, ensure_non_negative=True).astype(np.float64)
            if self.class_weight is not None:
                weight = weight * compute_sample_weight(self.class_weight, y)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
        counts = weight > 0
        return (X, y, weight) if counts.all() else (X[counts], y[counts], weight[counts])

    def _check_numbers(self, X: Any, y: np.ndarray) -> None:
        if len(y) != X.shape[0]:
            said = f"{self._name}: X has {X.shape[0]} rows, y {len(y)}, inconsistent numbers of samples"
            raise InputError(f"{said}; give a label for each row")

    def _steps_for(self, X: Any) -> tuple[Step, ...]:
        """Find out how rows come to about unit length, if they are not."""
        length = mean_length(X)
        if not self.scale or 1 / UNIT <= length <= UNIT:
            return ()
        return tuple(fit_steps([{"divide": length}] if issparse(X) else ["standardize"], X))

    def _dataset(
        self, X: Any, y: np.ndarray, weight: Any, classes: np.ndarray, held: np.ndarray, steps: tuple[Step, ...]
    ) -> ArrayDataset:
        apart = np.flatnonzero(held)
        if weight is not None and apart.size:  # rows that judge count by their weights, too
            apart = apart[resampled(weight[held], np.random.default_rng(apart.size))]
        return Dataset.from_arrays(
            X[~held] if held.any() else X,
            y[~held],
            validation=(X[apart], y[apart]) if apart.size else None,
            classes=classes.tolist(),
            sample_weight=None if weight is None else weight[~held],
            feature_names=list(getattr(self, "feature_names_in_", [])),
            steps=steps,
            name=self._name,
        )

    def _method_for_parts(self, n_classes: int) -> Method:
        """Build the method of ``partial_fit``, without what needs all rows."""
        changes = {"average": "none", "calibration": "none"}
        if self.method == AUTO:
            name = FOR_PARTS if n_classes <= MANY_CLASSES else FOR_MANY_CLASSES
            method = shipped_method(name, changes, self.methods)
        else:
            method = self._built_method(changes)
        for has, what in (
            (method.objective.n_auxiliary, "a number for each row"),
            (method.encoder is not None, "an encoder"),
            (method.weights != "dense", "sparse weights"),
            (method.optimizer.needs == "full_gradient", "steps of all rows"),
        ):
            if has:
                raise InputError(
                    f"method {method.name}: it has {what}, which partial_fit does not carry from some rows to the "
                    "next; take another method, such as softmax or sampled-softmax"
                )
        return method

    def _own_attributes(self) -> dict[str, Any]:
        weights = None
        if isinstance(self.class_weight, Mapping):
            texts = ((text_of_label(key, self.classes_.dtype), w) for key, w in self.class_weight.items())
            weights = [[text, float(w)] for text, w in texts if text is not None]
        return {"dtype": self._kind_of_labels(), "class_weight": weights}

    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        self.classes_ = self._labels_of_kind(said["dtype"], self.model_.class_names)
        if weights := said.get("class_weight"):
            labels = self._labels_of_kind(said["dtype"], [label for label, _ in weights])
            self.class_weight = dict(zip(labels.tolist(), (weight for _, weight in weights), strict=True))


class _Take(Callback):
    """Take what a fit ends with."""

    def __init__(self) -> None:
        self.taken: Mapping[str, Any] | None = None

    def end(self, fit: RunningFit) -> None:
        self.taken = {name: array for name, array in fit.arrays().items() if name != "auxiliary"}
