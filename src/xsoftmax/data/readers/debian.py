"""A Debian package index with its translation: the descriptions of binary packages are the texts.

``Packages`` has the short description of each binary package, ``Translation-en`` the whole one; package and
``Description-md5`` together say which belongs to which. Both are paragraphs of fields (deb822): a field
``Name: value``, lines of its continuation indented, a blank line between paragraphs. A text is the short
description, followed by the long one; the name of the package, which often gives the source package away, is no
part of it, unless the description mentions it. A class is the source package, the section, or a tag of debtags
(``facet::tag``), of which a package may have several.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xsoftmax.data import checksum
from xsoftmax.data.rows import Rows, Texts
from xsoftmax.internal.errors import InputError

LABELS = ("source", "section", "tags")
TAG = re.compile(r"[^\s:{}]+::[^\s{}]+")


@dataclass(frozen=True)
class Paragraph:
    """One paragraph: its fields, and where it stands, for messages."""

    fields: dict[str, str]
    where: str

    def __getitem__(self, name: str) -> str:
        if name not in self.fields:
            found = ", ".join(self.fields)
            raise InputError(f"{self.where}: no field {name!r}; fields: {found}; is this the right kind of file?")
        return self.fields[name]


def read(*, packages: Path, translation: Path, label: str = "source") -> Rows:
    """Read one row per binary package, in the order of the index.

    Parameters
    ----------
    packages : Path
        The index, ``Packages``, perhaps compressed.
    translation : Path
        The descriptions, ``Translation-en``, perhaps compressed; a package that is not in it has the short one.
    label : str
        ``source``: the class is the source package; ``section``: the section of the archive; ``tags``: each of the
        package's debtags, where it has some.
    """
    if label not in LABELS:
        raise InputError(f"debian: unknown label {label!r}; known: {', '.join(LABELS)}")
    described = {
        (each["Package"], each["Description-md5"]): each["Description-en"] for each in paragraphs(translation)
    }
    texts, names = [], list[list[str]]()
    for each in paragraphs(packages):
        short, key = each["Description"], (each["Package"], each.fields.get("Description-md5", ""))
        texts.append(_text(described.get(key, short)))
        names.append(_labels(each, label))
    return Rows.with_several_names(Texts.of(texts), names)


def _labels(paragraph: Paragraph, label: str) -> list[str]:
    if label == "tags":
        return tags(paragraph)
    return [source_package(paragraph) if label == "source" else paragraph["Section"]]


def tags(paragraph: Paragraph) -> list[str]:
    """List the tags of a package, ``facet::tag``; none where it has no field ``Tag``.

    Raises
    ------
    InputError
        If something between commas is no tag.
    """
    found = [tag.strip() for tag in paragraph.fields.get("Tag", "").split(",")]
    if found == [""]:
        return []
    for tag in found:
        if not TAG.fullmatch(tag):
            raise InputError(
                f"{paragraph.where}: expected tags 'facet::tag' and ',' between, found {tag[:40]!r}; fetch it again"
            )
    return found


def source_package(paragraph: Paragraph) -> str:
    """Name the source package: the field ``Source`` without a version, or the package itself where they agree."""
    return paragraph.fields.get("Source", paragraph["Package"]).split(" (")[0]


def paragraphs(path: Path) -> Iterator[Paragraph]:
    """Walk through the paragraphs of a file, compressed or not.

    Raises
    ------
    InputError
        If there is none, a line is neither a field nor a continuation, a field comes twice in its paragraph, or
        the file is damaged or not UTF-8; with the file and the paragraph.
    """
    where = ""
    for number, lines in enumerate(_groups(path), 1):
        where = f"{path}, paragraph {number}"
        yield Paragraph(_fields(lines, where), where)
    if not where:
        raise InputError(f"{path}: no paragraph in it; fetch it again")


def _groups(path: Path) -> Iterator[list[str]]:
    """Read the lines between blank ones."""
    number, lines = 1, list[str]()
    with io.TextIOWrapper(checksum.open_content(path), "utf-8", newline="\n") as file:
        try:
            for line in file:
                if line.strip():
                    lines.append(line.rstrip("\r\n"))
                elif lines:
                    yield lines
                    number, lines = number + 1, []
        except (UnicodeDecodeError, *checksum.DAMAGED) as error:
            raise InputError(f"{path}, in or after paragraph {number}: cannot read on ({error})") from error
    if lines:
        yield lines


def _fields(lines: list[str], where: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    last = ""
    for line in lines:
        if "\0" in line:
            raise InputError(f"{where}: a NUL character, which is no text, in {line[:40]!r}; fetch it again")
        if line[0] in " \t" and last:
            fields[last] += "\n" + line[1:]
            continue
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t":
            raise InputError(f"{where}: expected 'Name: value' or the indented rest of it, found {line[:40]!r}")
        if name in fields:
            raise InputError(f"{where}: the field {name!r} comes twice")
        fields[name], last = value.strip(), name
    return fields


def _text(description: str) -> str:
    """Make plain text of a description: a line with only a point stands for a blank one."""
    return "\n".join("" if line == "." else line for line in description.split("\n"))
