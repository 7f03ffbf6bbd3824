"""The cost of a sampled step: `pytest -s -m slow tests/kernels/test_speed.py` prints it."""

import time

import numpy as np
import pytest

from kernels.loops import run_steps
from xsoftmax.kernels.layout import allocate
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.proposals.uniform import UniformDraws

N, D = 20_000, 512


def microseconds_per_step(n_classes):
    """Median over passes of one negative, Adagrad, dense rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, D), np.float32), rng.integers(0, n_classes, N).astype(np.int32)
    W = allocate(Adagrad(), n_classes, D + 1, True)
    parts = (NegativeSampling(), UniformDraws(n_classes), Adagrad(), features_of(X, True), y, np.zeros((N, 0)), W)
    order, passes = rng.permutation(N), []
    for epoch in range(8):
        begin = time.perf_counter()
        assert run_steps(*parts, order, Clock(np.uint64(stream(0, epoch)), 0, 0), np.float32(1e-3), 1) == N
        passes.append((time.perf_counter() - begin) / N * 1e6)
    return float(np.median(passes[1:]))


@pytest.mark.alone
@pytest.mark.slow
def test_a_step_costs_no_more_with_more_classes():
    """Ten times the classes: only the memory's own latency may show."""
    few, many = microseconds_per_step(20_000), microseconds_per_step(200_000)
    print(f"\n{few:.2f} us a step with 20,000 classes, {many:.2f} with 200,000")
    assert many < 3 * few
