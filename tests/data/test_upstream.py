"""Data sets that cannot be had here, end to end: small files of exactly the upstream format, from a local server."""

import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.data.config import load_config
from xsoftmax.data.download import download
from xsoftmax.data.fetch import Patience
from xsoftmax.data.prepare import prepare
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError

DATASETS = Path(__file__).parents[2] / "config/datasets"
QUICK = Patience(attempts=1, stall=2)
N_FEATURES, N_LABELS = 12_000, 30
DROPPED = ("dropped_unseen_validation", "dropped_unseen_test")


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tarred(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    return packed.getvalue()


def sparse_rows(rng, n, labels_between=","):
    """Rows with one to three labels and four features, two of them among the first 10,000."""
    for _ in range(n):
        labels = rng.choice(N_LABELS, rng.integers(1, 4), replace=False)
        features = [*rng.choice(10_000, 2, replace=False), *rng.choice(range(10_000, N_FEATURES), 2, replace=False)]
        cells = " ".join(f"{feature}:{value:.6f}" for feature, value in zip(features, rng.random(4), strict=True))
        yield f"{labels_between.join(map(str, labels))} {cells}\n"


def xc(folder, prefix):
    """The Extreme Classification Repository's archive: two files with a header in a folder, and more than that."""
    rng = np.random.default_rng(0)
    files = {
        f"{folder}/{prefix}_{part}.txt": f"{n} {N_FEATURES} {N_LABELS}\n" + "".join(sparse_rows(rng, n))
        for part, n in {"train": 300, "test": 50}.items()
    }
    return zipped({**files, f"{folder}/readme.txt": "about it"})


def lshtc():
    """The challenge's archive: labels between commas and spaces, features in no order."""
    train = "".join(sparse_rows(np.random.default_rng(0), 350, ", "))
    return tarred({"train.txt": train, "test.txt": "0 1:1\n", "hierarchy.txt": "1 2\n"})


def xml_cnn():
    """What the authors of adversarial softmax preprocess: dense features and sparse labels, with a header each."""
    rng, files = np.random.default_rng(0), {}
    for part, n in {"trn": 300, "tst": 50}.items():
        rows = rng.random((n, 512)).clip(0.3) - 0.3
        features = "".join(" ".join(f"{value:g}" for value in row) + "\n" for row in rows)
        labels = (" ".join(f"{label}:1" for label in rng.choice(N_LABELS, 3, replace=False)) for _ in range(n))
        files[f"some-folder/{part}_ft_mat_dense.txt"] = f"{n} 512\n{features}"
        files[f"some-folder/{part}_lbl_mat.txt"] = f"{n} {N_LABELS}\n" + "\n".join(labels) + "\n"
    return zipped(files)


UPSTREAM = {
    "eurlex-4k": (lambda: xc("Eurlex", "eurlex"), N_FEATURES),
    "amazoncat-13k": (lambda: xc("AmazonCat", "amazonCat"), N_FEATURES),
    "wiki10-31k": (lambda: xc("Wiki10", "wiki10"), 10_000),
    "wikilshtc-325k": (lambda: xc("WikiLSHTC", "wikiLSHTC"), N_FEATURES),
    "wiki-small": (lshtc, 10_000),
    "amazon-670k": (xml_cnn, 512),
    "wikipedia-500k": (xml_cnn, 512),
    "eurlex-4k-sets": (lambda: xc("Eurlex", "eurlex"), N_FEATURES),
    "amazoncat-13k-sets": (lambda: xc("AmazonCat", "amazonCat"), N_FEATURES),
    "wiki10-31k-sets": (lambda: xc("Wiki10", "wiki10"), N_FEATURES),
    "wikilshtc-325k-sets": (lambda: xc("WikiLSHTC", "wikiLSHTC"), N_FEATURES),
    "amazon-670k-sets": (xml_cnn, 512),
}
PROPENSITY = {"wikilshtc-325k-sets": (0.5, 0.4), "amazon-670k-sets": (0.6, 2.6)}


def served(name, content, server, folder, n_features):
    """The entry, with a local server for its host."""
    server.files["a"] = content
    config = load_config(DATASETS / f"{name}.yaml")
    (source,) = config.files
    if source.sha256 is not None:  # that of the real file would be refused, as it should be
        source = replace(source, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    source = replace(source, urls=(f"{server.url}/ok/none", f"{server.url}/ok/a"))
    return replace(config, files=(source,), folder=folder, expect={"features": n_features})


@pytest.mark.parametrize("name", UPSTREAM)
def test_the_entry_fits_upstream_files(name, server, tmp_path):
    make, n_features = UPSTREAM[name]
    config = served(name, make(), server, tmp_path, n_features)
    pinned = config.files[0].sha256 is not None

    download(config, tmp_path / "raw", patience=QUICK)
    sizes = prepare(config, tmp_path / "raw", tmp_path / "a.h5")
    assert sizes["rows"] == 350
    assert sum(sizes[each] for each in ("train", "validation", "test", *DROPPED)) == 350
    assert config.split.validation_of == "train" or sizes["train"] == 300
    assert min(sizes["validation"], sizes["test"], sizes["classes"]) > 5
    with open_prepared(tmp_path / "a.h5") as data:
        check_values(config.normalize, data.split("train").X)
        check_labels(data, name)

    assert (tmp_path / f"{config.files_of}.sha256").exists() != pinned
    server.files["a"] = lshtc() if make is not lshtc else xml_cnn()
    with pytest.raises(InputError, match=r"sha256 of the download is|nothing to unpack; expected"):
        download(config, tmp_path / "again", patience=QUICK)


def check_values(normalize, X):
    if normalize == "l2":
        X = csr_array(X)
        np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)
    elif normalize == "column_max":
        assert X.max() == pytest.approx(1)
        assert set(np.round(X.max(axis=0).toarray(), 5).ravel().tolist()) == {0.0, 1.0}
    else:
        assert X.shape[1] == 512
        assert (X == 0).any()


def check_labels(data, name):
    assert data.multilabel == name.endswith("-sets")
    assert data.propensity == PROPENSITY.get(name, (0.55, 1.5))
    if data.multilabel:
        for split in ("train", "validation", "test"):
            counts = np.diff(data.split(split).label_sets.starts)
            assert counts.max() == 3
            assert counts.min() == (3 if name.startswith("amazon-670k") else 1)


def test_billion_words(server, tmp_path):
    """Words that count are those of the training text, which occur in it five times; case makes a difference."""
    common = [f"word-{number}" for number in range(38)] + ["The", "the"]
    top, rng = "1-billion-word-language-modeling-benchmark-r13output", np.random.default_rng(0)

    def shard(*others):
        lines = (" ".join([*rng.choice(common, 30), other, "."]) for other in (*others, *200 * [","]))
        return "\n".join(lines) + "\n"

    files = {
        f"{top}/README": "about it\n",
        f"{top}/training-monolingual.tokenized.shuffled/news.en-00001-of-00100": shard(*4 * ["rare"], *3 * ["Often"]),
        f"{top}/training-monolingual.tokenized.shuffled/news.en-00002-of-00100": shard(*2 * ["Often"]),
        f"{top}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050": shard(*9 * ["rare"]),
        f"{top}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00001-of-00050": shard(*9 * ["new"]),
        f"{top}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00002-of-00050": shard(*9 * ["unread"]),
    }
    config = served("billion-words", tarred(files), server, tmp_path, n_features=43)
    download(config, tmp_path / "raw", patience=QUICK)
    sizes = prepare(config, tmp_path / "raw", tmp_path / "a.h5")
    assert sizes["rows"] == sum(sizes[each] for each in ("train", "validation", "test", *DROPPED))
    with open_prepared(tmp_path / "a.h5") as data:
        assert {".", "The", "the"} < set(data.class_names) <= {*common, ".", ",", "Often"}
        for name, lines in {"train": 400, "validation": 200, "test": 200}.items():
            X = data.split(name).X
            assert (X.toarray().sum(axis=1) == 1).all()
            assert 0.5 * lines < X.shape[0] < 20 * lines


def test_megaface_is_made_of_own_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config(DATASETS / "megaface.yaml")
    with pytest.raises(InputError, match=r"megaface: files: no file data/megaface/embeddings.npy"):
        download(config, tmp_path / "raw")
    rng = np.random.default_rng(0)
    (tmp_path / "data/megaface").mkdir(parents=True)
    np.save("data/megaface/embeddings.npy", rng.standard_normal((300, 128)))
    np.save("data/megaface/identities.npy", np.arange(300) % 40)
    download(config, tmp_path / "raw")
    sizes = prepare(config, tmp_path / "raw", tmp_path / "a.h5")
    assert (sizes["train"], sizes["validation"], sizes["test"], sizes["classes"]) == (255, 15, 30, 40)
