"""Peak memory of whole fits, each in a process of its own, against model + optimizer and against our estimate."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from xsoftmax.data.dataset import SPLITS
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.text import megabytes
from xsoftmax.lab.benchmark.observed import Observed, observed
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, sparse_rows, write_problem
from xsoftmax.training.memory import estimate

LIMIT = 1.10
SAMPLED = {"proposal": {"name": "uniform"}, "optimizer": {"name": "adagrad", "learning_rate": 0.03}}
METHODS: dict[str, dict[str, Any]] = {
    "negative sampling": {"objective": {"name": "negative-sampling"}, **SAMPLED},
    "one-vs-each": {"objective": {"name": "one-vs-each"}, **SAMPLED},
    "implicit": {
        "objective": {"name": "double-sum"},
        "proposal": {"name": "uniform"},
        "optimizer": {"name": "implicit", "learning_rate": 0.3},
        "bias": False,
    },
    "softmax": {**SAMPLED, "objective": {"name": "softmax"}, "proposal": {"name": "all"}},
}


class Shape(NamedTuple):
    """Of a data set; ``nonzeros`` 0: dense."""

    classes: int
    features: int
    nonzeros: int = 0
    rows: int = 300
    epochs: int = 100


LARGEST = Shape(10_000_000, 64, rows=40, epochs=2_500)


def fits(small: bool) -> Iterator[tuple[str, Shape]]:
    """Say which fits are measured."""
    if small:
        yield "negative sampling", Shape(100_000, 64, rows=50)
        return
    for method in ("negative sampling", "one-vs-each", "implicit"):
        yield method, Shape(200_000, 512)
        yield method, Shape(20_000, 10_000, 100)
    yield "softmax", Shape(10_000, 5_000, 100, epochs=1)
    yield "negative sampling", LARGEST


def run(small: bool, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure all fits; ``rounds`` does not matter."""
    with TemporaryDirectory() as folder:
        baseline = {}
        for method, shape in fits(small):
            tiny = Shape(20, shape.features, shape.nonzeros, rows=shape.rows, epochs=shape.epochs)
            if (method, shape.nonzeros > 0) not in baseline:
                _fit(Path(folder), method, tiny)  # compiles: the next one does not
                baseline[method, shape.nonzeros > 0] = _fit(Path(folder), method, tiny)
            found = measured(Path(folder), method, shape, baseline[method, shape.nonzeros > 0])
            print(line(found), flush=True)
            yield found


def measured(folder: Path, method: str, shape: Shape, tiny: Observed) -> dict[str, Any]:
    """Measure one fit.

    Parameters
    ----------
    tiny : Observed
        The same program with next to nothing to hold: what is subtracted.

    Returns
    -------
    dict
        Bytes: ``peak`` beyond the tiny fit and the data, ``model_and_optimizer``, ``estimate`` (what a fit checks
        for before it starts, the data left out), and the ``ratio`` of the first two.
    """
    found = _fit(folder, method, shape)
    chosen = method_of(**METHODS[method])
    with open_prepared(_data(folder)) as data:
        held = sum(data.nbytes(split) for split in SPLITS)
        expected = sum(estimate(chosen, data, False).values()) - held
    copies = chosen.optimizer.copies
    model = 4 * copies * shape.classes * (shape.features + 1)
    status = json.loads((folder / "fit" / "status.json").read_text(encoding="utf-8"))
    peak = found.peak_bytes - tiny.peak_bytes - held
    return {"part": "memory", "method": method, **shape._asdict()} | {
        "peak": peak,
        "model_and_optimizer": model,
        "estimate": expected,
        "ratio": peak / model,
        "limit": LIMIT,
        "seconds": found.seconds,
        "training_seconds": status["seconds"],
        "steps": status["step"],
        "status": status["status"],
    }


def _fit(folder: Path, method: str, shape: Shape) -> Observed:
    """Write data of this shape and train on them through the command line, as users do."""
    write_problem(_data(folder), _rows(shape), shape.classes, shape.rows // 5)
    (folder / "methods.yaml").write_text(yaml.safe_dump({"chosen": METHODS[method]}))
    arguments = ["train", _data(folder), "--method", "chosen", "--methods", folder / "methods.yaml"]
    return observed([*arguments, "--epochs", shape.epochs, "--points", 1, "-o", folder / "fit"])


def _data(folder: Path) -> Path:
    return folder / "data.h5"


def _rows(shape: Shape) -> Rows:
    if shape.nonzeros:
        return sparse_rows(shape.rows, shape.features, shape.classes, shape.nonzeros)
    return dense_rows(shape.rows, shape.features, shape.classes)


def line(found: dict[str, Any]) -> str:
    """Say what came out, for people."""
    rows = (
        f"{found['nonzeros']} non-zeros of {found['features']:,}" if found["nonzeros"] else f"{found['features']:,}"
    )
    verdict = "met" if found["ratio"] <= found["limit"] else "NOT MET"
    return (
        f"{found['method']}, {found['classes']:,} classes, {rows} features: peak {megabytes(found['peak'])}, "
        f"{found['ratio']:.3f} x model + optimizer ({megabytes(found['model_and_optimizer'])})  "
        f"limit {found['limit']}: {verdict}; estimated {megabytes(found['estimate'])}; "
        f"{found['status']} after {found['steps']:,} steps"
    )
