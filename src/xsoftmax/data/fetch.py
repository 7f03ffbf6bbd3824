"""Fetch one address into a file: retries with growing pauses, resume by Range, a stall timeout, progress."""

import base64
import http.client
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import xsoftmax
from xsoftmax.internal.addresses import text_without_secrets, without_secrets
from xsoftmax.internal.errors import NO_ROOM
from xsoftmax.internal.progress import Progress

BLOCK = 2**16
_HEADERS = {"User-Agent": f"xsoftmax/{xsoftmax.__version__}", "Accept-Encoding": "identity"}
GONE = (400, 401, 403, 404, 405, 410, 451)


class FetchError(Exception):
    """An address did not give the file; the next one may."""


@dataclass(frozen=True)
class Patience:
    """How long to try one address.

    Attributes
    ----------
    attempts : int
        Attempts in a row that bring nothing new.
    pause : float
        Seconds before the second attempt; doubled each time, up to a minute.
    stall : float
        Seconds without a byte after which a connection counts as dead.
    """

    attempts: int = 5
    pause: float = 1.0
    stall: float = 30.0


def fetch(url: str, part: Path, patience: Patience, version: str | None = None) -> None:
    """Fetch ``url`` into ``part``; what an earlier attempt left there is continued.

    Parameters
    ----------
    url : str
        ``https:``, ``http:``, ``file:`` or ``package:<distribution>/<path as installed>``.
    version : str, optional
        The version that an installed distribution must have.

    Raises
    ------
    FetchError
        If it cannot be had.
    OSError
        If there is no room for it.
    """
    scheme = urlsplit(url).scheme
    if scheme == "package":
        _copy(_installed(url, version), part)
    elif scheme == "file":
        _copy(Path(unquote(urlsplit(url).path)), part)
    elif scheme in ("http", "https"):
        _fetch_http(url, part, patience)
    else:
        raise FetchError(f"{without_secrets(url)}: unknown kind of address; known: https, http, file, package")


def _copy(source: Path, part: Path) -> None:
    try:
        shutil.copyfile(source, part)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise FetchError(f"{source}: {error.strerror or error}") from error


def _installed(url: str, version: str | None) -> Path:
    name, _, inside = url.removeprefix("package:").partition("/")
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise FetchError(f"package {name} is not installed; pip install {name}=={version or '<version>'}") from error
    if version is not None and distribution.version != version:
        raise FetchError(
            f"package {name} is {distribution.version}, needed is {version}; pip install {name}=={version}"
        )
    return Path(str(distribution.locate_file(inside)))


def _fetch_http(url: str, part: Path, patience: Patience) -> None:
    """Try until the file is whole; attempts that bring new bytes start the count again."""
    failures = 0
    while True:
        before = _size(part)
        try:
            _attempt(url, part, patience.stall)
            return
        except urllib.error.HTTPError as error:
            reason = f"HTTP status {error.code} {error.reason}"
            if error.code in GONE:
                raise FetchError(_said(url, reason)) from error
            if error.code == 416:
                part.unlink(missing_ok=True)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise
            reason = _reason(error, patience.stall)
        failures = 1 if _size(part) > before else failures + 1
        if failures >= patience.attempts:
            raise FetchError(_said(url, f"{reason}, after {failures} attempts"))
        pause = min(60.0, patience.pause * 2 ** (failures - 1))
        print(_said(url, f"{reason}; again in {pause:g} s"), file=sys.stderr)
        time.sleep(pause)


def _said(url: str, reason: str) -> str:
    """Say what is wrong with an address, which the reason may quote, in parts too."""
    return f"{without_secrets(url)}: {text_without_secrets(reason, url)}"


def _reason(error: Exception, stall: float) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no byte for {stall:g} s"
    return str(cause) or type(cause).__name__


def _attempt(url: str, part: Path, stall: float) -> None:
    """Ask once, from where the part ends; a server that ignores Range starts it over."""
    start = _size(part)
    headers = _HEADERS
    if start:
        headers = headers | {"Range": f"bytes={start}-"}
    with urllib.request.build_opener(_Redirects).open(_request(url, headers), timeout=stall) as response:
        if response.status != 206:
            start = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            part.unlink()
            raise OSError("the server answered with another range than asked")
        length = response.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        _receive(response, part, start, total)
    if total is not None and _size(part) < total:
        raise OSError(f"connection ended after {_size(part)} of {total} bytes")


def _request(url: str, headers: Mapping[str, str]) -> urllib.request.Request:
    """Ask for an address; a user and password before its host go as HTTP's basic authorization, to no other host."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(parts._replace(netloc=host).geturl() if at else url, headers=dict(headers))
    if at:
        name, _, password = user.partition(":")
        pair = f"{unquote(name)}:{unquote(password)}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirections, which take authorization along to the same host alone."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Ask once more, at another address."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is None:
            return None
        asked = _request(newurl, following.headers)
        known = req.unredirected_hdrs.get("Authorization")
        if known and urlsplit(req.full_url)[:2] == urlsplit(asked.full_url)[:2]:
            asked.add_unredirected_header("Authorization", known)
        return asked


def _receive(response: http.client.HTTPResponse, part: Path, start: int, total: int | None) -> None:
    with (
        part.open("ab" if start else "wb") as file,
        Progress(part.stem, "MB", start / 1e6, total / 1e6 if total else None) as progress,
    ):
        size = start
        # read1 returns what has arrived, so that a stall loses nothing
        while block := response.read1(BLOCK):
            file.write(block)
            size += len(block)
            progress.move_to(size / 1e6)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
