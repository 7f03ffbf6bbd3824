"""Regular expressions of words: those that might search for ever are refused before they meet a text."""

import pytest

from xsoftmax.data.encoding import word_pattern
from xsoftmax.internal.errors import InputError

FINE = [
    "",
    r"\w+",
    r"(?u)\b\w\w+\b",
    r"(\w+)",
    r"\d+(?:[.,]\d+)?|[a-z]+",
    r"\b[^\W_](?:[\w.]*\w)?",
    r"(?<!x)\w+(?=y)",
    r"[^\W\d_]+(?:['’][^\W\d_]+)*",
    r"\w+(?:-\w+)*",
    r"(?:\s\w++)*",
    r"(?:a|b)+",
    r"(?:-a*b)*c",
]
ENDLESS = [
    "(?:a+)+b",
    "(?:a|aa)+b",
    "(?:a|a)*b",
    "(?:a|b|a)*c|(?:ab|a)*d",
    "a?" * 40 + "a" * 40,
    "(?:a*){30}b",
    "(?:-a*a*)*b",
    "(?:[a-]\\w*)*!",
    "(?:.a*)+b",
    "(?i)(?:k[a-jl-zK]+)*!",
    "(?i:(?:k[a-zK]*)*)!",
    "a*a*a*a*b",
    "((a*)*)*b",
    "(?=(?:a+)+b)a",
    "(?>(?:a+)+b)",
    "(?:a+)*+b",
    "(x)?(?(1)(?:a+)+|b)c",
]


@pytest.mark.parametrize("token", FINE)
def test_words_are_found_as_ever(token):
    assert word_pattern(token, "here", groups=1).pattern == token


@pytest.mark.parametrize("token", ENDLESS)
def test_what_may_search_for_ever_is_refused(token):
    with pytest.raises(InputError, match=r"^here: .* a search may never end; write"):
        word_pattern(token, "here", groups=9)


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises(InputError, match=r"^here: not a regular expression"):
        word_pattern("(" * 500 + "a" + ")*" * 500, "here", groups=999)
