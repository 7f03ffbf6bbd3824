"""No module of the package needs, on whatever way, one that needs it: imports within functions count, too."""

import ast
from pathlib import Path

import pytest

from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.internal.registry import stem

PACKAGE = ROOT.name


def modules() -> dict[str, Path]:
    """Files of the package by dotted name; a folder is its ``__init__``."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """Modules that a file imports, wherever in it and whether as a statement or by name.

    ``from folder import module`` imports the module: the folder's ``__init__``, which Python reads first, does not
    count, else it could not name one of its own modules. Nor do members that a registry finds whatever they are.
    """
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inner & known
            if inner - known:
                names.add(str(node.module))
        elif isinstance(node, ast.Call):
            names.add(named_by(node))
    return names & known


def named_by(call: ast.Call) -> str:
    """Module that ``import_module("a.b")`` and ``registry.load("a", "b")`` import; empty for others."""
    given = [argument.value if isinstance(argument, ast.Constant) else "" for argument in call.args]
    match ast.unparse(call.func).rsplit(".")[-1], given:
        case "import_module", [str(name)]:
            return name
        case "load", [str(folder), str(name)]:
            return f"{folder}.{stem(name)}"
    return ""


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of more than one node, or of one that names itself, that reach each other."""
    reached = {node: reachable(graph, node) for node in graph}
    groups = {frozenset(other for other in reached[node] if node in reached[other]) for node in graph}
    return sorted(sorted(group) for group in groups if group)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Nodes at the end of one step or more."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead.extend(new)
    return found


def test_no_modules_need_each_other():
    files = modules()
    graph = {name: imported(ast.parse(path.read_text(encoding="utf-8")), set(files)) for name, path in files.items()}
    assert len(graph) > 300
    assert len(graph[f"{PACKAGE}.model"]) > 5
    assert circles(graph) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import p.a", {"p.a"}),
        ("from p import a, x", {"p", "p.a"}),
        ("from p.a import y", {"p.a"}),
        ("def f():\n    from p.b import z", {"p.b"}),
        ("if TYPE_CHECKING:\n    from p import b", {"p.b"}),
        ("import q", set()),
        ("import_module('p.a')", {"p.a"}),
        ("registry.load('p', 'b')", {"p.b"}),
        ("registry.load('p', name)", set()),
    ],
)
def test_imports_are_found(text, names):
    assert imported(ast.parse(text), {"p", "p.a", "p.b"}) == names


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]
