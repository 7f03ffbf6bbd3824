"""Steps on a few drawn classes on PyTorch, minibatch by minibatch; draws are those of compiled code."""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.gpu.same_bits import same_bits
from xsoftmax.internal import registry
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.random import stream
from xsoftmax.proposals import Proposal, Size, TrainingSet, memory_of, parts_of
from xsoftmax.solvers import BYTES_A_SECOND
from xsoftmax.solvers._rules import first_broken, named, rules_of_draws
from xsoftmax.solvers._torch import MOST_BYTES, TorchSolver, rules_of_torch
from xsoftmax.solvers.sampled import (
    DEFAULT_CHUNK,
    decay_per_step,
    inverse_inclusion_of,
    minus_mean_log_q,
    solves_batches,
)

# Proposals that draw on a device: see ``xsoftmax.gpu.draws``.
PROPOSALS = ("uniform", "frequency", "head", "mixture", "tree")
# Objectives whose implicit step is there: keys of ``xsoftmax.gpu.implicit_one.SOLVED``.
SOLVED = ("double-sum", "double-sum-raman", "hinge")
# Of a piece of a chunk, whose classes are drawn together.
MOST_DRAWS = 2**20
# What a step gathers at a time: see ``xsoftmax.gpu.candidates``.
GATHERED = 2**24
# How much faster a device moves bytes than a core, for ranking.
FASTER = 50


class Draws(NamedTuple):
    """How classes are drawn: on the device, ``n`` beside a sample's own, and as compiled code has it."""

    sampler: Any
    n: int
    proposal: Proposal
    kernel: Any


