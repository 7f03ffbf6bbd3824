import gzip
from contextlib import suppress

import numpy as np
import pytest

from xsoftmax.data.word2vec_files import read_word2vec, write_word2vec
from xsoftmax.internal.errors import InputError

WORDS = ("the", "été", "a-b")
VECTORS = np.array([[0.5, -1.25], [1e-7, 3.0], [0.1, -123456.79]], np.float32)
# What gensim 4.4.0 writes of them with save_word2vec_format(binary=True).
BINARY = (
    b"3 2\nthe \x00\x00\x00?\x00\x00\xa0\xbf\n\xc3\xa9t\xc3\xa9 \x95\xbf\xd63\x00\x00@@\n"
    b"a-b \xcd\xcc\xcc=e \xf1\xc7\n"
)
# And what the original program does: no newline behind vectors would be as good.
TEXT = "3 2\nthe 0.5 -1.25\nété 1e-07 3.0\na-b 0.1 -123456.79\n".encode()


def test_binary_files_are_those_of_word2vec(tmp_path):
    write_word2vec(tmp_path / "v.bin", WORDS, VECTORS, binary=True)
    assert (tmp_path / "v.bin").read_bytes() == BINARY


def test_text_files_bring_back_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    vectors = np.float32(rng.standard_normal((3, 50)) * 10.0 ** rng.integers(-30, 30, (3, 50)))
    write_word2vec(tmp_path / "v.txt", WORDS, vectors)
    found = read_word2vec(tmp_path / "v.txt")
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, vectors)
    assert (tmp_path / "v.txt").read_bytes().startswith(b"3 50\nthe ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.bin", BINARY),
        ("v.bin", b"3 2\n" + BINARY[4:].replace(b"\n", b"")),
        ("v.bin.gz", gzip.compress(BINARY, mtime=0)),
        ("v.txt", TEXT),
        ("v.txt", TEXT.rstrip(b"\n")),
        ("v.txt", TEXT.replace(b"\n", b" \r\n")),
        ("v.gz", gzip.compress(TEXT, mtime=0)),
    ],
)
def test_files_of_others_are_read(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    found = read_word2vec(tmp_path / name)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)


@pytest.mark.parametrize(("name", "content"), [("v.bin", BINARY), ("v.txt", TEXT)])
@pytest.mark.fault(
    "a file of vectors is cut short",
    happens="refused",
    user="the file, the word, what to do",
    lost="nothing",
)
def test_files_that_are_cut_short(tmp_path, name, content):
    path = tmp_path / name
    for n in range(len(content) - len(b" -123456.79\n") if name == "v.txt" else len(content) - 1):
        path.write_bytes(content[:n])
        with pytest.raises(InputError, match=name):
            read_word2vec(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"", "its first line is b''"),
        ("v.txt", b"3\n", "its first line is b'3'"),
        ("v.txt", b"-1 2\n", "its first line"),
        ("v.txt", b"0 2\n", "0 words of 2 dimensions are none"),
        ("v.txt", b"1 99999999\n", "are none, or too many"),
        ("v.bin", b"2000000000 100\na 1234", "too short for 2000000000 words of 100 dimensions"),
        ("v.txt", b"2000000000 100\na 1234", "too short for 2000000000 words of 100 dimensions"),
        ("v.txt", TEXT.replace(b"0.5", b"x"), "line 2 has what is no number"),
        ("v.txt", TEXT.replace(b"0.5", b"nan"), "line 2 has what is no number"),
        ("v.txt", TEXT.replace(b"0.5", b"1e39"), "line 2 has what is no number"),
        ("v.txt", TEXT.replace(b"0.5", b"0.5 1"), "line 2 has 3 numbers, where 2 are expected"),
        ("v.txt", TEXT + b"more 1 2\n", "more follows its 3 words"),
        ("v.txt", TEXT.replace(b"a-b", b"the"), "a word stands there twice"),
        ("v.txt", TEXT.replace("é".encode(), b"\xe9"), "word 2 is not UTF-8"),
        ("v.bin", BINARY + b"x", "more follows its 3 words"),
        ("v.bin", BINARY.replace(b"\x00\x00\x00?", b"\x00\x00\xc0\x7f"), "the vector of 'the' holds NaN or infinity"),
        ("v.bin", TEXT, "damaged, or not word2vec's binary format"),
        ("v.bin", b"1 1\n" + b"a" * 2**18, "ends within word 1 of 1"),
        ("v.txt.gz", gzip.compress(TEXT, mtime=0)[:-9], "truncated or damaged"),
    ],
)
@pytest.mark.fault(
    "a file of vectors is damaged or made up",
    happens="refused",
    user="the file, what, what to do",
    lost="nothing",
)
def test_files_that_are_damaged_or_made_up(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_word2vec(tmp_path / name)


def test_bytes_that_flip_never_end_in_another_error(tmp_path):
    rng = np.random.default_rng(0)
    for name, content in (("v.bin", BINARY), ("v.txt", TEXT)):
        for _ in range(300):
            changed = bytearray(content)
            for place in rng.integers(0, len(content), 3):
                changed[place] = rng.integers(0, 256)
            (tmp_path / name).write_bytes(changed)
            with suppress(InputError):
                assert len(read_word2vec(tmp_path / name).words) >= 1


def test_words_that_cannot_be_written(tmp_path):
    for word in ("new york", "", "a\u00a0b"):
        with pytest.raises(InputError, match="hold no words with white space"):
            write_word2vec(tmp_path / "v", (word,), VECTORS[:1])
    assert not any(tmp_path.iterdir())
