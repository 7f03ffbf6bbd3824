import h5py
import numpy as np
import pytest

from kernels.drawing import log_probabilities_of
from kernels.layouts import laid_out
from problems import clusters
from proposals import naive_proposals as naive
from proposals.weighing import assert_each_counts_one, mean_weights, share_of_steps
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.protocol import View
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.head import Head, restore
from xsoftmax.proposals.mixture import Mixture
from xsoftmax.proposals.quadratic_kernel import QuadraticKernel
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import Uniform

K = 9
COUNTS = np.array([3, 40, 7, 7, 1, 90, 2, 20, 7])
HEAD = [1, 5, 7]
TAILS = [
    Uniform(),
    Frequency(),
    Frequency(power=0.5),
    Tree(dimension=2, regularizer=1.0),
    Mixture(),
    QuadraticKernel(),
]


every_tail = pytest.mark.parametrize(
    "tail",
    [pytest.param(t, marks=[pytest.mark.slow] * isinstance(t, Mixture | QuadraticKernel)) for t in TAILS],
    ids=lambda tail: type(tail).__name__,
)


WEIGHTS = laid_out(Sgd(), np.random.default_rng(1).standard_normal((K, 5)))


def fitted(n_head, tail):
    data = clusters(COUNTS)
    found = Head(n_head, tail).fit(data)
    if Head(n_head, tail).adaptive:
        found.refresh(WEIGHTS)
    return found, data


@pytest.mark.parametrize("n_head", [1, 2, 3, 4, 5, 6, 9, 100])
def test_the_head_is_the_most_frequent_and_of_equals_the_first(n_head):
    found, _ = fitted(n_head, Uniform())
    assert found.exact_classes.tolist() == naive.head(COUNTS, n_head)
    assert np.flatnonzero(found.in_head).tolist() == naive.head(COUNTS, n_head)


@pytest.mark.parametrize("n_sampled", [1, 3])
@pytest.mark.parametrize("y", [5, 3, -1], ids=["true class in the head", "in the tail", "none left out"])
@pytest.mark.parametrize("n_head", [3, 8, 100])
@every_tail
def test_each_class_counts_one_in_expectation(tail, n_head, y, n_sampled):
    """All classes but, where it is left out, the true one, which the loop weighs at zero."""
    found, data = fitted(n_head, tail)
    view = View(WEIGHTS, features_of(data.X, True))
    mean, error, _ = mean_weights(found.kernel(data.X), 0, y, K, n_sampled, view=view)
    assert_each_counts_one(mean, error, but=[y] if y >= 0 else [])
    assert (mean[found.exact_classes] == 1).all()
    assert (error[found.exact_classes] == 0).all()


@pytest.mark.parametrize("y", [5, 3, -1])
@pytest.mark.parametrize("tail", [Uniform(), Frequency()], ids=["uniform", "frequency"])
def test_a_uniform_or_frequency_tail_wastes_no_draw(tail, y):
    found, data = fitted(3, tail)
    _, _, drawn = mean_weights(found.kernel(data.X), 0, y, K, 2, 5000)
    assert drawn.sum() == 10_000
    assert drawn[HEAD].sum() == 0
    if isinstance(tail, Uniform) and y == 3:
        assert drawn[3] == 0


def test_a_uniform_tail_is_drawn_without_repeats_where_the_true_class_is_left_out():
    found, data = fitted(3, Uniform())
    mean, error, _ = mean_weights(found.kernel(data.X), 0, 3, K, 5, 100)
    assert np.allclose(np.delete(mean, 3), 1)  # the 5 others of the tail, each of them once
    assert np.allclose(np.delete(error, 3), 0, atol=1e-6)


