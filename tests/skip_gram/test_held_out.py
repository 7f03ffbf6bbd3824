import numpy as np
import pytest
from scipy.sparse import csr_array

from skip_gram.naive_skip_gram import softmax_objective
from xsoftmax.skip_gram import held_out
from xsoftmax.skip_gram.held_out import measure


def test_measures_are_means_over_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    inputs, outputs = (rng.standard_normal((7, 4)).astype(np.float32) for _ in range(2))
    pairs = rng.integers(0, 3, (7, 7)).astype(float)
    pairs[2] = 0
    monkeypatch.setattr(held_out, "SCORES_AT_ONCE", 14)  # two words at a time
    found = measure(inputs, outputs, csr_array(pairs), np.array([50, 20, 9, 5, 3, 2, 1]), 2, draws=20_000)
    expected = softmax_objective(np.float64(inputs), np.float64(outputs), pairs)
    assert found.log_likelihood == pytest.approx(-expected, rel=1e-5)
    q = np.array([50, 20, 9, 5, 3, 2, 1]) ** 0.75
    scores = np.float64(inputs @ outputs.T)
    noise = np.log1p(np.exp(scores)) @ (q / q.sum())
    loss = (pairs * (np.log1p(np.exp(-scores)) + 2 * noise[:, None])).sum() / pairs.sum()
    assert found.sampled_loss == pytest.approx(loss, rel=0.02)
