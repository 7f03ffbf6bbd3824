"""Draws on a device compared with those of compiled code: the same bits make the same classes."""

import numpy as np
import pytest

from gpu.problems import DEVICE, K, training_set
from kernels.drawing import drawn
from xsoftmax.kernels.random import stream
from xsoftmax.proposals import TrainingSet, build_proposal, fitted

torch = pytest.importorskip("torch", reason="torch is not installed: nothing draws on its devices here")

from xsoftmax.gpu import bits  # noqa: E402
from xsoftmax.gpu.draws import sampler_of  # noqa: E402

KEY = stream(3, 4)
FIRST, N = 2**33, 500
TAILS = ({"name": "uniform"}, {"name": "frequency", "power": 0.5})
PROPOSALS = [
    {"name": "uniform"},
    {"name": "frequency"},
    *({"name": "head", "n_head": 3, "tail": tail} for tail in TAILS),
    {"name": "head", "n_head": K - 1},
    {"name": "head", "n_head": K},
    {"name": "mixture", "share": 0.3},
    {"name": "tree", "dimension": 3},
    {"name": "mixture", "first": {"name": "tree", "dimension": 3}, "second": {"name": "uniform"}},
]


def samplers(settings, n_sampled):
    """What compiled code draws from, what a device does, and how many classes a row is given."""
    data = training_set()
    member = build_proposal("a test", settings | {"n_sampled": n_sampled})
    kernel = fitted(member, data).kernel(data.X)
    return kernel, sampler_of(kernel, torch.device(DEVICE)), n_sampled + len(getattr(kernel, "exact_classes", ()))


def as_int64(number):
    return int(np.uint64(number).view(np.int64))


@pytest.mark.long_cases
@pytest.mark.parametrize("settings", PROPOSALS, ids=str)
@pytest.mark.parametrize("n_sampled", [1, 5])
@pytest.mark.parametrize("excluded", [-1, 0, K - 1])
def test_the_classes_are_those_of_compiled_code(settings, n_sampled, excluded):
    kernel, sampler, n = samplers(settings, n_sampled)
    row = 11
    classes, log_q = drawn(kernel, row, excluded, KEY, FIRST, N, n)
    rows = torch.full((N,), row, device=DEVICE)
    states = bits.starts(as_int64(KEY), FIRST + torch.arange(N, device=DEVICE))
    found = sampler.draw(rows, torch.full((N,), excluded, device=DEVICE), states, n)
    assert np.array_equal(found.classes.cpu().numpy(), classes)
    assert np.allclose(found.log_q.cpu().numpy(), log_q, rtol=1e-6, atol=1e-6)


def test_rows_that_leave_different_classes_out_are_drawn_as_each_alone():
    for settings in ({"name": "uniform"}, {"name": "head", "n_head": 3}):
        _, sampler, n = samplers(settings, 4)
        rows = torch.arange(K, device=DEVICE)
        states = bits.starts(as_int64(KEY), rows)
        together = sampler.draw(rows, rows - 1, states, n)
        for i in range(K):
            alone = sampler.draw(rows[i : i + 1], rows[i : i + 1] - 1, states[i : i + 1], n)
            assert all(torch.equal(both[i], one[0]) for both, one in zip(together, alone, strict=True))


@pytest.mark.parametrize("settings", PROPOSALS, ids=str)
def test_weights_make_an_unbiased_sum_over_all_classes(settings):
    """The mean over 40,000 draws of the sum of w f is the sum of f, within 5 standard errors."""
    _, sampler, n = samplers(settings, 2)
    m = 40_000
    states = bits.starts(as_int64(KEY), torch.arange(m, device=DEVICE))
    found = sampler.draw(*(torch.full((m,), each, device=DEVICE) for each in (7, -1)), states, n)
    f = torch.linspace(1, 2, K, dtype=torch.float64, device=DEVICE)
    sums = (found.weights.double() * f[found.classes]).sum(1)
    assert abs(float(sums.mean() - f.sum())) <= 5 * float(sums.std()) / m**0.5 + 1e-5


@pytest.mark.parametrize("settings", PROPOSALS, ids=str)
def test_a_class_has_the_log_probability_with_which_it_is_drawn(settings):
    if settings["name"] == "head":
        pytest.skip("a draw of a head is one of its tail")
    _, sampler, _ = samplers(settings, 1)
    each = sampler.log_probability(torch.full((K,), 7, device=DEVICE), torch.arange(K, device=DEVICE))
    assert float(each.double().exp().sum()) == pytest.approx(1, abs=1e-5)


def test_a_lone_class_is_drawn_without_another():
    data = TrainingSet(np.zeros((3, 1), np.float32), np.zeros(3, np.int32), 1)
    sampler = sampler_of(
        fitted(build_proposal("a test", {"name": "uniform"}), data).kernel(data.X), torch.device(DEVICE)
    )
    three = torch.arange(3, device=DEVICE)
    found = sampler.draw(three, torch.full_like(three, -1), three, 2)
    assert not found.classes.any()
