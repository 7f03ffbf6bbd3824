"""The estimator for rows of one label: against plain loops, and in scikit-learn's pipelines, searches and checks."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from pages import Page
from xsoftmax import SoftmaxClassifier
from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.model import load_model, save_model
from xsoftmax.training.callbacks import Callback

X, Y = (part[:600] for part in load_digits(return_X_y=True))
NEW, NEW_Y = (part[600:900] for part in load_digits(return_X_y=True))
UNIT, UNIT_NEW = X / 60, NEW / 60  # of about unit length
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
WEIGHED = "rows are visited by their weights, in another order than repeated ones, and others are kept for validation"


@pytest.fixture(scope="module")
def fitted():
    return SoftmaxClassifier("softmax", epochs=10).fit(UNIT, NAMES[Y])


def scores(found, X):
    return X @ found.model_.W.T.astype(np.float64) + found.model_.b


def clone_of(found):
    return pickle.loads(pickle.dumps(found))  # noqa: S301 - of our own making


def test_a_method_of_ones_own_file(tmp_path):
    optimizer = {"name": "adagrad", "learning_rate": 0.5}
    mine = {"objective": {"name": "softmax"}, "proposal": {"name": "all"}, "optimizer": optimizer}
    (tmp_path / "mine.yaml").write_text(json.dumps({"mine": mine}))
    found = SoftmaxClassifier("mine", methods=tmp_path / "mine.yaml", epochs=2).fit(X, Y)
    assert found.model_.attributes["method"] == "mine"
    found.save(tmp_path / "model.h5")
    assert SoftmaxClassifier.load(tmp_path / "model.h5").methods == str(tmp_path / "mine.yaml")


def test_weights_by_label_are_in_the_file_and_callbacks_are_not(tmp_path):
    weights = {int(k): 1.0 + (k == 3) for k in np.unique(Y)}
    found = SoftmaxClassifier("softmax", epochs=1, class_weight=weights, callbacks=[Callback()]).fit(UNIT, Y)
    found.save(tmp_path / "model.h5")
    again = SoftmaxClassifier.load(tmp_path / "model.h5")
    assert again.class_weight == weights
    assert again.callbacks is None
    assert np.array_equal(again.fit(UNIT, Y).model_.W, found.model_.W)


def test_weights_may_name_labels_by_what_equals_them(tmp_path):
    given = {float(k): 1.0 + (k == 3) for k in np.unique(Y)} | {0.5: 3.0}
    found = SoftmaxClassifier("softmax", epochs=1, class_weight=given).fit(UNIT, Y)
    found.save(tmp_path / "model.h5")
    again = SoftmaxClassifier.load(tmp_path / "model.h5")
    assert again.class_weight == {int(k): 1.0 + (k == 3) for k in np.unique(Y)}
    found = SoftmaxClassifier("softmax", epochs=1, class_weight={0: 1, 1: 2}).fit(UNIT, Y > 3)
    found.save(tmp_path / "model.h5")
    assert SoftmaxClassifier.load(tmp_path / "model.h5").class_weight == {False: 1.0, True: 2.0}


@pytest.mark.parametrize(
    "y", [csr_array(np.eye(len(Y))), [["a", "b"]] * len(Y), [{k} for k in Y]], ids=["sparse", "lists", "sets"]
)
def test_several_labels_are_for_another_estimator(y):
    with pytest.raises(InputError, match="y has several labels for a row; take MultiLabelClassifier"):
        SoftmaxClassifier("softmax").fit(UNIT, y)


@pytest.mark.parametrize("asked", ["predict", "predict_proba", "decision_function"])
def test_nothing_is_predicted_before_a_fit(asked):
    with pytest.raises(NotFittedError):
        getattr(SoftmaxClassifier("softmax"), asked)(UNIT)


def test_a_column_of_labels_is_one_label_each():
    with pytest.warns(DataConversionWarning):
        found = SoftmaxClassifier("softmax", epochs=1).fit(UNIT, [[int(k)] for k in Y])
    assert found.classes_.tolist() == np.unique(Y).tolist()


def test_seconds_may_be_a_number_of_numpy():
    found = SoftmaxClassifier(max_seconds=np.int64(1), epochs=2).fit(UNIT, NAMES[Y])
    assert found.model_.attributes["method"] != "auto"


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=str)
def test_a_label_that_is_missing_is_named(missing):
    y = np.array([*NAMES[Y[:4]], missing, *NAMES[Y[5:]]], dtype=object)
    with pytest.raises(InputError, match=r"SoftmaxClassifier: row 5 has .* for a label; leave the row out"):
        SoftmaxClassifier("softmax").fit(UNIT, y)


def test_auto_says_which_methods_of_ones_own_it_does_not_try(tmp_path):
    own = {"mine": {"objective": {"name": "softmax"}, "proposal": {"name": "all"}, "optimizer": {"name": "sgd"}}}
    (tmp_path / "mine.yaml").write_text(json.dumps(own))
    with pytest.warns(UserWarning, match=r"auto chooses among shipped methods; mine of .*mine\.yaml: name one"):
        SoftmaxClassifier(methods=tmp_path / "mine.yaml", epochs=1).fit(UNIT[:60], Y[:60])
    with pytest.raises(InputError, match=r"nothing\.yaml"):
        SoftmaxClassifier(methods=tmp_path / "nothing.yaml").fit(UNIT[:60], Y[:60])


def test_it_predicts_classes_by_their_names(fitted):
    assert fitted.classes_.tolist() == sorted(NAMES)
    assert np.array_equal(fitted.predict(UNIT_NEW), fitted.classes_[scores(fitted, UNIT_NEW).argmax(axis=1)])
    assert fitted.score(UNIT_NEW, NAMES[NEW_Y]) > 0.85
    assert fitted.n_features_in_ == 64
    assert fitted.model_.attributes["method"] == "softmax"
    assert fitted.history_[-1]["validation_log_likelihood"] > fitted.history_[0]["validation_log_likelihood"]


def test_probabilities_are_those_of_the_softmax(fitted):
    expected = log_softmax(scores(fitted, UNIT_NEW), axis=1)
    assert np.allclose(fitted.predict_log_proba(UNIT_NEW), expected, atol=1e-5)
    assert np.allclose(fitted.predict_proba(UNIT_NEW), np.exp(expected), atol=1e-6)
    assert np.allclose(fitted.decision_function(UNIT_NEW), expected, atol=1e-5)
    own = np.searchsorted(fitted.classes_, NAMES[NEW_Y])
    assert np.allclose(fitted.log_proba_of(UNIT_NEW, NAMES[NEW_Y]), expected[np.arange(300), own], atol=1e-5)
    classes, best = fitted.predict_top_k(UNIT_NEW, 3)
    assert np.array_equal(classes, fitted.classes_[np.argsort(-expected, axis=1)[:, :3]])
    assert np.allclose(best, -np.sort(-np.exp(expected), axis=1)[:, :3], atol=1e-6)


@pytest.mark.parametrize("storage", [csr_array, csr_matrix, np.asfortranarray, np.float32])
def test_the_storage_of_rows_makes_no_difference(fitted, storage):
    found = SoftmaxClassifier("softmax", epochs=10).fit(storage(UNIT), NAMES[Y])
    assert np.allclose(found.predict_log_proba(storage(UNIT_NEW)), fitted.predict_log_proba(UNIT_NEW), atol=1e-3)


def test_rows_are_read_from_a_memory_map(fitted, tmp_path):
    np.save(tmp_path / "X.npy", UNIT.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = SoftmaxClassifier("softmax", epochs=10).fit(mapped, NAMES[Y])
    assert np.array_equal(found.model_.W, fitted.model_.W)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_raw_features_are_scaled_and_no_worse_than_logistic_regression(load):
    """Of any units: a plain fit of these rows goes nowhere, or beyond all bounds."""
    rows, new, y, y_new = train_test_split(*load(return_X_y=True), random_state=0)
    found = SoftmaxClassifier().fit(rows, y)
    lasting = LogisticRegression(max_iter=5000).fit(rows, y)
    assert found.score(new, y_new) > lasting.score(new, y_new) - 0.02
    assert log_loss(y_new, found.predict_proba(new)) < log_loss(y_new, lasting.predict_proba(new)) + 0.05


def test_sparse_rows_are_scaled_by_one_number():
    found, same = (SoftmaxClassifier("softmax", epochs=3).fit(csr_array(factor * X), Y) for factor in (1.0, 4.0))
    (step,) = found.model_.transform.steps
    length = np.sqrt((X**2).sum(axis=1).mean())
    assert step.kind == "divide"
    assert step.arrays["divisor"][0] == pytest.approx(length, rel=0.02)  # of rows that are trained on
    assert np.allclose(found.predict_proba(csr_array(NEW)), same.predict_proba(csr_array(4 * NEW)), atol=1e-5)
    assert not SoftmaxClassifier("softmax", epochs=1).fit(UNIT, Y).model_.transform.steps
    assert not SoftmaxClassifier("softmax", epochs=1, scale=False).fit(X, Y).model_.transform.steps


def test_rows_of_more_weight_are_fitted_better():
    rng = np.random.default_rng(0)
    wrong = rng.random(600) < 0.5
    y = np.where(wrong, (Y + 1) % 10, Y)
    alike, right = (
        SoftmaxClassifier("softmax", epochs=20).fit(UNIT, y, sample_weight=weight)
        for weight in (None, np.where(wrong, 0.01, 1))
    )
    assert right.score(UNIT_NEW, NEW_Y) > alike.score(UNIT_NEW, NEW_Y) + 0.05


def test_rows_of_no_weight_are_as_if_they_were_not_there():
    half = np.arange(600) < 300
    found = SoftmaxClassifier("softmax", epochs=3).fit(UNIT, Y, sample_weight=half.astype(float))
    same = SoftmaxClassifier("softmax", epochs=3).fit(UNIT[half], Y[half], sample_weight=np.ones(300))
    assert np.array_equal(found.model_.W, same.model_.W)


def test_balanced_classes_count_alike():
    """Of two classes of one place, one has nine in ten rows: with balance both are as likely."""
    y = (np.arange(600) % 10 == 0).astype(int)
    rows = np.ones((600, 2))
    found, plain = (
        SoftmaxClassifier("softmax", epochs=40, class_weight=weight, scale=False).fit(rows, y)
        for weight in ("balanced", None)
    )
    assert found.predict_proba(rows[:1])[0, 1] == pytest.approx(0.5, abs=0.1)
    assert plain.predict_proba(rows[:1])[0, 1] == pytest.approx(0.1, abs=0.05)


@pytest.mark.long_cases
@pytest.mark.parametrize("method", ["auto", "one-vs-each", "sampled-softmax"])
def test_parts_one_after_the_other_are_an_epoch(method):
    found = SoftmaxClassifier(method)
    for _ in range(5):
        for first in range(0, 600, 50):
            found.partial_fit(UNIT[first : first + 50], Y[first : first + 50], classes=range(10))
    assert found.score(UNIT_NEW, NEW_Y) > 0.85


def test_a_part_goes_on_from_a_fit():
    found = SoftmaxClassifier("softmax", epochs=5).fit(UNIT[:300], Y[:300])
    before = found.log_proba_of(UNIT[300:], Y[300:]).mean()
    found.partial_fit(UNIT[300:], Y[300:])
    assert found.log_proba_of(UNIT[300:], Y[300:]).mean() > before
    assert found.score(UNIT[:300], Y[:300]) > 0.8


def test_what_the_optimizer_keeps_goes_from_part_to_part():
    """Adagrad's steps become shorter: without what it has added up they would be as long as at first."""
    found = SoftmaxClassifier("softmax")
    for first in range(0, 600, 100):
        found.partial_fit(UNIT[first : first + 100], Y[first : first + 100], classes=range(10))
    forgetful, before = clone_of(found), found.model_.W.copy()
    forgetful._carried = None
    moved = [np.abs(each.partial_fit(UNIT[:100], Y[:100]).model_.W - before).mean() for each in (found, forgetful)]
    assert moved[0] < moved[1] / 2


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("method", "storage"),
    [*((name, kind) for name in ("softmax", "sampled-softmax") for kind in (np.asarray, csr_array)),
     ("text-softmax", csr_array)],
)  # fmt: skip
def test_a_warm_start_goes_on_and_takes_new_classes(method, storage):
    few = Y < 7
    found = SoftmaxClassifier(method, epochs=5, warm_start=True).fit(storage(UNIT[few]), Y[few])
    first = found.log_proba_of(storage(UNIT[few]), Y[few]).mean()
    trained = ~found._held_out(few.sum(), 0)
    at_end = found.log_proba_of(storage(UNIT[few][trained]), Y[few][trained]).mean()
    found.set_params(epochs=1).fit(storage(UNIT[few]), Y[few])
    begun = found.history_[0]["train_log_likelihood"]
    assert begun > -0.9 * np.log(7)
    if method != "text-softmax":  # which is calibrated where it ends, and not where it begins
        assert begun == pytest.approx(at_end, abs=1e-4)
    assert found.log_proba_of(storage(UNIT[few]), Y[few]).mean() > first - 0.1
    found.set_params(epochs=10).fit(storage(UNIT), Y)
    assert found.classes_.tolist() == list(range(10))
    assert found.score(storage(UNIT_NEW), NEW_Y) > 0.8


