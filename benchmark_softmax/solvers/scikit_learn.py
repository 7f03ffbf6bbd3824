"""Scikit-learn's LogisticRegression, trained anew for each point of the curve."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    """``C`` is the inverse of the penalty's weight, which all training rows together are divided by."""

    name = "scikit-learn"
    parameters = {"solver": ["lbfgs", "saga"], "C": [1.0]}
    test_config = {"solver": "lbfgs"}
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "iteration"

    def set_objective(self, X, y, n_classes):
        """Take the training rows."""
        self.X, self.y, self.n_classes = X, y, n_classes
        self.seed = self.get_seed(use_repetition=True)

    def run(self, n_iter):
        """Train for so many iterations at most."""
        self.W, self.b = np.zeros((self.n_classes, self.X.shape[1])), np.zeros(self.n_classes)
        if n_iter == 0:
            return
        model = LogisticRegression(C=self.C, solver=self.solver, max_iter=n_iter, tol=0, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self.X, self.y)
        first = self.n_classes - len(model.coef_)  # of two classes, it has weights of the second alone
        self.W[first:], self.b[first:] = model.coef_, model.intercept_

    def get_result(self):
        """Give the weights of the last run."""
        return {"W": self.W, "b": self.b}
