"""Few cases that together have every value of their axes, or every pair of values, that any case has."""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import pytest

Case = tuple[Any, ...]


def covering(cases: Sequence[Case], together: int, first: Sequence[Case] = ()) -> list[Case]:
    """Choose cases, greedily, that with ``first`` hold whatever any of them holds on ``together`` of its axes."""
    parts = [_parts(case, together) for case in cases]
    missing = set().union(*parts).difference(*(_parts(case, together) for case in first))
    chosen = []
    while missing:
        best = max(range(len(cases)), key=lambda n: len(missing & parts[n]))
        chosen.append(cases[best])
        missing -= parts[best]
    return chosen


def in_tiers(cases: Sequence[Case], few: Sequence[Case] | None = None) -> list[Any]:
    """Make parameters of a test: ``few``, by default a cover of all values, then, slow, those that add every pair."""
    few = covering(cases, 1) if few is None else few
    return [*few, *(pytest.param(*case, marks=pytest.mark.slow) for case in covering(cases, 2, few))]


def _parts(case: Case, together: int) -> set[Hashable]:
    """What a case holds, as it prints: parts of a method that have equal parameters are equal tuples."""
    return set(combinations(enumerate(map(repr, case)), together))
