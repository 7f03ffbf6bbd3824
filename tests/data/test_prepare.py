from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

from data.naive_data import tfidf
from data.toy import TABLE, TEXTS, rows_of, run
from xsoftmax.data.config import DatasetConfig, Source, SplitOptions, TextOptions
from xsoftmax.data.prepare import prepare
from xsoftmax.data.readers import svmlight
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError

THREE = "5,2 1:1\n9 2:2\n2,9,5 1:3 2:4\n"


def test_label_rules(tmp_path):
    assert [name for name, _ in rows_of(run(tmp_path, {"a": THREE}, labels="first")[1])] == ["5", "9", "2"]
    assert [name for name, _ in rows_of(run(tmp_path, {"a": THREE}, labels="min")[1])] == ["2", "9", "2"]
    sizes, path = run(tmp_path, {"a": THREE}, labels="pairs")
    assert [name for name, _ in rows_of(path)] == ["5", "2", "9", "2", "9", "5"]
    assert rows_of(path)[3][1] == [3, 4]
    assert sizes["rows"] == 3
    assert sizes["train"] == 6


def test_several_labels_stay_with_their_row(tmp_path):
    content = "5,2,5 1:1\n9 2:2\n2,9,5 1:3 2:4\n"
    sizes, path = run(tmp_path, {"a": content}, labels="sets")
    assert (sizes["rows"], sizes["train"], sizes["classes"]) == (3, 3, 3)
    assert [name for name, _ in rows_of(path)] == ["5", "9", "2"]  # the first in file order
    with open_prepared(path) as data:
        assert data.multilabel
        assert data.class_names == ["2", "5", "9"]
        assert data.class_counts.tolist() == [2, 2, 2]
        found = data.split("train")
        assert found.label_sets.starts.tolist() == [0, 2, 3, 6]
        assert found.label_sets.classes.tolist() == [0, 1, 2, 0, 1, 2]
        part = data.rows("train", 1, 3)
        assert part.y.tolist() == [2, 0]
        assert part.label_sets.starts.tolist() == [0, 1, 4]
        assert part.label_sets.classes.tolist() == [2, 0, 1, 2]
        assert data.rows("train", 2, 2).label_sets.starts.tolist() == [0]


def test_labels_that_no_training_row_has_leave_their_rows(tmp_path, capsys):
    contents = {"train": "1,2 1:1\n2 2:1\n", "test": "3 1:1\n3,2 1:1\n2,1 2:1\n"}
    sizes, path = run(tmp_path, contents, parts={"train": "train", "test": "test"}, labels="sets")
    assert (sizes["test"], sizes["dropped_unseen_test"]) == (2, 1)
    assert sizes["dropped_unseen_labels_test"] == 2
    assert "2 of 5 labels of test rows are of classes that no training row has" in capsys.readouterr().err
    with open_prepared(path) as data:
        found = data.split("test")
        assert found.y.tolist() == [1, 1]  # the first that is known
        assert found.label_sets.starts.tolist() == [0, 1, 3]
        assert found.label_sets.classes.tolist() == [1, 0, 1]
        assert (data.dropped["unseen_labels_test"], data.dropped["unseen_labels_validation"]) == (2, 0)


def test_several_labels_are_split_and_dropped_with_their_rows(tmp_path):
    rows = "".join(f"{i % 5},{5 + i % 3} {i + 1}:1\n" for i in range(40)) + "1,2\n3\n"
    sizes, path = run(tmp_path, {"a": rows}, labels="sets", split=SplitOptions(validation=0.25, test=0.25))
    assert (sizes["train"], sizes["validation"], sizes["test"], sizes["dropped_empty"]) == (20, 10, 10, 2)
    with open_prepared(path) as data:
        for split in ("train", "validation", "test"):
            found = data.split(split)
            names = [
                {data.class_names[k] for k in found.label_sets.of_rows(np.array([i])).classes} for i in range(10)
            ]
            assert names == [{str(i % 5), str(5 + i % 3)} for i in found.X.indices[:10]]


def sets_of(data, split, name):
    """Names of classes of each row."""
    found = getattr(data.split(split), name)
    return [[data.class_names[k] for k in found.of_rows(np.array([i])).classes] for i in range(data.n_samples(split))]