@pytest.mark.slow
def test_a_race_chooses_where_there_are_rows_to_judge():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 3000)
    rows = np.eye(5, 8)[y] + rng.normal(0, 0.3, (3000, 8))
    found = SoftmaxClassifier(epochs=3).fit(rows, y)
    assert found.score(rows, y) > 0.9
    again = SoftmaxClassifier(epochs=3).fit(rows, y)
    assert again.model_.attributes["method"] == found.model_.attributes["method"]
    assert np.array_equal(again.predict_proba(rows[:9]), found.predict_proba(rows[:9]))


def test_a_file_holds_all_that_predicts(tmp_path):
    for labels in (Y, Y.astype(float), NAMES[Y], Y > 4, Y.astype(np.uint8)):
        found = SoftmaxClassifier("softmax", epochs=2).fit(X, labels)
        found.save(tmp_path / "model.h5")
        again = SoftmaxClassifier.load(tmp_path / "model.h5")
        assert again.classes_.dtype == found.classes_.dtype
        assert np.array_equal(again.classes_, found.classes_)
        assert np.array_equal(again.predict_proba(NEW), found.predict_proba(NEW))
        assert again.get_params() == found.get_params()


def test_the_command_line_predicts_from_raw_rows(tmp_path, capsys):
    found = SoftmaxClassifier("softmax", epochs=3).fit(X, NAMES[Y])
    found.save(tmp_path / "model.h5")
    np.save(tmp_path / "new.npy", NEW[:5])
    assert main(["predict", str(tmp_path / "model.h5"), str(tmp_path / "new.npy"), "--top", "1"]) == 0
    said = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [line[said[0].index("class")] for line in said[1:]] == found.predict(NEW[:5]).tolist()


