"""Where a step goes: an optimizer's rule, that of its compiled ``updated``, for many entries at once."""

from collections.abc import Callable

import torch
from torch import Tensor

# From a gradient, and what the optimizer keeps of the same entries, to what is subtracted per unit of the learning
# rate. Both may be overwritten; what is kept is changed in place.
Rule = Callable[[Tensor, Tensor | None], Tensor]


def along_gradient(g: Tensor, kept: Tensor | None) -> Tensor:
    """Go along the gradient: SGD, and what is solved for where its step ends."""
    return g


def adagrad(g: Tensor, kept: Tensor | None) -> Tensor:
    """Divide by the root of the sum of squares so far (Duchi et al. 2011), which begins above 0."""
    assert kept is not None
    kept.addcmul_(g, g)
    return g.div_(torch.sqrt(kept))


def stepped(before: Tensor, direction: Tensor, rate: float | Tensor) -> Tensor:
    """Give where a step along a direction of the same shape ends; its rate may be a Tensor without dimensions."""
    if isinstance(rate, Tensor):
        return torch.addcmul(before, direction, rate, value=-1)
    return torch.add(before, direction, alpha=-rate)


# By the optimizer's name.
RULES: dict[str, Rule] = {
    "sgd": along_gradient,
    "u-max": along_gradient,
    "implicit": along_gradient,
    "adagrad": adagrad,
}
