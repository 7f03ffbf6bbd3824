"""One fit of ours in a process of its own: a job as JSON on standard input, what was measured on standard output."""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from xsoftmax.data.dataset import Dataset
from xsoftmax.data.store import open_prepared
from xsoftmax.data.windows import some
from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.documents.recall import recall_of
from xsoftmax.lab.benchmark.observed import peak_bytes_so_far
from xsoftmax.methods import Method, build_method
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
# Training rows whose shortlists are compared with all scores.
ROWS_TO_SEARCH = 300


def main() -> None:
    """Do what the job says."""
    job = json.loads(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_AS, (job["memory_bytes"], job["memory_bytes"]))
    with open_prepared(Path(job["data"])) as data, patch.object(time, "perf_counter", CLOCKS[job["clock"]]):
        print(json.dumps(measured(data, build_method("ours", job["method"]), job["epochs"])))


def measured(data: Dataset, method: Method, epochs: int) -> dict[str, Any]:
    """Train for so many epochs and measure: see ``programs.Program``."""
    result = fit(data, method, 0, Plan(epochs=epochs, rows=1, keep="last"))
    if result.model is None:
        raise InputError(result.state.message)
    test = data.split("test")
    found = {
        "seconds": result.state.history[-1]["seconds"],
        "setup_seconds": result.setup_seconds,
        "epochs": result.state.history[-1]["epoch"],
        "accuracy": evaluate(result.model, test.X, test.y)["accuracy"],
        "peak_bytes": peak_bytes_so_far(),
        "n_weights": int(result.model.W.nnz),
    }
    del result
    return found | {"recall": _recall(data, method)}


def _recall(data: Dataset, method: Method) -> float:
    """Make some of the fit's shortlists again and compare them with all scores."""
    train = data.split("train")
    W = method.start.directions(train.X, train.y, data.n_classes)
    return recall_of(some(train, ROWS_TO_SEARCH), W, method.proposal.shortlist)


if __name__ == "__main__":
    main()
