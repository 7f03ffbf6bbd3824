"""A fit of a few seconds as a program of its own, and its folder."""

from pathlib import Path

import numpy as np

from forked import run, xsoftmax

METHODS = """\
implicit:
  objective: {name: double-sum}
  proposal: {name: uniform}
  optimizer: {name: implicit, learning_rate: 0.3}
negative:
  objective: {name: negative-sampling, regularizer: 1.0e-3}
  proposal: {name: frequency, n_sampled: 3}
  optimizer: {name: adagrad}
adversarial:
  objective: {name: negative-sampling}
  proposal: {name: tree, dimension: 3}
  optimizer: {name: adagrad}
"""
N_CLASSES, N_FEATURES = 20, 8


def clustered(n_samples: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Rows around a centre for each class, and their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_samples)
    return rng.normal(size=(N_CLASSES, N_FEATURES))[y] + 0.5 * rng.normal(size=(n_samples, N_FEATURES)), y


def train(data: Path, folder: Path, method: str, *more: object) -> list[str]:
    """Give the command that trains a method into ``folder / "fit"``."""
    (folder / "methods.yaml").write_text(METHODS)
    words = ["train", data, "--methods", folder / "methods.yaml", "--method", method, "--seed", 3, *more]
    return xsoftmax(*words, "-o", folder / "fit")


KILLED = """
import os, signal
from xsoftmax.cli import main
from xsoftmax.commands import train
from xsoftmax.training.callbacks import Callback
class KillOnceSaved(Callback):
    def advanced(self, fit):
        if fit.plan.checkpoint.exists():
            os.kill(os.getpid(), signal.SIGKILL)
train.observers = lambda options: [KillOnceSaved()]
main()
"""


def checkpoint_of(words: list[str], kept: Path) -> bytes:
    """Read the checkpoint that a program has written by the time that it is killed."""
    run([words[0], "-c", KILLED, *words[3:]])
    assert kept.exists()
    return kept.read_bytes()