FILTERED = {
    "train": "5,7 1:1\n6 2:1\n8 3:1\n5\n",
    "test": "9 1:1\n5 2:1\n8,9 3:1\n6 1:2\n7\n",
    "pairs": "3 6\n1 9\n1 5\n\n 1  7 \n0 5\n2 8\n1 5\n4 5\n3 4",
}
FILTERED_PARTS = {"train": "train", "test": {"data": "test", "filter": "pairs"}}


@pytest.mark.parametrize("rule", ["sets", "first", "pairs"])
def test_labels_that_never_count_stay_with_their_row(tmp_path, rule):
    """The first test row has no class that is trained on, and the last no feature: they leave with their pairs."""
    sizes, path = run(tmp_path, FILTERED, parts=FILTERED_PARTS, labels=rule)
    assert (sizes["test"], sizes["dropped_unseen_test"]) == (3, 2 if rule == "pairs" else 1)
    assert sizes["dropped_unseen_filter_test"] == (3 if rule == "first" else 2)
    with open_prepared(path) as data:
        assert data.split("train").filtered is data.split("validation").filtered is None
        assert sets_of(data, "test", "filtered") == [["5", "7"] if rule != "first" else ["5"], ["8"], ["6"]]
        assert data.rows("test", 1, 3).filtered.starts.tolist() == [0, 1, 2]
        assert data.dropped["unseen_filter_test"] == sizes["dropped_unseen_filter_test"]


def test_labels_that_never_count_are_split_and_cut_with_their_rows(tmp_path):
    rows = "".join(f"{i % 5} {i + 1}:1\n" for i in range(40))
    pairs = "".join(f"{i} {(i + 1) % 5}\n" for i in range(0, 40, 2))
    split = SplitOptions(validation=0.25, test=0.25)
    parts = {"all": {"data": "a", "filter": "b"}}
    _, path = run(tmp_path, {"a": rows, "b": pairs}, parts=parts, split=split, max_samples=36)
    with open_prepared(path) as data:
        for name, n in (("train", 18), ("validation", 9), ("test", 9)):
            X = data.split(name).X
            assert X.shape[0] == n
            assert sets_of(data, name, "filtered") == [[] if i % 2 else [str((i + 1) % 5)] for i in X.indices]


def test_labels_that_never_count_go_by_name_where_labels_have_names(tmp_path):
    contents = {"a.csv": "label,x\nc,1\na,1\nb,1\n", "b.csv": "label,x\nb,1\nd,2\nc,3\n", "pairs": "0 2\n2 0\n2 1\n"}
    parts = {"train": "a.csv", "test": {"data": "b.csv", "filter": "pairs"}}  # there b, c and d are 0, 1 and 2
    _, path = run(tmp_path, contents, format="table", parts=parts)
    with open_prepared(path) as data:
        assert sets_of(data, "test", "filtered") == [[], ["b", "c"]]
    contents["pairs"] = "0 3\n"
    with pytest.raises(
        InputError, match="test rows have 3 labels, and the filter has number 3, from 0; do they belong"
    ):
        run(tmp_path, contents, format="table", parts=parts)


@pytest.mark.fault(
    "a file of pairs that never count that is damaged, or of other rows",
    happens="each line is a row that there is and a label, or nothing is prepared",
    user="`error: …/filter_labels_test.txt, line 2: row 5 of 5, counted from 0; …`",
)
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("", "pairs: the file is empty"),
        ("0 5\n\n1\n", "pairs, line 3: expected 'row label', two numbers from 0, found '1'; fetch it again"),
        ("0 5 1\n", "line 1: expected 'row label', .* found '0 5 1'"),
        ("0 -5\n", "line 1: expected 'row label', .* found '0 -5'"),
        ("0 5\n5 5\n", "line 2: row 5 of 5, counted from 0; is it the filter of these rows"),
        ("0 3000000000\n", "line 1: label 3000000000 is more than 2147483647"),
        ("0 " + "9" * 99, r"line 1: expected 'row label', .* found '0 9{38}\.\.\.'"),
    ],
)
def test_bad_pairs_that_never_count(tmp_path, pairs, message):
    with pytest.raises(InputError, match=message):
        run(tmp_path, {**FILTERED, "pairs": pairs}, parts=FILTERED_PARTS)


