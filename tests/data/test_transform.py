import os
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from data.toy import TABLE, TEXTS, run
from xsoftmax.data.config import SplitOptions, TextOptions
from xsoftmax.data.rows import Texts
from xsoftmax.data.store import open_prepared
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError


def dense_of(X):
    return X.toarray() if sparse.issparse(X) else X


def opened(path):
    with open_prepared(path) as data:
        return data.transform, dense_of(data.split("train").X)


TEXT_SETTINGS = {"format": "table", "options": {"text": "text"}, "normalize": "l2", "text": TextOptions(min_df=1)}
SVM = "1 1:3 2:-4 5:1\n2 1:1 3:2\n1 4:5\n3 2:1 4:1\n"


@pytest.fixture
def of_texts(tmp_path):
    return opened(run(tmp_path, {"a.csv": TABLE}, **TEXT_SETTINGS)[1])


def test_texts_go_the_same_way_as_in_training(tmp_path, of_texts):
    transform, X = of_texts
    kept = [text for text in TEXTS if text]
    np.testing.assert_array_equal(dense_of(transform.apply(kept)), X)
    (tmp_path / "new.txt").write_text("\n".join(kept) + "\n")
    pd.DataFrame({"text": kept}).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"id": range(5), "text": kept}).to_csv(tmp_path / "new.tsv.gz", index=False, sep="\t")
    pd.DataFrame({"text": kept}).to_parquet(tmp_path / "new.parquet")
    for name in ("new.txt", "new.csv", "new.tsv.gz", "new.parquet"):
        np.testing.assert_array_equal(dense_of(transform.features_of(tmp_path / name)), X)


def test_unknown_words_and_empty_texts_are_empty_rows(of_texts):
    transform, X = of_texts
    assert dense_of(transform.apply(["zebra", "", "cat"]))[:2].sum() == 0
    assert transform.apply([]).shape == (0, X.shape[1])


