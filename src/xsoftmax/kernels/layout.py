"""How weights, and what an optimizer accumulates beside them, lie in memory.

Sampled methods touch a few classes: one row per class. Methods that see every class go the other way, one row
per feature, and convert once at the end.
"""

import numpy as np


class Plain:
    """One float32 per weight, (n_classes, width)."""

    copies = 1

    @staticmethod
    def allocate(n_classes: int, width: int, dense: bool, accumulator: float) -> np.ndarray:
        """Weights at zero."""
        return np.zeros((n_classes, width), np.float32)

    @staticmethod
    def weights(W: np.ndarray, dense: bool) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return W

    @staticmethod
    def start_biases(W: np.ndarray, dense: bool, biases: np.ndarray) -> None:
        """Set the biases, (n_classes,)."""
        W[:, -1] = biases


class Scaled:
    """One float32 per weight and, last in each row, a factor of its weights but the bias: (n_classes, width + 1)."""

    copies = 1

    @staticmethod
    def allocate(n_classes: int, width: int, dense: bool, accumulator: float) -> np.ndarray:
        """Weights at zero, factors at one."""
        W = np.zeros((n_classes, width + 1), np.float32)
        W[:, -1] = 1
        return W

    @staticmethod
    def weights(W: np.ndarray, dense: bool) -> np.ndarray:
        """Copy of the weights, (n_classes, width)."""
        weights = W[:, :-1].copy()
        weights[:, :-1] *= W[:, -1:]
        return weights

    @staticmethod
    def start_biases(W: np.ndarray, dense: bool, biases: np.ndarray) -> None:
        """Set the biases, (n_classes,)."""
        W[:, -2] = biases


class Interleaved:
    """Weight and accumulator: (n_classes, 2, width) for dense rows, (n_classes, width, 2) for sparse ones."""

    copies = 2

    @staticmethod
    def allocate(n_classes: int, width: int, dense: bool, accumulator: float) -> np.ndarray:
        """Weights at zero, accumulators at ``accumulator``."""
        W = np.zeros((n_classes, 2, width) if dense else (n_classes, width, 2), np.float32)
        if dense and accumulator:
            W[:, 1] = accumulator
        elif accumulator:
            W[:, :, 1] = accumulator
        return W

    @staticmethod
    def weights(W: np.ndarray, dense: bool) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return W[:, 0] if dense else W[:, :, 0]

    @staticmethod
    def start_biases(W: np.ndarray, dense: bool, biases: np.ndarray) -> None:
        """Set the biases, (n_classes,)."""
        Interleaved.weights(W, dense)[:, -1] = biases


class Stamped:
    """Weight, accumulator, and a stamp: the number of the step that touched them last, as int32 bits.

    Dense rows, (n_classes, 2, width + 1), have one stamp, after the weights, as a step touches all of a row; sparse
    ones, (n_classes, width, 3), one per entry.
    """

    copies = 3

    @staticmethod
    def allocate(n_classes: int, width: int, dense: bool, accumulator: float) -> np.ndarray:
        """Weights and stamps at zero, accumulators at ``accumulator``."""
        W = np.zeros((n_classes, 2, width + 1) if dense else (n_classes, width, 3), np.float32)
        if dense and accumulator:
            W[:, 1, :-1] = accumulator
        elif accumulator:
            W[:, :, 1] = accumulator
        return W

    @staticmethod
    def weights(W: np.ndarray, dense: bool) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return W[:, 0, :-1] if dense else W[:, :, 0]

    @staticmethod
    def start_biases(W: np.ndarray, dense: bool, biases: np.ndarray) -> None:
        """Set the biases, (n_classes,)."""
        Stamped.weights(W, dense)[:, -1] = biases