def test_a_label_that_comes_twice_in_a_row_counts_once(tmp_path):
    _, path = run(tmp_path, {"a": "5,2,5 1:1\n2 2:2\n2,5,2,2 3:1\n"}, labels="pairs")
    assert [name for name, _ in rows_of(path)] == ["5", "2", "2", "2", "5"]


def test_sizes_that_only_some_data_have_may_be_expected(tmp_path):
    expect = {"dropped_unseen_labels_test": 0, "dropped_unseen_filter_train": 0}
    run(tmp_path, {"a": THREE}, expect=expect)
    with pytest.raises(InputError, match="unexpected sizes: dropped_unseen_filter_test 0, expected 2"):
        run(tmp_path, {"a": THREE}, expect={"dropped_unseen_filter_test": 2})


def test_labels_of_a_cell_reach_the_prepared_file(tmp_path, capsys):
    content = "text,tags\ncat dog,b;a\ndog,;\ncat,a;;c;a\ncat cat,\n"
    options = {"text": "text", "label": "tags", "label_separator": ";"}
    settings = {"format": "table", "options": options, "text": TextOptions(min_df=1)}
    sizes, path = run(tmp_path, {"a.csv": content}, labels="sets", **settings)
    assert (sizes["rows"], sizes["train"], sizes["dropped_unlabelled"]) == (4, 2, 2)
    with open_prepared(path) as data:
        assert sets_of(data, "train", "label_sets") == [["a", "b"], ["a", "c"]]
        assert data.transform.source["options"]["label_separator"] == ";"
    assert not capsys.readouterr().err
    _, path = run(tmp_path, {"a.csv": content}, **settings)
    assert [name for name, _ in rows_of(path)] == ["b", "a"]
    assert "rows with several labels (2 of 4 in all) keep the first" in capsys.readouterr().err


def test_propensity_reaches_the_prepared_file(tmp_path):
    _, path = run(tmp_path, {"a": THREE}, propensity=(0.6, 2.6))
    with open_prepared(path) as data:
        assert data.propensity == (0.6, 2.6)


WEIGHTED = "a,b,label,count\n1,2,x,0.5\n3,4,,9\n5,6,y,0\n7,8,x,2\n0,0,y,4\n"


def test_a_column_of_a_table_is_what_rows_count(tmp_path):
    _, path = run(tmp_path, {"a.csv": WEIGHTED}, format="table", options={"weight": "count"})
    assert [row for _, row in rows_of(path)] == [[1, 2], [5, 6], [7, 8]]
    with open_prepared(path) as data:
        assert data.weighted
        assert data.split("train").weight.dtype == np.float32
        assert data.split("train").weight.tolist() == [0.5, 0, 2]
        assert data.weighted == {"train"}  # metrics count all rows alike
        assert data.transform.feature_names == ("a", "b")
    texts = "text,label,count\ncat dog,x,1\ncat cat,y,3\n"
    _, path = run(tmp_path, {"a.csv": texts}, format="table", options={"text": "text", "weight": "count"})
    with open_prepared(path) as data:
        assert data.split("train").weight.tolist() == [1, 3]
    _, path = run(tmp_path, {"a.csv": WEIGHTED}, format="table", options={"weight": -1}, max_samples=3)
    with open_prepared(path) as data:
        assert data.split("train").weight.tolist() == [0.5, 0]
        assert data.transform.source["options"]["weight"] == "count"


def test_pairs_count_what_their_row_does(tmp_path, monkeypatch):
    monkeypatch.setattr("xsoftmax.data.readers.svmlight.read", weighted(svmlight.read))
    _, path = run(tmp_path, {"a": THREE}, labels="pairs")
    with open_prepared(path) as data:
        assert data.split("train").weight.tolist() == [0, 0, 1, 2, 2, 2]
    _, path = run(tmp_path, {"a": THREE}, labels="sets")
    with open_prepared(path) as data:
        assert data.split("train").weight.tolist() == [0, 1, 2]


def weighted(read):
    """As a reader, with weights 0, 1, 2 ..."""

    @wraps(read)
    def reader(**arguments):
        rows = read(**arguments)
        return replace(rows, weight=np.arange(rows.n_samples, dtype=np.float32))

    return reader


