import numpy as np
import pytest
from scipy.sparse import csr_array

from skip_gram.naive_skip_gram import path_loss, softmax_objective
from xsoftmax.skip_gram import held_out
from xsoftmax.skip_gram.held_out import known_pairs, log_likelihood, sampled_loss
from xsoftmax.skip_gram.huffman import huffman
from xsoftmax.skip_gram.settings import Settings

COUNTS = np.array([50, 20, 9, 5, 3, 2, 1])


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((7, 4)).astype(np.float32) for _ in range(2)]


@pytest.fixture
def pairs():
    found = np.random.default_rng(1).integers(0, 3, (7, 7)).astype(float)
    found[2] = 0
    return found


def test_the_likelihood_is_a_mean_over_pairs(vectors, pairs, monkeypatch):
    monkeypatch.setattr(held_out, "SCORES_AT_ONCE", 14)  # two words at a time
    expected = softmax_objective(*map(np.float64, vectors), pairs)
    assert log_likelihood(*vectors, csr_array(pairs)) == pytest.approx(-expected, rel=1e-5)


def test_the_sampled_loss_is_a_mean_over_pairs(vectors, pairs, monkeypatch):
    monkeypatch.setattr(held_out, "SCORES_AT_ONCE", 14)
    q = COUNTS**0.75
    scores = np.float64(vectors[0] @ vectors[1].T)
    noise = np.log1p(np.exp(scores)) @ (q / q.sum())
    loss = (pairs * (np.log1p(np.exp(-scores)) + 2 * noise[:, None])).sum() / pairs.sum()
    assert sampled_loss(*vectors, csr_array(pairs), COUNTS, 2, draws=20_000) == pytest.approx(loss, rel=0.02)


def test_the_likelihood_of_paths_is_normalised(vectors, pairs):
    tree = huffman(COUNTS)
    inputs, outputs = vectors[0], vectors[1][:-1]
    losses = np.array(
        [
            [path_loss(inputs, outputs, x, tree.nodes[path], tree.sides[path]) for x in range(7)]
            for path in (slice(*tree.starts[y : y + 2]) for y in range(7))
        ]
    ).T
    np.testing.assert_allclose(np.exp(-losses).sum(axis=1), 1, rtol=1e-6)
    found = log_likelihood(inputs, outputs, csr_array(pairs), tree)
    assert found == pytest.approx(-(pairs * losses).sum() / pairs.sum(), rel=1e-5)


def test_pairs_of_words_that_do_not_occur_in_training_are_left_out(make_corpus):
    training, rest = make_corpus([[0, 1], [1, 2]], 4), make_corpus([[0, 1, 3], [2, 1]], 4)
    found = known_pairs(training, rest, Settings(window=1, subsample=None)).toarray()
    expected = np.zeros((4, 4))
    expected[[0, 1, 1, 2], [1, 0, 2, 1]] = 1
    np.testing.assert_array_equal(found, expected)
