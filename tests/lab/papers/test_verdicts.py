"""Verdicts of papers' pages come from the rules, and the README among them says which these are."""

import ast
from importlib import resources
from pathlib import Path

import pytest

from xsoftmax.lab.marked_blocks import renewed
from xsoftmax.lab.reproduction import PAPERS
from xsoftmax.lab.reproduction.how_judged import how_claims_are_judged
from xsoftmax.lab.reproduction.rules import NUMBERS, ORDERS, Verdict

README = Path(__file__).parents[3] / "docs/papers/README.md"
MODULES = sorted(path.name for path in resources.files(PAPERS).iterdir() if path.name.endswith(".py"))


def own_verdicts(source):
    """Names by which a file could give a verdict without a rule."""
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    names |= {
        name.asname or name.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    calls = {node.func.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Name)}  # fmt: skip
    return names & {"Verdict"} | {f"{name}()" for name in calls & {"Finding"}}


@pytest.mark.parametrize("module", MODULES)
def test_a_page_has_no_verdict_of_its_own(module):
    source = (resources.files(PAPERS) / module).read_text(encoding="utf-8")
    assert own_verdicts(source) == set()
    assert "(ours)" not in source


def test_a_verdict_of_ones_own_is_found():
    assert own_verdicts("from x import Verdict\n") == {"Verdict"}
    assert own_verdicts("page.claim('a', 'b', Finding(Verdict.NOT, '', '', ''))") == {"Verdict", "Finding()"}
    assert own_verdicts("def judge(x) -> Finding:\n    return judge_orders(x)") == set()


def test_the_readme_has_the_rules_as_the_code_has_them():
    text = README.read_text(encoding="utf-8")
    assert renewed(text, {"rules": lambda _: how_claims_are_judged()}) == text
    assert all(words in text for words in (ORDERS, NUMBERS, *Verdict))
