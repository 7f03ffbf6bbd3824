import gzip
import lzma

import numpy as np
import pytest

from xsoftmax.data import running_text as module
from xsoftmax.internal.errors import InputError
from xsoftmax.skip_gram.corpus import END, CorpusOptions, held_out, kept_share, read_corpus

ALL = CorpusOptions(min_count=1)


def written(path, text):
    content = text.encode()
    content = gzip.compress(content) if path.suffix == ".gz" else content
    path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    return path


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".xz"])
def test_words_are_numbered_by_frequency(tmp_path, suffix):
    text = written(tmp_path / f"text{suffix}", "b a b\nc b a\n\nrare\n")
    found = read_corpus(text, tmp_path / "words", CorpusOptions(min_count=1, max_words=3))
    assert found.vocabulary.words == ("b", "a", "c")
    assert found.vocabulary.counts.tolist() == [3, 2, 1]
    assert found.vocabulary.n_tokens == 7
    assert found.tokens.tolist() == [0, 1, 0, END, 2, 0, 1, END, END, END]
    assert found.n_words == 6


def test_options_say_what_words_are(tmp_path):
    text = written(tmp_path / "text", "The cat,\nthe DOG.\n\nDog!\n")
    options = CorpusOptions(min_count=1, lowercase=True, token=r"\w+", sentence="paragraph")
    found = read_corpus(text, tmp_path / "words", options)
    assert found.vocabulary.words == ("dog", "the", "cat")
    assert found.tokens.tolist() == [1, 2, 1, 0, END, 0, END]


def test_running_text_is_one_sentence_however_it_is_cut(tmp_path, monkeypatch):
    words = np.random.default_rng(0).choice(["aä", "bb", "cçc", "d"], 500).tolist()
    text = written(tmp_path / "text", " ".join(words))
    monkeypatch.setattr(module, "BLOCK_BYTES", 7)  # within words and within letters
    found = read_corpus(text, tmp_path / "words", CorpusOptions(min_count=1, sentence="text"))
    names = [*found.vocabulary.words, None]
    assert [names[k] for k in found.tokens] == [*words, None]


def test_the_rarest_are_forgotten_where_tokens_are_too_many(tmp_path, monkeypatch):
    lines = [f"often once{i} often usual twice{i // 2}" for i in range(2000)]
    lines[1000] += " late" * 500
    text = written(tmp_path / "text", "\n".join(lines))
    monkeypatch.setattr(module, "MOST_DISTINCT", 100)
    monkeypatch.setattr(module, "BATCH_SENTENCES", 20)
    found = read_corpus(text, tmp_path / "words", CorpusOptions(min_count=400))
    assert found.vocabulary.words == ("often", "usual", "late")
    short = np.array([4000, 2000, 500]) - found.vocabulary.counts
    assert found.vocabulary.shortfall > 0
    assert ((short >= 0) & (short <= found.vocabulary.shortfall)).all()
    assert read_corpus(written(tmp_path / "few", "a a b b"), tmp_path / "words", ALL).vocabulary.shortfall == 0


def test_the_share_that_stays_is_that_of_word2vec():
    counts = np.array([900, 90, 10])
    by_hand = [min(1.0, np.sqrt(0.01 / f) + 0.01 / f) for f in (0.9, 0.09, 0.01)]
    np.testing.assert_allclose(kept_share(counts, 0.01), by_hand, rtol=1e-6)
    assert kept_share(counts, None).tolist() == [1, 1, 1]


def test_sentences_are_held_out(tmp_path):
    text = written(tmp_path / "text", "a b\na c\na d\nb c\nd d\n")
    left, out = held_out(read_corpus(text, tmp_path / "words", ALL), 2)
    names = left.vocabulary.words
    assert [names[k] if k >= 0 else "." for k in left.tokens] == list("ab.ad.dd.")
    assert [names[k] if k >= 0 else "." for k in out.tokens] == list("ac.bc.")
    assert dict(zip(names, left.vocabulary.counts.tolist(), strict=True)) == {"a": 2, "d": 3, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a a a\n", {"min_count": 1}, "a vocabulary of 1 words, of 3 tokens; 2 are the least"),
        ("a b\n", {"min_count": 5}, r"a vocabulary of 0 words, of 2 tokens.*lower min_count \(now 5\)"),
        ("a\0b\n", {"min_count": 1, "sentence": "text"}, "a NUL character"),
        ("a b\n", {"min_count": 0}, "min_count is 0; set it to 1 or more"),
        ("a b\n", {"sentence": "page"}, "sentence is 'page'; known: line, paragraph, text"),
        ("a b\n", {"token": "("}, "token: not a regular expression"),
    ],
)
def test_what_is_no_corpus(tmp_path, text, options, message):
    path = written(tmp_path / "text", text)
    with pytest.raises(InputError, match=message):
        read_corpus(path, tmp_path / "words", CorpusOptions(**options))


@pytest.mark.parametrize("sentence", ["line", "text"])
def test_texts_that_are_damaged(tmp_path, sentence):
    whole = gzip.compress(b"some words in a line\n" * 5000)
    path = tmp_path / "text.gz"
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_corpus(path, tmp_path / "words", CorpusOptions(sentence=sentence))
    path.write_bytes(b"caf\xe9 au lait\n" * 9)
    with pytest.raises(InputError, match="not utf-8"):
        read_corpus(path, tmp_path / "words", CorpusOptions(sentence=sentence))
    with pytest.raises(InputError, match="none: no such file or folder"):
        read_corpus(tmp_path / "none", tmp_path / "words", ALL)
