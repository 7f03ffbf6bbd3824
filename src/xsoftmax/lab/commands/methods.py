"""List the methods: what each is made of, what it is unbiased for, what it costs; or the members of the axes.

xsoftmax methods
"""

import argparse
import json
from pathlib import Path

from xsoftmax.internal.text import text_table
from xsoftmax.lab.marked_blocks import renew
from xsoftmax.lab.pages import catalogue
from xsoftmax.lab.pages.catalogue import Entry
from xsoftmax.lab.pages.methods import writers
from xsoftmax.methods import known_methods


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument(
        "--methods", type=Path, metavar="FILE.yaml", help="methods of your own, laid over those that are shipped"
    )
    parser.add_argument("--members", action="store_true", help="list objectives, proposals and optimizers instead")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, settings and defaults included")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument(
        "--update", type=Path, nargs="+", metavar="FILE.md", help="renew the generated blocks of these files instead"
    )
    parser.add_argument("--outcome", type=Path, metavar="CSV", help="with --update: what `figures` wrote")


def run(options: argparse.Namespace) -> None:
    """Print a table, or renew files."""
    if options.members:
        print(_members(options), end="")
        return
    entries = catalogue.catalogue(known_methods(options.methods))
    if options.update:
        for path in options.update:
            if renew(path, writers(entries, path, options.outcome)):
                print(f"{path}: renewed")
        return
    print(_table(entries, options), end="")


def _table(entries: list[Entry], options: argparse.Namespace) -> str:
    if options.json:
        return json.dumps(catalogue.as_json(entries), indent=1) + "\n"
    if options.markdown:
        return catalogue.markdown_table(entries)
    return text_table([found.cells for found in entries], catalogue.HEADINGS, catalogue.WIDTHS)


def _members(options: argparse.Namespace) -> str:
    found = [member._asdict() for member in catalogue.members()]
    if options.json:
        return json.dumps(found, indent=1) + "\n"
    if options.markdown:
        return catalogue.members_markdown()
    return text_table(found, {"axis": "axis", "name": "member", "summary": "what it is"}, {"summary": 90})
