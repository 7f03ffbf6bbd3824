"""What makes weights smaller in a step on drawn classes, beside the gradient; biases stay."""

from typing import NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.weights import Weights

# What decay leaves of weights in a step, at least: as in ``xsoftmax.kernels.scaled``.
LEAST = 2.0**-7


class Shrinkage(NamedTuple):
    """An L2 penalty, which shrinks the classes that a step touches, or decay, which shrinks all.

    Attributes
    ----------
    l2, decay : float
        What weights lose per step and unit of the learning rate; one of them is 0.
    inverse_inclusion : Tensor of shape (n_classes,), or (0,)
        By which the penalty is weighed, so that all classes shrink alike on average; of shape (0,): by what a class's
        draws weigh. See ``xsoftmax.kernels.layout.Decayed``.
    """

    l2: float
    decay: float
    inverse_inclusion: Tensor

    def apply(self, weights: Weights, classes: Tensor, touches: Tensor, rate: float, number: int) -> None:
        """Shrink weights of shape (n_classes, n_features + 1) as a step does.

        Parameters
        ----------
        weights : Weights
        classes, touches : Tensor of shape (n, m)
            Classes that a batch looks at, and what each weighs there; 0 for those that count nothing.
        rate : float
            Learning rate.
        number : int
            Steps of the fit before.
        """
        if self.decay:
            weights.shrink((slice(None), slice(0, -1)), max(1 - rate * self.decay, LEAST), number)
        if self.l2:
            found, of_class = torch.unique(classes, return_inverse=True)
            total = torch.zeros(len(found), dtype=weights.W.dtype, device=found.device)
            total.index_add_(0, of_class.view(-1), touches.reshape(-1).to(total.dtype))
            by = total
            if len(self.inverse_inclusion):
                by = torch.where(total != 0, self.inverse_inclusion[found].to(total.dtype), 0.0)
            left = 1 - rate * self.l2 * by[:, None]
            if weights.part is not None:
                mine = weights.part.has(found)
                found, left = found[mine] - weights.part.shard.first, left[mine]
            weights.shrink((found, slice(0, -1)), left, number)
