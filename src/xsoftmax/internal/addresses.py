"""Addresses as they may be shown: without user names, passwords, tokens and queries. Imports nothing heavy."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

HIDDEN = "…"
SHORT = 4  # with fewer letters than that, what looks like a secret in a text may be part of a word
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:(?://)?")
_OF_A_FILE = re.compile(r"(file|sqlite[\w+]*):///")
_MARK = re.compile(r"[?#]|;(?=.)", re.DOTALL)  # what follows may be secret; a text may have a `;` behind an address
_MARK_OF_A_FILE = re.compile("[?#]")
_IN_A_TEXT = re.compile(r"[A-Za-z][\w+.-]*://\S+")


def without_secrets(address: str) -> str:
    """Hide in an address all up to its last ``@``, its query, its fragment, and what follows a ``;``.

    Where an ``@`` follows a ``?``, ``#`` or ``;``, it cannot be told which is part of a password: all but the
    scheme is hidden. What is before an ``@`` in the path of a file stays, as nobody logs in there.
    """
    parts = _parts(address)
    user = f"{HIDDEN}@" if parts.user else ""
    return f"{parts.scheme}{user}{parts.place}{HIDDEN if parts.mark is None else parts.mark and parts.mark + HIDDEN}"


def text_without_secrets(text: str, *addresses: str) -> str:
    """Hide what may be secret in a text that quotes addresses: these, in parts or whole, and any with ``://``."""
    for address in addresses:
        text = text.replace(address, without_secrets(address))
    text = _IN_A_TEXT.sub(lambda found: without_secrets(found[0]), text)
    secrets = sorted({secret for address in addresses for secret in _secrets(address)}, key=len, reverse=True)
    found = "|".join(map(_wherever_it_stands, secrets))
    return re.sub(found, HIDDEN, text, flags=re.IGNORECASE) if found else text


def all_without_secrets(value: Any) -> Any:
    """Hide what may be secret in all addresses with ``://`` among the texts of nested mappings and lists."""
    if isinstance(value, str):
        return without_secrets(value) if _IN_A_TEXT.match(value) else text_without_secrets(value)
    if isinstance(value, Mapping):
        return {key: all_without_secrets(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [all_without_secrets(each) for each in value]
    return value


def stamped_without_secrets(content: dict[str, Any]) -> dict[str, Any]:
    """Hide what may be secret in all addresses, with a stamp below ``hidden`` that changes whenever that does.

    The stamp takes so long to compute that nobody finds a password by trying.
    """
    shown = all_without_secrets(content)
    text = json.dumps(content, sort_keys=True, default=str)
    return shown if json.dumps(shown, sort_keys=True, default=str) == text else shown | {"hidden": _stamp(text)}


@cache
def _stamp(text: str) -> str:
    return hashlib.scrypt(text.encode(), salt=b"xsoftmax", n=2**14, r=8, p=1, dklen=8).hex()


class _Parts(NamedTuple):
    """An address; ``hidden`` is what follows ``mark``, which is None where all of it is hidden."""

    scheme: str
    user: str
    place: str
    mark: str | None
    hidden: str


def _parts(address: str) -> _Parts:
    found = _SCHEME.match(address)
    scheme = found[0] if found else ""
    rest = address[len(scheme) :]
    found = _MARK.search(rest) if _OF_A_FILE.match(address) is None else _MARK_OF_A_FILE.search(rest)
    mark = found[0] if found else ""
    begin, _, hidden = rest.partition(mark) if mark else (rest, "", "")
    if _OF_A_FILE.match(address):
        return _Parts(scheme, "", begin, mark, hidden)
    if "@" in hidden:
        return _Parts(scheme, "", "", None, rest)
    user, _, place = begin.rpartition("@")
    return _Parts(scheme, user, place, mark, hidden)


def _secrets(address: str) -> Iterator[str]:
    """List what is hidden in an address, and its parts, each as it may stand in a text by itself."""
    parts = _parts(address)
    values = [part.partition("=")[2] or part for part in re.split("[&;?#]", parts.hidden)]
    for secret in (parts.user, *values):
        for form in (secret, unquote(secret)):
            yield from (part for part in (form, *re.split("[:/@?#]", form)) if part)
    if parts.hidden:
        yield parts.hidden


def _wherever_it_stands(secret: str) -> str:
    """Give the pattern of a secret: what is short only counts where it is a word."""
    return re.escape(secret) if len(secret) >= SHORT else rf"(?<!\w){re.escape(secret)}(?!\w)"
