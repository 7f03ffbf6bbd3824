"""Losses and steps of samples that have several labels, compared with sums over their labels in plain numpy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal import registry
from xsoftmax.kernels.full_softmax import loss_block, slope_block
from xsoftmax.kernels.label_sets import LabelLists
from xsoftmax.objectives import ScoredClasses

K = 7
SETS = LabelSets(np.array([0, 1, 4, 6]), np.array([6, 0, 2, 5, 1, 3], np.int32))


def naive_margin(s, labels, smoothing=1.0):
    """Maximise <s + 1_N, a> - smoothing/2 |a|^2 over the bi-simplex, by a solver that knows nothing of it."""
    others = [k for k in range(K) if k not in labels]
    n, d = len(others), np.concatenate([s[others] + 1, -s[labels]])

    def negative(a):
        return smoothing / 2 * a @ a - d @ a, smoothing * a - d

    sums = np.concatenate([np.ones(n), -np.ones(len(labels))])
    limits = [
        {"type": "eq", "fun": lambda a: sums @ a, "jac": lambda a: sums},
        {"type": "ineq", "fun": lambda a: 1 - a[:n].sum(), "jac": lambda a: -(sums > 0).astype(float)},
    ]
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = minimize(negative, np.zeros(K), jac=True, bounds=[(0, None)] * K, constraints=limits, options=options)
    return -found.fun


def one_at_a_time(objective, s, labels, share):
    """The sample's loss from the array form of the objective: share times the sum over labels, others left out."""
    total = 0.0
    for label in labels:
        others = [k for k in range(K) if k != label]
        weights = [float(objective.labels_compete or k not in labels) for k in others]
        scores = [s[k] if w else s[label] for k, w in zip(others, weights, strict=True)]
        drawn = (np.array([each]) for each in (others, scores, weights, np.zeros(K - 1)))
        scored = ScoredClasses(np.array([s[label]]), np.zeros(1), *drawn)
        total += objective.value(np, objective.settle(np, np.zeros((1, 0)), scored), scored)[0]
    return share * total


def together(name, objective, s, labels, share):
    """Losses of all labels of a sample, written out."""
    if name == "softmax":
        return share * sum(np.log(np.exp(s).sum()) - s[k] for k in labels)
    if name == "max-margin":
        return naive_margin(s, labels)
    if name == "one-vs-rest":
        return sum(np.log1p(np.exp(-s[k] if k in labels else s[k])) for k in range(K))
    return one_at_a_time(objective, s, labels, share)


MEMBERS = {name: registry.load("xsoftmax.objectives", name).MEMBER for name in registry.names("xsoftmax.objectives")}
PLAIN = [
    name for name, of in MEMBERS.items() if of.excludes_true and not of.n_auxiliary and name != "one-vs-each-joint"
]


@pytest.mark.long_cases
@pytest.mark.parametrize("mean", [True, False], ids=["mean", "sum"])
@pytest.mark.parametrize("name", PLAIN)
def test_the_loss_of_a_set_is_that_of_its_labels_and_its_slopes_are_its_derivatives(name, mean):
    objective = MEMBERS[name]()
    S = np.random.default_rng(3).normal(0, 2, (3, K))
    lists, nothing = LabelLists(SETS.starts, SETS.classes, mean), np.zeros((6, 0))
    samples, log_q = np.arange(3), np.zeros((1, K))

    def losses(scores):
        return loss_block(objective, lists, nothing, samples, scores.copy(), log_q)

    for i in samples:
        labels = SETS.classes[SETS.starts[i] : SETS.starts[i + 1]].tolist()
        share = 1 / len(labels) if mean else 1.0
        assert losses(S)[i] == pytest.approx(together(name, objective, S[i], labels, share), rel=1e-5)
    slopes = S.copy()
    slope_block(objective, np.float32(0), lists, nothing, samples, slopes)
    for k in range(K):
        step = 1e-5 * np.eye(K)[k]
        difference = (losses(S + step) - losses(S - step)) / 2e-5
        np.testing.assert_allclose(slopes[:, k], difference, atol=2e-4, rtol=1e-4)
