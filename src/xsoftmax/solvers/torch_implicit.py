"""Implicit steps on minibatches, many classes and an L2 penalty, on PyTorch: see ``xsoftmax.solvers.implicit``."""

from typing import Any

import numpy as np

from xsoftmax.proposals import Size, TrainingSet
from xsoftmax.solvers.implicit import ImplicitSolver, inclusion_of
from xsoftmax.solvers.torch_sampled import Draws, TorchSampledSolver

# Arrays of float64, of the classes of a batch times its rows, that a step holds: numbers, directions, images.
HELD = 16


class TorchImplicitSolver(TorchSampledSolver):
    """As ``TorchSampledSolver``, but a batch shares its draws, and its step is solved for all of it together."""

    takes = staticmethod(ImplicitSolver.takes)

    @staticmethod
    def refuses(method: Any) -> str:
        """See ``Solver``."""
        return ImplicitSolver.refuses(method) or TorchSampledSolver.refuses(method)

    def room(self, method: Any, size: Size) -> dict[str, int]:
        """See ``TorchSolver``: and what a step is solved with."""
        n, n_draws = method.batch.size, method.n_sampled + getattr(method.proposal, "n_head", 0)
        held = 8 * (HELD * n * (n + n_draws) + n * n)
        return super().room(method, size) | {"a step's equations": held}

    def _steps_of(self, method: Any, objective: Any, draws: Draws, data: TrainingSet) -> Any:
        """See ``TorchSampledSolver``."""
        from xsoftmax.gpu.implicit_steps import JointSteps, Penalty

        size, counts = method.batch.size, data.class_counts
        found = inclusion_of(draws.proposal, draws.kernel, counts, method.n_sampled, size)
        inverse = self._torch.from_numpy(found.inverse).to(self._device)
        l2 = float(np.float32(method.l2 / max(1, data.n_samples)))
        penalty = Penalty(l2, inverse, (float(found.share[0]), float(found.share[1])))
        return JointSteps(size, draws.n, draws.sampler, self._weights, self._auxiliary, penalty)


MEMBER = TorchImplicitSolver