@pytest.mark.parametrize("wanted", ["none", ["column_max", "l2"], {"pca": 2}, [{"pca": 3}, "l2"]])
@pytest.mark.parametrize("max_features", [None, 4])
def test_vectors_go_the_same_way_as_in_training(tmp_path, wanted, max_features):
    transform, X = opened(run(tmp_path, {"a": SVM}, normalize=wanted, max_features=max_features)[1])
    raw = np.float32([[3, -4, 0, 0, 1], [1, 0, 2, 0, 0], [0, 0, 0, 5, 0], [0, 1, 0, 1, 0]])
    np.save(tmp_path / "new.npy", raw)
    np.savez(tmp_path / "new.npz", X=raw)
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_matrix(raw))
    (tmp_path / "new.svm").write_text(SVM)
    unlabelled = "\n".join(line.split(" ", 1)[1] for line in SVM.splitlines())
    (tmp_path / "unlabelled.svm").write_text(unlabelled)
    shifted = [
        " ".join(f"{int(cell.split(':')[0]) - 1}:{cell.split(':')[1]}" for cell in line.split())
        for line in unlabelled.splitlines()
    ]
    (tmp_path / "new.txt").write_text("4 5 9\n" + "".join(f" {line}\n" for line in shifted))
    pd.DataFrame(raw, columns=list("abcde")).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame(raw, columns=list("abcde")).assign(label="x").to_csv(tmp_path / "labelled.csv", index=False)
    names = ["new.npy", "new.npz", "sparse.npz", "new.svm", "unlabelled.svm", "new.txt", "new.csv", "labelled.csv"]
    for name in names:
        np.testing.assert_allclose(dense_of(transform.features_of(tmp_path / name)), X, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(dense_of(transform.apply(sparse.csr_array(raw))), X, atol=1e-6)
    assert transform.features_of(tmp_path / "new.svm").dtype == np.float32


def test_narrow_sparse_rows_are_widened(tmp_path):
    transform, _ = opened(run(tmp_path, {"a": SVM})[1])
    assert transform.apply(sparse.csr_array(np.float32([[1, 0]]))).shape == (1, 5)
    (tmp_path / "new.svm").write_text("1:1\n")
    assert transform.features_of(tmp_path / "new.svm").shape == (1, 5)


def test_what_does_not_fit_is_refused(tmp_path, of_texts):
    texts, _ = of_texts
    vectors, _ = opened(run(tmp_path, {"a": SVM})[1])
    with pytest.raises(InputError, match="vectors given, but the data were prepared from texts"):
        texts.apply(np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="texts given, but the data were prepared from vectors"):
        vectors.apply(["cat"])
    with pytest.raises(InputError, match="rows have 6 columns, the prepared data had 5"):
        vectors.apply(np.zeros((2, 6), np.float32))
    (tmp_path / "wide.svm").write_text("1 6:1\n")
    with pytest.raises(InputError, match=r"wide.svm, line 1: the feature number is out of range of 5"):
        vectors.features_of(tmp_path / "wide.svm")
    with pytest.raises(InputError, match=r"none.svm: no such file"):
        vectors.features_of(tmp_path / "none.svm")
    (tmp_path / "empty.txt").write_text("")
    for transform in (texts, vectors):
        with pytest.raises(InputError, match=r"empty.txt: .*empty"):
            transform.features_of(tmp_path / "empty.txt")


def test_zero_based_files_stay_zero_based(tmp_path):
    settings = {"options": {"zero_based": True}, "split": SplitOptions(validation=0, test=0)}
    transform, X = opened(run(tmp_path, {"a": "1 0:1 2:1\n2 1:1\n"}, **settings)[1])
    (tmp_path / "new.svm").write_text("0:1 2:1\n1:1\n")
    np.testing.assert_array_equal(dense_of(transform.features_of(tmp_path / "new.svm")), X)


def test_rows_like_extreme_classification_text_count_from_zero(tmp_path):
    transform, X = opened(run(tmp_path, {"a": "2 3 2\n0 0:1 2:1\n1 1:1\n"}, format="xc")[1])
    for content in ("0:1 2:1\n1:1\n", " 0:1 2:1\n 1:1\n", "0 0:1 2:1\n1 1:1\n", "2 3 2\n0:1 2:1\n1:1\n"):
        (tmp_path / "new").write_text(content)
        np.testing.assert_array_equal(dense_of(transform.features_of(tmp_path / "new")), X)
    (tmp_path / "new").write_text("3:1\n")
    with pytest.raises(InputError, match=r"new, line 1: the feature number is out of range of 3 \(from 0\): '3:1'"):
        transform.features_of(tmp_path / "new")


def test_a_reader_may_offer_to_read_new_rows(tmp_path, monkeypatch, of_texts):
    transform, X = of_texts
    offered = ModuleType("offered")
    offered.NEW_ROWS = (".words",)
    offered.read_new = lambda path, transform: Texts.of(path.read_text().split("|"))
    names, load = registry.names, registry.load
    monkeypatch.setattr(registry, "names", lambda package: [*names(package), "offered"])
    monkeypatch.setattr(registry, "load", lambda package, name: offered if name == "offered" else load(package, name))
    (tmp_path / "new.words").write_text("|".join(text for text in TEXTS if text))
    np.testing.assert_array_equal(dense_of(transform.features_of(tmp_path / "new.words")), X)


def test_errors_in_new_rows_say_what_to_do(tmp_path, of_texts):
    texts, _ = of_texts
    (tmp_path / "new.csv").write_text("words\ncat\n")
    with pytest.raises(InputError, match=r"new.csv: no column 'text'; columns: words; rename one"):
        texts.features_of(tmp_path / "new.csv")
    (tmp_path / "new.txt").write_bytes(b"cat\n\xff\n")
    with pytest.raises(InputError, match=r"new.txt, line 2: not utf-8 .*; save it as utf-8"):
        texts.features_of(tmp_path / "new.txt")
    np.save(tmp_path / "new.npy", np.zeros((2, 3)))
    with pytest.raises(InputError, match="vectors given, but the data were prepared from texts"):
        texts.features_of(tmp_path / "new.npy")
    with pytest.raises(InputError, match="a folder, expected a file of rows"):
        texts.features_of(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    for device in (tmp_path / "pipe.csv", "/dev/null"):
        with pytest.raises(InputError, match="a pipe or device, expected a file: rows are read more than once"):
            texts.features_of(device)
