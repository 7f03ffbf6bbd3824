"""Lines of a text, compressed or not."""

from collections.abc import Iterator
from pathlib import Path

from xsoftmax.data.sparse_text import line_blocks
from xsoftmax.internal.errors import InputError


def text_lines(path: Path) -> Iterator[str]:
    """Walk through the lines of a file without their ends.

    Raises
    ------
    InputError
        If it is empty, damaged, or not UTF-8; with the line.
    """
    for block in line_blocks(path):
        try:
            lines = block.text.decode("utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            line = block.first_line + block.text.count(b"\n", 0, error.start)
            raise InputError(f"{path}, line {line}: not utf-8 ({error.reason}); save it as utf-8") from error
        yield from (line.removesuffix("\r") for line in lines)
