"""Made-up fits of loss decomposition's methods, for the tests of its page."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

from lab.reproduction.made_up import results_of
from xsoftmax.lab.reproduction.estimates import difference
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.model import Model

N_CLASSES, N_FEATURES, N = 5000, 4, 30
DATA = {"n_train": 3500, "n_classes": N_CLASSES, "n_features": N_FEATURES}
# Accuracy, seconds per epoch, share of slopes found.
AS_IN_THE_PAPER = {"softmax": (0.2, 2.0, 1), "sampled": (0.1, 0.1, 0), "margin": (0.8, 1.2, 1),
                   "mips": (0.3, 0.1, 0.2), "decomposed": (0.7, 0.11, 0.5)}  # fmt: skip
OTHERWISE = {"softmax": (0.5, 1.0, 1), "sampled": (0.9, 0.9, 0), "margin": (0.2, 1.5, 1),
             "mips": (0.8, 1.4, 0.5), "decomposed": (0.1, 1.3, 0.2)}  # fmt: skip
SOONER = "It is orders of magnitude faster than other strategies of gradient approximation such as sampling"
SPARSE = "The smoothed margin's gradient is very sparse"


def of_means(self, dataset, first, second, measure):
    """Stand for ``Results.difference``: of means over seeds; real fits are compared in test_results."""
    return difference(*(self.estimate(dataset, name, f"end.test_{measure}") for name in (first, second)))


def with_kinds(methods):
    """Each method t in iterations, with t in epochs, and with larger rates."""
    return {f"{name}-{kind}": values for name, values in methods.items() for kind in ("paper", "epochs", "large")}


def made_up(folder, methods, datasets=("faces",)):
    return results_of(folder, {
        (dataset, method): {"end.test_accuracy": accuracy, "end.train_accuracy": accuracy,
                            "fit.seconds_per_epoch": seconds, "end.gradient_found": found, "fit.data": DATA}
        for dataset in datasets
        for method, (accuracy, seconds, found) in methods.items()
    })  # fmt: skip


def growing(results):
    """Accuracy grows with time instead of falling to its last value; the first look is early."""
    for fit in results.fits:
        fit.history["test_accuracy"] = [value * share for value, share in zip(
            [fit.history["test_accuracy"].iloc[-1]] * 3, (0, 0.8, 1), strict=True)]  # fmt: skip
        fit.history["seconds"] = [0.0, 0.005, 1.0]
    return results


def with_models(results, monkeypatch, spread):
    """Models whose scores are equal but for noise, far apart or not."""
    rng = np.random.default_rng(0)
    W = (spread * rng.standard_normal((N_CLASSES, N_FEATURES + 1))).astype(np.float32)
    X = rng.standard_normal((N, N_FEATURES)).astype(np.float32)
    rows = SimpleNamespace(X=X, y=np.arange(N, dtype=np.int32))
    names = [str(k) for k in range(N_CLASSES)]
    monkeypatch.setattr(Results, "models", lambda *_: iter([Model.of_rows(W, names, N_FEATURES)] * 3))
    monkeypatch.setattr(Results, "data", lambda *_: nullcontext(SimpleNamespace(split=lambda _: rows)))
    return Results(results.name, results.fits, [], {"faces": None})


def verdicts(page):
    return {claim.says: claim.finding.verdict for claim in page.claims}
