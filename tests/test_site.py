"""The site of the documentation: it builds without a warning, loads nothing from other hosts, and its links hold."""

import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from xsoftmax.internal import registry

ROOT = Path(__file__).parents[1]
# What makes a browser fetch something.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
PUBLIC = re.findall(r"<!-- ::: (\S+) -->", (ROOT / "docs" / "api.md").read_text())
SVG = "{http://www.w3.org/2000/svg}"


class Fetched(HTMLParser):
    """Collect what a page makes a browser fetch."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if found.get("rel") != "canonical" and (address := found.get(FETCHED.get(tag, ""))):
            self.addresses.append(address)


@pytest.fixture(scope="module")
def hook():
    pytest.importorskip("mkdocs", reason="pip install 'xsoftmax[docs]'")
    spec = importlib.util.spec_from_file_location("mkdocs_hook", ROOT / "docs" / "mkdocs_hook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(hook, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    expected = {path.with_name("index.html") if path.name == "README.html" else path for path in pages}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert built == expected | {Path(name) for name in ("404.html", "changelog.html", "contributing.html")}


def test_nothing_is_loaded_from_other_hosts(site):
    for page in site.rglob("*.html"):
        fetched = Fetched()
        fetched.feed(page.read_text(encoding="utf-8"))
        assert not [address for address in fetched.addresses if "//" in address], page
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//|@import", style.read_text(encoding="utf-8")), style


def test_the_api_has_every_docstring_that_the_page_asks_for(site):
    text = (site / "api.html").read_text(encoding="utf-8")
    assert len(PUBLIC) > 20
    assert all(f'id="{name}"' in text for name in PUBLIC)


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith(("Error", ".RunningFit"))])
def test_a_public_docstring_tells_of_every_parameter(name):
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    told = inspect.getdoc(found)
    assert [each for each in inspect.signature(found).parameters if not re.search(rf"\b{each}\b", told)] == []


def test_links_that_leave_docs_lead_to_the_repository_or_name_the_file(hook):
    page, own = ROOT / "docs" / "data.md", "[one-vs-rest](methods/one-vs-rest.md#step)"
    out = "[the code](../src/xsoftmax/model.py), [`config/methods.yaml`](../config/methods.yaml)"
    there = hook.rewritten(f"{own} {out}", page, page, "https://example.org/x")
    base = "https://example.org/x/blob/HEAD"
    assert there == (
        f"{own} [the code]({base}/src/xsoftmax/model.py), [`config/methods.yaml`]({base}/config/methods.yaml)"
    )
    without = hook.rewritten(f"{own} {out}", page, page, "")
    assert without == f"{own} the code (`src/xsoftmax/model.py`), `config/methods.yaml`"
    assert hook.rewritten("[to do](../CONTRIBUTING.md)", page, page, "") == "[to do](contributing.md)"


def test_links_of_pages_from_the_root_are_as_in_docs(hook):
    source, page = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "contributing.md"
    text = "[a](docs/data.md) [b](https://example.org) [c](#here)\n```\n[d](docs/data.md)\n```\n[e](docs/gone.md)"
    assert hook.rewritten(text, source, page, "") == text.replace("[a](docs/", "[a](")


def test_the_picture_of_the_concepts_names_members_that_exist():
    groups = ElementTree.parse(ROOT / "docs" / "figures" / "concepts.svg").iter(f"{SVG}g")
    named = {}
    for group in groups:
        texts = [text for text in group.iter(f"{SVG}text") if text.get("class") == "member"]
        named[group.get("data-registry")] = {text.text for text in texts} - {"…"}
    assert set(named) == {
        *("data.readers", "solvers", "evaluation.metrics", "objectives", "proposals", "optimizers", "starts")
    }
    for folder, members in named.items():
        assert members
        assert members <= set(registry.names(f"xsoftmax.{folder}")), folder
