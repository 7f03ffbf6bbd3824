"""How the fit of a tree tells how far it is: a bar on a terminal, a line now and then in a log file."""

import sys
import time
from types import TracebackType

from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 10.0


class LevelReport:
    """Count levels of a tree; a context manager that is called with (levels done, levels)."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin = self._said = time.perf_counter()
        self._bar = tqdm(desc=name, unit="level", leave=False, disable=not sys.stderr.isatty())

    def __enter__(self) -> "LevelReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def __call__(self, done: int, total: int) -> None:
        """Move the bar, or write a line if the last one is some seconds old."""
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        now = time.perf_counter()
        if self._bar.disable and now - self._said > _SECONDS_BETWEEN_LINES:
            self._said = now
            line = f"{self._name}: level {done} of {total}, {now - self._begin:.0f} s"
            print(line, file=sys.stderr, flush=True)
