"""Tables with several kinds of columns, and how texts are cut: compared with scikit-learn, and as new rows."""

import csv
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from data.toy import run
from xsoftmax.data.config import TextOptions, load_config
from xsoftmax.data.new_rows import read_labelled_rows
from xsoftmax.data.store import open_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.data.transform_file import put_transform, transform_of
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.training.pretrained import names_of_features

N = 60
# Prices near 1000 are float32 before their mean is taken off, and float64 in scikit-learn.
CLOSE = 2e-5
OPTIONS = {"text": ["title", "comment"], "numeric": ["price", "size"], "categorical": ["brand", "place"]}
TEXT = TextOptions(token=r"\b\w\w+\b", ngram_range=(1, 2), sublinear_tf=True)


def frame(n=N, seed=0):
    """Rows of all kinds; a word of a title is no word of a comment, whatever it is."""
    rng = np.random.default_rng(seed)
    words = ["red", "blue", "long", "soft", "old"]
    return pd.DataFrame(
        {
            "place": rng.choice(["here", "a,b", ""], n),
            "size": rng.integers(0, 3, n),
            "comment": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "label": [f"kind {k}" for k in rng.integers(0, 3, n)],
            "brand": rng.choice(["Acme", "acme", "here", "3"], n),
            "title": [" ".join(rng.choice(words, 2)) for _ in range(n)],
            "price": rng.normal(1000, 7, n).round(2),
        }
    )


