"""Averages of weights, for any solver that steps."""

from typing import Any

import numpy as np

from xsoftmax.kernels.layout import averaged


class Average:
    """The average of a method's weights over all of its steps, or over the later half of its epochs.

    How many epochs there will be is not known under a budget of seconds: an average begins anew after 1, 2, 4, 8 ...
    epochs, so that at the end of an epoch it is over that epoch at least, and over half of all at most.
    """

    def __init__(self, method: Any, weights: Any) -> None:
        self._half, self._averages = method.average == "half", method.average != "none"
        # those that list their entries list totals beside them
        self.weights = averaged(weights) if self._averages and not hasattr(weights, "period") else weights

    def begin(self, samples: np.ndarray, epoch: int, first: int) -> None:
        """Get ready for samples, if there are any, from position ``first`` of an epoch on."""
        doubled = first == 0 and epoch & (epoch - 1) == 0
        if self._half and doubled and samples.size:
            self.weights.start_again(int(self.weights.period[1]))

    def end(self, n_steps: int) -> None:
        """Note how many steps of the fit have been made."""
        if self._averages:
            self.weights.period[1] = max(n_steps, self.weights.period[1])

    def of_weights(self) -> Any:
        """Weights to be looked at and kept: their average, if there is one."""
        return self.weights.average() if self._averages else self.weights.weights()
