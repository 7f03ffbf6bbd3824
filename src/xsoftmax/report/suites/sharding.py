"""Sharding: what a model spread over nodes holds, sends and takes, computed; and the simulation that checks it."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xsoftmax.report.durations import duration
from xsoftmax.report.looks import BLACK, BLUE, VERMILION
from xsoftmax.report.suites import style, table

GIB = 2**30
LOOKS = {"exact": (BLACK, "o"), "routed": (VERMILION, "s"), "stratified": (BLUE, "^")}
DASHES = ((4, 1.5), ())


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the tables ``rates``, ``nodes``, ``hardware``, ``sent``, ``sharding``, ``links`` and ``simulated``."""
    return {
        "rates": _rates(content["rates"]),
        "hardware": _hardware(content["hardware"]),
        "nodes": _nodes(content["memory"]),
        "sent": _sent(content["sent"]),
        "sharding": _times(content["times"]),
        "links": _links(content["times"], content["hardware"]),
        "simulated": _simulated(content["simulation"]),
    }


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw time against nodes, one panel per machine."""
    return {"sharding": _draw(pd.DataFrame(content["curves"]))}


def _rates(rates: dict[str, float]) -> str:
    rows = [
        ("a sampled step, 5 classes drawn, Adagrad, one core", duration(rates["step"])),
        ("the memory it touches", f"{rates['step_bytes'] / 1e3:.1f} kB"),
        ("sampled steps, two cores over one", f"{rates['step_speedup']:.2f}"),
        ("memory bandwidth that two cores reach so", f"{rates['bandwidth'] / 1e9:.1f} GB/s"),
        ("exact softmax, one row and one class, Adagrad, one core", duration(rates["pair"])),
        ("exact softmax, two cores over one", f"{rates['pair_speedup']:.2f}"),
        ("a draw from a tree of 200,000 classes, one core", duration(rates["tree_draw"])),
    ]
    return table(["512 features", "measured"], rows, right=1)


def _hardware(hardware: list[dict[str, Any]]) -> str:
    rows = [
        (
            each["name"],
            f"{each['cores']}",
            f"{each['memory'] / GIB:,.4g} GiB",
            "–" if each["bandwidth"] is None else f"{each['bandwidth'] / 1e9:.0f} GB/s",
            f"{_gigabits(each['network'])} Gbit/s",
            duration(each["latency"]),
        )
        for each in hardware
    ]
    sources = "\n".join(f"- {each['name']}: {each['source']}." for each in hardware)
    headings = ["node", "cores", "memory", "bandwidth", "network", "latency"]
    return f"{table(headings, rows, right=5)}\n\n{sources}"


def _nodes(memory: list[dict[str, Any]]) -> str:
    names = list(memory[0]["nodes"])
    rows = [
        (
            row["state"],
            f"{row['classes']:,}",
            f"{row['bytes'] / row['classes']:,.0f}",
            f"{row['bytes'] / 1e9:,.0f} GB",
            *(f"{row['nodes'][name]}" for name in names),
        )
        for row in memory
    ]
    headings = ["state", "classes", "bytes per class", "together", *(f"nodes: {name}" for name in names)]
    return table(headings, rows, right=len(headings) - 1)


def _sent(sent: list[dict[str, float]]) -> str:
    schemes = [name for name in sent[0] if name != "nodes"]
    rows = [(f"{row['nodes']}", *(f"{row[name]:,.0f}" for name in schemes)) for row in sent]
    return table(["nodes", *schemes], rows, right=len(schemes) + 1)


def _times(times: list[dict[str, Any]]) -> str:
    parts = ("computing", "sending", "waiting")
    rows = [
        (
            row["hardware"],
            row["scheme"],
            f"{row['classes']:,}",
            f"{row['nodes']}",
            *(_digits(row[part]) for part in parts),
            f"**{_digits(row['seconds'])}**",
        )
        for row in times
    ]
    return table(["node", "scheme", "classes", "nodes", *parts, "together"], rows, right=6)


def _links(times: list[dict[str, Any]], hardware: list[dict[str, Any]]) -> str:
    largest = max(row["classes"] for row in times)
    schemes = list(dict.fromkeys(row["scheme"] for row in times))
    links = {(row["hardware"], row["scheme"]): row["link"] for row in times if row["classes"] == largest}
    rows = [
        (each["name"], _gigabits(each["network"]), *(_gigabits(links[each["name"], name]) for name in schemes))
        for each in hardware
    ]
    return table([f"{largest:,} classes, Gbit/s", "has", *schemes], rows, right=len(schemes) + 1)


def _simulated(simulation: list[dict[str, Any]]) -> str:
    rows = [
        (
            row["scheme"],
            f"{row['nodes']}",
            "–" if row["visited"] is None else f"{row['visited']}",
            f"{row['steps']:,}",
            f"{row['counted']:.1f}",
            f"{row['formula']:.1f}",
            "–" if row["error"] is None else f"{row['error']:.0e}",
            "–" if row["deviation"] is None else f"{row['deviation']:.1f}",
        )
        for row in simulation
    ]
    headings = ["scheme", "nodes", "visited", "steps", "bytes per row, counted", "by the formula"]
    return table([*headings, "relative error", "standard errors"], rows, right=7)


def _digits(value: float) -> str:
    """Write three digits."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def _gigabits(bytes_per_second: float) -> str:
    return _digits(bytes_per_second * 8 / 1e9)


def _draw(curves: pd.DataFrame) -> Figure:
    with style():
        figure = Figure(figsize=(9.2, 3.6), layout="constrained")
        panels = figure.subplots(1, curves.hardware.nunique(), sharey=True)
        for axes, (name, panel) in zip(panels, curves.groupby("hardware", sort=False), strict=True):
            _panel(axes, panel)
            axes.set_title(str(name))
        panels[0].set_ylabel("seconds per million rows (log scale)")
        sizes = sorted(set(curves.classes))
        lines = [Line2D([], [], color=color, marker=marker, label=name) for name, (color, marker) in LOOKS.items()]
        lines += [
            Line2D([], [], color="#7a7a7a", dashes=dash or (None, None), label=f"{size:,} classes")
            for size, dash in zip(sizes, DASHES, strict=True)
        ]
        figure.legend(handles=lines, loc="outside lower center", ncols=5, frameon=False)
        sns.despine(figure)
    return figure


def _panel(axes: Axes, panel: pd.DataFrame) -> None:
    """Curves begin where the weights fit, which a marker says."""
    sizes = sorted(set(panel.classes))
    for row in panel.to_dict("records"):
        color, marker = LOOKS[row["scheme"]]
        dash = DASHES[sizes.index(row["classes"])]
        line: dict[str, Any] = {"color": color, "linestyle": (0, dash or None), "marker": marker, "markevery": [0]}
        axes.plot(row["nodes"], row["seconds"], **line)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    axes.minorticks_off()
    axes.set_xlabel("nodes (log scale)")
