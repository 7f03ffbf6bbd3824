"""The measured rates that times are computed from, read from what `benchmark kernels` wrote."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xsoftmax import benchmark_file
from xsoftmax.errors import InputError

N_FEATURES = 512
N_SAMPLED = 5
TREE_CLASSES = 200_000
_THREADS = 2
_STEP = "profile of a step, dense, 512 features, 200,000 classes, 5 drawn"
_TWO_STEPS = "two threads, dense, 512 features, 200,000 classes"
_PAIR = "softmax, dense, 512 features, 20,000 classes, batches of 512, one thread"
_ONE_THREAD = "softmax, dense, 512 features, 2,000 classes, batches of 512, one thread"
_TWO_THREADS = "softmax, dense, 512 features, 2,000 classes, batches of 512, 2 threads"
_TREE = "a draw from the tree, 200,000 classes, 16 components"


class Rates(NamedTuple):
    """Seconds on one core, and how many times as fast two are.

    Attributes
    ----------
    step : float
        A sampled step of Adagrad, five classes drawn: six rows of weights.
    step_speedup : float
    pair : float
        One row and one class in a minibatch of the exact softmax: score, exponential, gradient, move.
    pair_speedup : float
    tree_draw : float
        A class drawn from a tree of 200,000.
    """

    step: float
    step_speedup: float
    pair: float
    pair_speedup: float
    tree_draw: float

    @property
    def busy_step(self) -> float:
        """Seconds of a step on a core whose neighbours work too."""
        return self.step * _THREADS / self.step_speedup

    @property
    def busy_pair(self) -> float:
        """Seconds of a pair on a core whose neighbours work too."""
        return self.pair * _THREADS / self.pair_speedup

    @property
    def busy_tree_draw(self) -> float:
        """Seconds of a draw on a core whose neighbours work too, slowed down as a step is."""
        return self.tree_draw * _THREADS / self.step_speedup


def read_rates(path: Path) -> tuple[Rates, dict[str, Any]]:
    """Read the rates, and the machine that they were measured on.

    Raises
    ------
    InputError
        If the file is missing, holds something else, or lacks a case.
    """
    content = benchmark_file.read(path, "kernels")
    runs = {found["name"]: found["runs"] for found in content["results"] if "runs" in found}

    def seconds(case: str, run: str) -> float:
        if run not in runs.get(case, {}):
            raise InputError(
                f"{path} has no case {case!r} with a run {run!r}; measure all: `python -m xsoftmax benchmark kernels`"
            )
        return float(np.median(runs[case][run]["seconds"]["wall"]))

    rates = Rates(
        step=seconds(_STEP, "draw, score, coefficients, move"),
        step_speedup=seconds(_TWO_STEPS, "floor") / seconds(_TWO_STEPS, "two threads"),
        pair=seconds(_PAIR, "adagrad") / 20_000,
        pair_speedup=seconds(_ONE_THREAD, "adagrad") / seconds(_TWO_THREADS, "adagrad"),
        tree_draw=seconds(_TREE, "drawn"),
    )
    return rates, content["machine"]
