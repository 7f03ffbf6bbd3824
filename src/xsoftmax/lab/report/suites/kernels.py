"""Kernels: each run's ratio to its floor, and where the time of a step goes."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from xsoftmax.internal.text import duration
from xsoftmax.lab.report.appearance import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION
from xsoftmax.lab.report.scales import plain_ticks
from xsoftmax.lab.report.suites import promised, style, table

PROFILE = "profile"
_COLORS = (SKY, BLUE, GREEN, ORANGE)


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the tables ``kernels``, ``quantities`` and ``profile``."""
    results = content["results"]
    return {"kernels": _kernels(results), "quantities": _quantities(results), "profile": _profile(results)}


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw what the tables say, those that there are rows for."""
    found, parts = ratios(content["results"]), shares(content["results"])
    drawn = {} if found.empty else {"kernels": _draw_ratios(found)}
    return drawn if parts.empty else drawn | {"profile": _draw_profile(parts)}


def ratios(results: list[dict[str, Any]]) -> pd.DataFrame:
    """Make one row per run that is compared with a floor."""
    rows = []
    for result in results:
        if "runs" in result and result["topic"] != PROFILE:
            floor, *others = result["runs"].items()
            known = {"topic": result["topic"], "case": result["name"], "unit": result["unit"], "note": result["note"]}
            known |= {"floor": _median(floor[1])}
            rows += [
                known | {"run": name, "seconds": _median(run), "limit": run["limit"]} | run["ratio"]["wall"]
                for name, run in others
            ]
    return pd.DataFrame(rows)


def shares(results: list[dict[str, Any]]) -> pd.DataFrame:
    """Make one row per part of a step: what it adds to the parts before it, in seconds and as a share of the whole.

    Differences of medians over the rounds; the parts are in the order in which a step does them.
    """
    rows = []
    for result in results:
        if "runs" in result and result["topic"] == PROFILE:
            upto = [(name.split(", ")[-1], _median(run)) for name, run in reversed(result["runs"].items())]
            case, before = result["name"].removeprefix("profile of a step, "), 0.0
            for part, seconds in upto:
                added = max(0.0, seconds - before)
                rows.append({"case": case, "part": part, "seconds": added, "share": added / upto[-1][1]})
                before = max(before, seconds)
    return pd.DataFrame(rows)


def _median(run: dict[str, Any]) -> float:
    return float(np.median(run["seconds"]["wall"]))


def _kernels(results: list[dict[str, Any]]) -> str:
    rows = [
        (
            row["topic"],
            f"{row['case']}: {row['run']}",
            f"{duration(row['floor'])} per {row['unit']}",
            duration(row["seconds"]),
            f"**{row['median']:.3f}** ({row['lower']:.3f} to {row['upper']:.3f})",
            promised(row["limit"], row["median"]),
        )
        for _, row in ratios(results).iterrows()
    ]
    return table(["topic", "what", "floor", "ours", "ratio (quartiles)", "at most"], rows, right=4)


def _quantities(results: list[dict[str, Any]]) -> str:
    rows = [
        (
            found["topic"],
            found["name"],
            found["note"],
            f"{found['value']:.3g}",
            promised(found["limit"], found["value"]),
        )
        for found in results
        if "runs" not in found
    ]
    return table(["topic", "what", "how", "value", "at most"], rows, right=2)


def _profile(results: list[dict[str, Any]]) -> str:
    parts = shares(results)
    if parts.empty:
        return ""
    names = list(dict.fromkeys(parts.part))
    rows = []
    for case, group in parts.groupby("case", sort=False):
        of = group.set_index("part")
        cells = [f"{of.share[name]:.0%} ({duration(of.seconds[name])})" for name in names]
        rows.append((str(case), *cells))
    return table(["a step of", *names], rows, right=len(names))


def _draw_ratios(found: pd.DataFrame) -> Figure:
    """One line per run: its ratio with quartiles, and the limit as a bar."""
    with style():
        figure = Figure(figsize=(9.6, 1.1 + 0.36 * len(found)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(found))[::-1]
        spread = [found["median"] - found.lower, found.upper - found["median"]]
        axes.axvline(1, color="#9a9a9a", linewidth=1, zorder=1)
        axes.errorbar(
            found["median"], places, xerr=spread, fmt="o", color=BLUE, capsize=3, label="measured, quartiles"
        )
        axes.plot(
            found.limit.astype(float), places, "|", color=VERMILION, markersize=15, markeredgewidth=2, label="at most"
        )
        axes.set_xscale("log")
        shown = pd.concat([found.lower, found.upper, found.limit.dropna().astype(float)])
        axes.xaxis.set_major_locator(FixedLocator(plain_ticks(shown.min(), shown.max())))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks(places, [fill(label, 72) for label in found["case"] + ": " + found["run"]])
        axes.set_ylim(-0.6, len(found) - 0.4)
        axes.set_xlabel("time relative to the floor (log scale)")
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        sns.despine(figure)
    return figure


def _draw_profile(parts: pd.DataFrame) -> Figure:
    """One bar per kind of step, its parts one after the other."""
    cases = list(dict.fromkeys(parts.case))
    with style():
        figure = Figure(figsize=(8.6, 1.2 + 0.42 * len(cases)), layout="constrained")
        axes = figure.subplots()
        places, left = np.arange(len(cases))[::-1], np.zeros(len(cases))
        for color, (part, group) in zip(_COLORS, parts.groupby("part", sort=False), strict=False):
            widths = group.set_index("case").seconds[cases].to_numpy() * 1e6
            axes.barh(places, widths, left=left, color=color, edgecolor=BLACK, linewidth=0.4, label=part, height=0.6)
            left += widths
        axes.set_yticks(places, cases)
        axes.set_xlabel("µs per step")
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper right", ncols=4, frameon=False)
        sns.despine(figure)
    return figure
