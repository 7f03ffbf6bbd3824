"""What every proposal promises; a new file is tested the moment it exists."""

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from kernels.drawing import drawn, log_probabilities_of
from kernels.layouts import laid_out
from xsoftmax.internal import registry
from xsoftmax.kernels.protocol import View
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import Adaptive, TrainingSet

PACKAGE = "xsoftmax.proposals"
MEMBERS = [(name, registry.load(PACKAGE, name).MEMBER) for name in registry.names(PACKAGE)]
DRAWING = [name for name, member in MEMBERS if member.draws and member.distribution]  # a head is no distribution
K = 11
KEY = np.uint64(stream(3, 4))


def problem(sparse=False):
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(K), (K * rng.random(300) ** 2).astype(int)]).astype(np.int32)
    X = (rng.standard_normal((K, 20))[y] + rng.standard_normal((y.size, 20))).astype(np.float32)
    return (csr_array(X) if sparse else X), y


def fit(name, sparse=False):
    X, y = problem(sparse)
    fitted = registry.load(PACKAGE, name).MEMBER().fit(TrainingSet(X, y, K, seed=1))
    if isinstance(fitted, Adaptive):
        fitted.refresh(WEIGHTS)
    return fitted, X


WEIGHTS = laid_out(Sgd(), 0.3 * np.random.default_rng(1).standard_normal((K, 21)))


def view_of(X):
    """What adaptive proposals look at."""
    return View(WEIGHTS, features_of(X, True))


def log_q_of(proposal, X, i):
    """Log-probabilities for row i: as the proposal says them, or where it follows the weights, its kernel."""
    if isinstance(proposal, Adaptive):
        said = np.empty(K, np.float32)
        log_probabilities_of(proposal.kernel(X), i, said, view_of(X))
        return said
    found = proposal.log_q(X, 0, K)
    return np.broadcast_to(np.float32(-np.log(K)) if found is None else found, (X.shape[0], K))[i]


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_what_draws_says_how_many_classes_and_draws_one_by_default(name, member):
    assert member._field_defaults.get("n_sampled") == (1 if member.draws else None)


@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DRAWING)
def test_log_q_is_what_the_kernel_says_and_sums_to_one(name, sparse):
    proposal, X = fit(name, sparse)
    for i in (0, 7, X.shape[0] - 1):
        found = np.empty(K, np.float32)
        log_probabilities_of(proposal.kernel(X), i, found, view_of(X))
        assert np.exp(found.astype(float)).sum() == pytest.approx(1, abs=1e-5)
        assert np.allclose(found, log_q_of(proposal, X, i), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", DRAWING)
def test_draws_follow_log_q(name):
    proposal, X = fit(name)
    for i in (3, 50):
        log_q = log_q_of(proposal, X, i)
        classes, drawn_log_q = drawn(proposal.kernel(X), i, -1, KEY, 0, 30_000, 2, view_of(X))
        assert np.allclose(drawn_log_q, log_q[classes], rtol=1e-4, atol=1e-5)
        expected = classes.size * np.exp(log_q.astype(float))
        rare = expected < 10
        counts = np.bincount(classes.ravel(), minlength=K)
        cells = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum() + 1e-9)
        used = cells[1] > 5
        statistic = ((cells[0] - cells[1]) ** 2 / cells[1])[used].sum()
        assert statistic < chi2.isf(1e-6, max(1, used.sum() - 1))


@pytest.mark.parametrize("name", DRAWING)
def test_draws_where_one_class_is_left_out_have_the_log_q_that_they_say(name):
    """Given that a class other than the true one is drawn, it is drawn in proportion to e^log_q."""
    proposal, X = fit(name)
    classes, log_q = drawn(proposal.kernel(X), 3, 1, KEY, 0, 60_000, 1, view_of(X))
    counts = np.bincount(classes.ravel(), minlength=K)
    said = np.zeros(K)
    said[classes.ravel()] = np.exp(log_q.ravel().astype(float))
    others = (np.arange(K) != 1) & (counts > 20)
    error = np.sqrt(classes.size * said[others] * (1 - said[others])) + 1e-12
    assert (np.abs(counts[others] - classes.size * said[others]) < 5 * error).all()


@pytest.mark.parametrize("name", DRAWING)
def test_blocks_of_log_q_are_slices(name):
    proposal, X = fit(name)
    whole = proposal.log_q(X, 0, K)
    block = proposal.log_q(X[5:9], 3, 7)
    if whole is None:
        assert block is None
    else:
        whole = np.broadcast_to(whole, (X.shape[0], K))
        assert np.allclose(np.broadcast_to(block, (4, 4)), whole[5:9, 3:7], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", registry.names(PACKAGE))
def test_it_survives_being_stored(name, tmp_path):
    """But for those that follow the weights, by which nothing is corrected."""
    proposal, X = fit(name)
    if isinstance(proposal, Adaptive):
        return
    with h5py.File(tmp_path / "proposal.h5", "w") as file:
        proposal.save(file.create_group("correction"))
    with h5py.File(tmp_path / "proposal.h5") as file:
        restored = registry.load(PACKAGE, name).restore(file["correction"], K, X.shape[1])
    assert restored.name == name == proposal.name
    before, after = proposal.log_q(X, 2, 9), restored.log_q(X, 2, 9)
    assert (before is None and after is None) or np.array_equal(before, after)


@pytest.mark.parametrize("name", DRAWING)
def test_the_same_position_draws_the_same_classes(name):
    proposal, X = fit(name)
    kernel, view = proposal.kernel(X), view_of(X)
    first, _ = drawn(kernel, 3, -1, KEY, 0, 100, 3, view)
    assert np.array_equal(first, drawn(kernel, 3, -1, KEY, 0, 100, 3, view)[0])
    assert np.array_equal(first[40:], drawn(kernel, 3, -1, KEY, 40, 60, 3, view)[0])
    assert not np.array_equal(first, drawn(kernel, 3, -1, np.uint64(stream(3, 5)), 0, 100, 3, view)[0])
