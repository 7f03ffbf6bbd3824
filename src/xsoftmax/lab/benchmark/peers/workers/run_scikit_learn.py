"""scikit-learn: multinomial ``LogisticRegression``, whose solvers start anew for every number of iterations."""

import warnings

import numpy as np
from protocol import Record, work
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

GROWTH = 1.5  # of the number of iterations from run to run


def train(record: Record) -> None:
    """Settings: ``solver``, ``C``."""
    X, y = record.data.features("train"), record.data.classes("train")
    record.loaded()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with record.warm_up():
        rows = np.unique(y[:2000], return_index=True)[1][:50]
        LogisticRegression(max_iter=1, **record.settings).fit(X[rows], y[rows])
    n_iterations = 1
    while True:
        model = LogisticRegression(
            max_iter=n_iterations, tol=1e-9, random_state=record.job["seed"], **record.settings
        )
        with record.training_anew():
            model.fit(X, y)
        coefficients = np.ascontiguousarray(model.coef_.astype(np.float32, copy=False).T)
        intercepts = model.intercept_.astype(np.float32)
        record.evaluate(n_iterations, lambda rows, W=coefficients, b=intercepts: rows @ W + b)
        if model.n_iter_.max() < n_iterations:
            record.notes["converged"] = True
            return
        if not record.allows(GROWTH):
            return
        n_iterations = int(np.ceil(n_iterations * GROWTH))


if __name__ == "__main__":
    work(train)
