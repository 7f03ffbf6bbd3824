import os
import zlib
from itertools import pairwise

os.environ.setdefault("OMP_NUM_THREADS", "1")  # sums in one order, and no fight over cores
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # whichever test imports it first, as `track` does

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.data.dataset import Dataset, Split
from xsoftmax.data.store import write_prepared
from xsoftmax.data.transform import Transform


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="K/N: of the chosen tests the K-th of N parts, by their names")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    begun = set()
    for item in items:
        if item.get_closest_marker("long_cases") and not item.get_closest_marker("slow"):
            test = item.nodeid.partition("[")[0]
            if test in begun:
                item.add_marker("slow")
            begun.add(test)
    part, of = map(int, config.getoption("--share").split("/"))
    chosen = {item: zlib.crc32(item.nodeid.encode()) % of == part - 1 for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]


@pytest.fixture
def rng():
    return np.random.default_rng(20250101)


@pytest.fixture(scope="session")
def prepare(tmp_path_factory):
    """A function that writes arrays as a prepared file: ``prepare(X, y, n_classes, ...)`` returns its path."""
    folder = tmp_path_factory.mktemp("prepared")
    counter = iter(range(10**6))

    def write(X, y, n_classes, *, n_validation=0, n_test=0, sparse=False, name="synthetic", path=None):
        """The last rows are for the test, those before them for validation."""
        X, y = np.asarray(X, np.float32), np.asarray(y, np.int32)
        n_train = len(y) - n_validation - n_test
        ends = np.cumsum([0, n_train, n_validation, n_test])
        splits = {
            split: Split(csr_array(X[a:b]) if sparse else X[a:b], y[a:b])
            for split, a, b in zip(("train", "validation", "test"), ends, ends[1:], strict=False)
        }
        path = path or folder / f"{next(counter)}.h5"
        write_prepared(
            path,
            dataset=name,
            splits=splits,
            class_names=[f"class {k}" for k in range(n_classes)],
            class_counts=np.bincount(splits["train"].y, minlength=n_classes),
            transform=Transform("sparse" if sparse else "dense", n_columns=X.shape[1]),
            parameters={},
            source_sha256={},
            dropped={"empty": 0, "unseen_validation": 0, "unseen_test": 0},
        )
        return path

    return write


@pytest.fixture(scope="session")
def dataset():
    """As ``prepare``, but the rows stay in memory: a ``Dataset`` is returned."""

    def of(X, y, n_classes, *, n_validation=0, n_test=0, sparse=False, name="synthetic"):
        X, y = np.asarray(X, np.float32), np.asarray(y, np.int32)
        X = csr_array(X) if sparse else X
        cuts = np.cumsum([0, len(y) - n_validation - n_test, n_validation, n_test])
        train, *others = ((X[a:b], y[a:b]) for a, b in pairwise(cuts))
        given = {part: rows for part, rows in zip(("validation", "test"), others, strict=True) if len(rows[1])}
        return Dataset.from_arrays(*train, **given, classes=np.arange(n_classes), name=name)

    return of
