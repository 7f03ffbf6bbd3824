"""Rows with several labels on the command line: evaluate a model and files of scores, predict scores."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from data.toy import run
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.legacy_metrics import KINDS
from xsoftmax.model import Model, load_model, save_model

N_FEATURES, N_CLASSES = 6, 9


def lines(n, rng):
    """Rows of one to four labels, in svmlight."""
    for i in range(n):
        labels = {i % N_CLASSES, *rng.integers(0, N_CLASSES, 3).tolist()}
        features = " ".join(f"{j + 1}:{value:.3f}" for j, value in enumerate(rng.random(N_FEATURES)))
        yield f"{','.join(map(str, sorted(labels)))} {features}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A prepared data set with label sets, a model of random weights, and new rows."""
    found, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    contents = {name: "".join(lines(n, rng)) for name, n in (("train", 60), ("validation", 20), ("test", 40))}
    run(found, contents, parts={name: name for name in contents}, labels="sets")
    with open_prepared(found / "toy.h5") as data:
        W = rng.standard_normal((N_CLASSES, N_FEATURES + 1)).astype(np.float32)
        attributes = {"status": "finished", "dataset": "toy"}
        model = Model.of_rows(W, data.class_names, N_FEATURES, transform=data.transform, attributes=attributes)
    save_model(model, found / "model.h5")
    return found


def called(*words):
    return main([str(word) for word in words])


def evaluated(capsys, *words):
    capsys.readouterr()
    assert called("evaluate", *words) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def split_of(folder, name):
    with open_prepared(folder / "toy.h5") as data:
        return data.split(name), data.class_counts, data.n_samples("train")


def naive_scores(folder, X):
    rows = load_model(folder / "model.h5").rows.astype(float)
    return X.toarray().astype(float) @ rows[:, :-1].T + rows[:, -1]


