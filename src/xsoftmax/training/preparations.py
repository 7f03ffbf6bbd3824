"""What comes before the first step of a fit, and how long it takes."""

import sys
from dataclasses import dataclass

from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method
from xsoftmax.training.beginning import Beginning
from xsoftmax.training.plan import Plan

# A warning is given where preparations take more of a budget in seconds.
MOST_OF_A_BUDGET = 0.5


@dataclass(frozen=True)
class Preparations:
    """What was prepared.

    Attributes
    ----------
    method : Method
    plan : Plan
    proposal : str
        Its name.
    proposal_seconds : float
        Of its fit, and of the fits of its parts that were fitted beforehand.
    beginning : Beginning
    compile_seconds : float
        Which no budget counts.
    """

    method: Method
    plan: Plan
    proposal: str
    proposal_seconds: float
    beginning: Beginning
    compile_seconds: float

    @property
    def seconds(self) -> float:
        """What a budget in seconds counts."""
        return self.proposal_seconds + self.plan.spent + self.beginning.seconds

    def check(self, dataset: str, budget: float | None = None) -> None:
        """Refuse a budget in seconds, the plan's or another, that is spent before the first step.

        Warn, if little of it is left, or weights begin at something.

        Raises
        ------
        InputError
            If it is, and weights begin at zero.
        """
        budget = self.plan.seconds if budget is None else budget
        if not budget or self.seconds <= MOST_OF_A_BUDGET * budget:
            return
        who = f"{self.method.name} on {dataset}"
        if self.seconds < budget:
            said = f"{self.seconds:.3g} of {budget:g} s are spent before the first step ({self})"
            print(f"warning: {who}: {said}; give more, or a budget in epochs", file=sys.stderr)
        elif self.beginning.scale:
            start = self.method.settings["start"]["name"]
            said = f"no time is left for a step: the model is {start}; give more than {self.seconds:.3g} s"
            print(f"warning: {who}: {said}", file=sys.stderr)
        else:
            raise InputError(
                f"{who}: a budget of {budget:g} s leaves no time for a step ({self}); give more than "
                f"{self.seconds:.3g} s, a budget in epochs, or a method without such a proposal"
            )

    def __str__(self) -> str:
        """Say what came before the first step, and what of it the budget counts."""
        parts = [f"compiled in {self.compile_seconds:.3g} s"]
        counts = ", which the budget counts" if self.plan.epochs is None else ""
        if self.plan.spent:
            parts.append(f"a choice took {self.plan.spent:.3g} s{counts}")
        if self.proposal_seconds:
            parts.append(f"proposal {self.proposal} was fitted in {self.proposal_seconds:.3g} s{counts}")
        if self.beginning.scale:
            name, found = self.method.settings["start"]["name"], self.beginning
            parts.append(f"weights begin at {name} times {found.scale:.3g}, found in {found.seconds:.3g} s{counts}")
        return "; ".join(parts)