class TorchSampledSolver(TorchSolver):
    """Class-major weights; classes are drawn on the device, and each class moves once in a step."""

    @staticmethod
    def takes(method: Any) -> bool:
        """See ``Solver``."""
        steps = method.optimizer.needs != "full_gradient" and not solves_batches(method)
        return method.proposal.draws and steps and method.weights == "dense"

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken([*rules_of_draws(method), *rules_of_torch(method), *_rules_of_device(method)])

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: rows on their way to the device, and what the proposal holds."""
        rows = {"rows on their way": min(MOST_BYTES, int(24 * size.n_samples * (size.n_entries + 1)))}
        return rows | memory_of(method.proposal, size)

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: what is touched is read and written."""
        touched = (method.n_sampled + 1) * size.n_entries * 4 * method.optimizer.copies
        return size.n_samples * 2 * touched / (FASTER * BYTES_A_SECOND)

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: what a step gathers, its gradient, draws, rows, and what the proposal holds."""
        n_classes = method.batch.size * (1 + _n_draws(method))
        entries = 20 if size.n_entries < size.n_features else 4
        return {
            "weights gathered for a step, and their gradient": int(
                4 * GATHERED + 4 * entries * n_classes * (size.n_entries + 1)
            ),
            "draws": 48 * max(MOST_DRAWS, n_classes),
            "rows": min(MOST_BYTES, int(20 * size.n_samples * (size.n_entries + 1))),
        } | memory_of(method.proposal, size)

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        super().__init__(method, objective, proposal, data, pool)
        import torch

        from xsoftmax.gpu.draws import sampler_of

        self._torch: Any = torch
        self._batch_size, self._seed = method.batch.size, data.seed
        n_draws = _n_draws(method)
        kernel = proposal.kernel(data.X)
        exact = getattr(kernel, "exact_classes", np.empty(0)).size
        sampler = sampler_of(kernel, self._device)
        self._y = torch.from_numpy(data.y.astype(np.int64)).to(self._device)
        draws = Draws(sampler, method.n_sampled + exact, proposal, kernel)
        self._steps = self._steps_of(method, objective, draws, data)
        given = data.start is not None and data.start.b is not None
        if method.bias_start == "minus-log-q" and not given:
            log_q = sampler.log_probability(torch.arange(data.n_samples, device=self._device), self._y)
            biases = minus_mean_log_q(log_q.cpu().numpy(), data.y, data.n_classes)
            self._weights.W[:, -1] = torch.from_numpy(biases[slice(*self._shard)]).to(self._weights.W)
        n_entries = data.X.size if isinstance(data.X, np.ndarray) else data.X.nnz
        row_bytes = 20 * (1 + n_entries // max(1, data.n_samples))
        most = min(DEFAULT_CHUNK, MOST_DRAWS // (1 + n_draws), MOST_BYTES // row_bytes)
        self.chunk = max(1, most // self._batch_size) * self._batch_size
        self._batches_per_epoch = -(-data.n_samples // self._batch_size)

    def _steps_of(self, method: Any, objective: Any, draws: Draws, data: TrainingSet) -> Any:
        """Make the steps."""
        from xsoftmax.gpu.implicit_one import ImplicitSteps
        from xsoftmax.gpu.sampled_steps import SampledSteps

        shrinkage, behind = self._shrinkage(method, draws.proposal, data), self._behind(method)
        parts = (method, objective, draws.sampler, draws.n, self._weights, self._auxiliary, shrinkage, behind)
        if method.optimizer.needs == "proximal":
            return ImplicitSteps(method.settings["objective"]["name"], *parts)
        return SampledSteps(*parts)

    def _behind(self, method: Any) -> Any:
        """Say how classes see rows; None: as they are."""
        return None

    def _shrinkage(self, method: Any, proposal: Proposal, data: TrainingSet) -> Any:
        """Say what makes weights smaller in a step."""
        from xsoftmax.gpu.shrinkage import Shrinkage

        inverse = np.empty(0, np.float32)
        if method.l2:
            inverse = inverse_inclusion_of(method, proposal, data.class_counts, data.n_samples)
        l2 = method.l2 / max(1, data.n_samples)
        return Shrinkage(l2, decay_per_step(method, data), self._torch.from_numpy(inverse).to(self._device))

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        if not samples.size:
            self._get_ready()
            return 0
        self._average.begin(samples, epoch, first)
        number = epoch * self._batches_per_epoch + first // self._batch_size
        with same_bits(self._same), self._torch.no_grad():
            finite = self._advanced(samples, epoch, first, rate, number).cpu().numpy()
        used = samples.size if finite.all() else int(np.argmin(finite)) * self._batch_size
        self._average.end(number - -used // self._batch_size)
        return used

    def _advanced(self, samples: np.ndarray, epoch: int, first: int, rate: float, number: int) -> Any:
        """Take the steps of a chunk; tell of each whether its scores are finite."""
        from xsoftmax.gpu.bits import starts
        from xsoftmax.gpu.sampled_steps import Chosen, Clock

        chosen = self._torch.from_numpy(samples).to(self._device)
        positions = first + self._torch.arange(samples.size, device=self._device)
        key = int(np.uint64(stream(self._seed, epoch)).view(np.int64))
        rows = Chosen(self._features.chunk(samples), chosen, self._y[chosen], starts(key, positions))
        return self._steps.run(rows, Clock(key, first, number), float(np.float32(rate)))


MEMBER = TorchSampledSolver


def _n_draws(method: Any) -> int:
    return method.n_sampled + getattr(method.proposal, "n_head", 0)


def _rules_of_device(method: Any) -> list[tuple[Any, str]]:
    """What of a method that draws has no code on PyTorch."""
    objective, proposal, optimizer = named(method)
    unknown = [part for part in parts_of(method.proposal) if registry.name_of(part) not in PROPOSALS]
    return [
        (
            unknown,
            f"{proposal} has no draws on PyTorch; take "
            f"{', '.join(PROPOSALS[:-1])} or {PROPOSALS[-1]}, or leave device out",
        ),
        (
            method.frequency_power,
            f"frequency_power is {method.frequency_power:g}, which PyTorch's solvers lack; leave it or device out",
        ),
        (
            method.optimizer.needs == "proximal" and method.settings["objective"]["name"] not in SOLVED,
            f"{optimizer} has no step for {objective} on PyTorch; take {', '.join(SOLVED)}, or leave device out",
        ),
        (
            getattr(method.objective, "learns_normalizer", False),
            f"learns_normalizer of {objective} is for compiled code, and device is {method.device}; leave one out",
        ),
    ]
