"""Names of text encodings, and words as regular expressions, checked before a file is read with them."""

import re

from xsoftmax.data.backtracking import may_take_for_ever
from xsoftmax.internal.errors import InputError


def text_encoding(name: str) -> str:
    """Check the name of an encoding; UTF-8 is read with or without a byte order mark, as Excel writes one.

    Raises
    ------
    InputError
        If there is none of this name, or it is none of text.
    """
    try:
        b"".decode(name)
        same = b"\xc3\xbc".decode(name) == "\u00fc"
    except (LookupError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            return name
        raise InputError(f"options.encoding: {name!r} is no text encoding; try utf-8, latin-1 or cp1252") from None
    return "utf-8-sig" if same and name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def word_pattern(token: str, where: str, groups: int = 0) -> re.Pattern[str]:
    """Compile the regular expression of a word, with so many groups at most.

    Raises
    ------
    InputError
        If it is none, has more groups, or may search a text for ever.
    """
    try:
        pattern = re.compile(token)
        for_ever = may_take_for_ever(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"{where}: not a regular expression ({error}): {token[:60]!r}") from None
    if pattern.groups > groups:
        raise InputError(f"{where}: {token[:60]!r} has groups; write (?:...) for (...)")
    if for_ever:
        raise InputError(
            f"{where}: {token[:60]!r} can match in so many ways that a search may never end; write a+ for (?:a+)+, "
            "and a++ for a+ within another repeat"
        )
    return pattern