@pytest.mark.parametrize("wrong", ["", "-1", "nan", "inf", "1e60", "many"])
def test_weights_that_are_none(tmp_path, wrong):
    content = f"a,label,count\n1,x,1\n2,y,{wrong}\n"
    with pytest.raises(InputError, match=rf"a.csv, row 2: the weight is '{wrong}'; give a number, 0 or more"):
        run(tmp_path, {"a.csv": content}, format="table", options={"weight": "count"})
    zeros = "a,label,count\n1,x,0\n2,y,0\n"
    with pytest.raises(InputError, match=r"all 2 train rows have weight 0; look at options.weight"):
        run(tmp_path, {"a.csv": zeros}, format="table", options={"weight": "count"})


def test_classes_are_numbered_by_their_id_and_keep_their_names(tmp_path):
    _, path = run(tmp_path, {"a": "10 1:1\n-3 1:1\n10 1:1\n9 1:1\n"})
    with open_prepared(path) as data:
        assert data.class_names == ["-3", "9", "10"]
        assert data.class_counts.tolist() == [1, 1, 2]
        assert data.split("train").y.tolist() == [2, 0, 2, 1]
        assert data.split("train").y.dtype == np.int32


def test_empty_and_unlabelled_rows_are_dropped_and_counted(tmp_path):
    content = {"a": "1 1:1\n2\n3:4\n1 2:0\n2 3:1\n"}
    with pytest.raises(InputError, match=r"a, line 3: the label is missing; .*: '3:4'"):
        run(tmp_path, content)
    sizes, path = run(tmp_path, content, options={"require_labels": False})
    assert sizes["dropped_empty"] == 2
    assert sizes["dropped_unlabelled"] == 1
    assert rows_of(path) == [("1", [1, 0, 0]), ("2", [0, 0, 1])]
    with open_prepared(path) as data:
        assert data.attributes["n_dropped_empty"] == 2
        assert data.attributes["n_dropped_unlabelled"] == 1


def test_truncation_as_in_the_paper(tmp_path):
    sizes, path = run(tmp_path, {"a": "1 1:1 3:1\n2 3:5\n1 2:1\n3 1:1\n"}, max_features=2, max_samples=3)
    assert rows_of(path) == [("1", [1, 0]), ("1", [0, 1])]
    assert sizes["dropped_empty"] == 1
    assert sizes["rows"] == 3


def test_given_splits_and_unseen_classes(tmp_path):
    parts = {"train": "train", "test": "test", "validation": "validation"}
    contents = {"train": "1 1:1\n2 2:1\n", "test": "3 1:1\n2 1:1 5:1\n", "validation": "4 1:1\n5 2:1\n1 1:2\n"}
    sizes, path = run(tmp_path, contents, parts=parts, split=SplitOptions())
    assert rows_of(path, "test") == [("2", [1, 0, 0, 0, 1])]
    assert rows_of(path, "validation") == [("1", [2, 0, 0, 0, 0])]
    assert sizes["dropped_unseen_test"] == 1
    assert sizes["dropped_unseen_validation"] == 2
    assert sizes["features"] == 5


def many(n):
    return "".join(f"{i % 3} {i + 1}:1\n" for i in range(n))


def test_seeded_split(tmp_path):
    taken = {}
    for seed in (0, 1):
        _, path = run(tmp_path, {"a": many(100)}, split=SplitOptions(validation=0.1, test=20, seed=seed))
        with open_prepared(path) as data:
            found = {split: data.split(split).X.indices for split in ("train", "validation", "test")}
        assert [found[split].size for split in found] == [70, 10, 20]
        assert sorted(np.concatenate(list(found.values()))) == list(range(100))
        assert all((np.diff(each) > 0).all() for each in found.values())
        taken[seed] = found["test"].tolist()
    assert taken[0] != taken[1]


def test_validation_is_taken_from_given_training_rows(tmp_path):
    contents = {"train": many(50), "test": many(30)}
    settings = {"parts": {"train": "train", "test": "test"}}
    sizes, _ = run(tmp_path, contents, split=SplitOptions(), **settings)
    assert (sizes["train"], sizes["validation"], sizes["test"]) == (45, 5, 30)
    sizes, _ = run(tmp_path, contents, split=SplitOptions(validation=0), **settings)
    assert (sizes["train"], sizes["validation"], sizes["test"]) == (50, 0, 30)


