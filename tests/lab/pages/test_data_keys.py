"""The page of all keys of a data set's file: it has each of them, and says something of it."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from xsoftmax.data.config import DatasetConfig, TextOptions
from xsoftmax.data.reading import READERS
from xsoftmax.internal import registry
from xsoftmax.lab.pages.data_keys import described, keys_markdown, readers_markdown

PAGE = (Path(__file__).parents[3] / "docs" / "data-keys.md").read_text()


@pytest.mark.parametrize("write", [keys_markdown, readers_markdown])
def test_the_page_is_current_and_no_key_is_unexplained(write):
    """If the first line fails, run `python -m xsoftmax methods --update docs/data-keys.md`."""
    text = write()
    assert text in PAGE
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert not [name for name, kind, _, says in rows if not kind or not says]


def test_all_keys_are_there():
    text = keys_markdown()
    assert {f"| `{each.name}` |" for each in fields(DatasetConfig) if each.name != "folder"} <= set(
        re.findall(r"^\| `\w+` \|", text, re.MULTILINE)
    )
    assert "| `folder` |" not in text
    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "The whole", "Under `files:`", "Under `files.archive:`", "Under `text:`", "Under `split:`"
    ]  # fmt: skip
    assert "| `sublinear_tf` | true or false | `false` | Take 1 + log(count)" in text
    assert "| `labels` | `first`, `min`, `pairs`, `sets` | `first` |" in text
    assert re.findall("^### (.*)$", readers_markdown(), re.MULTILINE) == registry.names(READERS)


def test_what_a_docstring_says_is_found_by_name():
    assert described(TextOptions)["min_df"] == "Features that fewer rows have are left out."
    read = registry.load(READERS, "images").read
    assert described(read)["more"] == described(read)["data"] != ""
    assert "part" not in described(TextOptions)
