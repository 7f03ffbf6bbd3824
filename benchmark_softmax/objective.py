"""Weights and biases of a softmax over all classes, judged by rows that no solver has seen."""

import numpy as np
from benchopt import BaseObjective

from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.model import Model

SPLITS = ("train", "validation", "test")


class Objective(BaseObjective):
    """The exact log-loss, in nats, and the accuracy of scores ``W x + b``; ``value`` is the validation log-loss."""

    name = "Softmax over many classes"
    min_benchopt_version = "1.10"
    requirements = []  # xsoftmax comes from the checkout that this benchmark is part of
    sampling_strategy = "callback"

    def skip(self, n_classes=0, y_train=(), y_validation=(), refused="", **others):
        """Refuse data that are not there, or without validation rows, or classes that no training row has."""
        if refused:
            return True, refused
        if not len(y_validation):
            return True, "the data have no validation rows, by which solvers are judged"
        if (unseen := n_classes - len(np.unique(y_train))) > 0:
            return True, f"{unseen} of {n_classes} classes have no training row"
        return False, None

    def set_data(self, n_classes, **rows):
        """Take X and y of each split: float32, C-ordered or CSR, and classes from 0 to ``n_classes - 1``."""
        self.n_classes, self.rows = n_classes, rows

    def get_objective(self):
        """Give solvers the training rows, and no others."""
        return {"X": self.rows["X_train"], "y": self.rows["y_train"], "n_classes": self.n_classes}

    def evaluate_result(self, W, b):
        """Measure weights of shape (n_classes, n_features) and biases of shape (n_classes,) on all rows."""
        W, b = np.ascontiguousarray(W, np.float32), np.ascontiguousarray(b, np.float32)
        model = Model(W, [str(k) for k in range(self.n_classes)], W.shape[1], b)
        found = {}
        for split in SPLITS:
            X, y = self.rows[f"X_{split}"], self.rows[f"y_{split}"]
            measured = evaluate(model, X, y)
            found[f"{split}_log_loss"] = -measured["log_likelihood"]
            found[f"{split}_accuracy"] = measured["accuracy"]
        return {"value": found["validation_log_loss"], **found}

    def get_one_result(self):
        """Give all classes the same probability."""
        return {"W": np.zeros((self.n_classes, self.rows["X_train"].shape[1])), "b": np.zeros(self.n_classes)}
