from dataclasses import replace

import h5py
import numpy as np
import pytest
from scipy import sparse

from edited import edited
from xsoftmax.cli import main
from xsoftmax.data import store
from xsoftmax.data.dataset import ArrayDataset, Dataset, check_plain
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.normalization import Step
from xsoftmax.data.store import Split, open_prepared, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.data.transform_file import put_transform, transform_of
from xsoftmax.data.windows import taken, training_windows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put
from xsoftmax.internal.hdf5_checks import ContentError, check_label_sets, check_sets
from xsoftmax.model import Model, save_model


def split_of(n, dense, seed):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, 6), density=0.4, rng=rng, format="csr", dtype=np.float32)
    return Split(X.toarray() if dense else X, rng.integers(0, 3, n).astype(np.int32))


def write(path, dense=False, n=50, **changes):
    splits = {"train": split_of(n, dense, 0), "validation": split_of(0, dense, 1), "test": split_of(7, dense, 2)}
    content = {
        "dataset": "toy",
        "splits": splits,
        "class_names": ["a", "ö", "c c"],
        "class_counts": np.bincount(splits["train"].y, minlength=3),
        "transform": Transform("sparse", n_columns=6),
        "parameters": {"labels": "first"},
        "source_sha256": {"a.txt": "00"},
        "dropped": {"empty": 4, "unseen_test": 1, "unseen_validation": 0},
    }
    write_prepared(path, **{**content, **changes})
    return splits