def test_validation_can_be_taken_from_given_test_rows_of_trained_classes(tmp_path):
    contents = {"train": many(50), "test": many(30) + "7 1:1\n" * 20}
    split = SplitOptions(validation=0.2, validation_of="test")
    sizes, path = run(tmp_path, contents, split=split, parts={"train": "train", "test": "test"})
    assert (sizes["train"], sizes["validation"], sizes["test"]) == (50, 6, 24)
    assert (sizes["dropped_unseen_validation"], sizes["dropped_unseen_test"]) == (0, 20)
    with open_prepared(path) as data:
        rows = [data.split(name).X.indices for name in ("validation", "test")]
    assert sorted(np.concatenate(rows)) == list(range(30))
    with pytest.raises(InputError, match="validation_of: test needs parts 'train' and 'test', found all"):
        run(tmp_path, {"a": many(50)}, split=split)


def test_labels_of_one_row_stay_in_one_split(tmp_path):
    rows = "".join(f"1,2,3 {i + 1}:1\n" for i in range(40))
    _, path = run(tmp_path, {"a": rows}, labels="pairs", split=SplitOptions(validation=0.25, test=0.25))
    with open_prepared(path) as data:
        found = [set(data.split(split).X.indices) for split in ("train", "validation", "test")]
    assert [len(each) for each in found] == [20, 10, 10]
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]


def test_a_split_that_leaves_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"leave none of 10 to train on; lower split.validation"):
        run(tmp_path, {"a": many(10)}, split=SplitOptions(validation=5, test=5))
    with pytest.raises(InputError, match=r"no training row is left \(2 rows have no features\)"):
        run(tmp_path, {"a": "1 1:0\n2\n"})


def held_out(folder, content, seed=0, **settings):
    split = SplitOptions(**{"validation": 0.1, "test": 0.2, "seed": seed, "keep_classes": True})
    sizes, path = run(folder, {"a": content}, split=split, **settings)
    with open_prepared(path) as data:
        return sizes, {name: data.split(name).X.indices.tolist() for name in ("train", "validation", "test")}


def test_every_class_keeps_a_training_row_if_asked(tmp_path):
    content = "".join(f"{i if i < 60 else 100 + i % 5} {i + 1}:1\n" for i in range(100))
    sizes, found = held_out(tmp_path, content)
    assert [len(rows) for rows in found.values()] == [70, 10, 20]
    assert sizes["classes"] == 65
    assert sizes["dropped_unseen_validation"] == sizes["dropped_unseen_test"] == 0
    assert sorted(np.concatenate(list(found.values()))) == list(range(100))
    assert found == held_out(tmp_path, content)[1]
    kept = {tuple(row for row in held_out(tmp_path, content, seed)[1]["train"] if row >= 60) for seed in range(20)}
    assert len(kept) == 20
    assert set.union(*map(set, kept)) == set(range(60, 100))


def test_all_labels_of_a_row_are_kept_with_it(tmp_path):
    content = "".join(f"{i % 7},{50 + i // 2} {i + 1}:1\n" for i in range(60))
    sizes, found = held_out(tmp_path, content, labels="pairs")
    assert sizes["classes"] == 37
    assert [len(rows) for rows in found.values()] == [2 * 42, 2 * 6, 2 * 12]  # two examples of each row
    for pair in range(30):
        assert {2 * pair, 2 * pair + 1} & set(found["train"])


def test_rows_that_cannot_be_spared(tmp_path):
    with pytest.raises(InputError, match=r"3 validation and 6 test rows of 30 .* only 8 can be spared"):
        held_out(tmp_path, "".join(f"{min(i, 21)} {i + 1}:1\n" for i in range(30)))


def normalized(folder, wanted):
    contents = {"train": "1 1:3 2:-4\n2 1:1 3:2\n", "test": "1 1:6 2:8 4:5\n"}
    settings = {"parts": {"train": "train", "test": "test"}, "normalize": wanted}
    _, path = run(folder, contents, **settings)
    return [row for _, row in rows_of(path) + rows_of(path, "test")]


