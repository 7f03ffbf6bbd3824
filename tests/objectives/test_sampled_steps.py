"""The compiled loop with the sampled objectives, step by step against a naive one that is given the same draws."""

import numpy as np
import pytest

import naive
import naive_loop
import naive_sampled
from kernels.drawing import drawn
from objectives import one_step
from problems import sparse_problem
from xsoftmax.objectives.composition import Composition
from xsoftmax.objectives.double_sum_raman import DoubleSumRaman
from xsoftmax.objectives.importance_sampling import ImportanceSampling
from xsoftmax.objectives.nce import Nce
from xsoftmax.objectives.sampled_softmax import SampledSoftmax
from xsoftmax.objectives.scent import Scent
from xsoftmax.objectives.sox import Sox
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform

N, D, K = 30, 9, 7
RATE = 0.05


CASES = {
    "raman sgd": (DoubleSumRaman(), Sgd()),
    "raman u-max": (DoubleSumRaman(), UMax(threshold=0.2)),
    "sampled softmax": (SampledSoftmax(), Sgd()),
    "importance sampling": (ImportanceSampling(), Sgd()),
    "nce": (Nce(2.0, 0.05), Sgd()),
    "composition": (Composition(0.9, 0.6), Sgd()),
    "sox": (Sox(0.3), Sgd()),
    "scent": (Scent(0.3), Sgd()),
}


def problem():
    rng = np.random.default_rng(0)
    X, y, W = sparse_problem(rng, N, D, K)
    return X, y, W, np.concatenate([rng.permutation(N) for _ in range(3)])  # averages need visits


def fitted(proposal, X, y, excludes):
    """Kernel, and log-probabilities of all classes in one draw."""
    found = proposal.fit(TrainingSet(X, y, K))
    if isinstance(proposal, Uniform):
        return found.kernel(X), np.full(K, -np.log(K - excludes))
    return found.kernel(X), found.log_q(X, 0, K)[0].astype(float)


@pytest.mark.parametrize(
    "proposal", [pytest.param(Uniform(), marks=pytest.mark.slow), Frequency()], ids=["uniform", "frequency"]
)
@pytest.mark.parametrize("n_sampled", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_loop_is_the_naive_one(case, n_sampled, proposal):
    member, optimizer = CASES[case]
    X, y, W, order = problem()
    objective = member.fit(TrainingSet(X, y, K, n_sampled=n_sampled))
    kernel, log_q = fitted(proposal, X, y, objective.excludes_true)
    hits, repeats, batches = 0, 0, []
    for t, i in enumerate(order):
        excluded = y[i] if objective.excludes_true else -1
        classes = drawn(kernel, i, excluded, one_step.KEY, t, 1, n_sampled)[0][0].tolist()
        hits, repeats = hits + (y[i] in classes), repeats + (len(set(classes)) < n_sampled)
        batches.append([(i, classes, log_q)])
    threshold = optimizer.threshold if isinstance(optimizer, UMax) else None
    arguments = (naive.with_constant(X), y, W, batches, RATE)
    expected, _, auxiliary = naive_loop.steps(objective, *arguments, threshold=threshold)
    found, found_auxiliary, taken = one_step.run(
        objective, kernel, optimizer, X, y, W, order, RATE, n_sampled=n_sampled
    )
    assert taken == order.size
    assert np.allclose(found, expected, rtol=2e-4, atol=2e-4)
    assert not np.allclose(found, W, atol=1e-2)
    assert np.allclose(found_auxiliary, auxiliary, rtol=1e-4, atol=1e-4)
    if n_sampled == 4 and not (objective.excludes_true and isinstance(proposal, Uniform)):
        assert min(hits, repeats) > 0  # the comparison has met both special cases


def test_the_implicit_loop_is_the_naive_one():
    """With frequency draws, which may be the true class: then only the true class and u move."""
    X, y, W, order = problem()
    kernel, log_q = fitted(Frequency(), X, y, True)
    expected, u, hits = W.astype(float), np.full(N, np.log(K)), 0
    inputs, rate = naive.with_constant(X), 0.4
    for t, i in enumerate(order):
        k = drawn(kernel, i, y[i], one_step.KEY, t, 1, 1)[0][0, 0]
        hits += k == y[i]
        s, weight = expected @ inputs[i], np.exp(-log_q[k]) * (k != y[i])
        u[i], up, down = naive_sampled.raman_implicit_step(rate, inputs[i] @ inputs[i], weight, s[y[i]], s[k], u[i])
        expected[y[i]] += up * inputs[i]
        expected[k] -= down * inputs[i]
    found, auxiliary, taken = one_step.run(DoubleSumRaman(), kernel, Implicit(), X, y, W, order, rate)
    assert taken == order.size
    assert hits > 0
    assert np.allclose(found, expected, rtol=2e-4, atol=2e-4)
    assert np.allclose(auxiliary[:, 0], u, rtol=1e-4, atol=1e-4)
