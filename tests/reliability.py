"""Renew the tables of docs/reliability.md: `python tests/reliability.py`.

Each fault is told by the test that tries it, in its mark ``fault``; the load's numbers are those that tests/load.py
measured.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xsoftmax.lab.marked_blocks import renew, renewed
from xsoftmax.lab.report.suites import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reliability.md"
LOAD = ROOT / "docs/reliability/load.json"
TRIALS = ROOT / "docs/reliability/trials.json"


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


def figures(_: str = "") -> str:
    """Count what was tried, by tests and by people, what survived, and what was lost."""
    told = faults()
    losing = [fault for fault in told if fault.lost != "nothing"]
    rounds = json.loads(TRIALS.read_text())
    rows = [["faults that tests try, below", str(len(told)), str(len(told) - len(losing)), str(len(losing))]]
    for each in rounds:
        sums = [str(sum(row[key] for row in each["rows"])) for key in ("tried", "survived", "lost")]
        rows.append([f"{each['what']} ({each['date']}, commit {each['commit']})", *sums])
    return table(["faults", "tried", "survived", "lost"], rows, 3)


def table_of_trials(_: str = "") -> str:
    """What people tried, by area, as Markdown."""
    rows = [
        [row["area"], *(str(row[key]) for key in ("tried", "survived", "lost"))]
        for each in json.loads(TRIALS.read_text())
        for row in each["rows"]
    ]
    return table(["area", "tried", "survived", "lost"], rows, 3)


def table_of_load(_: str = "") -> str:
    """What tests/load.py measured, as Markdown."""
    if not LOAD.exists():
        return "Not measured yet: `python tests/load.py`."
    found = json.loads(LOAD.read_text())
    rows = [[row["what"], row["asked"], row["measured"]] for row in found["rows"]]
    where = f"{found['fits']:,} fits on {found['machine']}; {found['date']}, commit {found['commit']}."
    return f"{table(['what', 'asked', 'measured'], rows, 1)}\n\n{where}"


WRITERS = {
    "figures": figures,
    "faults": table_of_faults,
    "trials": table_of_trials,
    "load": table_of_load,
}


def is_current() -> bool:
    """Whether the page tells what tests and measurements tell."""
    text = PAGE.read_text()
    return renewed(text, WRITERS, str(PAGE)) == text


if __name__ == "__main__":
    print("renewed" if renew(PAGE, WRITERS) else "as it was", PAGE)
