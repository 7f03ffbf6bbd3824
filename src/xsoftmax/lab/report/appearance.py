"""How a method looks in every figure of every experiment: colour, marker and dash.

The methods of the quick start have looks of their own. Any other name gets one by its hash, so that adding a
method needs no edit here and changes only methods whose looks meet its own. Colours are those of Okabe and Ito
without the pale yellow; they stay apart under the common colour blindnesses, and marker and dash tell apart what
shares one.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple


class Appearance(NamedTuple):
    """What a line and its points are drawn with, in matplotlib's words."""

    color: str
    marker: str
    dash: tuple[float, ...]

    @property
    def linestyle(self) -> tuple[float, tuple[float, ...] | None]:
        """Give the dash as matplotlib takes it: lengths in line widths, none for an unbroken line."""
        return 0, self.dash or None


BLACK, BLUE, VERMILION = "#1a1a1a", "#0072b2", "#d55e00"
GREEN, ORANGE, SKY, PURPLE = "#009e73", "#e69f00", "#56b4e9", "#c45a95"
COLORS = (BLACK, BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE)
MARKERS = ("o", "s", "^", "D", "v", "P", "<", ">", "p", "h", "*")  # a cross says: diverged
SOLID: tuple[float, ...] = ()
DASHES: tuple[tuple[float, ...], ...] = ((5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5))

OWN = {
    "softmax": Appearance(BLACK, "o", SOLID),
    "one-vs-each": Appearance(GREEN, "s", SOLID),
    "negative-uniform": Appearance(SKY, "v", SOLID),
    "negative-frequency": Appearance(BLUE, "^", SOLID),
    "adversarial": Appearance(VERMILION, "D", SOLID),
    "u-max": Appearance(ORANGE, ">", SOLID),
    "implicit-sgd": Appearance(PURPLE, "P", SOLID),
}
OTHERS = [Appearance(color, marker, dash) for dash, marker, color in product(DASHES, MARKERS, COLORS)]


def appearances_of(methods: Iterable[str]) -> dict[str, Appearance]:
    """Give several methods their looks: none a colour twice while there are others, nor colour and marker ever.

    Where two hashes meet, the later name in the alphabet moves on to the next free look.
    """
    given: dict[str, Appearance] = {}
    for method in sorted(set(methods), key=lambda name: (name not in OWN, name)):
        colors = Counter(other.color for other in given.values())
        taken = {(other.color, other.marker) for other in given.values()}
        free = [choice for choice in _choices(method) if (choice.color, choice.marker) not in taken]
        given[method] = min(free, key=lambda choice: colors[choice.color])
    return given


def _choices(method: str) -> list[Appearance]:
    if method in OWN:
        return [OWN[method]]
    digest = hashlib.sha256(method.encode()).digest()
    place = int.from_bytes(digest[:8], "big") % len(OTHERS)
    return OTHERS[place:] + OTHERS[:place]
