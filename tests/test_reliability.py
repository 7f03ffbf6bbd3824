"""The page of faults says what the tests try."""

import subprocess
import sys

import pytest

import reliability


def test_the_page_is_current():
    """If this fails, run `python tests/reliability.py`."""
    assert reliability.is_current()


def test_every_fault_says_all():
    faults = reliability.faults()
    assert len(faults) >= 30
    assert all(all(fault) for fault in faults)
    assert len({fault.what for fault in faults}) == len(faults)


@pytest.mark.slow
def test_all_marks_are_found():
    """As pytest collects them, which knows nothing of how the page reads them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "fault", "tests"]
    listed = subprocess.run(command, cwd=reliability.ROOT, capture_output=True, text=True, check=False).stdout
    collected = {line.split("[")[0] for line in listed.splitlines() if "::" in line}
    marked = {f"{fault.test.split('](../')[1].rstrip(')')}" for fault in reliability.faults()}
    assert len(collected) == len(reliability.faults())
    assert {line.split("::")[0] for line in collected} == marked
