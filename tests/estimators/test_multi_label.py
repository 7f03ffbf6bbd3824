"""The estimator for rows with several labels: against scikit-learn's conventions, its own numbers by plain loops."""

import csv
import io
import json
import pickle
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

import xsoftmax
from pages import Page
from xsoftmax import MultiLabelClassifier
from xsoftmax.cli import main
from xsoftmax.internal.checksummed import DamagedError
from xsoftmax.internal.errors import InputError
from xsoftmax.model import DivergedError, load_model, save_model

SOFTMAX = {
    "objective": {"name": "softmax"},
    "proposal": {"name": "all"},
    "optimizer": {"name": "adagrad", "learning_rate": 0.5},
}
LETTERS = "abcdefg"


def rows(n, seed=0):
    """Rows of 12 noisy features, of which the first 7 say which of 7 labels a row has: at least one."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, 7)) < 0.3
    Y[np.arange(n), rng.integers(7, size=n)] = True
    X = np.hstack([Y + 0.3 * rng.standard_normal((n, 7)), rng.standard_normal((n, 5))])
    return X.astype(np.float32), Y.astype(int)


X, Y = rows(500)
NEW, NEW_Y = rows(200, 1)
LISTS = [[LETTERS[k] for k in np.flatnonzero(row)] for row in Y]


def naive_scores(model, X):
    return X.astype(float) @ model.W.astype(float).T + model.b.astype(float)


def naive_f1(Y, found):
    return 2 * (Y & found).sum() / (Y.sum() + found.sum())


@pytest.fixture(scope="module")
def fitted():
    return MultiLabelClassifier(epochs=3).fit(X, Y)


@pytest.fixture(scope="module")
def of_lists():
    return MultiLabelClassifier(epochs=3).fit(X, LISTS)


@pytest.fixture(scope="module", params=["one-vs-rest", "softmax"])
def of_method(request):
    method = SOFTMAX if request.param == "softmax" else request.param
    return MultiLabelClassifier(method, epochs=3).fit(X, Y)


def naive_values(found, X):
    s = naive_scores(found.model_, X)
    return s if found.method == "one-vs-rest" else s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def test_it_predicts_the_labels_of_new_rows(fitted):
    predicted = fitted.predict(NEW)
    assert predicted.shape == NEW_Y.shape
    assert set(np.unique(predicted)) == {0, 1}
    assert f1_score(NEW_Y, predicted, average="micro") > 0.9
    assert fitted.n_features_in_ == 12
    assert fitted.classes_.tolist() == list(range(7))


def test_a_label_is_predicted_where_its_value_reaches_the_threshold(of_method):
    values = naive_values(of_method, NEW)
    assert np.array_equal(of_method.predict(NEW), values >= of_method.threshold_)
    assert np.allclose(of_method.decision_function(NEW), values - of_method.threshold_, atol=1e-5)
    assert np.array_equal(of_method.decision_function(NEW) > 0, of_method.predict(NEW))


def test_no_other_threshold_gives_validation_rows_a_higher_f1(of_method):
    held = np.zeros(500, bool)  # which rows: those that the estimator says it has held out
    held[np.flatnonzero(of_method._held_out(500, 0))] = True
    assert held.sum() == 50
    values, true = naive_values(of_method, X[held]), Y[held] == 1
    reached = naive_f1(true, values >= of_method.threshold_)
    every = [naive_f1(true, values >= value) for value in np.unique(values)]
    assert reached == pytest.approx(max(every), abs=1e-12)
    below, above = values[values < of_method.threshold_].max(), values[values >= of_method.threshold_].min()
    assert of_method.threshold_ == pytest.approx((below + above) / 2, abs=1e-5)


def test_the_best_classes_come_first_with_their_probabilities(of_method):
    s = naive_scores(of_method.model_, NEW)
    p = 1 / (1 + np.exp(-s))
    if of_method.method != "one-vs-rest":
        p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    classes, probabilities = of_method.predict_top_k(NEW, 3)
    assert np.array_equal(classes, np.argsort(-s, axis=1)[:, :3])
    assert np.allclose(probabilities, -np.sort(-p, axis=1)[:, :3], atol=1e-5)
    assert of_method.predict_top_k(NEW, 99)[0].shape == (200, 7)


def test_probabilities_are_of_each_label_by_itself(fitted):
    assert np.allclose(fitted.predict_proba(NEW), 1 / (1 + np.exp(-naive_scores(fitted.model_, NEW))), atol=1e-5)
    with pytest.raises(
        InputError, match=r"method given: .* of a softmax, .*; take decision_function, predict_top_k,"
    ):
        MultiLabelClassifier(SOFTMAX, epochs=1).fit(X, Y).predict_proba(NEW)


def test_no_probability_rounds_to_one(fitted):
    found = fitted.predict_proba(100 * NEW)
    assert fitted.decision_function(100 * NEW).max() > 40
    assert 0 <= found.min() < found.max() < 1


def test_the_score_is_the_share_of_rows_that_are_all_right(fitted, of_lists):
    wanted = np.mean([np.array_equal(*pair) for pair in zip(fitted.predict(NEW), NEW_Y, strict=True)])
    assert 0.3 < wanted < 1
    assert fitted.score(NEW, NEW_Y) == pytest.approx(wanted)
    names = [{LETTERS[k] for k in np.flatnonzero(row)} for row in NEW_Y]
    assert of_lists.score(NEW, names) == pytest.approx(wanted)
    weight = np.arange(200)
    assert fitted.score(NEW, NEW_Y, weight) == pytest.approx(
        accuracy_score(NEW_Y, fitted.predict(NEW), sample_weight=weight)
    )


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_every_form_of_labels_and_rows_gives_the_same(kind, fitted, of_lists):
    wanted = fitted.predict(NEW)
    found = MultiLabelClassifier(epochs=3).fit(X, kind(Y)).predict(kind(NEW))
    assert issparse(found)
    assert np.array_equal(found.toarray(), wanted)
    assert of_lists.predict(NEW) == [[LETTERS[k] for k in np.flatnonzero(row)] for row in wanted]
    assert of_lists.classes_.tolist() == list(LETTERS)
    assert of_lists.predict_top_k(NEW, 1)[0][0, 0] in set(LETTERS)
    sparse = MultiLabelClassifier(epochs=3).fit(kind(X), [set(labels) for labels in LISTS])
    assert np.mean([a == b for a, b in zip(sparse.predict(kind(NEW)), of_lists.predict(NEW), strict=True)]) > 0.98


@pytest.mark.parametrize("form", [np.array, csr_array, list])
def test_rows_without_a_label_are_left_out_and_counted(form):
    some = Y.copy()
    some[::10] = 0
    labels = [row.nonzero()[0].tolist() for row in some] if form is list else form(some)
    with pytest.warns(UserWarning, match="MultiLabelClassifier: 50 of 500 rows have no label and are left out"):
        found = MultiLabelClassifier(epochs=3).fit(X, labels)
    kept = some.any(axis=1)
    wanted = MultiLabelClassifier(epochs=3).fit(X[kept], some[kept])
    assert np.array_equal(found.model_.W, wanted.model_.W)
    assert found.threshold_ == wanted.threshold_
    found.threshold_ = 1e6
    assert not sum(map(len, found.predict(NEW))) if form is list else not found.predict(NEW).sum()


def test_parameters_do_what_they_say(capsys):
    same = [MultiLabelClassifier(epochs=2, random_state=seed).fit(X, Y).model_.W for seed in (5, 5, 6)]
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])
    drawn = MultiLabelClassifier(epochs=1, random_state=np.random.RandomState(0)).fit(X, Y)
    assert 0 <= drawn.model_.attributes["seed"] < 2**31
    assert MultiLabelClassifier(epochs=1, validation_fraction=0, n_jobs=-1).fit(X, Y).score(X, Y) > 0
    stopped = MultiLabelClassifier(epochs=10**4, max_seconds=0.2).fit(X, Y)
    assert stopped.model_.attributes["message"] == "max_seconds is 0.2"
    patient = MultiLabelClassifier(epochs=10**4, patience=2).fit(X, Y)
    assert patient.model_.attributes["status"] == "stopped early"
    assert capsys.readouterr().err == ""
    MultiLabelClassifier(epochs=1, verbose=True).fit(X, Y)
    assert "MultiLabelClassifier one-vs-rest seed 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "labels", "message"),
    [
        ({}, Y[:, 0], r"y: one label for each row, shape \(500,\); give an indicator matrix, .* \[\[label\]"),
        ({}, Y[:-1], "X has 500 rows, y 499, .*; give labels for each row"),
        ({}, 2 * Y, r"row 0, column \d is 2; give 0 or 1 for each class, or a list for each row"),
        ({}, Y * 0, "none of 500 rows has a label; give some that have"),
        ({}, None, "requires y to be passed, but the target y is None"),
        ({}, [["a"]] * 500, "has 1 class; a softmax needs at least 2"),
        ({"method": "one-versus-rest"}, Y, "unknown method 'one-versus-rest'; known: .* did you mean 'one-vs-rest'"),
        ({"method": "implicit-batch"}, Y, "method implicit-batch: rows have several labels, and"),
        ({"method": {"objective": {"name": "softmax"}}}, Y, "method given: "),
        ({"epochs": 1.5}, Y, "epochs is 1.5; set it to a whole number"),
        ({"validation_fraction": 1}, Y, "validation_fraction is 1; set it to 0 or more, below 1"),
        ({"patience": 0}, Y, "patience is 0; set it to 1 or more"),
        ({"n_jobs": 0}, Y, "n_jobs is 0; set it to 1 or more"),
        ({"max_seconds": -1}, Y, "max_seconds is -1; set it to 0 or more"),
        ({"random_state": -1}, Y, "seed is -1; set it to 0 or more"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_what_to_do(parameters, labels, message):
    with pytest.raises(InputError, match=message):
        MultiLabelClassifier(**parameters).fit(X, labels)


def test_rows_that_are_none_are_refused(fitted):
    with pytest.raises(InputError, match="X has 3 features, but MultiLabelClassifier is expecting 12"):
        fitted.predict(NEW[:, :3])
    with pytest.raises(InputError, match="contains NaN"):
        fitted.predict(NEW * np.nan)
    with pytest.raises(InputError, match="k is 0; set it to 1 or more"):
        fitted.predict_top_k(NEW, 0)
    with pytest.raises(InputError, match="row 0 has label 'z', which no training row has"):
        MultiLabelClassifier(epochs=1).fit(X, LISTS).score(NEW[:1], [["z"]])


def test_a_fit_that_diverges_says_so():
    fast = {
        "objective": {"name": "softmax"},
        "proposal": {"name": "all"},
        "optimizer": {"name": "sgd", "learning_rate": 3e38},
    }
    with pytest.raises(DivergedError, match=r"diverged at step .* lower learning_rate"):
        MultiLabelClassifier(fast).fit(X, Y)


def test_what_memory_does_not_hold_is_refused_with_another_way(fitted, monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 2**12)
    for method, way in (
        ("predict_proba", "predict_top_k"),
        ("decision_function", "predict_top_k"),
        ("predict", "spa"),
    ):
        with pytest.raises(InputError, match=f"of 200 rows and 7 classes: .* are free; give fewer rows .*{way}"):
            getattr(fitted, method)(NEW)


@pytest.mark.parametrize("labels", [Y, csr_array(Y), LISTS, [np.flatnonzero(row).tolist() for row in Y]])
def test_a_file_holds_all_that_predicts(labels, tmp_path):
    found = MultiLabelClassifier(epochs=2, random_state=np.random.RandomState(3)).fit(X, labels)
    found.save(tmp_path / "model.h5")
    again = MultiLabelClassifier.load(tmp_path / "model.h5")
    a, b = found.predict(NEW), again.predict(NEW)
    assert type(a) is type(b)
    assert a == b if isinstance(a, list) else abs(a - b).sum() == 0
    assert again.classes_.dtype == found.classes_.dtype
    assert again.threshold_ == found.threshold_
    assert again.get_params() == found.get_params() | {"random_state": None}
    assert again.score(NEW, a) == 1
    assert b"pickle" not in (tmp_path / "model.h5").read_bytes()


def test_a_file_is_a_model_of_the_command_line(fitted, tmp_path, capsys):
    fitted.save(tmp_path / "model.h5")
    np.save(tmp_path / "new.npy", NEW[:5])
    assert main(["predict", str(tmp_path / "model.h5"), str(tmp_path / "new.npy"), "--top", "2"]) == 0
    best = fitted.predict_top_k(NEW[:5], 2)[0]
    said = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert [int(line["class"]) for line in said] == best.ravel().tolist()


@pytest.mark.fault(
    "an estimator's file with a threshold, labels or parameters that are none, or a model that no estimator wrote",
    happens="it is refused as it is read",
    user="`InputError: …: not what xsoftmax writes (…); write it with MultiLabelClassifier.save`",
)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (None, "no MultiLabelClassifier wrote"),
        ({"class": "Other"}, "no MultiLabelClassifier wrote"),
        ({"threshold": float("nan")}, "threshold nan"),
        ({"threshold": None}, "TypeError"),
        ({"labels": "others"}, "labels 'others'"),
        ({"dtype": "|O"}, "object"),
        ({"dtype": "no"}, "TypeError"),
        ({"parameters": {"unknown": 1}}, "unknown"),
        ({"parameters": [1]}, "TypeError"),
        ({"labels": "lists", "dtype": "<f4", "names": 1}, "ValueError"),
    ],
)
def test_a_file_of_others_is_refused(changes, message, fitted, of_lists, tmp_path):
    estimator = of_lists if changes and "names" in changes else fitted
    estimator.save(tmp_path / "model.h5")
    model = load_model(tmp_path / "model.h5")
    said = model.attributes.pop("estimator")
    if changes is not None:
        model.attributes["estimator"] = said | changes
    save_model(model, tmp_path / "model.h5")
    with pytest.raises(InputError, match=rf"model\.h5: .*{message}.*; write it with MultiLabelClassifier\.save"):
        MultiLabelClassifier.load(tmp_path / "model.h5")


def test_a_damaged_file_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model.h5")
    content = bytearray((tmp_path / "model.h5").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.h5").write_bytes(content)
    with pytest.raises(DamagedError, match="damaged"):
        MultiLabelClassifier.load(tmp_path / "model.h5")
    with pytest.raises(InputError, match="no such file"):
        MultiLabelClassifier.load(tmp_path / "none.h5")


def test_the_threshold_lies_in_the_file_as_json(fitted, tmp_path):
    fitted.save(tmp_path / "model.h5")
    with h5py.File(tmp_path / "model.h5") as file:
        said = json.loads(bytes(np.asarray(file["attributes"])).decode())["estimator"]
    assert said["threshold"] == fitted.threshold_
    assert said["parameters"]["epochs"] == 3


def test_names_of_columns_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    columns = [f"c{j}" for j in range(12)]
    found = MultiLabelClassifier(epochs=1).fit(pandas.DataFrame(X, columns=columns), pandas.DataFrame(Y))
    found.save(tmp_path / "model.h5")
    again = MultiLabelClassifier.load(tmp_path / "model.h5")
    assert again.feature_names_in_.tolist() == columns
    with pytest.raises(InputError, match="feature names"):
        again.predict(pandas.DataFrame(NEW, columns=columns[::-1]))


def test_it_clones_and_pickles(fitted, of_lists):
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "model_")
    for each in (fitted, of_lists):
        again = pickle.loads(pickle.dumps(each))  # noqa: S301 - of our own making
        assert np.array_equal(again.decision_function(NEW), each.decision_function(NEW))
    assert clone(MultiLabelClassifier(SOFTMAX)).set_params(epochs=7).get_params()["epochs"] == 7


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sampled-softmax-frequency", "adversarial", "probit"])
def test_any_method_that_takes_sets_is_fitted_kept_and_pickled(method, tmp_path):
    found = MultiLabelClassifier(method, epochs=3).fit(csr_array(X), LISTS)
    assert np.array_equal(found.decision_function(NEW) > 0, found._labels(NEW).toarray())
    assert (
        np.mean(found.predict_top_k(NEW, 1)[0][:, 0] == found.classes_[found.decision_function(NEW).argmax(1)]) == 1
    )
    found.save(tmp_path / "model.h5")
    for again in (MultiLabelClassifier.load(tmp_path / "model.h5"), pickle.loads(pickle.dumps(found))):  # noqa: S301
        assert again.predict(NEW) == found.predict(NEW)


def test_a_grid_is_searched():
    grid = {"epochs": np.array([1, 3]), "method": ["one-vs-rest", SOFTMAX]}
    found = GridSearchCV(MultiLabelClassifier(), grid, scoring="f1_micro", cv=2, error_score="raise").fit(X, Y)
    assert found.best_score_ > 0.8
    assert GridSearchCV(MultiLabelClassifier(), {"epochs": [1]}, cv=2).fit(X, csr_array(Y)).best_score_ > 0.2


def test_a_pipeline_takes_texts():
    texts = [" ".join(f"word{letter}" for letter in labels) for labels in LISTS]
    found = make_pipeline(TfidfVectorizer(), MultiLabelClassifier(epochs=5)).fit(texts, LISTS)
    assert found.predict(["wordb", "wordc worda"]) == [["b"], ["a", "c"]]


def test_the_example_of_the_page_runs():
    names = {}
    exec(Page("estimator.md").blocks("python")[1], names)
    truth = names["labels"][1400:]
    assert np.mean([set(found) == true for found, true in zip(names["found"], truth, strict=True)]) > 0.7
    assert np.mean([set(best[:2]) == true for best, true in zip(names["best"], truth, strict=True)]) > 0.7
    assert (np.diff(names["probabilities"]) <= 0).all()


def test_the_package_imports_it_late():
    said = "import sys, xsoftmax; print('sklearn' in sys.modules, 'xsoftmax.estimators' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    with pytest.raises(AttributeError, match="no attribute 'MultiLabel'"):
        xsoftmax.MultiLabel  # noqa: B018


class OneLabel(MultiLabelClassifier):
    """Takes rows of one label each, as most of scikit-learn's checks have them, and predicts the best one."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        return tags

    def fit(self, X, y):
        y = y if y is None or isinstance(y, list) else np.asarray(y)
        if isinstance(y, np.ndarray) and y.size == len(y):
            check_classification_targets(y)
            y = [[label] for label in column_or_1d(y, warn=True)]
        return super().fit(X, y)

    def predict(self, X):
        found = super().predict(X)
        return self.predict_top_k(X, 1)[0][:, 0] if isinstance(found, list) else found


BY_DESIGN = {
    "check_classifier_multioutput": "labels are predicted at the threshold of the highest micro-F1, not at p = 0.5",
    "check_classifiers_multilabel_representation_invariance": "lists are of labels, not rows of an indicator",
}
OF_TWO = dict.fromkeys(
    ["check_classifiers_train", "check_classifiers_classes", "check_decision_proba_consistency"],
    "decision_function has a column for each of two classes, as either may be a row's label",
)


def failures(estimator, expected):
    """Run scikit-learn's checks; what those raised that failed, by name, without the expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert sum(each["status"] == "passed" for each in found) >= 20
    return {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}


@pytest.mark.slow
def test_checks_of_scikit_learn():
    assert not failures(OneLabel(epochs=2), BY_DESIGN | OF_TWO)


@pytest.mark.slow
def test_checks_of_scikit_learn_fail_only_where_rows_have_one_label():
    for name, error in failures(MultiLabelClassifier(epochs=2), BY_DESIGN).items():
        said = " ".join(str(each) for each in (error, error.__cause__, error.__context__))
        assert "y: one label for each row" in said, name
