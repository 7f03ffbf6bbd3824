import numpy as np
import pytest

from skip_gram.naive_skip_gram import pair_counts
from xsoftmax.internal.errors import InputError
from xsoftmax.skip_gram import counts as module
from xsoftmax.skip_gram.corpus import kept_share
from xsoftmax.skip_gram.counts import collapsed_counts
from xsoftmax.skip_gram.kernels import Window

SENTENCES = [np.random.default_rng(k).integers(0, 7, k % 13).tolist() for k in range(60)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("window", [1, 3, 20])
def test_counts_are_those_of_a_naive_counter(make_corpus, window, dynamic, monkeypatch):
    monkeypatch.setattr(module, "BUFFER", 50)
    found = collapsed_counts(make_corpus(SENTENCES, 8), Window(window, dynamic), np.ones(8, np.float32)).tocoo()
    expected = pair_counts(SENTENCES, window, dynamic)
    assert len(expected) == found.nnz
    for x, y, weight in zip(*found.coords, found.data, strict=True):
        assert weight == pytest.approx(expected[x, y], rel=1e-12)


def test_windows_end_where_a_chunk_does(make_corpus, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 3)
    found = collapsed_counts(make_corpus([[0, 1, 2, 3, 4]], 5), Window(1, False), np.ones(5, np.float32))
    assert sorted(zip(*(c.tolist() for c in found.nonzero()), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3),
    ]  # fmt: skip


def test_frequent_words_are_dropped_as_often_as_they_should_be(make_corpus):
    corpus = make_corpus([[0, 0, 0, 1]] * 20_000, 2)
    kept = kept_share(corpus.vocabulary.counts, 0.02)
    found = collapsed_counts(corpus, Window(3, False), kept, seed=3).toarray()
    share = min(1.0, np.sqrt(0.02 / 0.75) + 0.02 / 0.75)
    of_other = min(1.0, np.sqrt(0.02 / 0.25) + 0.02 / 0.25)
    assert found[0, 0] / 20_000 == pytest.approx(6 * share**2, rel=0.05)
    assert found[0, 1] / 20_000 == pytest.approx(3 * share * of_other, rel=0.05)


@pytest.mark.fault(
    "memory for pairs of words is not there",
    happens="refused",
    user="for what, how much, what to do",
    lost="nothing",
)
def test_memory_is_asked_for(make_corpus, monkeypatch):
    monkeypatch.setattr("xsoftmax.internal.free_memory.free_bytes", lambda: 1000)
    with pytest.raises(InputError, match=r"pairs of a stretch of text: .* MB are free; lower window"):
        collapsed_counts(make_corpus(SENTENCES, 8), Window(2, False), np.ones(8, np.float32))
