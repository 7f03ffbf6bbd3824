"""How long a regular expression may search: bounded by the ways in which it can match, before it meets a text.

Python's engine goes back and tries the next way until one fits, and no limit of time reaches into it: ``(?:a+)+b``
takes minutes for 30 letters and years for 60.
"""

import re
from collections.abc import Iterable, Sequence
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

# Ways that a word may have in a text of so many letters: three repeats beside each other, or some choices more.
LETTERS, MOST_WAYS = 1000, 10**9
_ENDLESS = MOST_WAYS**2
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CHARACTERS = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_CATEGORIES = {
    "DIGIT": r"\d",
    "NOT_DIGIT": r"\D",
    "SPACE": r"\s",
    "NOT_SPACE": r"\S",
    "WORD": r"\w",
    "NOT_WORD": r"\W",
}


def may_take_for_ever(pattern: re.Pattern[str]) -> bool:
    """Tell whether a pattern may try more than ``MOST_WAYS`` on a text of ``LETTERS`` letters.

    This errs on the safe side: some patterns whose ways exclude each other count as having many.
    """
    return _of_sequence(parser.parse(pattern.pattern, pattern.flags), not pattern.flags & re.IGNORECASE) > MOST_WAYS


def _of_sequence(nodes: Iterable[Any], exact: bool) -> int:
    """Count the ways of parts one after another; ``exact``: letters stand for themselves, not for others in case."""
    ways = 1
    for kind, argument in nodes:
        ways = min(_ENDLESS, ways * _of_node(str(kind), argument, exact))
    return ways


def _of_node(kind: str, argument: Any, exact: bool) -> int:
    if kind == "BRANCH":
        return sum(_of_sequence(part, exact) for part in argument[1])
    if kind == "GROUPREF_EXISTS":
        return sum(_of_sequence(part, exact) for part in argument[1:] if part is not None)
    if kind == "SUBPATTERN":
        return _of_sequence(argument[3], exact and not argument[1])
    if kind in ("ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"):  # left for good once it has matched
        inner = _of_sequence(argument if kind == "ATOMIC_GROUP" else argument[1], exact)
        return 1 if inner <= MOST_WAYS else inner
    if kind in _REPEATS:
        least, most, body = argument
        return _of_repeat(kind, int(least), int(most), body, exact)
    return 1


def _of_repeat(kind: str, least: int, most: int, body: Sequence[Any], exact: bool) -> int:
    inner, least, most = _of_sequence(body, exact), min(least, LETTERS), min(most, LETTERS)
    if inner == 1:
        return 1 if kind == "POSSESSIVE_REPEAT" else most - least + 1
    if most > 1 and exact and _says_where_it_begins(body):
        return LETTERS
    return min(_ENDLESS, inner**most + (least == 0))


def _says_where_it_begins(body: Sequence[Any]) -> bool:
    """Tell whether a repeated part begins with certain characters, and has others behind it, one repeat at most.

    There is one way then to cut a text into these parts, as in ``(?:-[a-z]+)*``.
    """
    sets, n_repeats = [], 0
    for kind, argument in body:
        if str(kind) in _REPEATS and len(argument[2]) == 1:
            n_repeats += 1
            sets.append(argument[2][0])
        else:
            sets.append((kind, argument))
    if n_repeats > 1 or str(body[0][0]) in _REPEATS or any(str(kind) not in _CHARACTERS for kind, _ in sets):
        return False
    first = _certain(*sets[0])
    return bool(first) and not any(_has(str(kind), argument, c) for kind, argument in sets[1:] for c in first)


def _certain(kind: Any, argument: Any) -> list[int]:
    """List the characters of a set of single ones; none for any other set."""
    single = [(kind, argument)] if str(kind) == "LITERAL" else argument if str(kind) == "IN" else []
    return [each for _, each in single] if all(str(kind) == "LITERAL" for kind, _ in single) else []


def _has(kind: str, argument: Any, character: int) -> bool:
    if kind == "LITERAL":
        return bool(argument == character)
    if kind == "NOT_LITERAL":
        return bool(argument != character)
    if kind == "RANGE":
        return bool(argument[0] <= character <= argument[1])
    if kind == "CATEGORY":
        return re.fullmatch(_CATEGORIES[str(argument).removeprefix("CATEGORY_")], chr(character)) is not None
    if kind == "IN":
        negated = str(argument[0][0]) == "NEGATE"
        return negated != any(_has(str(inner), each, character) for inner, each in argument[negated:])
    return True
