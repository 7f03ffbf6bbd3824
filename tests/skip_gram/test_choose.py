from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.internal.errors import InputError
from xsoftmax.skip_gram import choose
from xsoftmax.skip_gram.choose import Trial, best, likelihoods, likelihoods_with_noise, try_out
from xsoftmax.skip_gram.settings import LOSSES, NEGATIVE, Settings
from xsoftmax.skip_gram.vectors import Embedding

SMALL = Settings(dimension=12, window=3, epochs=2, subsample=None, negatives=2)


RATES = dict.fromkeys(LOSSES, 0.05) | {"u-max": 0.01, "softmax": 1.0}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_rate_at_which_nothing_moves_is_not_chosen(groups, loss):
    """There all outputs are zero, and nothing is known of a word but where it is in a hierarchical softmax's tree."""
    rates = [RATES[loss], 1e-9]
    trials = try_out(groups, [replace(SMALL, loss=loss, learning_rate=rate, warm_epochs=0) for rate in rates])
    of_paths = np.log(16) * 12 / 20 + np.log(32) * 8 / 20  # twelve words at depth 4, eight at depth 5
    expected = {"negative-sampling": 3 * np.log(2), "hierarchical-softmax": of_paths}.get(loss, np.log(20))
    assert trials[1].value == pytest.approx(-expected, abs=0.02)
    assert best(trials).rate == rates[0]


def test_sentences_to_choose_by_are_not_trained_on(make_corpus, monkeypatch):
    """Every tenth sentence has words of its own, beside one that all have."""
    corpus, seen = make_corpus([[0, 1, 0, 2] if i % 10 == 9 else [0, 3, 0, 4] for i in range(40)], 5), []
    actual = choose.fit
    monkeypatch.setattr(choose, "fit", lambda training, settings: seen.append(training) or actual(training, settings))
    values = []
    trials = try_out(corpus, [SMALL], value=lambda _, __, pairs, counts: values.append((pairs, counts)) or 1.5)
    assert trials == [Trial(SMALL, 1.5)]
    assert set(seen[0].tokens.tolist()) == {-1, 0, 3, 4}
    ((pairs, counts),) = values
    assert set(pairs.nonzero()[0]) == {0}  # of the words left out only this one occurs in training
    assert counts.tolist() == [72, 1, 1, 36, 36]


def test_a_rate_that_diverges_is_not_chosen(groups):
    trials = try_out(groups, [replace(SMALL, learning_rate=rate) for rate in (1e30, 0.05)])
    assert trials[0].value is None
    assert best(trials).rate == 0.05
    with pytest.raises(InputError, match="diverged with all of the settings tried"):
        best(trials[:1])


def test_no_pairs_to_choose_by(make_corpus):
    with pytest.raises(InputError, match="no pair of words in a 10th of the sentences"):
        try_out(make_corpus([[0, 1]], 2), [SMALL])


def test_negative_sampling_at_its_optimum_is_exact_with_the_noise_in_its_scores():
    """A score that is least there is log p(y | x) less that of the noise, and not far from it without."""
    rng, n = np.random.default_rng(0), 6
    joint = rng.random((n, n)).astype(np.float64)
    p, counts = joint / joint.sum(axis=1, keepdims=True), np.array([1, 5, 40, 200, 9, 1000])
    settings = Settings(loss=NEGATIVE)
    scores = np.log(p) - settings.power * np.log(counts) + 1.5
    embedding = Embedding([str(k) for k in range(n)], scores.astype(np.float32), np.eye(n, dtype=np.float32))
    exact = float((joint * np.log(p)).sum() / joint.sum())
    pairs = [csr_array((joint / joint.sum()).astype(np.float32))]
    assert likelihoods_with_noise(embedding, settings, pairs, counts)[0] == pytest.approx(exact, abs=1e-5)
    assert likelihoods(embedding, settings, pairs, counts)[0] < exact - 0.5
