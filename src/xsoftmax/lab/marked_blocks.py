"""Generated parts of Markdown files: what stands between ``<!-- name -->`` and ``<!-- /name -->``."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text

_BLOCK = re.compile(r"<!-- (?P<name>[a-z]+)(?: (?P<argument>\S+))? -->\n.*?<!-- /(?P=name) -->", re.DOTALL)
Writers = Mapping[str, Callable[[str], str]]


def renewed(text: str, writers: Writers, where: str = "text") -> str:
    """Replace the blocks that have a writer.

    Parameters
    ----------
    text : str
    writers : mapping of str to callable
        By name of the block; each takes its argument (``<!-- name argument -->``, or "") and returns Markdown.
    where : str
        Named in errors.

    Raises
    ------
    InputError
        If a block is opened and not closed.
    """

    def replace(match: re.Match[str]) -> str:
        writer = writers.get(match["name"])
        if writer is None:
            return match[0]
        opening = " ".join(filter(None, [match["name"], match["argument"]]))
        return f"<!-- {opening} -->\n{writer(match['argument'] or '').rstrip()}\n<!-- /{match['name']} -->"

    closed = [match["name"] for match in _BLOCK.finditer(text)]
    for name in writers:
        opened = len(re.findall(rf"<!-- {name}(?: \S+)? -->", text))
        if opened != closed.count(name):
            raise InputError(f"{where}: a block <!-- {name} --> is not closed; end it with <!-- /{name} -->")
    return _BLOCK.sub(replace, text)


def renew(path: Path, writers: Writers) -> bool:
    """Renew the blocks of a file; tell whether it changed.

    Raises
    ------
    InputError
        If the file is missing or a block is not closed.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; --update names Markdown files with marked blocks")
    before = path.read_text(encoding="utf-8")
    after = renewed(before, writers, str(path))
    if after != before:
        write_text(path, after)
    return after != before
