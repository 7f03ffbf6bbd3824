"""The example of a page of docs/, taken from the page and run in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import forked

ROOT = Path(__file__).parents[1]


class Page:
    """A page with a file of code, which it names, and the methods that use it."""

    def __init__(self, name):
        self.text = (ROOT / "docs" / name).read_text()

    def block(self, language):
        """The one block of this language on the page."""
        (found,) = self.blocks(language)
        return found

    def blocks(self, language):
        """All blocks of this language on the page, in order."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)

    def scratch(self, folder):
        """Make a copy of the sources in which the page's file lies where the page says, and its methods."""
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        place = re.search(r"^`(src/xsoftmax/\S+\.py)`", self.text, re.MULTILINE)[1]
        assert not (folder / place).exists()
        (folder / place).write_text(self.block("python"))
        (folder / "mine.yaml").write_text(self.block("yaml"))
        return folder

    def check(self, scratch, file, name, also=""):
        """Make sure that a test file which the page names finds the member, and passes."""
        assert f"pytest {file} -k {name}\n" in self.text
        chosen = f"{name} and {also}" if also else name
        options = ["-q", "-p", "no:cacheprovider", "--rootdir", ROOT, "-c", ROOT / "pyproject.toml"]
        checked = run(scratch, "pytest", *options, ROOT / file, "-k", chosen)
        assert re.search(r"\b[1-9]\d* passed", checked)
        assert "skipped" not in checked


def run(scratch, *command):
    """Run a program on the sources of a copy; what it prints."""
    done = ended(scratch, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ended(scratch, *command):
    """Run a program on the sources of a copy to its end, whatever that is."""
    path = f"{scratch / 'src'}{os.pathsep}{ROOT / 'tests'}"
    words, where = [sys.executable, "-m", *map(str, command)], {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": path}}
    if command[0] == "xsoftmax":
        return forked.run(words, **where)
    return subprocess.run(words, **where, capture_output=True, text=True, check=False)
