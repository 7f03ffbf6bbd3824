"""Minibatches over all classes on PyTorch, in blocks of classes: never are there scores of all samples."""

from typing import Any

import numpy as np

from xsoftmax.gpu.device import SINGLE
from xsoftmax.gpu.same_bits import same_bits
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.proposals import Proposal, Size, TrainingSet
from xsoftmax.solvers._rules import first_broken, is_softmax, rules_of_minibatches
from xsoftmax.solvers._torch import MOST_BYTES, TorchSolver, rules_of_torch
from xsoftmax.solvers.full import MOST_SCORES, FullSolver

# Products that a device adds up in a second, for ranking.
PRODUCTS_A_SECOND = 1e13
# Of steps that are fused, at most.
BYTES_OF_A_SCORE, BYTES_OF_A_GRADIENT = 10, 32
# Of cuBLAS on one stream: see ``xsoftmax.gpu.same_bits``.
BYTES_OF_PRODUCTS = 2**25


class TorchFullSolver(TorchSolver):
    """Class-major weights for dense rows, feature-major ones for sparse rows."""

    takes = staticmethod(FullSolver.takes)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return first_broken([*rules_of_minibatches(method, "sgd or adagrad"), *rules_of_torch(method)])

    @staticmethod
    def memory(method: Any, size: Size, threads: int) -> dict[str, int]:
        """See ``Solver``: rows on their way to the device."""
        return {"rows on their way": min(MOST_BYTES, int(24 * size.n_samples * (size.n_entries + 1)))}

    @staticmethod
    def seconds(method: Any, size: Size) -> float:
        """See ``Solver``: scores twice, and the products of slopes with features."""
        return size.n_samples * 3 * size.n_classes * size.n_entries / PRODUCTS_A_SECOND

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: scores and what is made of them, the gradient of a block, and rows."""
        n_rows = min(method.proposal.batch_size, size.n_samples)
        if self._fused:
            block = _block(method, size)
            scores, gradient = BYTES_OF_A_SCORE * n_rows * block, BYTES_OF_A_GRADIENT * block * size.n_features
        else:
            n_scores = n_rows * size.n_classes
            # of other objectives all, and what torch keeps to differentiate
            held = 3 * min(n_scores, MOST_SCORES) if method.objective.sums_exponentials else 24 * n_scores
            scores, gradient = 4 * held, 8 * size.n_classes * (size.n_features + 1)
        rows = min(MOST_BYTES, int(20 * size.n_samples * (size.n_entries + 1)))
        found = {"scores of a minibatch": scores, "a gradient": gradient, "rows": rows}
        if self._place == "cuda":
            found["products of CUDA's libraries"] = BYTES_OF_PRODUCTS
            if self._fused and self._ranks.n_ranks == 1:
                batch = 4 * n_rows * (size.n_features + 4)
                found["recorded steps"] = scores + gradient + batch + BYTES_OF_PRODUCTS
        return found

    def __init__(self, method: Any, objective: Any, proposal: Proposal, data: TrainingSet, pool: ThreadPool) -> None:
        self._fused = self._fuses(method, data)
        super().__init__(method, objective, proposal, data, pool)
        import torch

        self._steps = self._steps_of(method, objective, data)
        self._batch_size = method.proposal.batch_size
        self.chunk = self._batch_size * max(1, 2048 // self._batch_size)
        self._batches_per_epoch = -(-data.n_samples // self._batch_size)
        self._labels, self._sets = data.y, data.label_sets
        self._averages = method.positives == "mean"
        self._torch: Any = torch

    def _fuses(self, method: Any, data: TrainingSet) -> bool:
        """Tell whether steps are those of ``xsoftmax.gpu.fused_softmax``."""
        return is_softmax(method) and data.label_sets is None and isinstance(data.X, np.ndarray)

    def _layout(self, method: Any) -> Any:
        """Say how the weights lie."""
        from xsoftmax.gpu.layouts import ClassMajor, FeatureMajor

        return (FeatureMajor if self._by_feature else ClassMajor)(self._weights)

    def _allocated(self, method: Any, shape: tuple[int, int]) -> Any:
        """See ``TorchSolver``: fused steps have biases apart, and weights of any precision."""
        if not self._fused:
            return super()._allocated(method, shape)
        from xsoftmax.gpu.weights import WeightsAndBiases

        n_classes, width = shape
        precision = method.precision if self.dtype == SINGLE else self.dtype
        of_samples = self._weights_of(method, (n_classes, width - 1), precision)
        return WeightsAndBiases(of_samples, self._weights_of(method, (n_classes, 1), self.dtype))

    def _steps_of(self, method: Any, objective: Any, data: TrainingSet) -> Any:
        from xsoftmax.gpu.full_steps import FullSteps
        from xsoftmax.gpu.fused_steps import FusedSteps

        decay = float(np.float32(method.shrinkage / max(1, data.n_samples)))
        if self._fused:
            block = _block(method, Size(data.n_samples, self._shard.n, data.X.shape[1], data.X.shape[1]))
            return FusedSteps(self._weights, method.bias, decay, block, data.seed + self._shard.first)
        return FullSteps(objective, self._layout(method), self._auxiliary, decay, MOST_SCORES)

    def advance(self, samples: np.ndarray, epoch: int, first: int, rate: float) -> int:
        """See ``Solver``."""
        if not samples.size:
            self._get_ready()
            return 0
        size, number = self._batch_size, epoch * self._batches_per_epoch + first // self._batch_size
        self._average.begin(samples, epoch, first)
        with same_bits(self._same), self._torch.no_grad():
            chosen = self._torch.from_numpy(samples).to(self._device)
            rows = self._features.chunk(samples)
            finite = []
            for begin in range(0, samples.size, size):
                stop = min(begin + size, samples.size)
                labels = self._labels_of(samples[begin:stop])
                at = (float(np.float32(rate)), number + begin // size)
                finite.append(self._steps.take(rows.cut(begin, stop), chosen[begin:stop], labels, *at))
            finite = self._torch.stack(finite).cpu().numpy()
        used = samples.size if finite.all() else int(np.argmin(finite)) * size
        self._average.end(number - -used // size)
        return used

    def _get_ready(self) -> None:
        """See ``TorchSolver``: fused steps compile."""
        super()._get_ready()
        if self._fused:
            with same_bits(self._same), self._torch.no_grad():
                self._steps.get_ready(min(self._batch_size, len(self._labels)))

    def _labels_of(self, samples: np.ndarray) -> Any:
        """Send the labels of a minibatch to the device."""
        from xsoftmax.gpu.full_steps import Labels

        numbers = np.arange(samples.size)
        if self._sets is None:
            counts, classes = np.ones(samples.size, np.int64), self._labels[samples]
        else:
            chosen = self._sets.of_rows(samples)
            counts, classes = np.diff(chosen.starts), chosen.classes
        share = 1 / counts if self._averages else np.ones(samples.size)
        arrays = (
            np.repeat(numbers, counts),
            classes.astype(np.int64),
            np.repeat(share, counts).astype(np.float32),
            (share * counts).astype(np.float32),
        )
        return Labels(*(self._torch.from_numpy(each).to(self._device) for each in arrays))


MEMBER = TorchFullSolver


def _block(method: Any, size: Size) -> int:
    """Choose how many classes are scored at a time, such that their weights, too, are no more than a block."""
    from xsoftmax.gpu.fused_softmax import block_size

    return block_size(max(min(method.proposal.batch_size, size.n_samples), size.n_features), size.n_classes)
