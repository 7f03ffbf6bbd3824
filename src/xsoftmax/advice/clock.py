"""How long a choice may take, and has taken: by the clock on the wall, whatever it spends it on."""

import math
import time


class Clock:
    """Wall seconds since it was made.

    ``limit`` is what they may come to, and ``setup`` the longest time so far that it took to read rows, fit a
    proposal and compile for one candidate.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit, self.setup, self._begin = limit, 0.0, time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._begin

    def excuse(self, seconds: float) -> None:
        """Leave so many seconds out, as of compiling, which is kept for the next time."""
        self._begin += seconds

    @property
    def left(self) -> float:
        """Seconds to the limit; below 0 once it is passed."""
        return self.limit - self.spent
