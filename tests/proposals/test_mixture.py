import h5py
import numpy as np
import pytest
from scipy.stats import chi2

from kernels.drawing import drawn, log_probabilities_of
from kernels.layouts import laid_out
from problems import clusters
from proposals import naive_proposals as naive
from proposals.weighing import KEY, assert_each_counts_one, mean_weights, share_of_steps
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.protocol import View
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.run_steps import single
from xsoftmax.methods import build_method
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.mixture import Mixture, restore
from xsoftmax.proposals.quadratic_kernel import QuadraticKernel
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import Uniform

K = 7
COUNTS = np.array([5, 40, 1, 9, 0, 80, 2])  # one class never occurs: only uniform draws reach it


PARTS = {
    "uniform and frequency": Mixture(Uniform(), Frequency(), 0.3),
    "tree and uniform": Mixture(Tree(dimension=2, regularizer=1.0), Uniform(), 0.8),
    "a mixture and frequency": Mixture(Mixture(Uniform(), Tree(dimension=1)), Frequency(0.5), 0.6),
}
every_mixture = pytest.mark.parametrize(
    "member",
    [pytest.param(p, id=n, marks=[pytest.mark.slow] * (n == "a mixture and frequency")) for n, p in PARTS.items()],
)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_distribution_is_the_mixture_of_both(share):
    data = clusters(COUNTS)
    found = Mixture(Uniform(), Frequency(), share).fit(data)
    expected = naive.mixture(np.full(K, 1 / K), naive.frequency(COUNTS), share)
    assert np.allclose(np.exp(found.log_q(data.X, 0, K)[0]), expected, rtol=1e-5)
    said = np.empty(K, np.float32)
    log_probabilities_of(found.kernel(data.X), 3, said)
    assert np.allclose(np.exp(said), expected, rtol=1e-5)
    classes, log_q = drawn(found.kernel(data.X), 3, 2, KEY, 0, 60_000, 2)  # the class to leave out is drawn too
    counts = np.bincount(classes.ravel(), minlength=K)
    assert ((counts - 120_000 * expected) ** 2 / (120_000 * expected)).sum() < chi2.isf(1e-6, K - 1)
    assert np.allclose(log_q, np.log(expected)[classes], rtol=1e-4, atol=1e-5)


def test_draws_of_a_step_are_independent():
    data = clusters(COUNTS)
    classes, _ = drawn(Mixture(Uniform(), Frequency(), 0.5).fit(data).kernel(data.X), 3, -1, KEY, 0, 100_000, 2)
    q = naive.mixture(np.full(K, 1 / K), naive.frequency(COUNTS), 0.5)
    expected = 100_000 * np.outer(q, q).ravel()
    counts = np.bincount(classes[:, 0] * K + classes[:, 1], minlength=K * K)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, K * K - 1)


@every_mixture
def test_log_q_sums_to_one_and_is_what_the_kernel_says(member):
    data = clusters(COUNTS)
    found = member.fit(data)
    log_q = np.broadcast_to(found.log_q(data.X, 0, K), (len(data.y), K))
    assert np.allclose(np.exp(log_q.astype(float)).sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(np.broadcast_to(found.log_q(data.X, 2, 5), (len(data.y), 3)), log_q[:, 2:5])
    for i in (0, 60):
        said = np.empty(K, np.float32)
        log_probabilities_of(found.kernel(data.X), i, said)
        assert np.allclose(said, log_q[i], rtol=1e-4, atol=1e-5)


@every_mixture
def test_each_class_counts_one_in_expectation(member):
    data = clusters(COUNTS)
    mean, error, _ = mean_weights(member.fit(data).kernel(data.X), 50, -1, K, 3)
    assert_each_counts_one(mean, error)


def test_a_class_that_neither_part_reaches_has_no_probability():
    data = clusters(COUNTS)
    found = Mixture(Frequency(), Frequency(0.5)).fit(data)
    assert found.log_q(data.X, 0, K)[0, 4] == -np.inf
    said = np.empty(K, np.float32)
    log_probabilities_of(found.kernel(data.X), 0, said)
    assert said[4] == -np.inf
    assert np.allclose(np.delete(said, 4), np.delete(found.log_q(data.X, 0, K)[0], 4), rtol=1e-5)


@pytest.mark.parametrize("n_sampled", [1, 4])
def test_inclusion_is_how_often_a_class_is_looked_at(n_sampled):
    data = clusters(COUNTS)
    found = Mixture(Uniform(), Frequency(), 0.4).fit(data)
    seen = share_of_steps(found.kernel(data.X), 0, 5, K, n_sampled, 40_000)
    assert np.allclose(found.inclusion(n_sampled), seen, atol=0.015)
    assert PARTS["tree and uniform"].fit(data).inclusion(n_sampled) is None


@every_mixture
def test_it_survives_being_stored(member, tmp_path):
    data = clusters(COUNTS)
    found = member.fit(data)
    with h5py.File(tmp_path / "mixture.h5", "w") as file:
        found.save(file.create_group("correction"))
    with h5py.File(tmp_path / "mixture.h5") as file:
        restored = restore(file["correction"], K, data.X.shape[1])
    assert np.array_equal(restored.log_q(data.X, 0, K), found.log_q(data.X, 0, K))


def method(objective="negative-sampling", **proposal):
    parts = {"objective": {"name": objective}, "optimizer": {"name": "sgd"}}
    return build_method("test", parts | {"proposal": {"name": "mixture"} | proposal})


def test_it_is_written_in_a_config():
    built = method(first={"name": "tree", "dimension": 4}, share=0.9)
    assert built.proposal == Mixture(Tree(4), Frequency(), 0.9)
    assert not built.proposal.adaptive


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"first": {"name": "head"}},
            "proposal mixture: first is head, which is no distribution; take one such as uniform",
        ),
        ({"second": {"name": "all"}}, "second is all, which is no distribution"),
        ({"share": 0}, "share is 0; set it to a number between 0 and 1"),
        ({"share": 1}, "share is 1; set it to a number between 0 and 1"),
        ({"first": {"name": "quadratic-kernel"}}, "learns a contrast with its proposal, proposal mixture changes"),
    ],
)
def test_what_cannot_be_mixed_is_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        method(**parameters)


def test_an_adaptive_part_makes_it_adaptive():
    data = clusters(COUNTS)
    member = method("double-sum", first={"name": "quadratic-kernel", "refresh": 50}).proposal
    assert member.adaptive
    found = member.fit(data)
    assert found.refresh_steps == 50
    nested = Mixture(Mixture(), Mixture(Uniform(), QuadraticKernel(refresh=30))).fit(data)
    assert nested.refresh_steps == 30
    assert nested.log_q(data.X, 0, K) is None
    weights = laid_out(Sgd(), np.random.default_rng(2).standard_normal((K, 5)))
    kernel, view = nested.kernel(data.X), View(weights, features_of(data.X, True))
    assert single(kernel).ahead == 1
    nested.refresh(weights)
    said = np.empty(K, np.float32)
    log_probabilities_of(kernel, 11, said, view)
    uniform, frequency = np.full(K, 1 / K), naive.frequency(COUNTS)
    adaptive = naive.quadratic_kernel(data.X[11], weights.W, 100.0)
    parts = (uniform + frequency) / 2, (uniform + adaptive) / 2
    assert np.allclose(np.exp(said), (parts[0] + parts[1]) / 2, rtol=1e-4, atol=1e-5)