@pytest.mark.fault(
    "an estimator's file of labels that are none, or that another estimator wrote",
    happens="it is refused as it is read",
    user="`InputError: …: not what xsoftmax writes (…); write it with SoftmaxClassifier.save`",
)
@pytest.mark.parametrize("changes", [{"class": "MultiLabelClassifier"}, {"dtype": "|O"}, {"dtype": "<i8"}])
def test_a_file_of_others_is_refused(changes, fitted, tmp_path):
    fitted.save(tmp_path / "model.h5")
    model = load_model(tmp_path / "model.h5")
    model.attributes["estimator"] = model.attributes["estimator"] | changes
    save_model(model, tmp_path / "model.h5")
    with pytest.raises(InputError, match=r"model\.h5: .*; write it with SoftmaxClassifier\.save"):
        SoftmaxClassifier.load(tmp_path / "model.h5")


def test_it_clones_pickles_and_is_a_part_of_others(fitted):
    assert not hasattr(clone(fitted), "model_")
    assert np.array_equal(clone_of(fitted).predict_proba(UNIT_NEW), fitted.predict_proba(UNIT_NEW))
    grid = GridSearchCV(SoftmaxClassifier("softmax"), {"epochs": [1, 8]}, cv=2, scoring="neg_log_loss").fit(UNIT, Y)
    assert grid.best_params_ == {"epochs": 8}
    calibrated = CalibratedClassifierCV(SoftmaxClassifier("softmax", epochs=5), cv=2).fit(UNIT, Y)
    assert calibrated.score(UNIT_NEW, NEW_Y) > 0.8
    texts = [f"{NAMES[y]} words" for y in Y]
    piped = make_pipeline(TfidfVectorizer(), SoftmaxClassifier("text-softmax", epochs=3)).fit(texts, Y)
    assert piped.predict(["seven", "words nine"]).tolist() == [7, 9]


