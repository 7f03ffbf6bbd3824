"""Made-up fits with chosen numbers, in the shape that `train` and `evaluate` leave."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from xsoftmax.lab.reproduction.results import Results

COLUMNS = {"objective": 1.0, "train_log_likelihood": -1.0, "test_log_likelihood": -1.0, "test_accuracy": 0.5}


def write_fit(
    folder: Path,
    dataset: str,
    method: str,
    seed: int = 0,
    measures: Mapping[str, Any] | None = None,
    ended: str = "finished",
    evaluations: int = 3,
) -> Path:
    """Write a fit; ``measures`` are by path as in ``Results.values``, such as ``test.accuracy``."""
    parts: dict[str, dict[str, Any]] = {
        "test": {},
        "validation": {},
        "train": {},
        "fit": {},
        "end": {},
        "metrics": {},
    }
    for path, number in (measures or {}).items():
        where, _, key = path.partition(".")
        parts[where if key else "metrics"][key or where] = number
    fit = folder / dataset / method / f"seed-{seed}"
    fit.mkdir(parents=True)
    status = {"dataset": dataset, "method": method, "seed": seed, "status": ended, "seconds": 2.0, "epoch": 4}
    status |= {"seconds_per_epoch": 0.5, "machine": {"cpu": "a machine"}, **parts["fit"]}
    metrics = {name: None if ended == "diverged" else parts[name] for name in ("test", "validation", "train")}
    (fit / "status.json").write_text(json.dumps(status))
    (fit / "metrics.json").write_text(json.dumps(metrics | parts["metrics"]))
    history = pd.DataFrame(
        {"epoch": range(evaluations), "step": range(evaluations), "seconds": [k / 2 for k in range(evaluations)]}
    )
    for column, value in (COLUMNS | parts["end"]).items():
        history[column] = [value * (1 + 0.1 * (evaluations - 1 - k)) for k in range(evaluations)]
    history.to_csv(fit / "history.csv", index=False)
    return fit


def results_of(folder: Path, fits: Mapping[tuple[str, str], Mapping[str, Any]], seeds: int = 3) -> Results:
    """Write fits with equal measures but for a little noise by seed, and read them."""
    for (dataset, method), measures in fits.items():
        for seed in range(seeds):
            noise = 1 + 1e-4 * (seed - 1)
            noisy = {path: v * noise if isinstance(v, int | float) else v for path, v in measures.items()}
            write_fit(folder, dataset, method, seed, noisy)
    return Results.read("made-up", sorted(folder.glob("*/*/seed-*")), [], [])