def of_scikit_learn(rows, vectorizer):
    """The features that scikit-learn makes, scaled as the page of data says."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    kinds = [("title", vectorizer(), "title"), ("comment", vectorizer(), "comment")]
    kinds += [("numbers", StandardScaler(), OPTIONS["numeric"])]
    kinds += [("categories", OneHotEncoder(handle_unknown="ignore"), OPTIONS["categorical"])]
    weights = {"numbers": 1 / np.sqrt(2), "categories": 1 / np.sqrt(2)}
    return ColumnTransformer(kinds, sparse_threshold=1, transformer_weights=weights).fit(rows)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    content = {"rows.csv": frame().to_csv(index=False)}
    return run(folder, content, format="table", options=OPTIONS, text=TEXT)[1]


@pytest.fixture(scope="module")
def transform(prepared):
    with open_prepared(prepared) as data:
        return data.transform


def test_columns_agree_with_scikit_learn(prepared):
    from sklearn.feature_extraction.text import TfidfVectorizer

    def vectorizer():
        return TfidfVectorizer(token_pattern=TEXT.token, ngram_range=(1, 2), sublinear_tf=True, min_df=2)

    rows, new = frame(), frame(20, seed=1)
    new.loc[3, ["title", "brand"]] = ["unseen words", "unseen"]
    expected = of_scikit_learn(rows, vectorizer)
    with open_prepared(prepared) as data:
        train, transform = data.split("train"), data.transform
    X = csr_array(expected.transform(rows)).toarray()
    np.testing.assert_allclose(train.X.toarray(), X, atol=CLOSE)
    found = transform.apply(list(new[list(transform.feature_names)].itertuples(index=False, name=None)))
    np.testing.assert_allclose(found.toarray(), csr_array(expected.transform(new)).toarray(), atol=CLOSE)
    assert len(names_of_features(transform)) == found.shape[1]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (TextOptions(min_df=1, sublinear_tf=True, ngram_range=(1, 2)), {"token_pattern": r"\w+"}),
        (TextOptions(min_df=2, ngram_range=(2, 3)), {"token_pattern": r"\w+"}),
        (TextOptions(min_df=1, analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True), {}),
        (TextOptions(min_df=2, analyzer="char", weighting="counts", sublinear_tf=True), {"use_idf": False}),
    ],
)
def test_texts_are_cut_as_scikit_learn_does(options, given, tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = frame()
    content = {"a.csv": rows[["comment", "label"]].to_csv(index=False)}
    settings = {"format": "table", "options": {"text": "comment"}, "normalize": "l2", "text": options}
    _, path = run(tmp_path, content, **settings)
    names = ("analyzer", "ngram_range", "sublinear_tf", "min_df")
    vectorizer = TfidfVectorizer(**{name: getattr(options, name) for name in names}, **given)
    expected = vectorizer.fit_transform(rows.comment).toarray()
    with open_prepared(path) as data:
        np.testing.assert_allclose(data.split("train").X.toarray(), expected, atol=1e-6)
        new = ["red red blue", "Old and SOFT"]
        expected = vectorizer.transform(new).toarray()
        np.testing.assert_allclose(data.transform.apply(new).toarray(), expected, atol=1e-6)


def test_new_tables_have_the_columns_in_any_order(transform, tmp_path):
    rows = frame(30, seed=2)
    expected = transform.apply(list(rows[list(transform.feature_names)].itertuples(index=False, name=None))).toarray()
    rows = rows.assign(other="x")[sorted(rows.columns, reverse=True)]
    rows.to_csv(tmp_path / "new.csv", index=False)
    rows.drop(columns="label").to_csv(tmp_path / "new.tsv", index=False, sep="\t")
    rows.to_parquet(tmp_path / "new.parquet")
    for name in ("new.csv", "new.tsv", "new.parquet"):
        np.testing.assert_allclose(transform.features_of(tmp_path / name).toarray(), expected, atol=1e-6)
    found = read_labelled_rows(tmp_path / "new.csv", transform)
    assert [found.label_names[k] for k in found.labels] == list(rows.label)
    np.testing.assert_allclose(transform.apply(found.features).toarray(), expected, atol=1e-6)


def test_a_table_without_names_has_numbers_of_columns(tmp_path):
    lines = [f"{k},word{k % 3} and,{'xy'[k % 2]},c{k % 3}" for k in range(30)]
    options = {"header": False, "label": 2, "text": 1, "numeric": 0, "categorical": -1}
    _, path = run(tmp_path, {"a.csv": "\n".join(lines)}, format="table", options=options)
    with open_prepared(path) as data:
        X, transform = data.split("train").X.toarray(), data.transform
    assert transform.feature_names == ("1", "0", "3")
    np.testing.assert_allclose(transform.features_of(tmp_path / "a.csv").toarray(), X, atol=1e-6)


def test_numbers_may_be_some_of_the_columns_of_a_table_without_names(tmp_path):
    options = {"header": False, "label": 0, "numeric": [3, 1]}
    _, path = run(tmp_path, {"a.csv": "u,1,x,3\nv,2,y,4\n"}, format="table", options=options)
    with open_prepared(path) as data:
        assert data.transform.features_of(tmp_path / "a.csv").tolist() == data.split("train").X.tolist()
        assert read_labelled_rows(tmp_path / "a.csv", data.transform).features.tolist() == [[3, 1], [4, 2]]


def test_numbers_may_be_some_of_the_columns(tmp_path):
    content = {"a.csv": "id,a,label,b\nx,1,u,3\ny,2,v,4\n"}
    _, path = run(tmp_path, content, format="table", options={"numeric": ["b", "a"]})
    with open_prepared(path) as data:
        assert data.split("train").X.tolist() == [[3, 1], [4, 2]]
        assert data.transform.feature_names == ("b", "a")


def test_training_rows_decide_and_rows_without_words_count(tmp_path):
    """A row is empty only if none of its columns has a feature; a category of test rows alone is no feature."""
    contents = {"a.csv": "t,c,label\nred,x,1\nred,y,2\n,x,1\n", "b.csv": "t,c,label\nblue,z,1\nred,x,2\n"}
    options, parts = {"text": "t", "categorical": "c"}, {"train": "a.csv", "test": "b.csv"}
    sizes, path = run(tmp_path, contents, format="table", options=options, parts=parts, text=TextOptions(min_df=1))
    assert (sizes["train"], sizes["test"], sizes["features"], sizes["dropped_empty"]) == (3, 1, 3, 1)
    with open_prepared(path) as data:
        assert data.split("train").X.toarray().tolist() == [[1, 1, 0], [1, 0, 1], [0, 1, 0]]
        assert data.transform.parts[1].words == ("0=x", "0=y")


def test_steps_follow_the_scaling_of_columns(tmp_path):
    content, options = {"a.csv": frame().to_csv(index=False)}, {"format": "table", "options": OPTIONS}
    _, path = run(tmp_path, content, normalize={"divide": 2}, max_features=3, **options)
    with open_prepared(path) as data:
        halves = data.split("train").X
        assert [len(part.words) for part in data.transform.parts] == [3, 3, 0, 7]
    _, path = run(tmp_path, content, max_features=3, max_samples=40, **options)
    with open_prepared(path) as data:
        assert data.split("train").n_samples == 40
    assert np.abs(np.linalg.norm(halves.toarray(), axis=1).mean() - 1) < 0.2


def test_a_transform_survives_and_is_told_apart(transform, tmp_path):
    n = len(names_of_features(transform))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        put_transform(file.create_group("transform"), transform)
        found = transform_of(file["transform"], n)
        with pytest.raises(ContentError, match=f"transform to {n} features, expected {n + 1}"):
            transform_of(file["transform"], n + 1)
    assert found.sha256 == transform.sha256
    row = [("red red blue", "soft", 1000, 2, "Acme", "")]
    assert (found.apply(row) != transform.apply(row)).nnz == 0
    first, *others = transform.parts
    other = replace(transform, parts=(replace(first, sublinear_tf=False), *others))
    assert other.sha256 != transform.sha256
    plain = Transform("texts", words=("a",), token="x")
    assert replace(plain, ngram_range=(1, 2)).sha256 != plain.sha256


def test_files_of_before_have_words(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        put_transform(file.create_group("transform"), Transform("texts", words=("a",), token="x"))
        for name in ("analyzer", "ngram_range", "sublinear_tf", "n_parts"):
            del file["transform"].attrs[name]
        found = transform_of(file["transform"], 1)
    assert (found.analyzer, found.ngram_range, found.sublinear_tf, found.parts) == ("word", (1, 1), False, ())


def _part(group, name, value):
    group[f"part-{name}"].attrs["n_columns"] = value


CRAFTED = {
    "an analyzer": (lambda group: group.attrs.__setitem__("analyzer", b"cells"), "analyzer"),
    "words in a row": (lambda group: group.attrs.__setitem__("ngram_range", [0, 9]), r"ngram_range \[0, 9\]"),
    "a flag": (lambda group: group.attrs.__setitem__("sublinear_tf", 1), "sublinear_tf 1"),
    "no parts": (lambda group: group.attrs.__setitem__("n_parts", 0), "transform of table with parts of"),
    "a missing part": (lambda group: group.attrs.__setitem__("n_parts", 9), "part-4"),
    "wide texts": (lambda group: _part(group, 0, 2), "with parts of"),
    "no columns": (lambda group: _part(group, 3, 0), "with parts of"),
    "a part that is a table": (lambda group: group["part-0"].attrs.__setitem__("kind", b"table"), "of table with"),
    "rows of categories": (lambda group: group.attrs.__setitem__("kind", b"categories"), "of categories with"),
    "parts of texts": (lambda group: group.attrs.__setitem__("kind", b"texts"), "transform to 0 features, expected"),
}


@pytest.mark.fault(
    "a model's file whose columns of a table, or words in a row, are not what this program writes",
    happens="the file is refused before a row is read",
    user="`error: model.h5: not what xsoftmax writes (…)`",
)
@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_transforms_are_refused(what, transform, tmp_path):
    change, message = CRAFTED[what]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        put_transform(file.create_group("transform"), transform)
        change(file["transform"])
        with pytest.raises((ContentError, KeyError), match=message):
            transform_of(file["transform"], len(names_of_features(transform)))


@pytest.mark.fault(
    "options of a table that name a column twice, one that is not there, or no columns; n-grams that are none",
    happens="nothing is prepared",
    user="`error: …`: what, the value, and what to do",
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"text": ["a", "label"]},
            "column 'label' is named twice among label, text, numeric, categorical and weight",
        ),
        ({"text": "a", "categorical": [0]}, "column 'a' is named twice"),
        ({"text": ["a", "none"]}, "no column 'none'; columns: a, b, label"),
        ({"text": "a", "numeric": "a b"}, "no column 'a b'"),
        ({"numeric": [["b"]]}, r"option numeric: expected .*a list of these.*, found \"\[\['b'\]\]\""),
        (
            {"categorical": [True]},
            "option categorical: expected text or a whole number or a list of these or nothing",
        ),
        ({"text": {"a": 1}}, "option text: expected"),
        ({"text": "a", "numeric": "c"}, "line 2: column 'c' is empty; give a number"),
        ({"text": "b", "numeric": "a"}, "line 2: not a finite number: 'red'"),
    ],
)
def test_wrong_columns_are_refused(options, message, tmp_path):
    content = "a,b,label,c\nred,1,x,\nblue,2,y,3\n"
    if "columns: a, b, label" in message:
        content = "a,b,label\nred,1,x\nblue,2,y\n"
    with pytest.raises(InputError, match=message):
        run(tmp_path, {"a.csv": content}, format="table", options=options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ngram_range: [2, 1]}", r"text.ngram_range is \[2, 1\]; give two rising numbers from 1 to 10, such as"),
        ("{ngram_range: [1]}", r"text.ngram_range is \[1\]; give two"),
        ("{ngram_range: [1, 11]}", r"text.ngram_range is \[1, 11\]; give two"),
        ("{ngram_range: 2}", r"text.ngram_range: expected a list, found 2"),
        ("{ngram_range: [1, 2.5]}", r"text.ngram_range\[1\]: expected a whole number, found 2.5"),
        ("{analyzer: bytes}", "text.analyzer: 'bytes' is not one of word, char, char_wb"),
        ("{analyzer: char, token: x}", "text.token says what a word is, and analyzer is char; leave it out"),
        ("{sublinear_tf: 1}", "text.sublinear_tf: expected true or false, found 1"),
        ("{sublinear_tf: true, weighting: binary}", "text.sublinear_tf is of counts, and weighting is binary"),
    ],
)  # fmt: skip
def test_wrong_cuts_are_refused(text, message, tmp_path):
    (tmp_path / "a.yaml").write_text(f"name: a\nformat: table\nfiles: [{{path: a.csv}}]\ntext: {text}\n")
    with pytest.raises(InputError, match=message):
        load_config(tmp_path / "a.yaml")


def test_rows_of_other_forms_are_refused(transform, tmp_path):
    (tmp_path / "new.txt").write_text("red\n")
    with pytest.raises(InputError, match=r"new.txt: unknown ending '.txt'.*known: .csv"):
        transform.features_of(tmp_path / "new.txt")
    np.save(tmp_path / "new.npy", np.ones((2, 6)))
    with pytest.raises(InputError, match="prepared from a table with the columns 'title', 'comment', 'price', 's"):
        transform.features_of(tmp_path / "new.npy")
    with pytest.raises(InputError, match="row 1 is 'a text'; give 6 cells, the columns 'title'"):
        transform.apply([("a", "b", 1, 2, "c", "d"), "a text"])
    with pytest.raises(InputError, match=r"a cell for a number is none .*; give numbers"):
        transform.apply([("a", "b", "c", 2, "c", "d")])
    (tmp_path / "new.csv").write_text("title,comment,price,size,brand\na,b,1,2,c\n")
    with pytest.raises(InputError, match="no column 'place'; columns: title, "):
        transform.features_of(tmp_path / "new.csv")
    single = Transform("texts", source={"format": "table", "options": {"text": ["title", "comment"]}})
    frame().to_csv(tmp_path / "new.csv", index=False, quoting=csv.QUOTE_ALL)
    assert len(single.rows_of(tmp_path / "new.csv")) == N