def test_callbacks_hang_on_the_fit():
    class Stop(Callback):
        def evaluated(self, fit, row):
            if row["epoch"] >= 2:
                fit.stop("stopped early", "enough")

    found = SoftmaxClassifier("softmax", epochs=9, callbacks=[Stop()]).fit(UNIT, Y)
    assert found.history_[-1]["epoch"] == 2
    short = SoftmaxClassifier("softmax", epochs=10**5, patience=None, max_seconds=0.05).fit(UNIT, Y)
    assert 0.05 <= short.history_[-1]["seconds"] < 5


def test_seconds_that_a_proposal_takes_are_refused():
    """So far, a model of no step came out, as likely to be right as a guess."""
    eaten = SoftmaxClassifier("one-vs-each-tree", max_seconds=1e-9)
    with pytest.raises(InputError, match=r"proposal tree was fitted in .*; give more than .*, a budget in epochs"):
        eaten.fit(UNIT, Y)


def test_what_memory_does_not_hold_is_refused_with_another_way(fitted, monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 2**12)
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(
            InputError, match=r"of 300 rows and 10 classes: .* are free; give fewer rows .*predict_top_k"
        ):
            getattr(fitted, method)(UNIT_NEW)
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 2**17)
    with pytest.raises(InputError, match=r"a copy of 600 rows: .*set scale to False"):
        SoftmaxClassifier("softmax", epochs=1).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"method": "sofmax"}, Y, "unknown method 'sofmax'; .*did you mean 'softmax'"),
        ({}, np.zeros(600), "has 1 class; a softmax needs at least 2"),
        ({}, Y[:5], r"X has 600 rows, y 5, .* give a label for each row"),
        ({}, None, "requires y to be passed"),
        ({"validation_fraction": 1.5}, Y, "validation_fraction is 1.5; set it to 0 or more, below 1"),
        ({"epochs": 0}, Y, "epochs is 0"),
        ({"class_weight": "even"}, Y, "balanced"),
        ({"method": "softmax-lbfgs"}, Y, "visits each once; take optimizer sgd or adagrad"),
        ({}, np.where(np.arange(600) == 7, np.nan, Y), "NaN"),
    ],
)
def test_mistakes_are_told(parameters, y, message):
    weight = np.arange(1, 601) if parameters.get("method") == "softmax-lbfgs" else None
    with pytest.raises(InputError, match=message):
        SoftmaxClassifier(**({"method": "softmax", "epochs": 1} | parameters)).fit(UNIT, y, sample_weight=weight)


