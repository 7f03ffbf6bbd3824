"""How long work tells how far it is: a bar on a terminal, a line now and then in a log file."""

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0


class Progress(AbstractContextManager["Progress"]):
    """Follow some work; a context manager.

    Parameters
    ----------
    name : str
        What is being done.
    unit : str
        What is counted.
    done : float
        Where it starts: more than 0 after a resume.
    total : float, optional
        Where it ends, if that is known.
    """

    def __init__(self, name: str, unit: str, done: float = 0.0, total: float | None = None) -> None:
        self._name, self._unit, self._total = name, unit, total
        self._said = time.monotonic()
        layout = "{l_bar}{bar}| {n:.4g}/{total:.4g} {unit} [{elapsed}<{remaining}{postfix}]" if total else None
        hidden = not sys.stderr.isatty()
        self._bar = tqdm(desc=name, unit=unit, initial=done, total=total, disable=hidden, bar_format=layout)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.refresh()
        self._bar.close()

    def move_to(self, done: float, note: str = "") -> None:
        """Move the bar; or write a line, if the last one is some seconds old."""
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)
        if self._bar.disable and time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            of = f" of {self._total:.4g}" if self._total else ""
            self.say(f"{done:.4g}{of} {self._unit}{', ' if note else ''}{note}")

    def say(self, message: str) -> None:
        """Write a line, above the bar if there is one."""
        self._said = time.monotonic()
        tqdm.write(f"{self._name}: {message}", file=sys.stderr)
