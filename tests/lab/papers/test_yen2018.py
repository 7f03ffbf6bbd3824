"""The page of loss decomposition: it builds, and its verdicts follow the numbers."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from lab.reproduction.made_up import results_of
from xsoftmax.lab.papers._yen2018_methods import at
from xsoftmax.lab.reproduction import page_of
from xsoftmax.lab.reproduction.page import Verdict
from xsoftmax.lab.reproduction.results import Results
from xsoftmax.model import Model

N_CLASSES, N_FEATURES, N = 500, 4, 30
DATA = {"n_train": 3500, "n_classes": N_CLASSES, "n_features": N_FEATURES}
# Accuracy, seconds per epoch, and how far apart the scores of classes are.
AS_IN_THE_PAPER = {"softmax-paper": (0.2, 2.0), "sampled-paper": (0.1, 0.1), "margin-paper": (0.8, 1.2),
                   "softmax-large": (0.9, 2.0), "margin-large": (0.9, 1.5), "mips-paper": (0.3, 0.1),
                   "decomposed-paper": (0.7, 0.11)}  # fmt: skip
OTHERWISE = {"softmax-paper": (0.5, 1.0), "sampled-paper": (0.9, 0.9), "margin-paper": (0.2, 1.5),
             "softmax-large": (0.4, 1.0), "margin-large": (0.9, 1.5), "mips-paper": (0.8, 1.4),
             "decomposed-paper": (0.1, 1.3)}  # fmt: skip
DRAWN = {name: values for name, values in AS_IN_THE_PAPER.items() if name != "sampled-paper"}


def made_up(folder, methods, datasets=("faces",)):
    return results_of(folder, {
        (dataset, method): {"end.test_accuracy": accuracy, "end.train_accuracy": accuracy,
                            "fit.seconds_per_epoch": seconds, "fit.data": DATA}
        for dataset in datasets
        for method, (accuracy, seconds) in methods.items()
    })  # fmt: skip


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
    return {claim.says: claim.verdict for claim in page.claims if claim.verdict != Verdict.OPEN}


def test_orders_of_the_paper_are_reproduced(tmp_path, monkeypatch):
    page = page_of("yen2018", with_models(made_up(tmp_path, AS_IN_THE_PAPER), monkeypatch, spread=10.0))
    assert set(verdicts(page).values()) == {Verdict.REPRODUCED}
    assert len(verdicts(page)) == 10
    assert f"| Margin | {N_CLASSES - 1} |" in page.markdown()


def test_other_orders_are_not(tmp_path, monkeypatch):
    page = page_of("yen2018", with_models(made_up(tmp_path, OTHERWISE), monkeypatch, spread=1e-3))
    assert set(verdicts(page).values()) == {Verdict.NOT}
    assert len(verdicts(page)) == 10


@pytest.mark.parametrize("methods", [DRAWN, {"margin-paper": (0.8, 1.5)}], ids=["no-sampled", "margin-alone"])
def test_it_builds_with_what_there_is(methods, tmp_path):
    page = page_of("yen2018", made_up(tmp_path, methods))
    assert set(page.figures) == {"accuracy-faces"}
    assert all(text not in page.markdown() for text in ("nan", "inf"))


def test_of_real_features_only_searches_are_judged_and_told_apart(tmp_path):
    datasets = ("debian-pca", "faces")
    page = page_of("yen2018", made_up(tmp_path, AS_IN_THE_PAPER | {"mips-paper": (0.3, 0.4)}, datasets))
    told = {says: verdict for says, verdict in verdicts(page).items() if "on debian-pca" in says}
    assert len(told) == 3
    assert [verdict for says, verdict in told.items() if "speed up" in says] == [Verdict.IN_SHAPE]  # 3 times as fast
    assert set(page.figures) == {"accuracy-faces", "accuracy-debian-pca"}
    text = page.markdown()
    assert text.index("The searches for classes, on faces") < text.index("The searches for classes, on debian-pca")


def test_accuracy_after_some_epochs_is_between_those_of_looks(tmp_path):
    results = made_up(tmp_path, {"margin-paper": (0.5, 1.0)})
    assert at(results, "faces", "margin-paper", "train_accuracy", "epoch", 1.5).mean == pytest.approx(0.525, rel=1e-3)
