"""What is asked on one data set: its methods as training builds them, how long they train, what is searched."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from xsoftmax.data.config import DatasetConfig
from xsoftmax.data.reading import READERS
from xsoftmax.internal.addresses import stamped_without_secrets
from xsoftmax.methods import AUTO, Method, component_modules, merged
from xsoftmax.proposals import parts_beforehand, settings_of

LONGEST_NAME = 200  # bytes; most file systems allow 255, and some files have more to their names
PROSE = {"title", "description", "homepage", "licence", "citation"}


class Dataset(NamedTuple):
    """A data set, and the file that describes it."""

    file: Path
    content: DatasetConfig

    @property
    def local_files(self) -> list[str]:
        """Files of the user's own that it is made of; those in a folder one by one, as its date hides edits."""
        return [str(file) for file in self.content.local_files()]

    @property
    def sources(self) -> list[dict[str, Any]]:
        """What `download` depends on, as it may be printed and stored."""
        return [stamped_without_secrets(asdict(source)) for source in self.content.files]

    @property
    def settings(self) -> dict[str, Any]:
        """What `prepare` depends on."""
        settings = {key: value for key, value in asdict(self.content).items() if key not in PROSE}
        return settings | {"files": self.sources, "folder": str(self.file.parent)}

    @property
    def reader(self) -> str:
        """Name the module that reads it."""
        return f"{READERS}.{self.content.format.replace('-', '_')}"


@dataclass(frozen=True)
class Task:
    """What is asked on one data set.

    Attributes
    ----------
    seeds : list of int
    budget, evaluate : dict
        As in the config.
    budgets : dict
        Of methods whose fits train for longer, or less long, than the others'.
    changes : dict
        What the config changes of each method.
    methods : dict
        Settings of each method, changes included; of ``auto``, those of all that it chooses among.
    likes : dict
        Where the config defines a method: the one of the methods file that it is like.
    built : dict
        The same methods, but for ``auto``, as training builds them.
    search : dict
        As in the config: how settings are searched, if they are.
    grid : dict
        Of methods whose settings are searched, the changes that are tried, by the name of the trial.
    """

    seeds: list[int]
    budget: dict[str, Any]
    evaluate: dict[str, Any]
    budgets: dict[str, dict[str, Any]]
    changes: dict[str, dict[str, Any]]
    methods: dict[str, dict[str, Any]]
    likes: dict[str, str]
    built: dict[str, Method]
    search: dict[str, Any]
    grid: dict[str, dict[str, dict[str, Any]]]

    def proposals(self, method: str) -> dict[str, dict[str, Any]]:
        """Settings of the proposals of ``method`` that are fitted beforehand, by a name made of their parameters.

        Methods with equal ones share them.
        """
        if method == AUTO:  # if it takes one, it fits it
            return {}
        return proposals_of(self.built[method])

    @property
    def all_proposals(self) -> dict[str, dict[str, Any]]:
        """Settings of all proposals of the methods that are fitted beforehand, by name, in order."""
        found = {name: settings for method in self.methods for name, settings in self.proposals(method).items()}
        return dict(sorted(found.items()))

    def components(self, method: str) -> list[str]:
        """Name the modules of the library that make up ``method``, one per axis."""
        return component_modules(self.methods[method])

    def settings(self, method: str, point: str | None = None) -> dict[str, Any]:
        """Return all that the training of ``method`` depends on, or a trial of it."""
        settings = {key: value for key, value in self.methods[method].items() if key != "source"}
        return merged(settings, self.grid[method][point]) if point is not None else settings

    def device(self, method: str) -> str:
        """Tell where ``method`` asks to be trained, or ``auto`` to choose."""
        return self.changes.get(AUTO, {}).get("device", "numba") if method == AUTO else self.built[method].device

    def budget_of(self, method: str) -> dict[str, Any]:
        """Return how long fits of ``method`` train."""
        return self.budgets.get(method, self.budget)

    def trial_budget_of(self, method: str) -> dict[str, Any]:
        """Return how long trials of ``method`` train: as its fits do, unless the search says otherwise."""
        return self.search.get("budget", self.budget_of(method))

    def plan_of(self, method: str) -> dict[str, Any]:
        """Return how long fits of ``method`` train, and when they are looked at."""
        return self.budget_of(method) | self.evaluate

    @property
    def plan(self) -> dict[str, Any]:
        """Return how long fits train, and when they are looked at; of methods with budgets of their own, these."""
        return self.budget | self.evaluate | ({"budgets": self.budgets} if self.budgets else {})


def proposals_of(method: Method) -> dict[str, dict[str, Any]]:
    """Give the settings of proposals that are fitted beforehand, by a name made of their parameters."""
    return {_name_of(settings): settings for settings in map(settings_of, parts_beforehand(method.proposal))}


def _name_of(settings: Mapping[str, Any]) -> str:
    """Name a proposal by its parameters, as a file is called; by a hash of them if they are many, or nested."""
    values = {key: value for key, value in settings.items() if key != "name"}
    whole = json.dumps(values, sort_keys=True)
    named = "_".join([settings["name"], *(f"{key}-{json.dumps(value)}" for key, value in values.items())])
    if len(named) <= LONGEST_NAME and not any(isinstance(value, dict | str) for value in values.values()):
        return named
    return f"{settings['name']}_{hashlib.sha256(whole.encode()).hexdigest()[:16]}"
