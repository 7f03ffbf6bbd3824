"""No function stands in two places: syntax trees are compared, without names of types and of its own."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy

import pytest

from xsoftmax.internal.fingerprint import ROOT

# Of a tree: one with fewer is a line that says what it does no longer than a call would.
FEWEST_NODES = 18
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What may stand in several places, and why.
ALLOWED: dict[frozenset[str], str] = {}


class Anonymous(ast.NodeTransformer):
    """Replaces names by numbers, in their order, and drops docstrings, annotations and decorators."""

    def __init__(self, function: ast.AST) -> None:
        nodes = list(ast.walk(function))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        self._own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        self._own |= {node.name for node in nodes if isinstance(node, FUNCTIONS)}
        self._own |= {node.id for node in names if not isinstance(node.ctx, ast.Load) or is_type(node.id)}
        self._numbers: dict[str, str] = {}

    def _name(self, name: str) -> str:
        return self._numbers.setdefault(name, str(len(self._numbers))) if name in self._own else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._name(node.id), ast.Load())

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._name(node.arg))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return self.generic_visit(ast.Assign([node.target], node.value) if node.value else ast.Pass())

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        body = node.body[ast.get_docstring(node) is not None :] or [ast.Pass()]
        return self.generic_visit(ast.FunctionDef(self._name(node.name), node.args, body, decorator_list=[]))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815


def is_type(name: str) -> bool:
    return name.lstrip("_")[:1].isupper() and not name.isupper()


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods, those within others too, by qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            if isinstance(node, FUNCTIONS):
                yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def duplicates(sources: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """Places of each function that has several, as ``file:name``."""
    places = defaultdict(set)
    for where, source in sources:
        for name, function in functions(ast.parse(source)):
            shape = Anonymous(function).visit(deepcopy(function))
            if sum(1 for _ in ast.walk(shape)) >= FEWEST_NODES:
                places[ast.dump(shape)].add(f"{where}:{name}")
    return {frozenset(each) for each in places.values() if len(each) > 1}


def test_no_function_stands_in_two_places():
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) > 300
    found = duplicates((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in files)
    assert found - ALLOWED.keys() == set()
    assert ALLOWED.keys() - found == set(), "no duplicates any more"


ONE = """
def first(xs: list, n: int) -> float:
    '''Sum some.'''
    total = 0.0
    for x in xs[:n]:
        total += x * Kind(x)
    return total
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("Kind", "Other", True),
        ("total", "t", True),
        ("xs", "values", True),
        ("total =", "total: float =", True),
        ("def first", "@decorated\ndef second", True),
        ("+=", "-=", False),
        ("Kind", "other", False),
        ("xs[:n]", "n[:xs]", False),
        ("0.0", "1.0", False),
    ],
)
def test_duplicates_are_found(before, after, same):
    assert len(duplicates([("a.py", ONE), ("b.py", ONE.replace(before, after))])) == same
