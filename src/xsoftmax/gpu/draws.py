"""Classes drawn on a device: the same ones, from the same random bits, that compiled code draws.

What is drawn derives from seed, epoch and position, never from the device or from what was drawn before.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from xsoftmax.gpu import bits
from xsoftmax.gpu.tree_draws import TreeSampler


class Drawn(NamedTuple):
    """Classes of n samples, int64 of shape (n, m), and of each its log-probability and its weight, float32.

    Weights are those of a sum over all classes: see ``xsoftmax.kernels.protocol.draw``.
    """

    classes: Tensor
    log_q: Tensor
    weights: Tensor


class Sampler(Protocol):
    """Draws on a device, from what a proposal gives the kernels."""

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """Draw n classes for each of some training rows, given by number, from random states, both int64.

        ``excluded``, int64: the class that a row's draws may leave out, or -1.
        """

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Log-probability, float32, with which a class is drawn for a row: both of the same shape (n,)."""


def sampler_of(kernel: Any, device: torch.device) -> Sampler:
    """Make the sampler of what a proposal gives the kernels: the same draws on a device."""
    return _SAMPLERS[type(kernel).__name__](kernel, device)


def on(device: torch.device, array: np.ndarray) -> Tensor:
    """Copy an array to a device; uint64 becomes int64 of the same bits."""
    array = np.ascontiguousarray(array)
    return torch.tensor(array.view(np.int64) if array.dtype == np.uint64 else array, device=device)


def weighed(classes: Tensor, log_q: Tensor) -> Drawn:
    """Weigh independent draws from one distribution by 1 / (n q)."""
    return Drawn(classes, log_q, torch.exp(-log_q) / classes.shape[1])


class UniformSampler:
    """Every class alike; of the others, without replacement, where the true one is left out."""

    def __init__(self, n_classes: int) -> None:
        self._n = int(n_classes)

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``Sampler``."""
        found, others = bits.numbers(states, n), self._n - 1
        leaves_out = (excluded >= 0)[:, None]
        classes = bits.below(found, self._n)
        if others:
            rest = distinct_below(found, others) if n <= others else bits.below(found, others)
            classes = torch.where(leaves_out, rest + (rest >= excluded[:, None]), classes)
        size = torch.where(leaves_out, float(max(1, others)), float(self._n)).to(torch.float64)
        log_q = (-torch.log(size)).to(torch.float32).expand(classes.shape)
        return Drawn(classes, log_q, (size.to(torch.float32) / n).expand(classes.shape))

    def draw_outside(self, labels: Tensor, states: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Draw distinct classes outside sorted labels, from one state, or all of these; give their weights, too."""
        others = self._n - len(labels)
        n = min(n, others)
        places = distinct_below(bits.numbers(states, n), others)[0]
        before = labels - torch.arange(len(labels), device=labels.device)  # of each label, classes that are none
        classes = places + torch.searchsorted(before, places, right=True)
        return classes, torch.full((n,), others / max(1, n), dtype=torch.float32, device=labels.device)

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``Sampler``."""
        return torch.full(classes.shape, -math.log(self._n), dtype=torch.float32, device=classes.device)


def distinct_below(found: Tensor, n: int) -> Tensor:
    """Turn bits, of shape (n_samples, m), into m distinct integers below n per sample: Floyd's way."""
    m = found.shape[1]
    out = torch.empty_like(found)
    for j in range(m):
        highest = n - m + j
        candidate = bits.below(found[:, j], highest + 1)
        taken = (out[:, :j] == candidate[:, None]).any(1)
        out[:, j] = torch.where(taken, highest, candidate)
    return out


class FrequencySampler:
    """By an alias table: see ``xsoftmax.proposals.frequency.alias_table``."""

    def __init__(self, kernel: Any, device: torch.device) -> None:
        self._table, self._log_q = on(device, kernel.table), on(device, kernel.log_probabilities)

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``Sampler``; leaves nothing out."""
        found = bits.numbers(states, n)
        classes = bits.below(found, len(self._table))
        entries = self._table[classes]
        kept = bits.low_bits(found) < bits.low_bits(entries)
        classes = torch.where(kept, classes, bits.shifted(entries, 32))
        return weighed(classes, self._log_q[classes])

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``Sampler``."""
        return self._log_q[classes]


