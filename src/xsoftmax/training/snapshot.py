"""The arrays of a fit: what its solver, its best weights and its callbacks leave in a checkpoint, and take back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xsoftmax.internal.free_memory import check_free
from xsoftmax.solvers import Solver
from xsoftmax.training.best import BestWeights
from xsoftmax.training.callbacks import Callback


@dataclass(frozen=True)
class Snapshot:
    """Whose arrays they are: those of given callbacks have a dot in their names, all others are the fit's."""

    solver: Solver
    best: BestWeights | None
    given: Sequence[Callback]

    def arrays(self) -> dict[str, np.ndarray]:
        """Join the arrays of all."""
        found = {**self.solver.arrays(), **(self.best.arrays() if self.best else {})}
        for each in self.given:
            found |= each.arrays()
        return found

    def class_axis(self, name: str) -> int | None:
        """Say along which axis an array has the classes of this process; None: it has no classes."""
        if "." in name:
            return None
        return 0 if name == "best_W" else self.solver.class_axis(name)  # type: ignore[attr-defined]

    def restore(self, found: Mapping[str, Any]) -> None:
        """Take the arrays of a checkpoint; those that do not fit are refused before anything is changed.

        A callback that is not given any more loses what it kept; one that is new finds nothing.
        """
        more = sum(array.nbytes for array in found.values()) - sum(array.nbytes for array in self.arrays().values())
        check_free(more, "the arrays of the checkpoint")
        own = {name: array for name, array in found.items() if "." not in name}
        best = {name: array for name, array in own.items() if self.best and name.startswith("best_")}
        if self.best:
            self.best.check(best)
        self.solver.restore({name: array for name, array in own.items() if name not in best})
        if self.best:
            self.best.restore(best)
        for each in self.given:
            each.restore(found)
