"""What MkDocs does with a page of docs/ before it turns it into HTML, so that the same file reads well on GitHub.

Links to files outside docs/ lead to the repository, whose address is ``Repository`` under ``[project.urls]`` in
pyproject.toml; without one they become the path of the file. ``<!-- ::: name -->`` becomes the docstring of the name.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages whose file lies outside docs/, by their place in the site.
FROM_ROOT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# What of docs/ the site has; links to measurements and code lead to the repository.
SHOWN = {".md", ".svg", ".png"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^)\s]+)\)")
DOCSTRING = re.compile(r"^<!-- (::: \S+) -->$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """List the files that an entry of the navigation names by a pattern, such as ``methods/*.md``."""
    config.nav = [{title: _listed(where) for title, where in entry.items()} for entry in config.nav]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/."""
    for place, source in FROM_ROOT.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite links, and ask for docstrings."""
    place = page.file.src_uri
    source = ROOT / FROM_ROOT[place] if place in FROM_ROOT else DOCS / place
    return DOCSTRING.sub(r"\1", rewritten(markdown, source, DOCS / place, repository()))


def repository() -> str:
    """Give the address of the repository; empty if pyproject.toml has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def rewritten(markdown: str, source: Path, page: Path, address: str) -> str:
    """Rewrite the links of a page so that they lead somewhere from the site; code between fences stays as it is.

    Parameters
    ----------
    markdown : str
    source, page : Path
        The file, and where it would lie in docs/.
    address : str
        Of the repository; empty if it has none.
    """

    def replaced(link: re.Match[str]) -> str:
        return _link(link, source, page, address)

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(replaced, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replaced, markdown[end:])])


def _link(link: re.Match[str], source: Path, page: Path, address: str) -> str:
    """Give a link as the site has it."""
    text, target = link.groups()
    path, hash_mark, anchor = target.partition("#")
    there = Path(os.path.normpath(source.parent / path))
    if not path or ":" in path or not there.exists():
        return link[0]  # of another host, on this page, or wrong, which MkDocs says
    moved = {ROOT / name: DOCS / place for place, name in FROM_ROOT.items()}
    there = moved.get(there, there)
    if there.is_relative_to(DOCS) and there.suffix in SHOWN:
        return f"[{text}]({os.path.relpath(there, page.parent)}{hash_mark}{anchor})"
    inside = there.relative_to(ROOT).as_posix()
    if address:
        return f"[{text}]({address}/blob/HEAD/{inside}{hash_mark}{anchor})"
    return f"`{inside}`" if inside.endswith(text.strip("`")) else f"{text} (`{inside}`)"


def _listed(where: Any) -> Any:
    if not isinstance(where, str) or "*" not in where:
        return where
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob(where))
