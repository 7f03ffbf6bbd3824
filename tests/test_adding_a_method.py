"""The example of docs/adding-a-method.md, taken from the page and run in a copy of the package."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import forked

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "adding-a-method.md").read_text()


def block(language):
    """The one block of this language on the page."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A copy of the sources in which the page's file lies where the page says, and its methods."""
    folder = tmp_path_factory.mktemp("adding")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    place = re.search(r"^`(src/xsoftmax/\S+\.py)`", PAGE, re.MULTILINE)[1]
    assert not (folder / place).exists()
    (folder / place).write_text(block("python"))
    (folder / "mine.yaml").write_text(block("yaml"))
    return folder


def run(scratch, *command):
    path = f"{scratch / 'src'}{os.pathsep}{ROOT / 'tests'}"
    words, where = [sys.executable, "-m", *map(str, command)], {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": path}}
    if command[0] == "xsoftmax":
        ended = forked.run(words, **where)
    else:
        ended = subprocess.run(words, **where, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_it_is_found_by_its_name(scratch):
    assert " squared-hinge " in run(scratch, "xsoftmax", "methods", "--members")


def test_it_is_listed_with_what_it_claims(scratch):
    printed = run(scratch, "xsoftmax", "methods", "--methods", scratch / "mine.yaml")
    assert "squared hinge" in printed
    assert " 6 " in printed


def test_it_trains(scratch, prepare):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=400)
    data = prepare(np.eye(5)[y] + 0.2 * rng.standard_normal((400, 5)), y, 5, n_validation=50, n_test=100)
    options = ["--methods", scratch / "mine.yaml", "--method", "squared-hinge", "--epochs", 5, "-o", scratch / "fit"]
    run(scratch, "xsoftmax", "train", data, *options)
    with (scratch / "fit" / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert float(history[-1]["test_accuracy"]) > 0.95
    assert float(history[-1]["objective"]) < 0.5 * float(history[0]["objective"])


@pytest.mark.parametrize(
    ("file", "name", "also"),
    [
        ("tests/objectives/test_array_forms.py", "SquaredHinge", "not torch"),
        ("tests/objectives/test_gradients.py", "SquaredHinge", ""),
        pytest.param(  # all would take minutes
            "tests/test_contracts.py", "squared-hinge", "expected_steps and uniform", marks=pytest.mark.slow
        ),
    ],
)
def test_the_tests_that_the_page_names_find_it(scratch, file, name, also):
    assert f"pytest {file} -k {name}\n" in PAGE
    chosen = f"{name} and {also}" if also else name
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", ROOT, "-c", ROOT / "pyproject.toml"]
    checked = run(scratch, "pytest", *options, ROOT / file, "-k", chosen)
    assert re.search(r"\b[1-9]\d* passed", checked)
    assert "skipped" not in checked
