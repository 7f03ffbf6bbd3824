"""The page on low accuracy runs as it stands, and its advice helps on rows that want it."""

import csv
import json
import shlex

import numpy as np
import pytest

from pages import Page
from xsoftmax.cli import main

PAGE = Page("low-accuracy.md")
WORDS = ("red", "blue", "soft")


def write_rows(path, n, seed):
    """Rows whose class is in the order of two words and in the brand: words one by one tell little of it."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["title", "comment", "price", "brand", "product"])
        for _ in range(n):
            first, second = rng.permutation(WORDS)[:2]
            other, brand = rng.choice(WORDS), rng.choice(["plum", "rose"])
            product = f"{first} {second}" if brand == "plum" else first
            lines.writerow([f"a {first}", f"{other} or {first} {second}", f"{rng.normal(9, 1):.2f}", brand, product])


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command of the page prints."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("low")
        patch.chdir(folder)
        write_rows(folder / "reviews.csv", 400, 0)
        write_rows(folder / "new.csv", 200, 1)
        for command in "".join(PAGE.blocks("sh")).splitlines():
            output = folder / "printed"
            with output.open("w") as file, pytest.MonkeyPatch.context() as out:
                out.setattr("sys.stdout", file)
                assert main(shlex.split(command.removeprefix("xsoftmax "))) == 0, command
            found[command] = output.read_text()
        (code,) = PAGE.blocks("python")
        output = folder / "printed"
        with output.open("w") as file:
            patch.setattr("sys.stdout", file)
            exec(code, {})
        found["python"] = output.read_text()
    return found


def test_the_commands_of_the_page_run(printed):
    models = [command.split()[2] for command in printed if command.startswith("xsoftmax evaluate")]
    assert models == ["model.h5", "longer.h5", "all.h5"]
    for command, text in printed.items():
        if command.startswith("xsoftmax fit"):
            assert "test accuracy " in text
    assert 0 < float(printed["python"]) < 1


def test_more_columns_are_more_accurate(printed):
    accuracy = {
        command.split()[2]: json.loads(text)["new"]["accuracy"]
        for command, text in printed.items()
        if command.startswith("xsoftmax evaluate")
    }
    assert accuracy["all.h5"] > accuracy["model.h5"] + 0.2
