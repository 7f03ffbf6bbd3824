"""Files with mutated bytes: every reader says what is wrong with which, or reads what is there.

`XSOFTMAX_FUZZ=10000 pytest tests/faults/test_fuzz.py` tries as many of each reader.
"""

import os
import resource
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array, issparse

from faults.fuzz import CASES, damaged
from xsoftmax.data.reading import read_parts
from xsoftmax.data.rows import Columns, Texts
from xsoftmax.internal.errors import InputError

N_FILES = int(os.environ.get("XSOFTMAX_FUZZ", 500))
SECONDS, BYTES = 10, 2**30
pytestmark = pytest.mark.filterwarnings("ignore")  # what Pillow and NumPy say of damage besides


class TooSlowError(Exception):
    """No class of errors that a reader catches."""


@contextmanager
def bounded():
    """Allow only so many seconds, and so much more memory."""

    def stop(*_):
        raise TooSlowError(f"more than {SECONDS} s")

    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + BYTES, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(rows):
    """Hold rows against what ``Rows`` says of itself."""
    n = rows.n_samples
    assert n > 0
    assert rows.labels.dtype == rows.label_starts.dtype == np.int64
    assert rows.label_starts[0] == 0
    assert rows.label_starts[-1] == rows.labels.size
    assert (np.diff(rows.label_starts) >= 0).all()
    if rows.label_names is not None:
        assert ((rows.labels >= 0) & (rows.labels < len(rows.label_names))).all()
        assert b"\0" not in "".join(rows.label_names).encode()
    if rows.filtered is not None:
        assert rows.filtered.dtype == np.int64
        assert (rows.filtered >= 0).all()
        assert (rows.filtered[:, 0] < n).all()
    X = rows.features
    if isinstance(X, Columns):
        for part, form in zip(X.parts, X.forms, strict=True):
            if form.kind == "categories":
                assert all(len(cells) == form.n_columns for cells in part)
            else:
                check(replace(rows, features=part))
        return
    if isinstance(X, Texts):
        assert sum(isinstance(text, str) for text in X) == len(X) == n
        return
    assert X.dtype == np.float32
    assert X.shape[0] == n
    assert X.shape[1] < 2**31
    if issparse(X):
        X.check_format(full_check=True)
        fresh = csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        assert fresh.has_canonical_format >= X.has_canonical_format  # it may have been set by hand
        X = X.data
    assert np.isfinite(X).all()


def survive(variants, folder, n_examples):
    """Damage files so many times, and read them."""
    for number, variant in enumerate(variants):
        variant.write(folder / str(number))
        check(read(variant, folder / str(number)))

    @settings(
        max_examples=n_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(variants))
    def holds(damage):
        variant, top = variants[damage.variant], folder / str(damage.variant)
        variant.write(top, {damage.name: damage.content})
        paths = [str(top / role) for role in variant.config.parts["all"].values()]
        message = told(variant, top)
        assert message is None or any(path in message for path in paths)

    holds()


def told(variant, folder):
    """Read files; give the error, or None for sound rows."""
    try:
        with bounded():
            check(read(variant, folder))
    except InputError as error:
        return str(error)
    return None


def read(variant, folder):
    entries = {name.split("/")[0]: {} for name in variant.files}
    return read_parts(variant.config, folder, entries)["all"]


@pytest.mark.parametrize("reader", CASES)
def test_some_mutated_files(reader, tmp_path):
    survive(CASES[reader], tmp_path, 100)


@pytest.mark.slow
@pytest.mark.fault(
    "a data file with mutated bytes, 500 of each reader; 10,000 by hand with `XSOFTMAX_FUZZ=10000`",
    happens="an error that names the file and the place, or a correct read",
    user="`error:` with file, line and value; exit status 1",
)
@pytest.mark.parametrize("reader", CASES)
def test_many_mutated_files(reader, tmp_path):
    survive(CASES[reader], tmp_path, N_FILES)
