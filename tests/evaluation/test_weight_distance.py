import json
from dataclasses import replace

import numpy as np
import pytest

from lab.report.fake_fits import write_fits
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.report import tables
from xsoftmax.lab.report.compare import compare
from xsoftmax.lab.report.page.document import page
from xsoftmax.model import Model, save_model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.tree import Tree
from xsoftmax.training.folders import read_fits

K, D = 4, 3
NAMES = [str(k) for k in range(K)]


def model_of(W, **others):
    return Model.of_rows(np.asarray(W, np.float32), NAMES, D, **others)


def centred(W):
    return W - W.mean(axis=0)


@pytest.fixture
def pair(rng):
    return (model_of(centred(rng.standard_normal((K, D + 1)))) for _ in range(2))


def test_it_is_equation_17(pair):
    reference, model = pair
    expected = 0.0
    for row, row_of_reference in zip(model.rows.tolist(), reference.rows.tolist(), strict=True):
        expected += sum(abs(a - b) for a, b in zip(row, row_of_reference, strict=True))
    expected /= sum(abs(b) for row in reference.rows.tolist() for b in row)
    assert weight_distance(model, reference) == pytest.approx(expected, rel=1e-6)
    assert weight_distance(reference, reference) == 0
    assert weight_distance(model_of(np.zeros((K, D + 1))), reference) == pytest.approx(1)


def test_what_changes_no_probability_changes_no_distance(pair, rng):
    reference, model = pair
    moved = model_of(model.rows + rng.standard_normal(D + 1))
    assert weight_distance(moved, reference) == pytest.approx(weight_distance(model, reference), rel=1e-5)


def test_what_prediction_adds_is_counted_as_a_bias(pair, rng):
    """Two models of the same probabilities are at distance 0."""
    reference, _ = pair
    X, y = rng.standard_normal((40, D)).astype(np.float32), np.repeat(np.arange(K), [25, 8, 5, 2]).astype(np.int32)
    data = TrainingSet(X, y, K)
    frequency = Frequency().fit(data)
    W = reference.rows.copy()
    W[:, -1] -= frequency.log_probabilities
    corrected = model_of(W, correction=frequency)
    assert np.allclose(
        score_rows(corrected, X, y).log_likelihood, score_rows(reference, X, y).log_likelihood, atol=1e-5
    )
    assert weight_distance(corrected, reference) == pytest.approx(0, abs=1e-6)
    assert np.isnan(weight_distance(model_of(W, correction=Tree(2, 10.0).fit(data)), reference))
    assert np.isnan(weight_distance(model_of(W, link="probit"), reference))


def test_a_reference_that_cannot_be_one_is_refused(pair):
    reference, model = pair
    with pytest.raises(InputError, match="other classes or features"):
        weight_distance(model, Model.of_rows(reference.rows[:, 1:], NAMES, D - 1))
    of_words = [replace(reference, transform=Transform("texts", words=tuple(words))) for words in ("abc", "abd")]
    with pytest.raises(InputError, match="other classes or features"):
        weight_distance(*of_words)
    assert weight_distance(of_words[0], of_words[0]) == weight_distance(of_words[0], reference) == 0
    with pytest.raises(InputError, match="no weights to be compared with"):
        weight_distance(model, model_of(np.zeros((K, D + 1))))


def test_the_verb_tells_it(pair, prepare, tmp_path, capsys):
    reference, model = pair
    path = prepare(np.eye(K, D), np.arange(K), K, n_test=1)
    with open_prepared(path) as data:
        names = data.class_names
    for name, found in (("model", model), ("reference", reference)):
        finished = replace(found, class_names=names, attributes={"status": "finished"})
        save_model(finished, tmp_path / f"{name}.h5")
    attributes = {"status": "diverged", "message": "it diverged"}
    save_model(Model(None, names, D, attributes=attributes), tmp_path / "diverged.h5")

    def told(name, *others):
        assert main(["evaluate", str(tmp_path / f"{name}.h5"), str(path), *map(str, others)]) == 0
        return json.loads(capsys.readouterr().out)

    assert "weight_distance" not in told("model")
    assert told("model", "--reference", tmp_path / "reference.h5")["weight_distance"] == weight_distance(
        model, reference
    )
    assert told("diverged", "--reference", tmp_path / "reference.h5")["weight_distance"] is None
    assert told("model", "--reference", tmp_path / "diverged.h5")["weight_distance"] is None


def test_tables_have_a_column_where_it_was_told(tmp_path):
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    table = tables.summary(read_fits(folders))
    assert "distance" not in tables.markdown_table(table)
    metrics = json.loads((folders[1] / "metrics.json").read_text())
    (folders[1] / "metrics.json").write_text(json.dumps(metrics | {"weight_distance": 0.1234}))
    compare(folders, tmp_path)
    lines = (tmp_path / "summary.md").read_text().splitlines()
    cells = {line.split(" | ")[1]: line.split(" | ")[-2] for line in lines if line.startswith("|")}
    assert cells["method"] == "distance to the reference"
    assert (cells["u-max"], cells["softmax"]) == ("0.123", "–")
    config = tmp_path / "config.yaml"
    config.write_text("experiment: mine\n")
    assert "distance to the reference" in page(tmp_path, config)
