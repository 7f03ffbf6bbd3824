import h5py
import numpy as np
import pytest
from scipy import sparse

from edited import edited
from xsoftmax.data import store
from xsoftmax.data.normalization import Step
from xsoftmax.data.store import Split, open_prepared, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put
from xsoftmax.internal.hdf5_checks import ContentError


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
        "parameters": {"label": "first"},
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
        assert data.attributes["parameters"] == {"label": "first"}
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


def test_layout(tmp_path):
    write(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        kinds = {name: file[f"train/X/{name}"].dtype for name in ("indptr", "indices", "data")}
        assert kinds == {"indptr": np.int64, "indices": np.int32, "data": np.float32}
        assert file["train/X/data"].compression == "gzip"
        assert file["train/X/data"].shuffle
        assert file.attrs["schema_version"] == 2


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
        put(file, kind="tree")
    with pytest.raises(InputError, match="holds 'tree', not a prepared; make it with"):
        open_prepared(tmp_path / "other.h5")
    write(tmp_path / "new.h5")
    with edited(tmp_path / "new.h5") as file:
        put(file, schema_version=1)
    with pytest.raises(InputError, match="prepared of version 1, this xsoftmax reads 2; make it with"):
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
        transform.to_group(file.create_group("transform"))
        found = Transform.from_group(file["transform"], n_features)
        with pytest.raises(ContentError, match=f"to {n_features} features, expected {n_features + 1}"):
            Transform.from_group(file["transform"], n_features + 1)
    for name in ("kind", "n_columns", "words", "token", "weighting", "source"):
        assert getattr(found, name) == getattr(transform, name)
    for name in ("columns", "idf"):
        np.testing.assert_array_equal(getattr(found, name), getattr(transform, name))
    assert [step.kind for step in found.steps] == [step.kind for step in transform.steps]
    for one, two in zip(found.steps, transform.steps, strict=True):
        assert set(one.arrays) == set(two.arrays)
        assert all(np.array_equal(one.arrays[name], two.arrays[name]) for name in one.arrays)
