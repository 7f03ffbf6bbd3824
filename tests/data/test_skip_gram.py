import gzip

import numpy as np
import pytest

from data.naive_data import skip_gram_pairs
from xsoftmax.data import running_text
from xsoftmax.data.readers import skip_gram
from xsoftmax.internal.errors import InputError

ALL = {"min_count": 1, "subsample": None}


@pytest.fixture
def corpus(tmp_path):
    """Write files by their paths, compressed where the name says so, and give their folder."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return tmp_path

    return write


def word_pairs(rows):
    words = np.array(rows.label_names)
    assert rows.features.shape == (rows.n_samples, len(words))
    assert rows.features.dtype == np.float32
    assert (rows.features.data == 1).all()
    np.testing.assert_array_equal(rows.features.indptr, np.arange(rows.n_samples + 1))
    return list(zip(words[rows.features.indices].tolist(), words[rows.labels].tolist(), strict=True))


@pytest.mark.parametrize("window", [1, 3, 8])
def test_pairs_are_those_of_every_sentence(corpus, window, monkeypatch):
    monkeypatch.setattr(running_text, "BATCH_SENTENCES", 7)
    rng = np.random.default_rng(0)
    sentences = [rng.choice(list("abcdef"), n).tolist() for n in [0, 1, 2, *rng.integers(0, 25, 60)]]
    lines = [" ".join(words) for words in sentences]
    folder = corpus({"b": "\n".join(lines[30:]), "a/b.gz": "\n".join(lines[:30]), "a/.b": "hidden", ".a/b": "hidden"})
    rows = skip_gram.read(data=folder, window=window, **ALL)
    assert word_pairs(rows) == skip_gram_pairs(sentences, window)


def test_windows_are_laid_over_the_words_that_count(corpus):
    folder = corpus({"train": "a a a b b b c c d x\n", "test": "a x new b\nd c\n"})
    train = skip_gram.read(data=folder / "train", part="train", window=1, min_count=2, max_words=3, subsample=None)
    assert train.label_names == ("a", "b", "c")
    assert train.n_samples == 2 * 7
    test = skip_gram.read(
        data=folder / "test", vocabulary=folder / "train", part="test", window=1, min_count=2, subsample=None
    )
    assert test.label_names == ("a", "b", "c")
    assert word_pairs(test) == [("a", "b"), ("b", "a")]


def test_words_and_sentences_as_the_options_say(corpus):
    text = "The cat,\r\nthe dog.\r\n \r\nIt's\r\n\r\n\r\nCAT\n"
    file = corpus({"text": text + "dog"}) / "text"
    assert word_pairs(skip_gram.read(data=file, **ALL)) == skip_gram_pairs([["The", "cat,"], ["the", "dog."]], 8)
    read = {"lowercase": True, "token": "[a-z]+(?:'[a-z]+)?", "sentence": "paragraph"}
    rows = skip_gram.read(data=file, **read, **ALL)
    assert word_pairs(rows) == skip_gram_pairs([["the", "cat", "the", "dog"], ["cat", "dog"]], 8)
    assert rows.label_names == ("cat", "dog", "the", "it's")
    begin = skip_gram.read(data=file, **read, max_tokens=3, **ALL)
    assert word_pairs(begin) == skip_gram_pairs([["the", "cat", "the"]], 8)


def test_frequent_words_are_dropped_at_random(corpus, monkeypatch):
    """Of two words, 3 to 1, t = 0.03: 1 in 5 of the one stays, and sqrt(0.12) of the other; rare ones all."""
    n, lines = 4_000, 200
    words = np.array(["a", "a", "a", "b"] * (n // 4))
    np.random.default_rng(0).shuffle(words)
    text = "\n".join(" ".join(each) for each in words.reshape(lines, -1))
    file = corpus({"text": text + "\nrare"}) / "text"
    options = {"data": file, "min_count": 1, "subsample": 0.03, "window": n}
    rows = skip_gram.read(**options)
    # a word with its neighbours: m * (m - 1) pairs of the m words that stay in a line
    share = 0.75 * 0.2 + 0.25 * np.sqrt(0.12)
    expected = sum(m * (m - 1) for m in np.random.default_rng(1).binomial(n // lines, share, 10_000)) / 50
    assert rows.n_samples == pytest.approx(expected, rel=0.1)
    ratio = (rows.features.indices == 0).mean() / (rows.features.indices == 1).mean()
    assert ratio == pytest.approx(0.6 / np.sqrt(0.12), rel=0.1)
    monkeypatch.setattr(running_text, "BATCH_SENTENCES", 13)
    assert word_pairs(skip_gram.read(**options)) == word_pairs(rows)
    assert word_pairs(skip_gram.read(**options, seed=1)) != word_pairs(rows)
    everything = skip_gram.read(**options | {"subsample": 0.9})
    assert everything.n_samples == n * (n // lines - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "must be positive"),
        ({"subsample": 0}, "must be positive"),
        ({"max_tokens": 0}, "must be positive"),
        ({"part": "test"}, "skip-gram: parts.test needs 'vocabulary', the text of parts.train"),
        ({"sentence": "page"}, "unknown sentence 'page'; known: line, paragraph"),
        ({"token": "("}, r"options.token: not a regular expression .*: '\('"),
        ({"token": "(a)b"}, r"options.token: '\(a\)b' has groups; write"),
        ({"min_count": 3}, r"text: a vocabulary of 1 words, of 6 tokens; .*lower min_count \(now 3\)"),
        ({"max_words": 1}, "a vocabulary of 1 words"),
        ({"token": "[0-9]"}, "a vocabulary of 0 words, of 0 tokens"),
        ({"encoding": "ascii"}, r"text, line 2: not ascii \(ordinal not in range\(128\)\); set options.encoding"),
    ],
)
def test_bad_options(corpus, options, message):
    file = corpus({"text": "a a b\na caf\xe9 b\n"}) / "text"
    with pytest.raises(InputError, match=message):
        skip_gram.read(data=file, **ALL | options)


def test_bad_texts(corpus):
    folder = corpus({"text": "a\nb\na\n"})
    (folder / "empty").mkdir()
    (folder / "empty/.hidden").write_text("a b")
    with pytest.raises(InputError, match="empty: no texts in it; expected a file of text, or a folder of such files"):
        skip_gram.read(data=folder / "empty")
    (folder / "empty/text").write_text("a b\na \0\n")
    with pytest.raises(InputError, match="text, line 2: a NUL character, which is no text; fetch it again"):
        skip_gram.read(data=folder / "empty")
    with pytest.raises(InputError, match="text: no two words of the vocabulary near each other; see "):
        skip_gram.read(data=folder / "text", **ALL)