def dense_of(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("dense", [False, True])
def test_round_trip_and_partial_reads(tmp_path, dense):
    splits = write(tmp_path / "a.h5", dense)
    with open_prepared(tmp_path / "a.h5") as data:
        assert (data.name, data.n_features, data.n_classes) == ("toy", 6, 3)
        assert data.sparse is not dense
        assert data.class_names == ["a", "ö", "c c"]
        assert data.class_counts.dtype == np.int64
        assert data.attributes["parameters"] == {"labels": "first"}
        assert data.attributes["source_sha256"] == {"a.txt": "00"}
        assert data.attributes["n_dropped_empty"] == 4
        for name, expected in splits.items():
            found = data.split(name)
            assert found.n_samples == data.n_samples(name) == expected.n_samples
            assert found.X.dtype == np.float32
            assert found.y.dtype == np.int32
            np.testing.assert_array_equal(dense_of(found.X), dense_of(expected.X))
            np.testing.assert_array_equal(found.y, expected.y)
        for start, stop in [(0, 50), (3, 17), (49, 50), (20, 20), (40, 99), (-5, 2), (60, 70)]:
            found = data.rows("train", start, stop)
            wanted = slice(max(start, 0), max(stop, 0))
            np.testing.assert_array_equal(dense_of(found.X), dense_of(splits["train"].X)[wanted])
            np.testing.assert_array_equal(found.y, splits["train"].y[wanted])
        if not dense:
            assert data.split("train").X.indices.dtype == data.split("train").X.indptr.dtype == np.int32


def labelled(splits):
    """The same rows with weights, one or two labels each, and at most three that never count."""
    found = {}
    for name, split in splits.items():
        n, rng = split.n_samples, np.random.default_rng(7)
        pairs = np.concatenate([np.arange(n)] * 2), np.concatenate([split.y, rng.integers(0, 3, n)])
        weight = rng.random(n, dtype=np.float32)
        filtered = LabelSets.of_pairs(rng.integers(0, max(n, 1), n), rng.integers(0, 3, n), n)
        found[name] = Split(split.X, split.y, weight, LabelSets.of_pairs(*pairs, n), filtered)
    return found


def with_all(path, dense=False, **changes):
    splits = {"train": split_of(50, dense, 0), "validation": split_of(0, dense, 1), "test": split_of(7, dense, 2)}
    splits = labelled(splits)
    write(path, dense, splits=splits, **changes)
    return splits


def of_row(label_sets, i):
    return label_sets.classes[label_sets.starts[i] : label_sets.starts[i + 1]].tolist()


@pytest.mark.parametrize("dense", [False, True])
def test_weights_and_several_labels_survive(tmp_path, dense):
    splits = with_all(tmp_path / "a.h5", dense)
    write(tmp_path / "b.h5", dense)
    with open_prepared(tmp_path / "a.h5") as data, open_prepared(tmp_path / "b.h5") as without:
        assert data.weighted
        assert data.multilabel
        assert not without.weighted
        assert not without.multilabel
        assert without.split("train").weight is without.split("train").label_sets is None
        assert without.split("train").filtered is None
        assert data.identity != without.identity
        for name, expected in splits.items():
            found = data.split(name)
            assert found.nbytes == data.nbytes(name) - (0 if dense else 4 * (found.n_samples + 1))  # int32 in memory
            n_labels = expected.label_sets.classes.size + expected.filtered.classes.size
            assert data.label_bytes(name) == (4 + 4) * found.n_samples + 2 * 8 * (found.n_samples + 1) + 4 * n_labels
            assert without.label_bytes(name) == 4 * found.n_samples
            for key, values in expected.label_arrays.items():
                assert found.label_arrays[key].dtype == values.dtype
                np.testing.assert_array_equal(found.label_arrays[key], values)
        part = data.rows("train", 3, 17)
        np.testing.assert_array_equal(part.weight, splits["train"].weight[3:17])
        for i in range(14):
            assert of_row(part.label_sets, i) == of_row(splits["train"].label_sets, 3 + i)
            assert of_row(part.filtered, i) == of_row(splits["train"].filtered, 3 + i)
        windows = training_windows(data, 1)
        row_bytes = data.nbytes("train") // 50
        assert windows.nbytes == row_bytes * 50 + 8 * 50 + data.label_bytes("train")
        for rows, chosen in ((training_windows(data, 1).split, [4, 0, 49]), (splits["train"], [4, 0, 49])):
            few = taken(rows, np.array(chosen))
            np.testing.assert_array_equal(few.weight, splits["train"].weight[chosen])
            for name in ("label_sets", "filtered"):
                expected = getattr(splits["train"], name)
                assert [of_row(getattr(few, name), i) for i in range(3)] == [of_row(expected, i) for i in chosen]


def test_rows_in_memory_are_stored_with_their_weights(tmp_path):
    X, y, weight = np.eye(4, 6, dtype=np.float32), [0, 1, 2, 0], np.array([1, 0, 2.5, 3], np.float32)
    data = Dataset.from_arrays(X, y, sample_weight=weight)
    write(tmp_path / "a.h5", True, splits={name: data.split(name) for name in ("train", "validation", "test")})
    with open_prepared(tmp_path / "a.h5") as stored:
        assert stored.split("train").weight.tolist() == weight.tolist()
        assert stored.split("test").weight is None
        assert stored.weighted == {"train"}


def test_identity_covers_weights_and_several_labels():
    split = split_of(9, True, 0)
    whole, none = labelled({"train": split})["train"], split_of(0, True, 0)
    splits = [
        split,
        replace(split, weight=whole.weight),
        replace(split, weight=whole.weight[::-1].copy()),
        replace(split, label_sets=whole.label_sets),
        replace(split, label_sets=LabelSets.of_pairs(np.arange(9), split.y, 9)),
        replace(split, filtered=LabelSets.of_pairs(np.arange(9), split.y, 9)),
    ]
    found = [ArrayDataset("a", {"train": each, "validation": none, "test": none}, np.arange(3)) for each in splits]
    assert len({each.identity for each in found}) == len(splits)
    assert [bool(each.weighted) for each in found] == [False, True, True, False, False, False]
    assert [each.multilabel for each in found] == [False, False, False, True, True, False]
    assert found[3].class_counts.sum() == whole.label_sets.classes.size
    several = r"no method trains with several labels per row yet; prepare it with labels: pairs .* or labels: first"
    with pytest.raises(InputError, match=several):
        check_plain(found[3], "no method trains with")


def test_metrics_refuse_rows_that_count_differently_and_take_several_labels(tmp_path, capsys):
    splits = with_all(tmp_path / "a.h5", True)
    several = {name: replace(split, weight=None) for name, split in splits.items()}
    write(tmp_path / "b.h5", True, splits=several)
    with open_prepared(tmp_path / "b.h5") as data:
        names = list(data.class_names)
    save_model(Model(np.eye(3, 6), names, 6, attributes={"status": "finished"}), tmp_path / "model.h5")
    for path, status in (("a.h5", 1), ("b.h5", 0)):
        assert main(["evaluate", str(tmp_path / "model.h5"), str(tmp_path / path)]) == status
        assert ("sample weights yet; leave" in capsys.readouterr().err) == (status == 1)


def changed(name, change):
    """A change of one array of the training rows."""

    def edit(file):
        values = file[f"train/{name}"][:]
        del file[f"train/{name}"]
        if (others := change(values)) is not None:
            file[f"train/{name}"] = others

    return edit


def put_at(place, value):
    def change(values):
        values[place] = value
        return values

    return change


def several_in_training_only(file):
    for name in ("label_starts", "label_classes"):
        del file[f"test/{name}"]


def several_in_test_only(file):
    for name in ("label_starts", "label_classes"):
        del file[f"train/{name}"]


CRAFTED = [
    (changed("weight", put_at(3, np.nan)), "weight: nan at 3 is no weight"),
    (changed("weight", put_at(3, np.inf)), "weight: inf at 3 is no weight"),
    (changed("weight", put_at(49, -1)), "weight: -1.0 at 49 is no weight"),
    (changed("weight", np.zeros_like), "weight: all weights are 0"),
    (changed("weight", lambda values: values[:-1]), "weight: float32 of shape"),
    (changed("weight", lambda values: values.astype(float)), "weight: float64 of shape"),
    (changed("label_starts", put_at(5, 0)), "label_starts: does not begin with 0, or falls"),
    (changed("label_starts", put_at(0, 1)), "label_starts: does not begin with 0, or falls"),
    (changed("label_starts", put_at(-1, 2**40)), "label_starts: ends with 1099511627776"),
    (changed("label_starts", lambda values: values[:-1]), "label_starts: int64 of shape"),
    (changed("label_starts", lambda values: np.r_[values[:7], values[6], values[8:]]), "row 6 has no label"),
    (changed("label_classes", put_at(4, 3)), "label_classes: 3 at 4 is not from 0 to 2"),
    (changed("label_classes", put_at(4, -1)), "label_classes: -1 at 4 is not from 0 to 2"),
    (changed("label_classes", lambda values: values.astype(np.int64)), "label_classes: int64 of shape"),
    (changed("label_classes", lambda values: values * 0), "labels of row .* do not rise"),
    (changed("label_classes", lambda values: None), "KeyError"),
    (changed("y", lambda values: (values + 1) % 3), "the first label of row .* is none of its labels"),
    (changed("filter_classes", lambda values: values + 3), "filter_classes: "),
    (changed("filter_classes", np.zeros_like), "filter_classes: the labels of row . do not rise"),
    (changed("filter_starts", lambda values: values + 1), "filter_starts: does not begin with 0"),
    (changed("filter_starts", lambda values: values[:-1]), "filter_starts"),
    (changed("filter_classes", lambda values: None), "KeyError"),
    (changed("filter_starts", lambda values: None), "KeyError"),
    (lambda file: file.attrs.__setitem__("propensity_a", 0.0), r"propensity 0.0, 1.5"),
    (lambda file: file.attrs.__setitem__("propensity_b", float("nan")), r"propensity 0.55, nan"),
    (several_in_training_only, "KeyError"),
    (several_in_test_only, "validation has several labels per row, training rows have one"),
]


@pytest.mark.fault(
    "a prepared file with weights that are none, or labels of rows that are no sets of classes",
    happens="weights must be finite, 0 or more and not all 0; each row has labels, in rising order, its first among "
    "them; classes that never count rise, too: all is compared as the file is opened",
    user="`error: …: not what xsoftmax writes (/train/weight: nan at 3 is no weight …)`",
)
@pytest.mark.parametrize(("edit", "message"), CRAFTED)
def test_crafted_weights_and_labels(tmp_path, edit, message):
    with_all(tmp_path / "a.h5")
    with edited(tmp_path / "a.h5") as file:
        edit(file)
    with pytest.raises(InputError, match=rf"a\.h5: not what xsoftmax writes \(.*{message}"):
        open_prepared(tmp_path / "a.h5")


def test_labels_are_compared_beyond_the_first_block(monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.hdf5_checks.AT_A_TIME", 3)
    y = np.arange(8, dtype=np.int32) % 3
    sets = LabelSets.of_pairs(np.r_[np.arange(8), 6, 7, 7], np.r_[y, 1, 0, 2], 8)
    check_label_sets(sets.starts, sets.classes, y, 3)
    wrong = sets.classes.copy()
    wrong[-2:] = wrong[-2:][::-1]
    with pytest.raises(ContentError, match="the labels of row 7 do not rise"):
        check_label_sets(sets.starts, wrong, y, 3)
    with pytest.raises(ContentError, match="the first label of row 4 is none of its labels"):
        check_label_sets(sets.starts, sets.classes, np.where(np.arange(8) == 4, 0, y).astype(np.int32), 3)


def test_filters_are_compared_beyond_the_first_block(monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.hdf5_checks.AT_A_TIME", 3)
    starts, classes = np.array([0, 0, 2, 2, 2, 4, 4]), np.array([0, 2, 1, 2], np.int32)
    check_sets(starts, classes, 6, 3)
    with pytest.raises(ContentError, match="the labels of row 4 do not rise"):
        check_sets(starts, np.array([0, 2, 1, 1], np.int32), 6, 3)


def test_propensity_survives(tmp_path):
    write(tmp_path / "a.h5", propensity=(0.6, 2.6))
    write(tmp_path / "b.h5")
    with open_prepared(tmp_path / "a.h5") as data, open_prepared(tmp_path / "b.h5") as without:
        assert (data.propensity, without.propensity) == ((0.6, 2.6), (0.55, 1.5))
    with edited(tmp_path / "b.h5") as file:  # a file of before there were any
        del file.attrs["propensity_a"], file.attrs["propensity_b"]
    with open_prepared(tmp_path / "b.h5") as data:
        assert data.propensity == (0.55, 1.5)


def test_layout(tmp_path):
    write(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        kinds = {name: file[f"train/X/{name}"].dtype for name in ("indptr", "indices", "data")}
        assert kinds == {"indptr": np.int64, "indices": np.int32, "data": np.float32}
        assert file["train/X/data"].compression == "gzip"
        assert file["train/X/data"].shuffle
        assert file.attrs["schema_version"] == 3


@pytest.mark.parametrize("dense", [False, True])
def test_large_arrays_lie_in_one_piece_on_a_page_of_their_own(tmp_path, monkeypatch, dense):
    monkeypatch.setattr(store, "PLAIN_ABOVE", 7000)
    splits = write(tmp_path / "a.h5", dense, n=900)
    write(tmp_path / "b.h5", dense, n=900)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    with h5py.File(tmp_path / "a.h5") as file:
        large = [file["train/X"]] if dense else [file["train/X/data"], file["train/X/indptr"]]
        for dataset in large:
            assert dataset.chunks is dataset.compression is None
            assert dataset.id.get_offset() % 4096 == 0
        assert file["train/y"].compression == "gzip"
    with open_prepared(tmp_path / "a.h5") as data:
        np.testing.assert_array_equal(dense_of(data.split("train").X), dense_of(splits["train"].X))
        np.testing.assert_array_equal(dense_of(data.rows("train", 400, 600).X), dense_of(splits["train"].X)[400:600])


def test_only_the_chunk_is_read(tmp_path):
    import tracemalloc

    X = np.random.default_rng(0).random((40_000, 64), dtype=np.float32)
    big = Split(X, np.zeros(40_000, dtype=np.int32))
    splits = {"train": big, "validation": Split(X[:0], big.y[:0]), "test": Split(X[:0], big.y[:0])}
    write(tmp_path / "a.h5", splits=splits)
    with open_prepared(tmp_path / "a.h5") as data:
        tracemalloc.start()
        found = data.rows("train", 20_000, 20_100)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_array_equal(found.X, X[20_000:20_100])
    assert peak < X.nbytes / 20


def test_same_input_same_bytes_and_nothing_left_aside(tmp_path):
    write(tmp_path / "a.h5")
    write(tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write(tmp_path / "a.h5")
    before = (tmp_path / "a.h5").read_bytes()
    with pytest.raises(TypeError):
        write(tmp_path / "a.h5", parameters={"x": object()})
    with pytest.raises(KeyError):
        write(tmp_path / "a.h5", splits={"train": split_of(3, False, 0)})
    assert (tmp_path / "a.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"no such file; make it with `python -m xsoftmax prepare`"):
        open_prepared(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(InputError, match="not an HDF5 file, or damaged"):
        open_prepared(tmp_path / "text.h5")
    with edited(tmp_path / "other.h5") as file:
        put(file, kind="proposal")
    with pytest.raises(InputError, match="holds 'proposal', not a prepared; make it with"):
        open_prepared(tmp_path / "other.h5")
    write(tmp_path / "new.h5")
    with edited(tmp_path / "new.h5") as file:
        put(file, schema_version=2)
    with pytest.raises(InputError, match="prepared of version 2, this xsoftmax reads 3; make it with"):
        open_prepared(tmp_path / "new.h5")
    write(tmp_path / "a.h5")
    with open_prepared(tmp_path / "a.h5") as data, pytest.raises(InputError, match="unknown split 'dev'"):
        data.split("dev")


@pytest.mark.parametrize(
    ("transform", "n_features"),
    [
        (Transform("dense", n_columns=3), 3),
        (
            Transform(
                "sparse", 9, columns=np.arange(4), steps=(Step("l2", {}),), source={"format": "xc", "options": {}}
            ),
            4,
        ),
        (
            Transform(
                "texts",
                words=("a\n", "ö", "\na"),
                token="[^z]+",
                weighting="tfidf",
                idf=np.float32([1, 2, 1]),
                steps=(
                    Step("column_max", {"maxima": np.float32([1, 2, 1])}),
                    Step("pca", {"mean": np.zeros(3, np.float32), "components": np.eye(2, 3, dtype=np.float32)}),
                ),
            ),
            2,
        ),
        (Transform("texts", token="x"), 0),
    ],
)
def test_transforms_survive(tmp_path, transform, n_features):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        put_transform(file.create_group("transform"), transform)
        found = transform_of(file["transform"], n_features)
        with pytest.raises(ContentError, match=f"to {n_features} features, expected {n_features + 1}"):
            transform_of(file["transform"], n_features + 1)
    for name in ("kind", "n_columns", "words", "token", "weighting", "source"):
        assert getattr(found, name) == getattr(transform, name)
    for name in ("columns", "idf"):
        np.testing.assert_array_equal(getattr(found, name), getattr(transform, name))
    assert [step.kind for step in found.steps] == [step.kind for step in transform.steps]
    for one, two in zip(found.steps, transform.steps, strict=True):
        assert set(one.arrays) == set(two.arrays)
        assert all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)
