"""How a fit tells how far it is: a bar on a terminal, a line per evaluation in a log file."""

import sys
from types import TracebackType

from tqdm import tqdm


class ProgressReport:
    """Follow training from 0 to 1; a context manager.

    Parameters
    ----------
    name : str
        What is being trained.
    done : float
        Where it starts: more than 0 after a resume.
    """

    def __init__(self, name: str, done: float) -> None:
        self._name = name
        self._is_terminal = sys.stderr.isatty()
        self._first = done
        layout = "{l_bar}{bar}| {postfix} {elapsed}<{remaining}"
        self._bar = tqdm(
            total=1.0, initial=done, desc=name, disable=not self._is_terminal, bar_format=layout, leave=False
        )

    def __enter__(self) -> "ProgressReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def advance(self, done: float, steps_per_second: float) -> None:
        """Move the bar."""
        self._bar.set_postfix_str(f"{steps_per_second:,.0f} steps/s", refresh=False)
        self._bar.update(done - self._bar.n)

    def evaluated(self, row: dict[str, float], done: float, seconds_left: float) -> None:
        """Say what an evaluation gave."""
        line = f"{self._name}: epoch {row['epoch']:g}, {row['seconds']:.2f} s trained"
        for key, label in (("validation_log_likelihood", "validation"), ("test_log_likelihood", "test")):
            if key in row:
                line += f", {label} {row[key]:.4f} nats"
        if row["seconds"] > 0:
            line += f", {row['step'] / row['seconds']:,.0f} steps/s"
            if done < 1:
                line += f", {seconds_left:.0f} s of training left"
        tqdm.write(line, file=sys.stderr)
