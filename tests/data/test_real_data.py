"""The shipped data sets, for real where a mirror is: XSOFTMAX_MIRROR, or ``shared/data`` beside the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared

ROOT = Path(__file__).parents[2]
MIRROR = Path(os.environ.get("XSOFTMAX_MIRROR") or ROOT.parent / "shared/data")
NEEDS_MIRROR = ("mnist", "bibtex", "delicious", "20news")


def prepared(name, folder, mirror=None):
    config = str(ROOT / f"config/datasets/{name}.yaml")
    mirrored = [] if mirror is None else ["--mirror", str(mirror)]
    assert main(["download", config, "-o", str(folder / "raw"), *mirrored]) == 0
    assert main(["prepare", config, "--raw", str(folder / "raw"), "-o", str(folder / "a.h5")]) == 0
    return open_prepared(folder / "a.h5")


@pytest.mark.parametrize("name", ["icd10", "icd10-subcategory", "digits", "zipf", "hierarchy", *NEEDS_MIRROR])
def test_sizes_are_those_expected(name, tmp_path, capsys):
    if name in NEEDS_MIRROR and not (MIRROR / name).is_dir():
        pytest.skip(f"{name} NOT TESTED: no mirror at {MIRROR}; set XSOFTMAX_MIRROR to a folder that has {name}/")
    with prepared(name, tmp_path, MIRROR) as data:
        train = data.rows("train", 0, 1000)
        assert train.y.max() < data.n_classes == len(data.class_names)
        assert (data.class_counts > 0).all()
        assert data.class_counts.sum() == data.n_samples("train")
        if data.storage == "csr" and data.n_features:
            np.testing.assert_allclose(train.X.multiply(train.X).sum(axis=1), 1, rtol=1e-5)
    assert f"{tmp_path}/a.h5: rows " in capsys.readouterr().out


def test_icd10_is_as_the_quick_start_says(tmp_path):
    with prepared("icd10", tmp_path) as data:
        assert data.n_features == 6408
        train = data.split("train")
        assert 9 < train.X.nnz / train.n_samples < 9.5
        X = data.transform.apply(["Cholera due to Vibrio cholerae 01, biovar eltor"])
        np.testing.assert_allclose(X.toarray()[0], train.X[[1]].toarray()[0], rtol=1e-6)
        assert data.class_names[train.y[1]] == "A00"


def test_errors_end_with_status_1(tmp_path, capsys):
    config = str(ROOT / "config/datasets/icd10.yaml")
    assert main(["prepare", config, "--raw", str(tmp_path), "-o", str(tmp_path / "a.h5")]) == 1
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
