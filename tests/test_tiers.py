"""Which tests `make test` and `make test-all` choose: what ``conftest`` makes of marks and of ``--share``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MADE_UP = """
import pytest

@pytest.mark.long_cases
@pytest.mark.parametrize("n", [pytest.param(0, marks=pytest.mark.slow), 1, 2, 3])
def test_long(n):
    pass

@pytest.mark.parametrize("n", range(3))
def test_short(n):
    pass
"""


@pytest.fixture
def chosen(tmp_path):
    """A function that gives the names of those of the made-up tests that pytest's ``words`` choose."""
    file = tmp_path / "test_made_up.py"
    file.write_text(MADE_UP)
    # under no xdist, whatever runs this test
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": str(TESTS)}
    config = ("-c", TESTS.parent / "pyproject.toml", "--rootdir", tmp_path, "-p", "conftest")

    def of(*words):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *config, *words, file]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.partition("::test_")[2] for line in done.stdout.splitlines() if "::" in line]

    return of


SHORT = ["short[0]", "short[1]", "short[2]"]


@pytest.mark.slow
def test_of_long_cases_the_first_that_is_not_slow_is_soon(chosen):
    assert chosen("-m", "not slow") == ["long[1]", *SHORT]
    assert chosen("-m", "slow") == ["long[0]", "long[2]", "long[3]"]


@pytest.mark.slow
def test_each_test_is_in_one_share(chosen):
    parts = [chosen("--share", f"{part}/2") for part in (1, 2)]
    assert all(parts)
    assert sorted(parts[0] + parts[1]) == sorted(chosen())
