"""Look at what jobs will read before the first of them runs.

Snakemake removes what a job made before it runs it again. A job that then finds its input damaged has lost what was
there for nothing, so damage has to be known by then.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from xsoftmax.data.prepare import parameters_of
from xsoftmax.data.raw import checked_files, read_receipt
from xsoftmax.data.store import origin
from xsoftmax.internal.checksummed import DamagedError, verify_checksum
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.workflow.task import Dataset
from xsoftmax.training.folders import AGAIN, check_model

PREPARED, RAW = Path("data/prepared"), Path("data/raw")
COPIES = {"all", "track"}  # rules that read no file's content, or look for themselves


def check_inputs(jobs: Iterable[Any], datasets: Mapping[str, Dataset]) -> None:
    """Look at all files that these jobs read and none of them makes; end the program if one cannot be used."""
    found = list(dict.fromkeys(problems(jobs, datasets)))
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        print("Nothing was started, so that nothing is lost.", file=sys.stderr)
        sys.exit(1)


def problems(jobs: Iterable[Any], datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Say what is wrong with each input that is damaged, or another's, and what to do."""
    jobs = list(jobs)
    made = {str(file) for job in jobs for file in job.output}
    reads = {str(file) for job in jobs if job.rule.name not in COPIES for file in job.input}
    for name in sorted(reads - made):
        try:
            _check(Path(name), datasets)
        except DamagedError as error:
            yield f"{error}; {AGAIN}"
        except (InputError, OSError) as error:
            yield str(error)


def _check(path: Path, datasets: Mapping[str, Dataset]) -> None:
    if path.exists() and not (path.is_file() or path.is_dir()):  # a FIFO would block for ever
        raise DamagedError(f"{path}: neither a regular file nor a folder")
    if path.is_dir() and read_receipt(path) is not None:
        checked_files(path, path.name, list(read_receipt(path) or {}))
    elif path.suffix == ".h5" and path.exists():
        verify_checksum(path)
        if path.name == "model.h5" and (status := path.with_name("status.json")).exists():
            _check(status, datasets)
            check_model(path)
        elif path.parent == PREPARED and (name := path.name.removesuffix(".h5")) in datasets:
            _check_origin(path, name, datasets[name])
    elif path.suffix in (".json", ".csv") and path.parts[0] == "results" and path.exists():
        _check_text(path)


def _check_origin(path: Path, name: str, dataset: Dataset) -> None:
    """Compare what prepared data were made from with the description, and with the raw files where they are."""
    content = dataset.content
    expected = {"dataset": name, "parameters": parameters_of(content)}
    receipt = read_receipt(RAW / name) or {}
    if all(source.name in receipt for source in content.files):
        expected["source_sha256"] = {source.name: receipt[source.name]["sha256"] for source in content.files}
    found = origin(path, AGAIN)
    for key, value in expected.items():
        if _plain(found[key]) != _plain(value):
            wanted = RAW / name if key == "source_sha256" else dataset.file
            raise DamagedError(f"{path}: prepared from something else than {wanted} says ({key} differs)")


def _plain(value: Any) -> str:
    """Write a value as text that is equal wherever the value is, once JSON has made its keys texts."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True)


def _check_text(path: Path) -> None:
    """Read what verbs write: JSON with keys and values, CSV with as many cells in each line, to its end."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".json" and not isinstance(json.load(file), dict | list):
                raise ValueError("neither keys and values nor a list")
            if path.suffix == ".csv":
                lines = file.readlines()
                if len({len(row) for row in csv.reader(lines)}) != 1 or not lines[-1].endswith("\n"):
                    raise ValueError("its lines differ in length")
    except (ValueError, RecursionError, csv.Error) as error:
        raise DamagedError(f"{path}: damaged ({error})") from None
