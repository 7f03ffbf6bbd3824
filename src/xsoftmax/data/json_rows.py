"""Rows of cells in JSON lines, an object per line, and what is wrong in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xsoftmax.data.parquet_rows import text_of_cell
from xsoftmax.data.text_lines import text_lines
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError

SUFFIXES = (".jsonl", ".ndjson")  # `.json` is what the Extreme Classification Repository calls lines of its own keys


class JsonRows:
    """A file that is read from the start each time; the keys of its first object name the columns."""

    place = "line"  # where a row is, in messages
    named = True
    delimiter = ","  # in messages

    def __init__(self, path: Path) -> None:
        self.path = path

    def column_names(self) -> list[str]:
        """Name the columns."""
        _, first = next(self._objects(), (0, {}))
        return list(first)

    def cells(self, positions: Sequence[int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Walk through some columns, each row with its line; other keys of an object are passed over."""
        names = self.column_names()
        wanted = [names[i] for i in positions]
        return ((line, [self._cell(line, row, name) for name in wanted]) for line, row in self._objects())

    def _cell(self, line: int, row: dict[str, Any], name: str) -> str:
        """Write a value as a CSV file would have it."""
        if name not in row:
            raise InputError(
                f"{self.path}, line {line}: no {name!r:.40}, which the first row has; write null if it is missing"
            )
        if isinstance(row[name], list | dict):
            found = str(row[name])[:40]
            raise InputError(f"{self.path}, line {line}: {name!r:.40} has several values: {found!r}; give it one")
        return text_of_cell(row[name])

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Walk through the objects, each with its line; blank lines are passed over."""
        for line, text in enumerate(text_lines(self.path), 1):
            if not text.strip():
                continue
            row = parse_json(text, f"{self.path}, line {line}")
            if not isinstance(row, dict):
                raise InputError(
                    f"{self.path}, line {line}: expected an object, such as {{...}}, found {text[:40]!r}"
                )
            yield line, row
