"""What is written of a fit: model, history, status."""

import csv
import json
import os
import platform
import resource
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import psutil

from xsoftmax import __version__
from xsoftmax.data.dataset import SPLITS, Dataset
from xsoftmax.evaluation import metrics
from xsoftmax.internal.files import write_text, written_aside
from xsoftmax.methods import Method
from xsoftmax.model import Model, save_model
from xsoftmax.solvers import place_of
from xsoftmax.training.fit import FitResult
from xsoftmax.training.plan import SUBSET, Plan

COLUMNS = [
    *("epoch", "step", "seconds", "learning_rate", "objective", "regularized_log_loss"),
    *("frequency_error", "search_recall", "gradient_found"),
    *(f"{split}_{column}" for split in SPLITS for column in metrics.columns("fit")),
]
# What a run itself changes of what Git tracks, as Git's pathspecs.
OF_RESULTS = (":(top,exclude)results", ":(top,exclude)dvc.lock")
LIBRARIES = ("numpy", "scipy", "numba", "h5py", "scikit-learn")


def write_fit(
    folder: Path,
    result: FitResult,
    data: Dataset,
    method: Method,
    seed: int,
    plan: Plan,
    fingerprint: str,
    added: Mapping[str, Any] | None = None,
) -> None:
    """Write ``model.h5``, ``history.csv`` and ``status.json`` into a folder, each whole.

    ``added`` is what else the status is to tell, such as how ``auto`` came to the method.
    """
    status = describe(result, data, method, seed, plan, fingerprint) | dict(added or {})
    attributes = {key: status[key] for key in ("dataset", "method", "seed", "status", "message", "parameters")}
    if result.model is None:
        model = Model(None, data.class_names, data.n_features, attributes=attributes)
    else:
        model = replace(result.model, attributes=attributes)
    save_model(model, folder / "model.h5")
    with written_aside(folder / "history.csv") as aside, aside.open("w", encoding="utf-8", newline="") as file:
        write_history(file, result.state.history)
    write_text(folder / "status.json", json.dumps(status, indent=2, sort_keys=True) + "\n")


def write_history(file: TextIO, history: Iterable[Mapping[str, float]], header: bool = True) -> None:
    """Write rows of a history as CSV, below the names of the columns or without these."""
    writer = csv.DictWriter(file, COLUMNS, restval="")
    if header:
        writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in history)


def summary(result: FitResult, method: str, n_train: int, budget: float | None = None, chosen_in: float = 0.0) -> str:
    """Say in a few lines what was kept, how good it is, and what took the time.

    ``budget`` is one in seconds, ``chosen_in`` the seconds of a choice that it leaves out.
    """
    state, kept = result.state, result.kept
    epochs = state.history[-1]
    lines = [f"{method}: {state.status} after {_epochs(epochs)} epochs ({_times(result, budget, chosen_in)})"]
    if budget is not None and state.status == "finished" and epochs["epoch"] < 1:
        lines.append(
            f"{budget:g} s were not enough to visit each training row once; give more --seconds, or --epochs"
        )
    if state.message:
        lines.append(state.message)
    if not kept:
        return "\n".join(lines)
    row = next(row for row in reversed(state.history) if row["epoch"] == kept["epoch"])
    why = f"the best by {metrics.title_of(kept['by'])}" if "value" in kept else "the last"
    lines.append(f"kept: epoch {_epochs(kept)}, {why}")
    for split in ("train", "validation", "test"):
        if f"{split}_log_likelihood" in row:
            nats, accuracy = row[f"{split}_log_likelihood"], row[f"{split}_accuracy"]
            some = f" ({SUBSET:,} rows)" if split == "train" and n_train > SUBSET else ""
            lines.append(f"{split}{some}: log-likelihood {nats:.4f} nats a row, accuracy {accuracy:.4f}")
    return "\n".join(lines)


def _times(result: FitResult, budget: float | None, chosen_in: float) -> str:
    """Say what took the time, and what of it a budget in seconds leaves out."""
    state = result.state
    counted = _said([(state.seconds - result.setup_seconds, "training"), (result.setup_seconds, "setting it up")])
    beside = [(result.compile_seconds, "compiling"), (state.evaluation_seconds, f"{len(state.history)} evaluations")]
    beside.append((chosen_in, "compiling and scoring for the choice"))
    if budget is None:
        return ", ".join(filter(None, [counted, _said(beside)])) or "no time at all"
    return f"of {budget:g} s: {counted or 'hardly any'}; not counted: {_said(beside) or 'hardly any'}"


def _said(times: Iterable[tuple[float, str]]) -> str:
    return ", ".join(f"{seconds:.3g} s {what}" for seconds, what in times if seconds >= 0.05)


def _epochs(found: Mapping[str, Any]) -> str:
    epochs = float(found["epoch"])
    return f"{epochs:,.0f}" if epochs >= 1000 else f"{epochs:.4g}"


def describe(
    result: FitResult, data: Dataset, method: Method, seed: int, plan: Plan, fingerprint: str
) -> dict[str, Any]:
    """Everything about a fit but its weights and history, as JSON."""
    state = result.state
    n_train = plan.n_training(data.n_samples("train"))
    epochs = state.step / max(1, n_train)
    trained = state.seconds - result.setup_seconds
    return {
        "dataset": data.name,
        "method": method.name,
        "seed": seed,
        "status": state.status,
        "message": state.message,
        "step": state.step,
        "epoch": round(epochs, 6),
        "seconds": state.seconds,
        "setup_seconds": result.setup_seconds,
        "seconds_per_epoch": trained / epochs if epochs else None,
        "compile_seconds": result.compile_seconds,
        "evaluation_seconds": state.evaluation_seconds,
        "kept": result.kept,
        "pruning": result.pruning,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "threads": plan.threads,
        "device": {
            "asked": method.device,
            "used": place_of(method),
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        },
        "streamed": result.streamed,
        "n_parameters": n_parameters(method, data),
        "data": {f"n_{split}": data.n_samples(split) for split in SPLITS}
        | {"n_train": n_train}
        | {"n_features": data.n_features, "n_classes": data.n_classes}
        | {f"n_dropped_{reason}": n for reason, n in data.dropped.items()},
        "data_sha256": data.identity,
        "parameters": {**method.settings, "source": method.source},
        "objective_name": method.objective.title,
        "budget": {"epochs": plan.epochs} if plan.epochs is not None else {"seconds": plan.seconds},
        "patience": plan.patience,
        "judge": plan.judge,
        "rows_looked_at": plan.rows,
        "versions": {"xsoftmax": __version__, "python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
        "machine": machine(),
        "git_commit": git_commit(),
        "fingerprint": fingerprint,
    }


def _cell(value: float) -> str | float:
    return value if np.isfinite(value) else ""


def machine() -> dict[str, Any]:
    """Describe the machine in a few words."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def git_commit() -> str | None:
    """Commit of the working folder, with ``+`` if tracked files but results were changed; None outside a checkout."""
    try:
        commit = _git("rev-parse", "HEAD").stdout.strip()
        changed = _git("diff", "--quiet", "HEAD", "--", ":/", *OF_RESULTS, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changed else commit


def _git(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=check)


def n_parameters(method: Method, data: Dataset) -> int:
    """Count what a method learns on data, the table of an encoder included."""
    if method.encoder is not None:
        return method.encoder.size(data.n_classes, data.n_features) - data.n_classes * (not method.bias)
    return data.n_classes * (data.n_features + method.bias)
