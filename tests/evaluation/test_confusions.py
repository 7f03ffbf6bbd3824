import json

import numpy as np

from xsoftmax.cli import main
from xsoftmax.data.dataset import Split
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation import confusions as module
from xsoftmax.evaluation.confusions import confusions
from xsoftmax.model import Model, save_model

NAMES = ["ant", "<b>bee</b>", "cat", "dog"]


def one_hot(predicted):
    """Rows that a model with weights of the identity takes for these classes."""
    return np.eye(len(NAMES), dtype=np.float32)[predicted]


def of_rows(true, predicted):
    y, X = np.array(true, np.int32), one_hot(predicted)
    return confusions(
        Model(np.eye(len(NAMES), dtype=np.float32), NAMES, 4), Split(X, y), (y != predicted).astype(int)
    )


def test_pairs_are_counted_commonest_first():
    found = of_rows([0, 0, 0, 1, 1, 2, 2, 3], [1, 1, 0, 2, 1, 0, 2, 3])
    assert (found.n_wrong, found.n_seen) == (4, 4)
    assert found.pairs[0] == {"true": "ant", "predicted": "<b>bee</b>", "n": 2, "of": 3}
    assert [(pair["true"], pair["predicted"], pair["n"]) for pair in found.pairs[1:]] == [
        ("<b>bee</b>", "cat", 1),
        ("cat", "ant", 1),
    ]


def test_no_wrong_rows_are_no_pairs():
    assert of_rows([0, 1], [0, 1]) == (0, 0, [])


def test_of_many_wrong_rows_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 3)
    found = of_rows([0] * 5 + [1] * 5, [1] * 5 + [0] * 5)
    assert (found.n_wrong, found.n_seen, sum(pair["n"] for pair in found.pairs)) == (10, 3, 3)
    assert {pair["true"] for pair in found.pairs} == {"ant", "<b>bee</b>"}  # from the first row to the last


def test_a_tie_with_the_true_class_is_no_pair():
    model, y = Model(np.zeros((4, 4), np.float32), NAMES, 4), np.zeros(2, np.int32)
    assert confusions(model, Split(one_hot([0, 0]), y), np.ones(2, int)) == (2, 2, [])


def test_evaluate_says_them_of_test_rows(prepare, tmp_path):
    rng = np.random.default_rng(3)
    path = prepare(rng.standard_normal((90, 4)), rng.integers(0, 4, 90), 4, n_validation=20, n_test=40)
    with open_prepared(path) as data:
        W, test = rng.standard_normal((4, 4)).astype(np.float32), data.split("test")
        model = Model(W, data.class_names, 4, transform=data.transform, attributes={"status": "finished"})
        wrong = (test.X @ W.T).argmax(axis=1) != test.y
    save_model(model, tmp_path / "model.h5")
    assert main(["evaluate", str(tmp_path / "model.h5"), str(path), "-o", str(tmp_path / "metrics.json")]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())["confusions"]
    assert list(found) == ["test"]
    assert found["test"]["n_wrong"] == sum(pair["n"] for pair in found["test"]["pairs"]) == int(wrong.sum())
