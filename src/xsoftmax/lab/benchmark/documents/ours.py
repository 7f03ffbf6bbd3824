"""The method that takes part in the benchmark of documents: one of config/methods.yaml, and how long it trains.

Validation rows of 10,000 classes chose the method, what is changed of it, and the epochs, for all numbers of classes.
A class has so few rows that each of them is much of the class's mean: the margin is as wide as the weights are long.
"""

from typing import Any

from xsoftmax.internal.shipped import methods_file
from xsoftmax.methods import merged, read_methods

NAME = "text-margin"
CHANGES: dict[str, Any] = {
    "objective": {"margin": 33.0},
    "optimizer": {"learning_rate": 5.0},
    "average": "none",
    "calibration": "none",  # the benchmark asks for no probabilities
    "schedule": {"name": "linear"},
}
EPOCHS = 3


def settings() -> dict[str, Any]:
    """Read the settings of the method, and change them."""
    return merged(read_methods(methods_file())[NAME], CHANGES)
