"""What was measured, as the advice uses it: ``model.json`` beside this file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from xsoftmax.advice.learned import Learned, Measured
from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.methods import Method, build_method

FILE = Path(__file__).with_name("model.json")
CANDIDATES = Path(__file__).with_name("candidates.yaml")


@dataclass(frozen=True)
class Costs:
    """Of one method: coefficients of ``costs.terms`` for dense and for sparse rows.

    ``per_thread`` is how much of a thread's work each thread beyond the first one adds, ``setup`` the seconds that
    the fit of its proposal takes per unit of its ``fit_work``.
    """

    dense: Sequence[float]
    sparse: Sequence[float]
    per_thread: float
    setup: float = 0.0


@dataclass(frozen=True)
class CostModel:
    """Candidates, what their epochs cost, and what was learned about them.

    Attributes
    ----------
    machine : mapping
        Where it was measured.
    candidates : mapping of str to mapping
        Settings by name, as in the file of methods.
    costs : mapping of str to Costs
    experience : sequence of Learned
    origins : mapping of str to str
        Of candidates whose costs come from elsewhere than the machine, where from: see ``on_device``.
    """

    machine: Mapping[str, Any]
    candidates: Mapping[str, Mapping[str, Any]]
    costs: Mapping[str, Costs]
    experience: Sequence[Learned]
    origins: Mapping[str, str] = field(default_factory=dict)

    def method(self, name: str) -> Method:
        """Build a candidate."""
        return build_method(name, self.candidates[name])

    def as_json(self) -> dict[str, Any]:
        """Everything as JSON; epochs that are never reached are null."""
        return {
            "machine": self.machine,
            "candidates": self.candidates,
            "costs": {name: vars(costs) for name, costs in self.costs.items()},
            "experience": [
                {
                    "dataset": each.dataset,
                    "facts": each.statistics._asdict(),
                    "rates": each.rates,
                    "measured": {name: _rounded(measured) for name, measured in each.measured.items()},
                    "epochs": {
                        name: [None if value == float("inf") else float(f"{value:.4g}") for value in values]
                        for name, values in each.epochs.items()
                    },
                }
                for each in self.experience
            ],
        }


def _rounded(measured: Measured) -> dict[str, float]:
    return {key: float(f"{value:.3g}") for key, value in measured._asdict().items()}


def from_json(content: Mapping[str, Any]) -> CostModel:
    """Take what ``as_json`` gives."""
    experience = [
        Learned(
            each["dataset"],
            DatasetStatistics(**each["facts"]),
            {
                name: [float("inf") if value is None else value for value in values]
                for name, values in each["epochs"].items()
            },
            each["rates"],
            {name: Measured(**measured) for name, measured in each["measured"].items()},
        )
        for each in content["experience"]
    ]
    costs = {name: Costs(**each) for name, each in content["costs"].items()}
    return CostModel(content["machine"], content["candidates"], costs, experience)


@cache
def shipped() -> CostModel:
    """Read the model that comes with this package."""
    return from_json(json.loads(FILE.read_text(encoding="utf-8")))
