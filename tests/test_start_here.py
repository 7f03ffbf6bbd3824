"""The pages that a newcomer copies from: docs/start-here.md and the example of docs/api.md run as they stand."""

import io
import shlex
import sys
from types import SimpleNamespace

import pytest

from pages import Page
from xsoftmax.cli import main

START = Page("start-here.md")
# In the place of the 74,736 codes that the page takes, which take a while to read.
CODES = [f"{category}.{k}" for category in ("M25", "S49", "A00", "R07") for k in range(100)]
WORDS = {"M25": "pain in the knee", "S49": "broken arm", "A00": "cholera", "R07": "pain in the chest"}
FEW_CODES = SimpleNamespace(
    get_all_codes=lambda: [*CODES, "A00-A09"],
    is_leaf=lambda code: code in CODES,
    get_description=lambda code: f"{WORDS[code[:3]]}, form {code[4:]}",
)
# The page lets methods race for 20 seconds; here there are too few rows, and no time, for a race.
RACE, NO_RACE = "--seconds 20", "--method text-softmax --epochs 3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page's blocks of Python have been run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("start"))
        patch.setitem(sys.modules, "simple_icd_10_cm", FEW_CODES)
        names = {}
        for block in START.blocks("python"):
            exec(block, names)
        yield names


@pytest.fixture(scope="module")
def commands():
    """The commands of the page, but those that install it."""
    lines = [line for block in START.blocks("") for line in block.splitlines()]
    return [line for line in lines if line.startswith(("xsoftmax ", "echo "))]


def test_the_python_learns(folder):
    assert folder["classifier"].score(folder["new_texts"], folder["new_labels"]) > 0.95
    assert folder["classifier"].predict(["pain in the left knee", "broken arm"]).tolist() == ["M25", "S49"]


def test_the_commands_do_what_the_page_says(folder, commands, capsys, monkeypatch):
    version, fit, predict, inspect = commands
    assert version == "xsoftmax --version"
    assert RACE in fit
    assert main(shlex.split(fit.replace(RACE, NO_RACE))[1:]) == 0
    assert "model.h5: written; try `xsoftmax predict model.h5 NEW_ROWS`" in capsys.readouterr().out
    echo, _, words = predict.partition(" | ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(shlex.split(echo)[1].encode() + b"\n")))
    assert main(shlex.split(words)[1:]) == 0
    header, first, *others = capsys.readouterr().out.splitlines()
    assert header == "row,rank,class,probability,text"
    assert first.startswith("0,1,M25,")
    assert first.endswith(",pain in the left knee")
    assert len(others) == 2
    assert main(shlex.split(inspect)[1:]) == 0
    assert '"M25"' in capsys.readouterr().out


def test_the_example_of_the_api_trains_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(Page("api.md").block("python"), names)
    assert names["measured"]["accuracy"] > 0.85
    assert (tmp_path / "model.h5").is_file()
