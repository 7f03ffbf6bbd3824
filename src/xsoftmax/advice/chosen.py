"""What was chosen for a data set, why, and what that took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xsoftmax.advice.ranking import PILOT_SHARE
from xsoftmax.internal.text import duration
from xsoftmax.methods import Method
from xsoftmax.proposals import Proposal
from xsoftmax.training.plan import Plan, ever_rarer


@dataclass(frozen=True)
class Choice:
    """What was chosen, why, and what that took.

    Attributes
    ----------
    method : Method
        Named ``auto``.
    name : str
        Of the candidate that it is.
    sentence : str
    trials : sequence of dict
        Rates of the pilot and what they came to (see ``pilot``), and methods of a race (see ``race``); empty if there
        was neither.
    times : dict of str to dict
        Of candidates that were timed on the data: ``seconds_per_sample``, and ``seconds`` that this took.
    budget : float
        Epochs or seconds, as the plan's: what the fit should take, less than it may where a gap was asked for.
    took : float
        Seconds by the clock on the wall: of steps, compiling, reading rows, fitting proposals and scoring.
    allowed : float
        The share of a budget in seconds that it was to take at most.
    pace : float
        Seconds of an epoch; 0 if that is not known.
    proposal : Proposal or None
        The method's, if the pilot fitted it: not kept beside a checkpoint, as a fit fits the same one again.
    """

    method: Method
    name: str
    sentence: str
    trials: Sequence[dict[str, Any]]
    times: Mapping[str, Mapping[str, float]]
    budget: float
    took: float
    allowed: float = PILOT_SHARE
    pace: float = 0.0
    proposal: Proposal | None = field(default=None, compare=False)

    @property
    def seconds(self) -> float:
        """Seconds of all steps on the way: evaluation is not counted, as in a fit."""
        return sum(trial["seconds"] for trial in [*self.trials, *self.times.values()])

    def account(self, plan: Plan) -> str:
        """Say what the choice took, beside a plan's budget, as measured."""
        took = f"the choice took {duration(self.took)} by the clock, compiling and scoring included"
        if plan.epochs is not None or not self.budget:
            return f"{took}, beside the budget"
        share = self.took / self.budget
        percent = f"{100 * share:.0f}" if share >= PILOT_SHARE else f"{100 * share:.2g}"
        part = "its tenth" if self.allowed == PILOT_SHARE else f"{100 * self.allowed:.0f} %"
        over = "" if share <= self.allowed else f"; more than {part}, as loading and compiling are not cut short"
        return f"{took}: {percent} % of {duration(self.budget)}{over}"

    def planned(self, plan: Plan) -> Plan:
        """Plan the fit: what was spent on the way is part of a budget of seconds."""
        budget = {"seconds": self.budget} if plan.epochs is None else {"epochs": int(self.budget)}
        return replace(plan, spent=self.seconds, **budget)

    def evaluations(self, spent: float) -> tuple[float, ...]:
        """Give seconds at which to evaluate, of a budget of which so many are spent: after an epoch, then rarely.

        However little an epoch takes of the budget, a fit that is best after a few is found there.
        """
        first, left = self.pace or self.budget / 64, self.budget - spent
        return tuple(spent + after for after in ever_rarer(first, left))

    def as_json(self) -> dict[str, Any]:
        """Say which candidate, why, and what the pilot came to; a fit's status has the method's settings."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "trials": list(self.trials),
            "times": self.times,
            "budget": self.budget,
            "took": self.took,
            "allowed": self.allowed,
            "pace": self.pace,
            "seconds": self.seconds,
        }
