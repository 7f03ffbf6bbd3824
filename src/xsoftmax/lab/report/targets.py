"""What ours were to reach beside other programs, and whether they did: config/peers.yaml's ``targets``, from records.

Which of ours counts, and at which look, validation rows say; test rows say what that comes to.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from xsoftmax.lab.report.leaderboard import summarise
from xsoftmax.lab.report.peers import OURS, line_of
from xsoftmax.lab.report.quality import Quality, measures_of, quality
from xsoftmax.lab.report.tables import number

HEADINGS = ("data", "measure", "target", "in at most", "ours", "reached", "at", "")


class Goal(NamedTuple):
    """A value to reach within some seconds; None where those who set it have no result."""

    value: float | None
    seconds: float | None


def targets_table(content: dict[str, Any]) -> str:
    """Write a table of targets and what was reached; empty where nothing was asked of the data sets there are.

    Parameters
    ----------
    content : dict
        ``datasets`` and ``targets``, as ``xsoftmax.lab.benchmark.peers.run`` returns them.
    """
    asked = content.get("targets", {})
    wanted = [name for name in asked.get("datasets", {}) if "entrants" in content["datasets"].get(name, {})]
    lines = [cells for name in wanted for cells in _rows(name, content["datasets"][name]["entrants"], asked)]
    if not lines:
        return ""
    rule = ["---", "---", "--:", "--:", "---", "--:", "--:", "---"]
    return "\n".join(line_of(cells) for cells in [list(HEADINGS), rule, *lines])


def limits(asked: dict[str, Any], dataset: str, entrants: dict[str, Any]) -> dict[str, float]:
    """Seconds in which ours are to reach what was asked on a data set, by measure: those known, each once."""
    if dataset not in asked.get("datasets", {}):
        return {}
    rows, today = summarise(entrants)["rows"], _today(asked)
    found = {
        measure: _goal(asked["datasets"][dataset], measure, rows, today).seconds for measure in measures_of(entrants)
    }
    by_seconds = {seconds: measure for measure, seconds in found.items() if seconds is not None}
    return {measure: seconds for seconds, measure in by_seconds.items()}


def _today(asked: dict[str, Any]) -> set[str]:
    return {f"{OURS}{name}" for name in asked["today"]}


def _rows(dataset: str, entrants: dict[str, Any], asked: dict[str, Any]) -> Iterator[list[str]]:
    """Cells of each measure, and of the memory of who is counted by accuracy."""
    rows, target = summarise(entrants)["rows"], asked["datasets"][dataset]
    today = _today(asked)
    ours = {name: entry for name, entry in entrants.items() if name.startswith(OURS) and name not in today}
    counted = None
    for measure, shown in measures_of(entrants).items():
        goal = _goal(target, measure, rows, today)
        counted, found = _best(ours, measure, goal.seconds)
        limit = "?" if goal.seconds is None else f"{number(goal.seconds)} s"
        yield [dataset, shown, _text(goal.value), limit, *_reached(counted, found), _verdict(goal, found)]
    memory, most = (rows[name]["memory_mb"] if name in rows else None for name in (counted, asked["memory"]))
    verdict = "unknown" if memory is None or most is None else "met" if memory <= most else "missed"
    yield [dataset, "MB while training", _text(most, 0), "", counted or "–", _text(memory, 0), "", f"**{verdict}**"]


def _goal(target: dict[str, Any], measure: str, rows: dict[str, Any], today: set[str]) -> Goal:
    value, limit = target[measure], target["seconds"]
    if isinstance(value, dict):
        best = _of(value["of"], measure, rows, today)
        value = None if best is None else best.value + value.get("plus", 0.0)
    timed = _of(limit["of"], measure, rows, today)
    return Goal(value, None if timed is None else limit["times"] * timed.seconds)


def _of(who: str, measure: str, rows: dict[str, Any], today: set[str]) -> Quality | None:
    """The best of those who are meant; one that is named and has no likelihood is timed by its accuracy."""
    if who in rows:
        return rows[who][measure] or rows[who].get("accuracy")
    peers = {name for name in rows if not name.startswith(OURS)}
    names = {"peers": peers, "today": today, "all": peers | today}.get(who, set())
    known = [rows[name][measure] for name in names if name in rows and rows[name][measure]]
    return max(known, key=lambda found: found.value, default=None)


def _best(ours: dict[str, Any], measure: str, seconds: float | None) -> tuple[str | None, Quality | None]:
    """Who of ours is the best on validation rows within the seconds; without a limit, of all its evaluations."""
    limit = float("inf") if seconds is None else seconds
    runs = [(name, [run]) for name, entry in ours.items() for run in entry.get("limited", [])]
    runs += [(name, entry["runs"]) for name, entry in ours.items()]
    known = [(name, each) for name, some in runs if (each := quality(some, measure, limit))]
    return max(known, key=lambda pair: pair[1].judged, default=(None, None))


def _reached(name: str | None, found: Quality | None) -> list[str]:
    return [name or "none in time", _text(found and found.value), f"{number(found.seconds)} s" if found else "–"]


def _verdict(goal: Goal, found: Quality | None) -> str:
    if goal.value is None or goal.seconds is None:
        return "**unknown**: who sets it has no result"
    if found is None:
        return "**missed**"
    return "**met**" if found.value >= goal.value else f"**missed** by {number(goal.value - found.value, digits=4)}"


def _text(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else number(value, digits=digits)
