"""What comes before the first step of a fit, and how long it takes."""

import sys
from dataclasses import dataclass

from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method
from xsoftmax.training.beginning import Beginning
from xsoftmax.training.plan import Plan


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

    @property
    def take_all(self) -> bool:
        """Whether a budget in seconds is spent before the first step."""
        budget = self.plan.seconds
        return budget is not None and 0 < budget <= self.seconds

    def check(self, dataset: str) -> None:
        """Refuse a budget that is spent before the first step; warn, if weights begin at something.

        Raises
        ------
        InputError
            If it is.
        """
        if not self.take_all:
            return
        if self.beginning.scale:
            start = self.method.settings["start"]["name"]
            said = f"no time is left for a step: the model is {start}; give more than {self.seconds:.3g} s"
            print(f"warning: {self.method.name} on {dataset}: {said}", file=sys.stderr)
            return
        raise InputError(
            f"{self.method.name} on {dataset}: a budget of {self.plan.seconds:g} s leaves no time for a step "
            f"({self}); "
            f"give more than {self.seconds:.3g} s, a budget in epochs, or a method without such a proposal"
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
