"""What a benchmark is made of: comparisons with a floor, and single quantities with a limit."""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """One comparison: each run does the same work; the first one is the floor that ratios refer to.

    Attributes
    ----------
    name : str
        Such as "sampled step, dense, 512 features, 200,000 classes".
    unit : str
        "step", "draw", "score", "row".
    work : int
        Units done by one call of a run.
    runs : dict of str to callable
        "floor" first, then such as "one thread", "two threads".
    limits : dict of str to float
        Largest promised ratio to the floor, by run; empty if none is promised.
    note : str
        What the floor is, in a sentence.
    """

    name: str
    unit: str
    work: int
    runs: dict[str, Callable[[], object]]
    limits: dict[str, float]
    note: str = ""


class Quantity(NamedTuple):
    """One number that is not a ratio of times, such as a count of compilations.

    Attributes
    ----------
    name : str
    unit : str
    read : callable
        Measures it, once.
    limit : float or None
        The largest that is promised.
    note : str
        How it is measured, in a sentence.
    """

    name: str
    unit: str
    read: Callable[[], float]
    limit: float | None = None
    note: str = ""
