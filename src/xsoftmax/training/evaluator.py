"""What a fit's curve shows: its objective on some training rows, always the same; metrics of all the other rows."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.windows import some, taken
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.calibration import rows_for
from xsoftmax.evaluation.frequencies import frequency_error
from xsoftmax.evaluation.frequency_calibration import calibrated, frequencies_of
from xsoftmax.evaluation.likelihood import score_together
from xsoftmax.evaluation.objective import mean_loss
from xsoftmax.evaluation.part_of_model import total_over_classes
from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.encoded import EncodedWeights
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal
from xsoftmax.solvers._labels import lists_of
from xsoftmax.training.plan import SUBSET

# Scores from which an objective's own loss is taken, at most: of all rows of the subset, unless classes are many.
MOST_SCORES = 2**26
# Rows, of these, on which a search is measured, and scores of theirs, at most.
SEARCHED, SEARCHED_SCORES = 100, 2**24
# Key of the draw of these rows. (seed, epoch) is that of an epoch's order, and NumPy pads keys with zeros: 0 would
# draw the rows that seed 0 visits first.
LOOKED_AT = (0, 0, 0, 1)
# Weights that are looked at in one go.
CHECKED_AT_ONCE = 2**20


class Evaluator:
    """Evaluate one fit, along its way; ``searched`` are training rows on which a search is measured, if there is one.

    Parameters
    ----------
    data : Dataset
    train : Split
        Training rows, in memory or in their file.
    objective, proposal
        Fitted.
    method : Method
    pool : ThreadPool
    rows : int, optional
        Of each split, at most; for test metrics of all rows there is the verb ``evaluate``.
    place : str
        Where scores are made: see ``Model.scored_on``.
    """

    def __init__(
        self,
        data: Dataset,
        train: Split,
        objective: Any,
        proposal: Proposal,
        method: Method,
        pool: ThreadPool,
        rows: int | None = None,
        place: str = NUMBA,
    ) -> None:
        self._objective, self._proposal, self._pool = objective, proposal, pool
        self._place = place
        self._l2, self._n_samples = method.l2, train.n_samples
        whole = {name: data.split(name) for name in ("validation", "test")}
        self.validation = whole["validation"]
        self._calibration = method.calibration
        n_calibrating = 0 if method.calibration == "none" else rows_for(data.n_classes)
        self._calibrates_on = some(whole["validation"], n_calibrating).pairs
        counted = method.calibration == "temperature-and-frequency"
        needs = metrics.needs("fit", one_label=not data.multilabel)
        counts = train.class_counts(data.n_classes) if counted or "class_counts" in needs else None
        self._propensity = data.propensity
        self._frequencies = frequencies_of(counts, self.validation.y) if counted and counts is not None else None
        self._class_counts, self._confident = counts, "confidence" in needs
        splits = {name: some(split, rows) for name, split in whole.items()}
        self._others = {name: split for name, split in splits.items() if split.n_samples}
        drawn = np.random.default_rng(LOOKED_AT).permutation(train.n_samples)[: min(SUBSET, rows or SUBSET)]
        self._n_for_loss = max(1, MOST_SCORES // data.n_classes)
        self._subset = np.concatenate([np.sort(drawn[: self._n_for_loss]), np.sort(drawn[self._n_for_loss :])])
        self._train, self._positives = taken(train, self._subset), method.positives
        chosen, sets = self._subset[: self._n_for_loss], train.label_sets
        self._auxiliary_of_subset = chosen if sets is None else sets.places_of(chosen)
        searches = method.proposal.finds or hasattr(method.proposal, "n_found")
        self.searched = drawn[: min(SEARCHED, 1 + SEARCHED_SCORES // data.n_classes) if searches else 0]
        self._classes = None if data.n_features else np.asarray(train.y)
        self.watched = [f"{name}_log_likelihood" for name in self._others or ["train"]]

    def calibrated(self, model: Model) -> Model:
        """Give a model the calibration of its validation rows, if the method asks for one."""
        rows, counts = self._calibrates_on, self._frequencies
        return calibrated(model, self._calibration, rows.X, rows.y, counts, self._pool)

    def evaluate(self, model: Model, auxiliary: np.ndarray) -> dict[str, float]:
        """Measure a model; ``auxiliary`` are the variables of all training samples."""
        model = self.calibrated(model.scored_on(self._place))
        with model.unchanging():
            row = self._measure(model)
            log_likelihood, penalty = row["train_log_likelihood"], self._penalty(model)
            row["objective"] = self._loss(model, log_likelihood, auxiliary) + penalty
            row["regularized_log_loss"] = penalty - log_likelihood
            if self._classes is not None:
                row["frequency_error"] = frequency_error(model, self._train.X, self._classes)
        return row

    def _measure(self, model: Model) -> dict[str, float]:
        """Give all metrics of the training subset and of the other splits."""
        splits = {"train": self._train, **self._others}
        row: dict[str, float] = {}
        scored = score_together(model, [*splits.values()], self._pool, self._confident)
        for name, scores in zip(splits, scored, strict=True):
            rows = replace(
                scores, class_counts=self._class_counts, n_train=self._n_samples, propensity=self._propensity
            )
            measured, known = metrics.measure(rows, "fit"), metrics.known()
            row |= {f"{name}_{column}": value for column, value in measured.items() if known[column].suits(rows)}
        return row

    def _loss(self, model: Model, log_likelihood: float, auxiliary: np.ndarray) -> float:
        """The objective's own loss: known for sums of exponentials over all classes; others need whole rows."""
        if self._objective.sums_exponentials and model.calibration is None and self._positives == "mean":
            return -log_likelihood
        n = self._n_for_loss
        rows = self._train.with_labels_of(self._train.X[:n], slice(0, n))
        labels = rows.y if rows.label_sets is None else lists_of(rows.label_sets, self._positives)
        auxiliary = auxiliary[self._auxiliary_of_subset]
        return mean_loss(model, self._objective, self._proposal, rows.X, labels, auxiliary, self._pool)

    def _penalty(self, model: Model) -> float:
        """The L2 penalty, per training row."""
        if model.W is None or not self._l2:
            return 0.0
        squares = total_over_classes(model, float(np.sum(np.square(model.W, dtype=np.float64))))
        return 0.5 * self._l2 * squares / self._n_samples


def all_finite(W: Any) -> bool:
    """Tell whether no weight is infinite or NaN, looking at a block at a time: the answers take memory, too."""
    if isinstance(W, EncodedWeights):
        return all(all_finite(part) for part in W)
    if issparse(W):
        W = W.data[:, None]
    step = max(1, CHECKED_AT_ONCE // W.shape[1])
    return all(np.isfinite(W[start : start + step]).all() for start in range(0, len(W), step))
