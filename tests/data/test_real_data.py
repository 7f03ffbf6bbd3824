"""The shipped data sets, for real where a mirror is: XSOFTMAX_MIRROR, or ``shared/data`` beside the repository."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.data.config import load_config
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare
from xsoftmax.data.readers import debian
from xsoftmax.data.store import SPLITS, open_prepared

ROOT = Path(__file__).parents[2]
MIRROR = Path(os.environ.get("XSOFTMAX_MIRROR") or ROOT.parent / "shared/data")
# by the folder of the mirror
NEEDS_MIRROR = {
    "mnist": "mnist",
    "bibtex": "bibtex",
    "delicious": "delicious",
    "20news": "20news",
    "omniglot": "omniglot",
    "debian": "debian-descriptions",
    "debian-pca": "debian-descriptions",
    "debian-section": "debian-descriptions",
    "books-words": "books",
    "debtags": "debian-descriptions",
    "bibtex-sets": "bibtex",
    "delicious-sets": "delicious",
}
GENERATED = ("zipf", "zipf-300k", "zipf-1m", "ten-values", "hierarchy", "documents", "five-gaussians")
DEFAULT = ("bibtex", "bibtex-sets", "digits", "five-gaussians", "ten-values")  # which take a second
NAMES = ("icd10", "icd10-subcategory", "icd10-subcategory-pca", "digits", *GENERATED, *NEEDS_MIRROR)


def prepared(name, folder, mirror=None):
    config = str(ROOT / f"config/datasets/{name}.yaml")
    mirrored = [] if mirror is None else ["--mirror", str(mirror)]
    assert main(["download", config, "-o", str(folder / "raw"), *mirrored]) == 0
    assert main(["prepare", config, "--raw", str(folder / "raw"), "-o", str(folder / "a.h5")]) == 0
    return open_prepared(folder / "a.h5")


def skip_without_mirror(name):
    folder = NEEDS_MIRROR.get(name)
    if folder is not None and not (MIRROR / folder).is_dir():
        pytest.skip(f"{name} NOT TESTED: no mirror at {MIRROR}; set XSOFTMAX_MIRROR to a folder that has {folder}/")


def tiers(names):
    return [name if name in DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", tiers(name for name in NAMES if name != "debian"))
def test_sizes_are_those_expected(name, tmp_path, capsys):
    skip_without_mirror(name)
    with prepared(name, tmp_path, MIRROR) as data:
        check_rows(data)
    assert f"{tmp_path}/a.h5: rows " in capsys.readouterr().out


def check_rows(data):
    train = data.rows("train", 0, 1000)
    assert train.y.max() < data.n_classes == len(data.class_names)
    assert (data.class_counts > 0).all()
    sets = data.split("train").label_sets
    assert data.class_counts.sum() == (data.n_samples("train") if sets is None else sets.classes.size)
    if data.sparse and data.n_features:
        np.testing.assert_allclose(train.X.multiply(train.X).sum(axis=1), 1, rtol=1e-5)


def test_icd10_is_as_the_quick_start_says(tmp_path):
    with prepared("icd10", tmp_path) as data:
        assert data.n_features == 6408
        train = data.split("train")
        assert 9 < train.X.nnz / train.n_samples < 9.5
        X = data.transform.apply(["Cholera due to Vibrio cholerae 01, biovar eltor"])
        np.testing.assert_allclose(X.toarray()[0], train.X[[1]].toarray()[0], rtol=1e-6)
        assert data.class_names[train.y[1]] == "A00"


@pytest.mark.slow
def test_debian_trains_on_every_source_package(tmp_path):
    skip_without_mirror("debian")
    with prepared("debian", tmp_path, MIRROR) as data:
        check_rows(data)
        names, counts, splits = data.class_names, data.class_counts, [data.split(name) for name in SPLITS]
        transform = data.transform
    assert (counts == 1).sum() >= 24_802
    assert not any("(" in name or " " in name for name in names)
    rows = debian.read(
        packages=tmp_path / "raw/Packages.xz", translation=tmp_path / "raw/Translation-en.xz", label="section"
    )
    # 0ad-data-common, the third package of the index, is built from 0ad-data
    X = transform.apply([list(rows.features)[2]]).toarray()[0]
    of_source = [split.X[split.y == names.index("0ad-data")].toarray() for split in splits]
    assert [len(each) for each in of_source] in ([2, 0, 0], [1, 1, 0], [1, 0, 1])
    assert np.abs(np.concatenate(of_source) - X).max(axis=1).min() < 1e-6


@pytest.mark.parametrize(("name", "n_test"), [("ten-values", 0), ("five-gaussians", 100)])
def test_all_rows_may_train(name, n_test, tmp_path, capsys):
    prepared(name, tmp_path).close()
    data, fit = str(tmp_path / "a.h5"), tmp_path / "fit"
    methods = ["--methods", str(ROOT / "config/methods.yaml"), "--method", "softmax-lbfgs"]
    assert main(["train", data, *methods, "--epochs", "5", "--patience", "5", "-o", str(fit)]) == 0
    assert f"{'test' if n_test else 'train'} -" in capsys.readouterr().err
    assert main(["evaluate", str(fit / "model.h5"), data]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["validation"].values()) == {0, None}
    assert (found["test"]["n_samples"], found["test"]["log_likelihood"] is None) == (n_test, n_test == 0)


@pytest.mark.parametrize("name", ["hierarchy-amazon", "hierarchy-wikipedia"])
def test_large_hierarchies_made_small_have_exact_sizes(name, tmp_path):
    config = load_config(ROOT / f"config/datasets/{name}.yaml")
    small = {part: n // 1000 for part, n in config.options["n_samples"].items()}
    n_classes = config.options["n_classes"] // 1000
    options = {**config.options, "n_samples": small, "n_classes": n_classes}
    config = replace(config, options=options, expect={**small, "features": 512, "classes": n_classes})
    download(config, tmp_path / "raw")
    sizes = prepare(config, tmp_path / "raw", tmp_path / "a.h5")
    assert sizes["rows"] == sum(small.values())


def test_errors_end_with_status_1(tmp_path, capsys):
    config = str(ROOT / "config/datasets/icd10.yaml")
    assert main(["prepare", config, "--raw", str(tmp_path), "-o", str(tmp_path / "a.h5")]) == 1
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