def test_normalisation(tmp_path):
    assert normalized(tmp_path, "none") == [[3, -4, 0, 0], [1, 0, 2, 0], [6, 8, 0, 5]]
    assert np.allclose(np.linalg.norm(normalized(tmp_path, "l2"), axis=1), 1)
    assert normalized(tmp_path, "max") == [[0.75, -1, 0, 0], [0.5, 0, 1, 0], [0.75, 1, 0, 0.625]]
    assert np.allclose(normalized(tmp_path, "column_max"), [[1, -1, 0, 0], [1 / 3, 0, 1, 0], [2, 2, 0, 5]])
    assert normalized(tmp_path, {"divide": 2})[1] == [0.5, 0, 1, 0]
    assert normalized(tmp_path, ["column_max", "max"])[2] == pytest.approx([0.4, 0.4, 0, 1])


def test_columns_are_standardized(tmp_path):
    """A column that does not vary but for rounding keeps its scale; new rows go the same way."""
    csv = "a,b,c,label\n1,1000,0.1,x\n3,-1000,0.1,y\n8,0,0.1,x\n"
    options = {"format": "table", "options": {"label": "label"}, "split": SplitOptions(validation=0, test=0)}
    _, path = run(tmp_path, {"rows.csv": csv}, normalize="standardize", **options)
    found = np.array([row for _, row in sorted(rows_of(path))])
    raw = np.array([[1, 1000], [3, -1000], [8, 0]])
    expected = (raw - raw.mean(axis=0)) / raw.std(axis=0) / np.sqrt(3)
    assert np.allclose(np.sort(found[:, :2], axis=0), np.sort(expected, axis=0), atol=1e-6)
    assert np.abs(found[:, 2]).max() < 1e-6
    with pytest.raises(InputError, match="standardize: rows are sparse, and less their mean they would not be"):
        run(tmp_path, {"rows.svm": "1 1:3 2:-4\n2 1:1 3:2\n"}, normalize="standardize")


@pytest.mark.parametrize("n_features", [12, 60])
def test_pca_agrees_with_scikit_learn(tmp_path, monkeypatch, n_features):
    from sklearn.decomposition import PCA

    from xsoftmax.data import normalization

    monkeypatch.setattr(normalization, "DENSE_COVARIANCE_UP_TO", 20)
    monkeypatch.setattr(normalization, "BLOCK", 7)
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((90, n_features)) * 0.8 ** np.arange(n_features)).round(3)
    text = "".join(f"1 {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}\n" for row in X)
    settings = {"parts": {"train": "train", "test": "test"}, "normalize": {"pca": 4}}
    _, path = run(tmp_path, {"train": text, "test": text}, **settings)
    expected = PCA(4, svd_solver="full").fit(X).transform(X)
    with open_prepared(path) as data:
        assert not data.sparse
        found = data.split("test").X
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("l3", "unknown step 'l3'; known: none, l2, max, column_max, standardize, divide, pca"),
        ({"pca": 0}, "pca: expected '{pca: a positive number}'"),
        ({"l2": 3}, "l2: expected just 'l2'"),
        ("pca", "pca: expected '{pca: a positive number}', found 'pca'"),
        ({"divide": 1e300}, "divide: give a number from 1.18e-38 to 3.4e\\+38, as of float32"),
        ({"divide": 1e-300}, "divide: give a number from 1.18e-38 to 3.4e\\+38, as of float32"),
        ({"divide": 10**400}, "divide: give a number from"),
        ({"pca": 10**400}, "pca: give a number from"),
        ([{"divide": 1e30}, {"divide": 1e30}], r"divide: by 1e\+30 all features become 0 \(the largest is"),
        ({"pca": 99}, "pca: 99 components of 2 rows with 4 features"),
    ],
)
def test_bad_normalisation(tmp_path, wanted, message):
    with pytest.raises(InputError, match=message):
        normalized(tmp_path, wanted)


@pytest.mark.parametrize("vocabulary", ["all", "train"])
def test_texts_agree_with_a_naive_tfidf(tmp_path, vocabulary):
    options = {"format": "table", "options": {"text": "text"}, "normalize": "l2"}
    sizes, path = run(tmp_path, {"a.csv": TABLE}, text=TextOptions(vocabulary=vocabulary), **options)
    kept = [text for text in TEXTS if text]
    assert sizes["dropped_empty"] == 1
    # the empty text counts for the vocabulary, not for the weights: those are of training rows
    expected, words = tfidf(kept, "[a-z0-9]+", 2)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose([row for _, row in rows_of(path)], expected, rtol=1e-6)
    with open_prepared(path) as data:
        assert list(data.transform.words) == words