def test_a_model_is_measured_by_all_labels(folder, capsys):
    found, _ = evaluated(capsys, folder / "model.h5", folder / "toy.h5", "--train")
    for name in ("train", "validation", "test"):
        split, counts, n_train = split_of(folder, name)
        s = naive_scores(folder, split.X)
        order = np.argsort(-s, axis=1)
        starts, classes = split.label_sets.starts, split.label_sets.classes
        labels = [set(classes[a:b].tolist()) for a, b in pairwise(starts)]
        log_p = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
        weight = 1 + (math.log(n_train) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55
        hits = [[k for k in row[:3].tolist() if k in own] for row, own in zip(order, labels, strict=True)]
        most = [sorted((weight[k] for k in own), reverse=True)[:3] for own in labels]
        expected = {
            "log_likelihood": np.mean([log_p[i, list(own)].mean() for i, own in enumerate(labels)]),
            "p_at_3": np.mean([len(each) / 3 for each in hits]),
            "psp_at_3": sum(weight[k] for each in hits for k in each) / sum(map(sum, most)),
            "accuracy": np.mean([row[0] in own for row, own in zip(order, labels, strict=True)]),
        }
        assert {key: found[name][key] for key in expected} == pytest.approx(expected, rel=1e-5)
        assert found[name]["top_3_accuracy"] is None
        assert found[name]["n_samples"] == split.n_samples
        assert len(found["reliability"][name]["n"]) == 15


@pytest.mark.parametrize("split", ["test", "validation"])
def test_scores_of_a_model_measure_what_the_model_does(split, folder, tmp_path, capsys):
    scores = tmp_path / "scores.txt"
    words = [folder / "model.h5", folder / "toy.h5", "--split", split, "--top", N_CLASSES, "--scores", scores]
    assert called("predict", *words) == 0
    assert capsys.readouterr().out == ""
    assert scores.read_text().startswith(f"{20 if split == 'validation' else 40} {N_CLASSES}\n")
    by_file, _ = evaluated(capsys, scores, folder / "toy.h5", "--split", split)
    by_model, _ = evaluated(capsys, folder / "model.h5", folder / "toy.h5")
    unknown = {"log_likelihood", "expected_calibration_error"}
    assert {key: by_file[split][key] for key in unknown} == dict.fromkeys(unknown)
    assert by_file[split] == by_model[split] | dict.fromkeys(unknown)
    assert (by_file["dataset"], by_file["status"]) == ("toy", "scores")
    assert set(by_file) == {"dataset", "status", split}


def test_five_scores_a_row_are_enough_for_what_is_measured_at_5(folder, tmp_path, capsys):
    words = [folder / "model.h5", folder / "toy.h5", "--scores", tmp_path / "five", "-o", tmp_path / "five.csv"]
    assert called("predict", *words) == 0
    assert len((tmp_path / "five.csv").read_text().splitlines()) == 1 + 5 * 40
    assert called("evaluate", tmp_path / "five", folder / "toy.h5", "-o", tmp_path / "m.json") == 0
    found = json.loads((tmp_path / "m.json").read_text())["test"]
    by_model, _ = evaluated(capsys, folder / "model.h5", folder / "toy.h5")
    names = [name for name in found if name.endswith("_at_5")]
    assert len(names) == 9
    assert {name: found[name] for name in names} == {name: by_model["test"][name] for name in names}


def test_new_rows_with_several_labels(folder, tmp_path, capsys):
    rng = np.random.default_rng(3)
    rows = [*lines(12, rng)]
    (tmp_path / "new.svm").write_text("".join(rows))
    whole, said = evaluated(capsys, folder / "model.h5", tmp_path / "new.svm")
    assert said == ""
    assert whole["new"]["n_samples"] == 12
    assert whole["new"]["p_at_3"] > 0
    assert whole["new"]["psp_at_3"] is None  # training rows are not known
    more = ["77," + rows[0], *rows[1:], "77,78 1:0.5\n"]
    (tmp_path / "more.svm").write_text("".join(more))
    found, said = evaluated(capsys, folder / "model.h5", tmp_path / "more.svm")
    n_labels = sum(row.split()[0].count(",") + 1 for row in more)
    assert said == (
        f"warning: {tmp_path}/more.svm: 3 of {n_labels} labels that the model does not know are left out\n"
        f"warning: {tmp_path}/more.svm: 1 of 13 rows of classes that the model does not know are left out\n"
    )
    assert found["new"] == whole["new"]
    (tmp_path / "none.svm").write_text("77,78 1:0.5\n")
    assert called("evaluate", folder / "model.h5", tmp_path / "none.svm") == 1
    assert "no row has a label that the model knows, such as '77'" in capsys.readouterr().err


@pytest.mark.fault(
    "a file of scores of other rows, of another data set, or with options that need a model",
    happens="it is refused",
    user="`error: …: 40 rows, but the validation rows of … are 20 (…); say with --split which rows they are of`",
)
def test_scores_that_do_not_fit_are_refused(folder, tmp_path, capsys):
    data, scores = folder / "toy.h5", tmp_path / "scores.txt"
    scores.write_text("40 9\n" + 40 * "3:1\n")
    cases = [
        (
            ["--split", "validation"],
            "40 rows, but the validation rows of toy are 20 (train 60, validation 20, test 40)",
        ),
        (["--train"], "--train needs a model, which scores are not; leave it out"),
        (["--as-published", next(iter(KINDS))], "--as-published needs a model"),
        (["--reference", folder / "model.h5"], "--reference needs a model"),
    ]
    for words, message in cases:
        assert called("evaluate", scores, data, *words) == 1
        assert message in capsys.readouterr().err
    assert called("evaluate", scores, scores) == 1
    assert "scores are measured on a prepared data set; give its HDF5 file" in capsys.readouterr().err
    scores.write_text("40 8\n" + 40 * "3:1\n")
    assert called("evaluate", scores, data) == 1
    assert "8 classes, toy has 9; predict rows of this data set" in capsys.readouterr().err
    scores.write_text("40 9\n" + 39 * "3:1\n")
    assert called("evaluate", scores, data) == 1
    assert "39 rows, line 1 says 40; it is truncated" in capsys.readouterr().err


def test_likelihoods_as_published_are_of_one_label(folder, capsys):
    words = [folder / "model.h5", folder / "toy.h5", "--as-published", next(iter(KINDS))]
    assert called("evaluate", *words) == 1
    assert "--as-published is of rows with one label each; leave it out" in capsys.readouterr().err


def test_predicting_prepared_rows_of_another_data_set_is_refused(folder, prepare, capsys):
    other = prepare(np.eye(4), np.arange(4), 4, n_test=1, name="other")
    assert called("predict", folder / "model.h5", other) == 1
    assert "has other classes than other" in capsys.readouterr().err


def test_scores_are_not_written_over_what_is_read(folder, capsys):
    assert called("predict", folder / "model.h5", folder / "toy.h5", "--scores", folder / "toy.h5") == 1
    assert "is also what is read" in capsys.readouterr().err