class RestSampler:
    """Uniform draws from some classes: the tail of a head."""

    def __init__(self, kernel: Any, device: torch.device) -> None:
        self._classes, self._position = on(device, kernel.classes), on(device, kernel.position)
        self._inner = UniformSampler(kernel.classes.size)

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``Sampler``; where no class is left, draws count nothing."""
        size, known = len(self._classes), excluded >= 0
        position = torch.where(known, self._position[excluded.clamp(min=0)], -1)
        nothing = excluded.clamp(min=0)[:, None].expand(-1, n)
        zeros = torch.zeros(nothing.shape, device=nothing.device)
        if size == 0:
            return Drawn(nothing, zeros, zeros)
        drawn = self._inner.draw(rows, position, states, n)
        none_left = ((position == 0) & (size == 1))[:, None]
        return Drawn(
            torch.where(none_left, nothing, self._classes[drawn.classes]),
            torch.where(none_left, zeros, drawn.log_q),
            torch.where(none_left, zeros, drawn.weights),
        )

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``Sampler``."""
        size = max(1, len(self._classes))
        return torch.full(classes.shape, -math.log(size), dtype=torch.float32, device=classes.device)


class HeadSampler:
    """The head for certain, before what its tail draws; a draw that falls into the head counts nothing."""

    def __init__(self, kernel: Any, device: torch.device) -> None:
        self._exact, self._in_head = on(device, kernel.exact_classes), on(device, kernel.in_head)
        self._tail = sampler_of(kernel.tail, device)

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``Sampler``; of the n classes, the head's are the first."""
        tail = self._tail.draw(rows, excluded, states, n - len(self._exact))
        exact = self._exact.expand(len(rows), -1)
        zeros = torch.zeros(exact.shape, device=exact.device)
        weights = torch.where(self._in_head[tail.classes], 0.0, tail.weights)
        parts = zip((exact, zeros, zeros + 1), tail._replace(weights=weights), strict=True)
        return Drawn(*(torch.cat(pair, 1) for pair in parts))

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``Sampler``: 0 in the head."""
        return torch.where(self._in_head[classes], 0.0, self._tail.log_probability(rows, classes))


class MixtureSampler:
    """Each draw from the one part or the other."""

    def __init__(self, kernel: Any, device: torch.device) -> None:
        self._parts = [sampler_of(part, device) for part in (kernel.first, kernel.second)]
        self._share, self._logs = float(kernel.share), [float(kernel.log_first), float(kernel.log_second)]

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``Sampler``; leaves nothing out."""
        found = bits.numbers(states, 2 * n)
        coins, inner, each = found[:, ::2], found[:, 1::2].reshape(-1), rows.repeat_interleave(n)
        first, second = (part.draw(each, torch.full_like(each, -1), inner, 1) for part in self._parts)
        of_first = bits.uniform(coins).reshape(-1) < self._share
        classes = torch.where(of_first, first.classes[:, 0], second.classes[:, 0])
        log_q = self.log_probability(each, classes)
        return weighed(classes.reshape(-1, n), log_q.reshape(-1, n))

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``Sampler``."""
        first, second = (
            part.log_probability(rows, classes) + log for part, log in zip(self._parts, self._logs, strict=True)
        )
        return torch.logaddexp(first, second)


# By the names of the kernels' NamedTuples: to import their files would make every method depend on every proposal.
_SAMPLERS: dict[str, Any] = {
    "UniformDraws": lambda kernel, device: UniformSampler(kernel.n_classes),
    "FrequencyDraws": FrequencySampler,
    "RestDraws": RestSampler,
    "HeadDraws": HeadSampler,
    "MixtureDraws": MixtureSampler,
    "TreeDraws": lambda kernel, device: TreeSampler(kernel, device, weighed),
}
