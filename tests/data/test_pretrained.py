"""Tables of vectors that were trained elsewhere, in files."""

import gzip

import h5py
import numpy as np
import pytest

from training.problems import method
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.pretrained import Vectors, aligned, read_vectors
from xsoftmax.data.transform import Transform
from xsoftmax.data.word2vec_files import write_word2vec
from xsoftmax.internal.errors import InputError
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.training.pretrained import names_of_features, pretrained_table

VECTORS = np.arange(12, dtype=np.float64).reshape(4, 3) / 8


def stored(path, vectors=VECTORS, words=None):
    if path.suffix == ".npy":
        np.save(path, vectors)
        return path
    with h5py.File(path, "w") as file:
        file["vectors"] = vectors
        if words is not None:
            file["words"] = np.array([word.encode() for word in words])
    return path


@pytest.mark.parametrize("ending", [".npy", ".h5", ".hdf5"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_vectors_come_back_in_their_order(ending, kind, tmp_path):
    found = read_vectors(stored(tmp_path / f"vectors{ending}", VECTORS.astype(kind)))
    assert found.words is None
    assert found.vectors.dtype == np.float32
    assert np.array_equal(found.vectors, VECTORS)


def test_words_say_which_feature_a_vector_is_of(tmp_path):
    """The first of two of one word counts, as it is the more frequent one in files of vectors."""
    found = read_vectors(stored(tmp_path / "vectors.h5", words=["dog", "ß∂", "cow", "dog"]))
    table = aligned(found, ["cat", "dog", "ß∂"], 3, "here")
    assert np.isnan(table[0]).all()
    assert np.array_equal(table[1:], VECTORS[:2])


def dataset(names=("a", "b", "c", "d")):
    return Dataset.from_arrays(np.eye(4, dtype=np.float32), [0, 1, 0, 1], feature_names=names)


def with_table(path, **others):
    return method("one-vs-each", "uniform", "sgd", encoder={"dimension": 3, "table": str(path)} | others)


def test_a_fit_begins_with_them_and_draws_the_others(tmp_path):
    path = stored(tmp_path / "vectors.h5", VECTORS[:2], ["d", "b"])
    first = fit(dataset(), with_table(path, frozen=True), 0, Plan(epochs=1)).model
    assert np.array_equal(first.encoder[[3, 1]], VECTORS[:2])
    drawn = first.encoder[[0, 2]]
    assert np.isfinite(drawn).all()
    assert len(np.unique(drawn)) == drawn.size
    other = fit(dataset(), with_table(path, frozen=True), 1, Plan(epochs=1)).model
    assert not np.array_equal(other.encoder[[0, 2]], drawn)
    trained = fit(dataset(), with_table(path), 0, Plan(epochs=2)).model
    assert not np.array_equal(trained.encoder[[3, 1]], VECTORS[:2])


def test_a_checkpoint_is_of_one_table(tmp_path):
    """Another table in the same file is another fit."""
    path = tmp_path / "vectors.npy"
    digests = [pretrained_table(with_table(stored(path, VECTORS + n)), dataset()).digest for n in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_features_of_several_kinds_have_names_or_none():
    assert names_of_features(None) == ()
    assert names_of_features(Transform("texts", words=("cat", "dog"))) == ("cat", "dog")
    columns = Transform("dense", n_columns=3, feature_names=("a", "b", "c"), columns=np.array([2, 0]))
    assert names_of_features(columns) == ["c", "a"]


NOT_FINITE = np.where(VECTORS[2, 1] == VECTORS, np.nan, VECTORS)


@pytest.mark.fault(
    "a file of vectors that is damaged, crafted, of the wrong size, or of other words",
    happens="it is refused before training, in one line that names it",
    user="`error: vectors.npy: …`",
)
@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.with_suffix(".npz"), r"vectors.npz: a table of vectors is a file that ends in .npy, .h5"),
        (lambda path: path, r"vectors.npy: no such file"),
        (lambda path: (path.write_bytes(b"") and path) or path, "vectors.npy: not a table of vectors"),
        (lambda path: path.write_bytes(stored(path).read_bytes()[:-8]) and path, "not a table of vectors"),
        (lambda path: stored(path, VECTORS[0]), r"float64 of shape \(3,\), expected float32 or float64"),
        (lambda path: stored(path, VECTORS[:, :0]), r"float64 of shape \(4, 0\)"),
        (lambda path: stored(path, VECTORS.astype(np.int64)), "int64 of shape"),
        (lambda path: stored(path, VECTORS.astype(object)), "not a table of vectors"),
        (lambda path: stored(path, NOT_FINITE), "vector 3 is NaN or infinite in float32; leave it out"),
        (lambda path: stored(path, VECTORS * 1e60), "vector 1 is NaN or infinite in float32"),
        (lambda path: stored(path, VECTORS[:3]), "3 vectors for 4 features; store one for each feature"),
        (lambda path: stored(path, np.ones((4, 7))), "dimension 3, its table .* has 7 columns; set dimension: 7"),
        (lambda path: stored(path.with_suffix(".h5"), words=["a"]), "1 words and 4 vectors"),
        (lambda path: stored(path.with_suffix(".h5"), words="wxyz"), "none of its 4 words is a feature, such as 'a'"),
    ],
)
def test_what_is_no_table_is_refused(write, message, tmp_path):
    with pytest.raises(InputError, match=message):
        fit(dataset(), with_table(write(tmp_path / "vectors.npy")), 0, Plan(epochs=1))


@pytest.mark.fault(
    "a file of vectors with a link out of it, or more than its bytes can hold",
    happens="it is refused: nothing of another file is read",
    user="`error: vectors.h5: not a table of vectors (… is a link …)`",
)
def test_a_crafted_file_is_refused(tmp_path):
    stored(tmp_path / "other.h5")
    with h5py.File(tmp_path / "vectors.h5", "w") as file:
        file["vectors"] = h5py.ExternalLink("other.h5", "/vectors")
    with pytest.raises(InputError, match=r"vectors.h5: not a table of vectors .* is a link"):
        read_vectors(tmp_path / "vectors.h5")
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file.create_dataset("vectors", (10**9, 100), np.float32)
    with pytest.raises(InputError, match=r"large.h5: not a table of vectors .* is more than its"):
        read_vectors(tmp_path / "large.h5")


def test_words_need_features_with_names():
    with pytest.raises(InputError, match="here: its vectors are of words, and the features have no names"):
        aligned(Vectors(["a"], np.ones((1, 2), np.float32)), (), 4, "here")


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.vec", "vectors.bin", "vectors.TXT", "vectors.bin.gz"])
def test_files_of_word2vec_are_tables(name, tmp_path):
    """As `xsoftmax embed` writes them, compressed or not."""
    plain = tmp_path / name.removesuffix(".gz")
    write_word2vec(plain, ("dog", "ß∂"), VECTORS[:2].astype(np.float32), binary=".bin" in name)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
    found = read_vectors(tmp_path / name)
    assert list(found.words) == ["dog", "ß∂"]
    assert np.array_equal(found.vectors, VECTORS[:2])
    model = fit(dataset(["ß∂", "b", "dog", "d"]), with_table(tmp_path / name, frozen=True), 0, Plan(epochs=1)).model
    assert np.array_equal(model.encoder[[2, 0]], VECTORS[:2])


def test_a_damaged_file_of_word2vec_is_told(tmp_path):
    (tmp_path / "vectors.txt").write_text("2 3\ndog 1 2\n")
    with pytest.raises(InputError, match=r"^\S*vectors.txt: it is too short for 2 words of 3 dimensions"):
        read_vectors(tmp_path / "vectors.txt")
