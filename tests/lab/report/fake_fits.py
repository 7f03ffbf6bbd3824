"""Made-up fit directories in the shape that `train` and `evaluate` leave."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

from xsoftmax.data.transform import Transform
from xsoftmax.model import Model, save_model
from xsoftmax.training.folders import IDENTITY
from xsoftmax.training.search import choose

# method: (objective, its name in words, proposal, optimizer, seconds per epoch, rate, final log-likelihood)
METHODS = {
    "softmax": ("softmax", "log-likelihood", "all", "sgd", 21.0, 0.30, -1.05),
    "one-vs-each": ("one-vs-each", "one-vs-each bound", "uniform", "adagrad", 0.62, 0.22, -1.62),
    "negative-uniform": ("negative-sampling", "logistic", "uniform", "adagrad", 0.55, 0.16, -2.25),
    "negative-frequency": (
        "negative-sampling",
        "logistic",
        "frequency",
        "adagrad",
        0.57,
        0.18,
        -2.05,
    ),
    "adversarial": ("negative-sampling", "logistic", "tree", "adagrad", 0.81, 0.35, -1.32),
    "u-max": ("double-sum", "double-sum", "uniform", "u-max", 0.48, 0.12, -1.85),
    "implicit-sgd": ("double-sum", "double-sum", "uniform", "implicit", 0.66, 0.28, -1.18),
}
N_CLASSES = {"icd10": 1918, "bibtex": 148}
N_TRAIN = {"icd10": 66646, "bibtex": 4880}


def write_fits(
    results: Path,
    datasets: tuple[str, ...] = ("icd10",),
    seeds: tuple[int, ...] = (0,),
    diverged: tuple[tuple[str, str, int], ...] = (),
    methods: tuple[str, ...] = tuple(METHODS),
    epochs: int = 20,
) -> list[Path]:
    """Write one fit directory per data set, method and seed under ``results/fits`` and return them."""
    return [
        _write_fit(results, dataset, method, seed, (dataset, method, seed) in diverged, epochs)
        for dataset in datasets
        for method in methods
        for seed in seeds
    ]


def history(dataset: str, method: str, seed: int, epochs: int = 20) -> pd.DataFrame:
    """Make a learning curve that starts at chance and saturates."""
    *_, seconds, rate, best = METHODS[method]
    rng = np.random.default_rng([seed, list(METHODS).index(method)])
    seconds *= N_TRAIN[dataset] / N_TRAIN["icd10"] * (1 + 0.05 * rng.standard_normal())
    epoch = np.linspace(0, epochs, 11)
    chance = -np.log(N_CLASSES[dataset])
    quality = 1 - np.exp(-rate * epoch)
    noise = 0.03 * rng.standard_normal(epoch.size) * (epoch > 0)
    test = chance + (best - chance) * quality + noise
    accuracy = np.clip(np.exp(test) * 1.4, 0, 1)
    setup = {"adversarial": 2.4, "negative-frequency": 3e-4}.get(method, 0.0)
    return pd.DataFrame(
        {
            "epoch": epoch,
            "step": (epoch * N_TRAIN[dataset]).astype(int),
            "seconds": setup + seconds * epoch,
            "learning_rate": 0.1 * 0.9**epoch,
            "objective": test * 3 + 1,
            "train_log_likelihood": test + 0.35 * quality,
            "train_accuracy": np.minimum(1, accuracy * 1.1),
            "regularized_log_loss": 0.1 - test - 0.35 * quality,
            "validation_log_likelihood": test + 0.01,
            "validation_accuracy": accuracy,
            "test_log_likelihood": test,
            "test_accuracy": accuracy,
            "test_top_3_accuracy": np.clip(accuracy * 1.2, 0, 1),
            "test_top_5_accuracy": np.clip(accuracy * 1.3, 0, 1),
        }
    )


def status(dataset: str, method: str, seed: int, rows: pd.DataFrame, diverged: bool) -> dict:
    """Make the status that belongs to a learning curve."""
    objective, words, proposal, optimizer, *_ = METHODS[method]
    setup = float(rows.seconds[0])
    last = rows.iloc[-1]
    step = int(last.step)
    proposal_parameters = {"dimension": 16, "regularizer": 0.1} if proposal == "tree" else {}
    return {
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "status": "diverged" if diverged else "finished",
        "step": step,
        "epoch": float(last.epoch),
        "message": f"{method} diverged at step {step} (log-loss nan); lower learning_rate" if diverged else "",
        "seconds": float(last.seconds),
        "setup_seconds": setup,
        "seconds_per_epoch": float((last.seconds - setup) / last.epoch),
        "peak_memory_bytes": 612_000_000 + 31_000_000 * seed,
        "threads": 1,
        "n_parameters": 12_292_462,
        "data": {
            "n_train": N_TRAIN[dataset],
            "n_validation": 8314,
            "n_test": 8309,
            "n_features": 6408,
            "n_classes": N_CLASSES[dataset],
            "n_dropped_unseen_test": 22,
        },
        "parameters": {
            "objective": {"name": objective, "regularizer": 1e-3},
            "proposal": {"name": proposal, **proposal_parameters, "n_sampled": 5},
            "optimizer": {"name": optimizer, "learning_rate": 0.1},
            "schedule": {"name": "exponential", "decay": 0.9},
            "source": "A paper, section 3",
        },
        "data_sha256": hashlib.sha256(dataset.encode()).hexdigest(),
        "objective_name": words,
        "epochs": 20,
        "versions": {"xsoftmax": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "numba": "0.68.1"},
        "machine": {"cpu": "A processor", "cores": 2, "memory_bytes": 24 << 30, "platform": "Linux x86_64"},
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "fingerprint": "00112233445566ff",
    }


def metrics(dataset: str, rows: pd.DataFrame, diverged: bool) -> dict:
    """Make what `evaluate` says of the last row."""
    last = rows.iloc[-1]
    names = ("log_likelihood", "accuracy", "top_3_accuracy", "top_5_accuracy")
    test = {name: None if diverged else float(last[f"test_{name}"]) for name in names}
    validation = {name: None if diverged else float(last[f"test_{name}"]) + 0.01 for name in names}
    return {
        "dataset": dataset,
        "status": "diverged" if diverged else "finished",
        "validation": validation | {"n_samples": 8314},
        "test": test | {"n_samples": 8309},
    }


def change(folder: Path, **values) -> None:
    """Change what a fit says of itself: its status, and its model."""
    path = folder / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    write_model(folder / "model.h5", json.dumps(values))


def kept_at(epoch: float) -> dict:
    """Make what a status says of the weights that were kept."""
    return {"epoch": epoch, "by": "validation_log_likelihood", "value": -1.0}


def write_search(folder: Path, dataset: str = "icd10", method: str = "softmax", value: float = -1.0) -> None:
    """Write a search of two trials, of which the second one, named swift, is better by one nat and was chosen."""
    grid = {name: {"optimizer": {"learning_rate": rate}} for name, rate in (("slow", 0.1), ("swift", 1.0))}
    for name, last in (("slow", value - 1), ("swift", value)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows = history(dataset, method, 0)
        rows.loc[rows.index[-1], "validation_log_likelihood"] = last
        rows.to_csv(folder / name / "history.csv", index=False)
        said = status(dataset, method, 0, rows, False) | {"trial": name, "budget": {"epochs": 20}}
        (folder / name / "status.json").write_text(json.dumps(said))
    (folder / "chosen.json").write_text(json.dumps(choose(folder, grid, "validation_log_likelihood")))


def write_model(path: Path, words: str) -> None:
    """Write a model of texts with two classes, one named as said, of the fit that the status beside it tells of."""
    said = json.loads(path.with_name("status.json").read_text())
    known = {key: said[key] for key in (*IDENTITY, "status")}
    W = None if said["status"] == "diverged" else np.array([[1, -1, 0], [-1, 1, 0]], np.float32)
    transform = Transform("texts", words=("broken", "arm", "of"), token=r"\b\w\w+\b", weighting="binary")
    save_model(Model(W, [words, "other"], 3, transform=transform, attributes=known), path)


def _write_fit(results: Path, dataset: str, method: str, seed: int, diverged: bool, epochs: int) -> Path:
    folder = results / "fits" / dataset / method / f"seed-{seed}"
    folder.mkdir(parents=True)
    rows = history(dataset, method, seed, epochs)
    if diverged:
        rows = rows.iloc[:5].copy()
        rows.loc[4, "learning_rate":] = np.nan
    rows.to_csv(folder / "history.csv", index=False)
    said = status(dataset, method, seed, rows, diverged)
    (folder / "status.json").write_text(json.dumps(said, indent=1))
    (folder / "metrics.json").write_text(json.dumps(metrics(dataset, rows, diverged), indent=1))
    write_model(folder / "model.h5", f"{dataset} {method} {seed}")
    return folder
