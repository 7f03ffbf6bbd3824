"""Draws from a tree on a device, all of them level by level: see ``xsoftmax.tree.draws``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu import bits

# Log-odds beyond which a side is never taken, and the unit of the numbers that decide: as compiled code has them.
_RAREST, _TO_UNIT, _HALF_UNIT = -28.0, 2.0**-32, 2.0**-33


class TreeSampler:
    """A tree, and the training rows as it sees them.

    A draw takes a number of 64 bits for two levels, as compiled code does. Scores are rounded in another order there,
    so that a draw on the border between two sides may fall to the other one.
    """

    def __init__(self, kernel: Any, device: torch.device, weighed: Callable[[Tensor, Tensor], Any]) -> None:
        arrays = (kernel.weights, kernel.bias, kernel.class_of_leaf, kernel.leaf_of_class, kernel.Z)
        self._weights, self._bias, *numbers, self._Z = (
            torch.tensor(np.ascontiguousarray(array), device=device) for array in arrays
        )
        self._class_of_leaf, self._leaf_of_class = (each.to(torch.int64) for each in numbers)
        self._depth = (len(self._bias) - 1).bit_length()
        self._weighed = weighed

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Any:
        """See ``xsoftmax.gpu.draws.Sampler``; leaves nothing out."""
        words = (self._depth + 1) // 2
        skips = torch.arange(n, device=rows.device) * words
        states = bits.skipped(states[:, None], skips[None, :]).reshape(-1)
        z = self._Z[rows.repeat_interleave(n)]
        found = bits.numbers(states, max(1, words))
        nodes = torch.ones_like(states)
        log_q = torch.zeros(len(states), dtype=torch.float64, device=rows.device)
        for level in range(self._depth):
            number = bits.shifted(found[:, level // 2], 32) if level & 1 else bits.low_bits(found[:, level // 2])
            scores = self._scores(nodes, z)
            distance = scores.abs()
            e = torch.exp((-distance).clamp(min=_RAREST))
            unlikely = (number.to(torch.float32) * _TO_UNIT + _HALF_UNIT) * (1 + e) < e
            nodes = 2 * nodes + (unlikely == (scores <= 0)).to(torch.int64)
            log_q += _log_sigmoid(unlikely, distance)
        classes = self._class_of_leaf[nodes - len(self._bias)]
        return self._weighed(classes.reshape(-1, n), log_q.to(torch.float32).reshape(-1, n))

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``xsoftmax.gpu.draws.Sampler``."""
        leaves, z = self._leaf_of_class[classes] + len(self._bias), self._Z[rows]
        log_q = torch.zeros(len(leaves), dtype=torch.float64, device=rows.device)
        for level in range(self._depth):
            scores = self._scores(leaves >> (self._depth - level), z)
            right = (leaves >> (self._depth - level - 1)) & 1
            log_q += _log_sigmoid((right == 1) == (scores <= 0), scores.abs())
        return log_q.to(torch.float32)

    def _scores(self, nodes: Tensor, z: Tensor) -> Tensor:
        return (self._weights[nodes] * z).sum(1) + self._bias[nodes]


def _log_sigmoid(unlikely: Tensor, distance: Tensor) -> Tensor:
    """Log-probability of a node's likely or unlikely side, float64."""
    return (torch.where(unlikely, -distance, 0.0) - torch.log1p(torch.exp(-distance))).to(torch.float64)
