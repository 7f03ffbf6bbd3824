"""Hold results against a paper: what the modules of ``xsoftmax.lab.papers`` are written with, and the way to them."""

from importlib import resources
from typing import Any

import yaml

from xsoftmax.internal import registry
from xsoftmax.lab.reproduction.page import COMMAND, Page
from xsoftmax.lab.reproduction.results import Results

PAPERS = "xsoftmax.lab.papers"


def page_of(name: str, results: Results) -> Page:
    """Hold results against the paper of this name.

    Raises
    ------
    InputError
        If there is no such paper, or results that its page needs are missing.
    """
    module, numbers = registry.load(PAPERS, name), numbers_of(name)
    page = Page(name, numbers["title"], numbers["citation"], results, numbers.get("command", COMMAND))
    module.tell(results, page, numbers)
    return page


def numbers_of(name: str) -> dict[str, Any]:
    """Read what a paper reports."""
    return yaml.safe_load((resources.files(PAPERS) / f"{name}.yaml").read_text(encoding="utf-8"))
