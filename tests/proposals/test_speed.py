"""The cost of a draw: `pytest -s -m slow tests/proposals/test_speed.py` prints it."""

import time

import numpy as np
import pytest
from numba import njit

from kernels.layouts import laid_out
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.protocol import View, draw, n_exact
from xsoftmax.kernels.random import start, stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.head import Head
from xsoftmax.proposals.mixture import Mixture
from xsoftmax.proposals.quadratic_kernel import QuadraticKernel
from xsoftmax.proposals.uniform import Uniform

D, N_STEPS = 64, 20_000
MEMBERS = {
    "uniform": Uniform(),
    "frequency": Frequency(),
    "head of 100, uniform": Head(),
    "head of 100, frequency": Head(tail=Frequency()),
    "mixture": Mixture(),
    "quadratic-kernel": QuadraticKernel(),
}


@njit(**OPTIONS)
def draw_steps(proposal, view, n_samples, key, n_steps):
    draws = empty_draws(n_exact(proposal) + 1)
    total = 0.0
    for t in range(n_steps):
        draw(proposal, view, t % n_samples, np.int64(-1), np.float32(-np.inf), start(key, t), draws)
        total += draws.weights[draws.weights.size - 1]
    return total


def microseconds_per_draw(member, n_classes):
    """Least over passes of one draw per step, 64 dense features, and the seconds of a refresh."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(n_classes), (n_classes * rng.random(50_000) ** 3).astype(int)]).astype(np.int32)
    X = rng.standard_normal((y.size, D), np.float32)
    fitted, refresh = member.fit(TrainingSet(X, y, n_classes)), 0.0
    kernel = fitted.kernel(X)
    W = laid_out(Sgd(), 0.1 * rng.standard_normal((n_classes, D + 1), np.float32))
    view = View(W, features_of(X, True))
    if member.adaptive:
        begin = time.thread_time()
        fitted.refresh(W)
        refresh = time.thread_time() - begin
    passes = []
    for epoch in range(6):
        begin = time.thread_time()
        draw_steps(kernel, view, y.size, np.uint64(stream(0, epoch)), N_STEPS)
        passes.append((time.thread_time() - begin) / N_STEPS * 1e6)
    return min(passes), refresh


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBERS)
def test_a_draw_costs_little_more_with_more_classes(name):
    (few, refresh), (many, longer) = (microseconds_per_draw(MEMBERS[name], n) for n in (20_000, 200_000))
    print(f"\n{name}: {few:.3f} us a draw with 20,000 classes, {many:.3f} with 200,000", end="")
    print(f"; a refresh {refresh:.3f} s, {longer:.3f} s" if longer else "")
    assert many < 8 * few + 0.2
