"""What a benchmark suite measured, as one JSON file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_json

SCHEMA_VERSION = 1


def write(path: Path, suite: str, machine: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Write one suite's results with the machine that they come from."""
    content = {"kind": "benchmark", "schema_version": SCHEMA_VERSION, "suite": suite, "machine": machine, **found}
    write_json(path, content)


def read(path: Path, suite: str | None = None) -> dict[str, Any]:
    """Read a suite's results, of this suite if one is named.

    Raises
    ------
    InputError
        If the file is missing or holds something else.
    """
    writes = f"`python -m xsoftmax benchmark {suite or 'SUITE'} --json FILE` writes it"
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {writes}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != "benchmark":
        raise InputError(f"{path} holds no benchmark; {writes}")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: version {content.get('schema_version')}, this program reads {SCHEMA_VERSION}; run it again"
        )
    if suite not in (None, content.get("suite")):
        raise InputError(f"{path} is not of suite {suite}; {writes}")
    return content
