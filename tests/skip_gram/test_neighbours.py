import numpy as np
import pytest

from xsoftmax.data.word2vec_files import WordVectors
from xsoftmax.internal.errors import InputError
from xsoftmax.skip_gram import neighbours
from xsoftmax.skip_gram.neighbours import most_similar


def test_the_nearest_are_those_of_all_cosines(monkeypatch):
    monkeypatch.setattr(neighbours, "PRODUCTS_AT_ONCE", 100)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((30, 4)).astype(np.float32)
    vectors[7] = 0
    words = tuple(f"w{k}" for k in range(30))
    found = most_similar(WordVectors(words, vectors), words, 5)
    for k in range(30):
        cosine = [
            float(vectors[k] @ v) / max(float(np.linalg.norm(v) * np.linalg.norm(vectors[k])), 1e-30) for v in vectors
        ]
        others = sorted((j for j in range(30) if j != k), key=lambda j: (-round(cosine[j], 6), j))[:5]
        assert [each.word for each in found[k]] == [words[j] for j in others]
        np.testing.assert_allclose([each.cosine for each in found[k]], [cosine[j] for j in others], atol=1e-6)


def test_of_equals_the_earlier_word_comes_first():
    embedding = WordVectors(tuple("abcdef"), np.array([[1, 0], [0, 1], [2, 0], [3, 0], [4, 0], [-1, 0]], np.float32))
    (found,) = most_similar(embedding, ["d"], 2)
    assert [each.word for each in found] == ["a", "c"]
    (found,) = most_similar(embedding, ["d"], 99)
    assert [each.word for each in found] == list("acebf")


def test_what_cannot_be_asked():
    embedding = WordVectors(("a", "b"), np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match="no vector of 'c'"):
        most_similar(embedding, ["c"])
    with pytest.raises(InputError, match="neighbours is 0; set it to 1 or more"):
        most_similar(embedding, ["a"], 0)