def test_mistakes_of_later_calls_are_told(fitted):
    with pytest.raises(InputError, match="row 3 is of class ten, which fit has not seen; leave it out"):
        fitted.log_proba_of(UNIT_NEW[:3], ["zero", "one", "ten"])
    with pytest.raises(InputError, match="features"):
        fitted.predict(UNIT_NEW[:, :9])
    with pytest.raises(InputError, match="classes must be passed on the first call to partial_fit"):
        SoftmaxClassifier().partial_fit(UNIT, Y)
    with pytest.raises(InputError, match="classes is not the same as on last call to partial_fit"):
        clone(fitted).partial_fit(UNIT, Y, classes=range(10)).partial_fit(UNIT, Y, classes=range(11))
    with pytest.raises(InputError, match="method u-max: it has a number for each row, which partial_fit does not"):
        SoftmaxClassifier("u-max").partial_fit(UNIT, Y, classes=range(10))
    of_each = SoftmaxClassifier("one-vs-rest", epochs=1).fit(UNIT, Y)
    with pytest.raises(InputError, match="probabilities are of each class by itself"):
        of_each.predict_proba(UNIT_NEW)
    assert of_each.predict(UNIT_NEW).shape == (300,)


def test_the_example_of_the_page_runs():
    names = {}
    exec(Page("estimator.md").blocks("python")[0], names)
    assert names["classifier"].score(names["X"][1400:], names["y"][1400:]) > 0.88


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "softmax", "sampled-softmax"])
def test_checks_of_scikit_learn(method):
    weights = dict.fromkeys(
        [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], WEIGHED
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(SoftmaxClassifier(method), expected_failed_checks=weights, on_fail=None, on_skip=None)
    assert sum(each["status"] == "passed" for each in found) > 55
    assert not [each["check_name"] for each in found if each["status"] == "failed"]
