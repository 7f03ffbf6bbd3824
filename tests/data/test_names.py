"""Names of classes: a list in all but the memory it takes."""

import sys

import h5py
import numpy as np
import pytest

from xsoftmax.data import names
from xsoftmax.data.names import Names

WORDS = ["", "a", "Zoë", "汉字", "with space", "a"]


def test_names_are_like_a_list():
    found = Names(WORDS)
    assert len(found) == 6
    assert list(found) == WORDS
    assert [found[2], found[-1], found[np.int64(3)]] == ["Zoë", "a", "汉字"]
    assert found[1:4] == WORDS[1:4]
    assert found[::-2] == WORDS[::-2]
    assert "汉字" in found
    assert found.index("a") == 1
    for outside in (6, -7):
        with pytest.raises(IndexError, match=f"name {outside} of 6"):
            found[outside]


def test_names_are_equal_to_the_same_names():
    assert Names(WORDS) == Names(WORDS)
    assert Names(WORDS) == WORDS
    assert Names(["ab", "c"]) != Names(["a", "bc"])
    assert Names(["ab", "c"]) != ["ab", "d"]
    assert Names(["ab"]) != ["ab", "c"]
    assert Names(["a"]) != "a"
    assert Names() == []


@pytest.mark.parametrize("at_a_time", [1, 4, 6, 100])
def test_names_are_taken_in_blocks_and_survive_a_file(tmp_path, monkeypatch, at_a_time):
    monkeypatch.setattr(names, "AT_A_TIME", at_a_time)
    with h5py.File(tmp_path / "names.h5", "w") as file:
        Names(WORDS).to_group(file.create_group("names"))
        Names().to_group(file.create_group("none"))
        assert Names.from_group(file["names"]) == WORDS
        assert Names.from_group(file["none"]) == []


@pytest.mark.parametrize(
    ("text", "ends", "reason"),
    [
        (b"ab", [0, 1], "ends with 1, expected 2"),
        (b"ab", [0, 2, 1, 2], "or falls"),
        (b"ab", [1, 2], "does not begin with 0"),
        (b"ab", [], "ends with 0, expected 2"),
        ("\u00e9".encode(), [0, 1, 2], "not utf-8"),
        (b"\xff", [0, 1], "invalid start byte"),
    ],
)
def test_names_that_are_none(text, ends, reason, tmp_path):
    with h5py.File(tmp_path / "names.h5", "w") as file:
        file["text"], file["ends"] = np.frombuffer(text, np.uint8), np.array(ends, np.int64)
        with pytest.raises(ValueError, match=reason):
            Names.from_group(file)


def test_names_take_little_memory():
    found = Names(str(k) for k in range(100_000))
    assert len(found._text) + found._ends.nbytes < 100_000 * 14
    assert sys.getsizeof("12345") > 50
    assert repr(found) == "Names(['0', '1', '2'] ..., 100000 in all)"
