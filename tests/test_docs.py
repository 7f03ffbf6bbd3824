"""The documentation's pages: one per method, generated parts as the code has them, links that lead somewhere."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from xsoftmax.commands import verbs
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.marked_blocks import renewed
from xsoftmax.lab.pages.catalogue import catalogue
from xsoftmax.lab.pages.methods import OUTCOME, PAGES, writers
from xsoftmax.methods import read_methods
from xsoftmax.training.folders import flatten

ROOT = Path(__file__).parents[1]
METHODS = read_methods(ROOT / "config" / "methods.yaml")
MARKDOWN = [path.relative_to(ROOT) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]
SECTIONS = ["Objective", "Step", "When to use it, and when it fails", "Defaults", "A run"]


@pytest.fixture(scope="module")
def entries():
    return catalogue(METHODS)


def test_every_method_has_a_page_and_every_page_a_method():
    assert {path.stem for path in (ROOT / PAGES).glob("*.md")} == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_page_says_what_a_page_should(name):
    text = (ROOT / PAGES / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == SECTIONS
    for block in ("method", "settings", "outcome"):
        assert text.count(f"<!-- {block} {name} -->") == 1
    assert f"](figures/{name}.svg)" in text
    assert all(f"**{word}.**" in text for word in ("Cost", "Bias"))
    assert METHODS[name]["source"] in text


@pytest.mark.parametrize("page", MARKDOWN, ids=str)
def test_generated_parts_are_current(page, entries, monkeypatch):
    """If this fails, run `make docs`, or only its last line."""
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    assert renewed(text, writers(entries, page), str(page)) == text


def test_the_documentation_has_the_table_of_methods_once():
    tables = {page: text for page in MARKDOWN if "<!-- methods -->" in (text := (ROOT / page).read_text())}
    assert list(tables) == [Path("docs/README.md")]
    assert all(f"[{name}](methods/{name}.md)" in tables[Path("docs/README.md")] for name in METHODS)


def test_the_readme_leads_to_the_documentation():
    text = (ROOT / "README.md").read_text()
    assert "(docs/README.md#methods)" in text
    assert len(re.findall(r"^!\[", text, re.MULTILINE)) == 1


def test_the_quick_start_of_the_readme_trains_a_model():
    names: dict[str, Any] = {}
    exec(re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1], names)
    assert np.mean(names["best"][:, 0] == names["y"][1400:]) > 0.88


@pytest.mark.parametrize("page", MARKDOWN, ids=str)
def test_commands_have_real_verbs(page):
    assert set(re.findall(r"python -m xsoftmax ([a-z]\w*)", (ROOT / page).read_text())) <= set(verbs())


@pytest.mark.parametrize("page", MARKDOWN, ids=str)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if not target.startswith(("http:", "https:", "#")):
            assert ((ROOT / page).parent / target.split("#")[0]).exists(), target


def test_figures_are_those_of_the_methods_and_small():
    figures = list((ROOT / OUTCOME).parent.glob("*.svg"))
    assert {path.stem for path in figures} == set(METHODS)
    assert all(path.stat().st_size < 40_000 for path in figures)
    with (ROOT / OUTCOME).open() as file:
        assert {row["method"] for row in csv.DictReader(file)} == set(METHODS)


def test_a_page_tells_what_its_run_changed():
    experiment = yaml.safe_load((ROOT / "config" / "experiments" / "methods.yaml").read_text())
    for name in METHODS:
        changed = flatten(experiment["set"].get(name, {}))
        run = ", ".join(f"{key} {value}" for key, value in changed.items()) or "these settings"
        assert f"On bibtex-pca, with {run}, " in (ROOT / PAGES / f"{name}.md").read_text(), name


def test_a_page_of_no_method_is_an_error(entries):
    with pytest.raises(InputError, match="unknown method 'hinge'; known: softmax, "):
        renewed("<!-- settings hinge -->\n<!-- /settings -->", writers(entries, Path("docs/methods/hinge.md")))
    with pytest.raises(InputError, match=r"none.csv: no such file; `python -m xsoftmax figures` writes it"):
        renewed("<!-- outcome sgd -->\n<!-- /outcome -->", writers(entries, Path("x.md"), Path("none.csv")))


def test_the_experiment_of_the_figures_has_every_method():
    text = (ROOT / "config" / "experiments" / "methods.yaml").read_text()
    assert re.findall(r"^  - (\S+)$", text, re.MULTILINE) == list(METHODS)
