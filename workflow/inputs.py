"""Look at what jobs will read before the first of them runs.

Snakemake removes what a job made before it runs it again. A job that then finds its input damaged has lost what was
there for nothing, so damage has to be known by then.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from xsoftmax.data.raw import checked_files, read_receipt
from xsoftmax.errors import InputError
from xsoftmax.sealed import DamagedError, check_seal

COPIES = {"all", "track"}  # rules that read no file's content, or look for themselves
AGAIN = "delete it and start the same command again"


def check_inputs(jobs: Iterable[Any]) -> None:
    """Look at all files that these jobs read and none of them makes; end the program if one is damaged."""
    found = list(problems(jobs))
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        print("Nothing was started, so that nothing is lost.", file=sys.stderr)
        sys.exit(1)


def problems(jobs: Iterable[Any]) -> Iterator[str]:
    """Say what is wrong with each input that is damaged, and what to do."""
    jobs = list(jobs)
    made = {str(file) for job in jobs for file in job.output}
    reads = {str(file) for job in jobs if job.rule.name not in COPIES for file in job.input}
    for name in sorted(reads - made):
        try:
            _check(Path(name))
        except DamagedError as error:
            yield f"{error}; {AGAIN}"
        except (InputError, OSError) as error:
            yield str(error)


def _check(path: Path) -> None:
    if path.is_dir() and read_receipt(path) is not None:
        checked_files(path, path.name, list(read_receipt(path) or {}))
    elif path.suffix == ".h5" and path.exists():
        check_seal(path)
    elif path.suffix in (".json", ".csv") and path.parts[0] == "results" and path.exists():
        _check_text(path)


def _check_text(path: Path) -> None:
    """Read what verbs write: JSON with keys and values, CSV with as many cells in each line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".json" and not isinstance(json.load(file), dict | list):
                raise ValueError("neither keys and values nor a list")
            if path.suffix == ".csv" and len({len(row) for row in csv.reader(file)}) != 1:
                raise ValueError("its lines differ in length")
    except (ValueError, RecursionError, csv.Error) as error:
        raise DamagedError(f"{path}: damaged ({error})") from None
