"""Renew the tables of docs/reliability.md: `python tests/reliability.py`.

Each fault is told by the test that tries it, in its mark ``fault``; the load's numbers are those that tests/load.py
measured.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xsoftmax.marked_blocks import renew, renewed
from xsoftmax.report.suites import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reliability.md"
LOAD = ROOT / "docs/reliability/load.json"


class Fault(NamedTuple):
    """What a test tries, what comes of it, and where."""

    what: str
    happens: str
    user: str
    lost: str
    test: str


def faults() -> list[Fault]:
    """Read the marks of all tests, in the order of files and lines."""
    return [fault for path in sorted((ROOT / "tests").rglob("test_*.py")) for fault in _faults_of(path)]


def _faults_of(path: Path) -> Iterator[Fault]:
    text = path.read_text()
    if "mark.fault(" not in text:
        return
    module = ast.parse(text)
    names = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_text(node.value)
    }
    for node in module.body:
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "fault":
                told = {keyword.arg: _text(keyword.value, names) for keyword in mark.keywords}
                where = path.relative_to(ROOT)
                test = f"[{node.name.removeprefix('test_').replace('_', ' ')}](../{where})"
                yield Fault(
                    _text(mark.args[0], names), told["happens"], told["user"], told.get("lost", "nothing"), test
                )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(node: ast.expr, names: dict[str, str]) -> str:
    """Text of a constant, or of an f-string that names constants."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, names) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return names[node.value.id]  # type: ignore[attr-defined]
    return str(ast.literal_eval(node))


def table_of_faults(_: str = "") -> str:
    """All faults, as Markdown."""
    rows = [[fault.what, fault.happens, fault.user, fault.lost, fault.test] for fault in faults()]
    return table(["fault", "what happens", "what the user sees", "lost", "test"], rows, 0)


def table_of_load(_: str = "") -> str:
    """What tests/load.py measured, as Markdown."""
    if not LOAD.exists():
        return "Not measured yet: `python tests/load.py`."
    found = json.loads(LOAD.read_text())
    rows = [[row["what"], row["asked"], row["measured"]] for row in found["rows"]]
    where = f"{found['fits']:,} fits on {found['machine']}; {found['date']}, commit {found['commit']}."
    return f"{table(['what', 'asked', 'measured'], rows, 1)}\n\n{where}"


WRITERS = {"faults": table_of_faults, "load": table_of_load}


def is_current() -> bool:
    """Whether the page tells what tests and measurements tell."""
    text = PAGE.read_text()
    return renewed(text, WRITERS, str(PAGE)) == text


if __name__ == "__main__":
    print("renewed" if renew(PAGE, WRITERS) else "as it was", PAGE)