def test_texts_agree_with_scikit_learn(tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer

    options = {"format": "table", "options": {"text": "text"}, "normalize": "l2"}
    _, path = run(tmp_path, {"a.csv": TABLE}, text=TextOptions(min_df=1), **options)
    vectorizer = TfidfVectorizer(token_pattern="[a-z0-9]+", min_df=1)
    expected = vectorizer.fit_transform([text for text in TEXTS if text]).toarray()
    np.testing.assert_allclose([row for _, row in rows_of(path)], expected, rtol=1e-6)


def test_words_and_weights_come_from_training_texts(tmp_path):
    table = "text,label\n" + "old old common,1\ncommon word,2\n"
    later = "text,label\n" + "new new common,1\nnew,2\n"
    settings = {"format": "table", "options": {"text": "text"}, "parts": {"train": "a.csv", "test": "b.csv"}}
    contents = {"a.csv": table, "b.csv": later}
    sizes, path = run(tmp_path, contents, text=TextOptions(min_df=1), **settings)
    with open_prepared(path) as data:
        assert data.transform.words == ("common", "old", "word")
        assert data.transform.idf[0] == 1
    assert sizes["dropped_empty"] == 1
    _, path = run(tmp_path, contents, text=TextOptions(min_df=1, vocabulary="all"), **settings)
    with open_prepared(path) as data:
        assert data.transform.words == ("common", "new", "old", "word")
        assert data.transform.idf[1] == pytest.approx(np.log(3) + 1)


def test_weightings_and_the_most_frequent_words(tmp_path):
    settings = {"format": "table", "options": {"text": "text"}, "max_features": 2}
    _, path = run(tmp_path, {"a.csv": TABLE}, text=TextOptions(weighting="counts"), **settings)
    with open_prepared(path) as data:
        assert data.transform.words == ("cat", "dog")
    assert rows_of(path)[0][1] == [2, 0]
    _, path = run(tmp_path, {"a.csv": TABLE}, text=TextOptions(weighting="binary"), **settings)
    assert rows_of(path)[0][1] == [1, 0]


def test_expected_sizes_are_asserted(tmp_path):
    with pytest.raises(InputError, match="toy: unexpected sizes: rows 3, expected 4; classes 3, expected 5"):
        run(tmp_path, {"a": THREE}, expect={"rows": 4, "train": 3, "classes": 5})
    assert not (tmp_path / "toy.h5").exists()


def test_options_and_parts_are_checked(tmp_path):
    with pytest.raises(InputError, match="reader svmlight: unknown file or option 'zero'; known: data, zero_based"):
        run(tmp_path, {"a": THREE}, options={"zero": True})
    with pytest.raises(InputError, match="reader arff: 'labels' is missing; name it in 'parts'"):
        run(tmp_path, {"a": THREE}, format="arff")
    with pytest.raises(InputError, match="parts: no file 'b'; files: a"):
        run(tmp_path, {"a": THREE}, parts={"train": "b"})
    with pytest.raises(InputError, match="several files, and 'parts' does not say"):
        run(tmp_path, {"a": THREE, "b": THREE})
    with pytest.raises(InputError, match="unknown reader 'csv'; known: arff"):
        run(tmp_path, {"a": THREE}, format="csv")


def test_preparing_without_a_download_is_refused(tmp_path):
    config = DatasetConfig(name="toy", format="svmlight", files=(Source(name="a", path="a"),))
    with pytest.raises(InputError, match="no complete download of toy here; run"):
        prepare(config, tmp_path, tmp_path / "toy.h5")


def test_same_input_same_bytes(tmp_path):
    first = run(tmp_path, {"a": many(60)}, split=SplitOptions())[1].read_bytes()
    second = run(tmp_path, {"a": many(60)}, split=SplitOptions())[1].read_bytes()
    assert first == second


def test_a_data_set_without_features(tmp_path):
    settings = {"format": "zipf", "options": {"n_samples": 1000, "n_classes": 5}, "split": SplitOptions()}
    sizes, path = run(tmp_path, {}, **settings)
    assert (sizes["features"], sizes["train"]) == (0, 800)
    with open_prepared(path) as data:
        assert data.sparse
        assert data.split("train").X.shape == (800, 0)
        assert data.rows("test", 5, 15).X.shape == (10, 0)
