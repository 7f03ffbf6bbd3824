"""ICD-10-CM, the tabular list in XML: descriptions and inclusion terms of every leaf code are the texts.

A leaf without children takes a seventh character where its branch defines one (``sevenChrDef``) and the list
of confirmed codes has the result; the extended code's description carries the extension's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from xsoftmax.data.rows import Rows, Texts
from xsoftmax.data.xml_file import xml_root
from xsoftmax.internal.errors import InputError


class Leaf(NamedTuple):
    """A leaf of the tabular list."""

    code: str
    parent: str
    texts: list[str]


def read(*, tabular: Path, codes: Path, target: str = "category", as_listed: bool = True) -> Rows:
    """Read one row per text.

    Parameters
    ----------
    tabular : Path
        The tabular list, XML.
    codes : Path
        The confirmed codes, one per line.
    target : str
        ``category``: the class is the first three characters; ``subcategory``: the parent code.
    as_listed : bool
        Follow the listing of simple-icd-10-cm, where a section heading without codes counts as a leaf
        (12, such as ``M00-M25``) and a leaf named like its section comes twice (6, such as ``B20``);
        otherwise each leaf code comes once.
    """
    if target not in ("category", "subcategory"):
        raise InputError(f"icd10: unknown target {target!r}; known: category, subcategory")
    confirmed = {line.split(" ")[0].replace(".", "") for line in _lines(codes)}
    texts, names = [], []
    try:
        for leaf in _leaves(xml_root(tabular, "well-formed XML", "download it again"), confirmed, as_listed):
            texts.extend(leaf.texts)
            names.extend([leaf.code[:3] if target == "category" else leaf.parent] * len(leaf.texts))
    except RecursionError:
        raise InputError(f"{tabular}: nested too deeply to be the tabular list; download it again") from None
    if not texts:
        raise InputError(f"{tabular}: no code with a description; is this the ICD-10-CM tabular list?")
    return Rows.with_names(Texts.of(texts), names)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not utf-8 ({error.reason}); download it again") from error


def _leaves(root: ElementTree.Element, confirmed: set[str], as_listed: bool) -> Iterator[Leaf]:
    for chapter in root.iter("chapter"):
        yield from _below(chapter, "", {}, confirmed, as_listed)


def _below(
    node: ElementTree.Element, parent: str, extensions: dict[str, str], confirmed: set[str], as_listed: bool
) -> Iterator[Leaf]:
    """Walk a branch in document order; ``extensions`` are the seventh characters that hold in it."""
    code = node.get("id") or (node.findtext("name") or "")
    extensions = _extensions(node) or extensions
    children = [child for child in node if child.tag in ("section", "diag")]
    for child in children:
        leaves = list(_below(child, code, extensions, confirmed, as_listed))
        twice = as_listed and len(leaves) == 1 and leaves[0].code == code
        yield from leaves * (2 if twice else 1)
    if children or (node.tag == "section" and not as_listed):
        return
    description = node.findtext("desc") or ""
    extended = list(_extended(code, description, extensions, confirmed))
    if extended:
        yield from extended
        return
    terms = [note.text for group in node.findall("inclusionTerm") for note in group if note.text]
    yield Leaf(code, parent, [description, *terms])


def _extensions(node: ElementTree.Element) -> dict[str, str]:
    """Read the seventh characters that a node defines and what they mean."""
    found: dict[str, str] = {}
    last = None
    for definition in node.findall("sevenChrDef"):
        for child in definition:
            if child.tag == "extension":
                last = child.get("char", "")
                found[last] = child.text or ""
            elif child.tag == "note" and last is not None and child.text:
                found[last] += "/" + child.text
    return found


def _extended(code: str, description: str, extensions: dict[str, str], confirmed: set[str]) -> Iterator[Leaf]:
    stem = (code if len(code) > 3 else code + ".").ljust(7, "X")
    for character, meaning in extensions.items():
        full = stem + character
        if full.replace(".", "", 1) in confirmed:
            yield Leaf(full, code, [f"{description}, {meaning}"])