@every_tail
def test_log_q_is_what_the_kernel_says_and_zero_in_the_head(tail):
    found, data = fitted(3, tail)
    kernel = found.kernel(data.X)
    if Head(3, tail).adaptive:
        assert found.log_q(data.X, 0, K) is None
        return
    whole = np.broadcast_to(found.log_q(data.X, 0, K), (len(data.y), K))
    assert (whole[:, HEAD] == 0).all()
    assert np.array_equal(np.broadcast_to(found.log_q(data.X, 2, 8), (len(data.y), 6)), whole[:, 2:8])
    for i in (0, 100):
        said = np.empty(K, np.float32)
        log_probabilities_of(kernel, i, said)
        assert np.allclose(said, whole[i], rtol=1e-4, atol=1e-5)
    if isinstance(tail, Uniform | Frequency):  # over the tail alone
        assert np.exp(np.delete(whole[0], HEAD).astype(float)).sum() == pytest.approx(1, abs=1e-6)


def test_a_frequency_tail_is_of_the_rows_of_the_tail():
    found, _ = fitted(3, Frequency())
    expected = naive.frequency(np.where(np.isin(np.arange(K), HEAD), 0, COUNTS))
    assert np.allclose(np.exp(np.delete(found.log_q(None, 0, K)[0], HEAD)), np.delete(expected, HEAD), rtol=1e-6)


def test_a_frequency_tail_without_rows_is_uniform():
    y = np.repeat([0, 3], [5, 9]).astype(np.int32)
    found = Head(2, Frequency()).fit(TrainingSet(np.zeros((14, 1), np.float32), y, 5))
    mean, error, _ = mean_weights(found.kernel(None), 0, 3, 5, 1)
    assert_each_counts_one(mean, error)


@pytest.mark.parametrize("n_sampled", [1, 3, 8])
@pytest.mark.parametrize("n_head", [1, 3, 8, 9])
@pytest.mark.parametrize("tail", [Uniform(), Frequency()], ids=["uniform", "frequency"])
def test_inclusion_is_how_often_rows_of_other_classes_see_a_class(tail, n_head, n_sampled):
    found, data = fitted(n_head, tail)
    kernel, said = found.kernel(data.X), found.inclusion(n_sampled)
    seen = np.zeros((K, K))  # by the row's class
    for y in range(K):
        seen[y] = share_of_steps(kernel, 0, y, K, n_sampled)
    for k in range(K):
        weights = np.where(np.arange(K) == k, 0, COUNTS)
        assert said[k] == pytest.approx(seen[:, k] @ weights / weights.sum(), abs=0.02)


@pytest.mark.parametrize("tail", TAILS[:-1], ids=lambda tail: type(tail).__name__)
def test_it_survives_being_stored(tail, tmp_path):
    found, data = fitted(3, tail)
    with h5py.File(tmp_path / "head.h5", "w") as file:
        found.save(file.create_group("correction"))
    with h5py.File(tmp_path / "head.h5") as file:
        restored = restore(file["correction"], K, data.X.shape[1])
    assert restored.name == "head"
    assert restored.tail.name == found.tail.name
    assert np.array_equal(restored.log_q(data.X, 0, K), found.log_q(data.X, 0, K))


def test_seeds_give_the_same_draws():
    found, data = fitted(3, Frequency())
    first, again = (mean_weights(found.kernel(data.X), 0, -1, K, 2, 50)[2] for _ in range(2))
    assert np.array_equal(first, again)


def method(objective="double-sum", optimizer="sgd", **proposal):
    parts = {"objective": {"name": objective}, "optimizer": {"name": optimizer}}
    return build_method("test", parts | {"proposal": {"name": "head"} | proposal})


def test_it_is_written_in_a_config():
    built = method(n_head=7, tail={"name": "frequency", "power": 0.75})
    assert built.proposal == Head(7, Frequency(0.75))
    assert not built.proposal.adaptive
    assert method(tail={"name": "quadratic-kernel"}).proposal.adaptive
    assert "xsoftmax.proposals.frequency" in built.modules


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (
            "head",
            "proposal head: tail is head, which is no distribution to draw from; take one such as uniform",
        ),
        ("all", "tail is all, which is no distribution"),
    ],
)
def test_what_cannot_be_a_tail_is_refused(tail, message):
    with pytest.raises(InputError, match=message):
        method(tail={"name": tail})


def test_a_mean_over_draws_is_refused():
    with pytest.raises(InputError, match="proposal head has some classes for certain"):
        method("negative-sampling")
