"""Rows in memory, and rows in a prepared file: training does not ask which."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from training.problems import K, method, rows
from xsoftmax.data.dataset import Dataset, plain
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

X = np.arange(12, dtype=np.float32).reshape(6, 2)
LABELS = ["b", "a", "b", "c", "a", "c"]
SETS = [["b", "a"], ["c"], ("a", "c", "b"), {"b"}, ["c", "b", "c"], frozenset("a")]
INDICATOR = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]])


@pytest.mark.long_cases
@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_and_a_file_train_the_same_bits(sparse, prepare, dataset):
    given = (*rows(), K)
    options = {"n_validation": 20, "n_test": 20, "sparse": sparse}
    in_memory = dataset(*given, **options)
    with open_prepared(prepare(*given, **options)) as in_file:
        results = [fit(data, method(), 3, Plan(epochs=3, at=(1, 2))) for data in (in_memory, in_file)]
        shapes = [(data.n_features, data.n_classes, data.sparse) for data in (in_memory, in_file)]
        counts = [[data.n_samples(s) + data.n_entries(s) for s in ("train", "test")] for data in (in_memory, in_file)]
    assert np.array_equal(*(result.model.rows for result in results))
    one, two = ([{**row, "seconds": 0} for row in result.state.history] for result in results)
    assert one == two
    assert shapes[0] == shapes[1]
    assert counts[0] == counts[1]


def test_labels_of_any_kind_are_numbered_in_their_order():
    data = Dataset.from_arrays(X, LABELS, validation=(X[:1], ["c"]), feature_names=("width", "height"))
    assert data.labels("train").tolist() == [1, 0, 1, 2, 0, 2]
    assert data.labels("validation").tolist() == [2]
    assert data.class_names == ["a", "b", "c"]
    assert data.class_counts.tolist() == [2, 2, 2]
    assert data.transform.feature_names == ("width", "height")
    numbers = Dataset.from_arrays(X, [30, -2, 30, 7, 7, 7])
    assert numbers.class_names == ["-2", "7", "30"]
    assert numbers.classes.tolist() == [-2, 7, 30]
    named = Dataset.from_arrays(X[:2], ["z", "a"], classes=["z", "y", "a"])
    assert named.labels("train").tolist() == [0, 2]
    assert named.n_classes == 3


def sets_of(data, split):
    found = data.split(split).label_sets
    return [found.of_rows(np.array([i])).classes.tolist() for i in range(data.n_samples(split))]


LISTS = [
    SETS,
    tuple(SETS),
    [np.array(list(each)) for each in SETS],
    np.array([list(each) for each in SETS], object),
]
TABLES = [
    INDICATOR,
    INDICATOR == 1,
    INDICATOR.astype(float),
    list(INDICATOR),
    csr_array(INDICATOR),
    csc_matrix(INDICATOR),
    csr_array((np.r_[np.ones(10), 0], (np.r_[INDICATOR.nonzero()[0], 1], np.r_[INDICATOR.nonzero()[1], 0]))),
]


@pytest.mark.parametrize(("y", "names"), [*((y, "abc") for y in LISTS), *((y, "012") for y in TABLES)])
@pytest.mark.parametrize("named", [False, True])
def test_rows_with_several_labels(y, names, named):
    classes = {"classes": ["a", "b", "c"]} if named else {}
    others = {"validation": (X[1:3], y[1:3]), "test": (X[:1], csr_array([[0, 1, 1]]))}
    data = Dataset.from_arrays(X, y, **others, **classes)
    expected = [np.flatnonzero(row).tolist() for row in INDICATOR]
    assert data.multilabel
    assert (sets_of(data, "train"), sets_of(data, "validation"), sets_of(data, "test")) == (
        expected,
        expected[1:3],
        [[1, 2]],
    )
    assert data.split("train").label_sets.starts.dtype == np.int64
    assert data.split("train").label_sets.classes.dtype == data.split("train").y.dtype == np.int32
    assert data.labels("train").tolist() == [row[0] for row in expected]
    assert data.class_counts.tolist() == INDICATOR.sum(axis=0).tolist()
    assert data.label_bytes("train") == 4 * 6 + 8 * 7 + 4 * 10
    assert list(data.class_names) == [*("abc" if named else names)]


def test_classes_of_several_labels_are_in_the_order_given():
    data = Dataset.from_arrays(X, SETS, classes=["c", "z", "a", "b"], test=(X[:2], ["z", "a"]))
    assert sets_of(data, "train") == [[2, 3], [0], [0, 2, 3], [3], [0, 3], [2]]
    assert sets_of(data, "test") == [[1], [2]]  # one each
    assert sets_of(data, "validation") == []
    assert data.class_counts.tolist() == [3, 0, 3, 4]
    numbers = Dataset.from_arrays(X[:2], [[30, -2], [7]])
    assert numbers.classes.tolist() == [-2, 7, 30]
    assert Dataset.from_arrays(X[:2], [[0, 1], [1, 0]]).class_names == ["0", "1"]


def test_one_column_or_one_axis_is_one_label_for_each_row():
    for y in (LABELS, np.array(LABELS), np.array(LABELS)[:, None], np.array([*"abcabc"], object)):
        assert not Dataset.from_arrays(X, y).multilabel


def test_propensity_is_said_with_the_rows():
    assert Dataset.from_arrays(X, LABELS).propensity == (0.55, 1.5)
    assert Dataset.from_arrays(X, LABELS, propensity=[0.5, 0.4]).propensity == (0.5, 0.4)


def test_what_training_reads_is_not_copied(tmp_path):
    values, indices, starts = csr_array(X).data, csr_array(X).indices, csr_array(X).indptr
    sparse = csr_matrix((values, indices, starts), X.shape)
    found = Dataset.from_arrays(sparse, LABELS).split("train").X
    assert np.shares_memory(found.data, values)
    assert np.shares_memory(found.indices, indices)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = Dataset.from_arrays(mapped, LABELS).split("train").X
    assert np.shares_memory(found, mapped)
    assert type(found) is np.ndarray
    assert found.flags.writeable  # as kernels are compiled for; none writes


def test_what_is_shown_as_writable_keeps_its_memory():
    array = np.arange(5.0)[::2]
    array.flags.writeable = False
    shown = plain(array)
    del array
    assert shown.tolist() == [0, 2, 4]
    assert plain(shown) is shown


def test_rows_that_are_not_as_kernels_read_them_are_copied_and_stay():
    twice = csr_array((np.ones(3), [1, 0, 1], [0, 3]), shape=(1, 2))
    before = pickle.dumps(twice)
    found = Dataset.from_arrays(twice, [0]).split("train").X
    assert found.toarray().tolist() == [[1, 2]]
    assert found.dtype == np.float32
    assert pickle.dumps(twice) == before
    across = Dataset.from_arrays(csc_matrix(X), LABELS).split("train").X
    assert np.array_equal(across.toarray(), X)
    assert np.array_equal(Dataset.from_arrays(np.asfortranarray(X), LABELS).split("train").X, X)


def test_all_that_is_trained_on_is_in_the_identity():
    def of(X=X, y=LABELS, **options):
        return Dataset.from_arrays(X, y, **options).identity

    others = [
        of(),
        of(X + 1),
        of(csr_array(X)),
        of(y=["a", *LABELS[1:]]),
        of(y=[label.upper() for label in LABELS]),
        of(validation=(X, LABELS)),
        of(test=(X, LABELS)),
        of(sample_weight=np.ones(6)),
        of(sample_weight=np.arange(6)),
        of(feature_names=("width", "height")),
    ]
    assert len(set(others)) == len(others)
    assert of() == of(X.astype(float), np.array(LABELS))


def test_a_file_is_known_by_all_that_it_holds(prepare):
    found = []
    for scale in (1, 1, 2):
        with open_prepared(prepare(scale * X, [0, 1, 0, 1, 0, 1], 2)) as data:
            found.append(data.identity)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((X, LABELS[:5]), {}, "training rows: X has 6 rows, y 5"),
        ((X, [0, 1, 2, 0, 1, np.nan]), {}, "row 5 has label nan"),
        ((X, [0, "a", None, 0, 0, 0]), {}, "labels do not compare"),
        ((X[0], LABELS), {}, "X has 1 axes"),
        (([["x", "y"]] * 6, LABELS), {}, "X has 2 axes of <U1"),
        (([[1, 2], [3]], ["a", "b"]), {}, "X is no array of numbers"),
        ((np.where(X == 5, np.nan, X), LABELS), {}, "row 2 of X has a number that is NaN"),
        (
            (np.where(X == 5, 1e300, X.astype(float)), LABELS),
            {},
            "row 2 of X has a number that is NaN, infinite, or too large",
        ),
        ((X, LABELS), {"test": (X, [*LABELS[:5], "d"])}, "test rows: row 5 has label 'd', which no training row has"),
        ((X, LABELS), {"test": (X, range(6))}, "test rows: labels are int64, classes <U1"),
        ((X, LABELS), {"test": (X[:, :1], LABELS)}, "test rows have 1 features, training rows 2"),
        ((X, LABELS), {"test": (csr_array(X), LABELS)}, "test rows: X is sparse, training rows are not"),
        ((X, LABELS), {"classes": np.array(["a", "b", "c", 1], object)}, "give labels of one type"),
        ((X, LABELS), {"sample_weight": [1, 2]}, "sample_weight has shape"),
        ((X, LABELS), {"sample_weight": [1, 1, 1, 1, 1, -1]}, "numbers below 0"),
        ((X, LABELS), {"feature_names": ["width"]}, "1 feature_names for 2 features"),
        ((X, np.zeros((6, 2, 2))), {}, "3 axes; give one label"),
        ((X, [*SETS[:5], []]), {}, "training rows, labels: row 5 has no label; leave it out"),
        ((X, [set(), *SETS[1:]]), {}, "row 0 has no label; leave it out"),
        ((X, [*SETS[:5], "ab"]), {}, "row 5 is 'ab'; give a list of labels for each row"),
        ((X, [*SETS[:5], [["a"], ["b", "c"]]]), {}, "something in the lists is no label; give numbers or strings"),
        ((X, [*SETS[:5], [None, 1, "a"]]), {}, "labels do not compare"),
        ((X, [[0.5, np.nan]] * 6), {}, "something in the lists is no label"),
        ((X, SETS[:5]), {}, "X has 6 rows, y 5"),
        ((X, [[0, 0, 1], [0, 1, 0]] * 3), {}, r"lists of 0 and 1; give np.array\(y\) if these say which labels"),
        (
            (X, SETS),
            {"test": (X[:2], [["a"], ["b", "d"]])},
            "test rows: row 1 has label 'd', which no training row has",
        ),
        ((X, SETS), {"classes": ["a", "b"]}, "row 1 has label 'c', which no training row has"),
        ((X, LABELS), {"test": (X, SETS)}, "test rows: several labels for each row, training rows have one"),
        ((X, SETS), {"test": (X, INDICATOR[:, :2])}, "test rows, labels: 2 columns for 3 classes; give one for each"),
        (
            (X, INDICATOR),
            {"classes": ["a", "b"]},
            "training rows, labels: 3 columns for 2 classes; give one for each",
        ),
        ((X, 2 * INDICATOR), {}, "row 0, column 0 is 2; give 0 or 1 for each class, or a list for each row"),
        ((X, INDICATOR * np.nan), {}, "row 0, column 0 is nan; give 0 or 1"),
        ((X, csr_array(-INDICATOR)), {}, "row 0, column 0 is -1; give 0 or 1"),
        ((X, INDICATOR * (np.arange(6) != 4)[:, None]), {}, "row 4 has no label; leave it out"),
        ((X, csr_array(INDICATOR)[:5]), {}, "X has 6 rows, y 5"),
        ((X, np.array([["a", "b"]] * 6)), {}, "a table of <U1; give 0 or 1 for each class, or a list for each row"),
        ((X, LABELS), {"propensity": (0.5, 0)}, r"propensity is \(0.5, 0.0\); give two numbers above 0"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(given, options, message):
    with pytest.raises(InputError, match=message):
        Dataset.from_arrays(*given, **options)


@pytest.mark.fault(
    "rows in memory with a number that is none, a label of no class, or places of features that are none",
    happens="they are refused before anything is trained: compiled code does not look again",
    user="`InputError: …: row 2 of X has a number that is NaN, infinite, or too large; mend it`",
)
@pytest.mark.parametrize("place", [-1, 2, 2**31 - 1])
def test_places_that_are_none_are_refused(place):
    sparse = csr_array(X)
    sparse.indices[3] = place
    with pytest.raises(InputError, match="training rows: X is no array of numbers"):
        Dataset.from_arrays(sparse, LABELS)


def test_memory_for_a_copy_is_asked_for(monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 40)
    assert Dataset.from_arrays(X, LABELS).n_samples("train") == 6
    assert Dataset.from_arrays(csr_array(X), LABELS).n_samples("train") == 6
    for given in (X.astype(float), np.asfortranarray(X), csr_array(X.astype(float))):
        with pytest.raises(InputError, match="training rows: a copy of X as float32"):
            Dataset.from_arrays(given, LABELS)


def test_names_that_are_the_same_are_refused():
    data = Dataset.from_arrays(X[:2], np.array([1, 2]), classes=np.array([1, 2, 1]))
    with pytest.raises(InputError, match="two classes are written '1'"):
        data.class_names  # noqa: B018


def test_weights_are_refused_where_each_row_is_visited_once():
    data = Dataset.from_arrays(X, LABELS, sample_weight=np.arange(6))
    of_all = method("softmax", "all", "lbfgs")
    with pytest.raises(InputError, match="lbfgs visits each once; take optimizer sgd or adagrad"):
        fit(data, of_all, 0, Plan(epochs=1))
    with pytest.raises(InputError, match="its rows have weights, which take them into memory; leave --stream out"):
        fit(data, method(), 0, Plan(epochs=1, stream=True))


def test_rows_in_memory_are_not_streamed(dataset):
    with pytest.raises(InputError, match="in memory already"):
        fit(dataset(*rows(), K), method(), 0, Plan(epochs=1, stream=True))
