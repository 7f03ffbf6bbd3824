"""Serve: how long answers of a served model take, and what an index finds."""

from typing import Any

import seaborn as sns
from matplotlib.figure import Figure

from xsoftmax.internal.text import megabytes
from xsoftmax.lab.report.appearance import COLORS, MARKERS
from xsoftmax.lab.report.suites import style, table


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the tables ``serving``, of load, and ``recall``, of indices where one was measured."""
    found = {"serving": _load(content)} if content["load"] else {}
    return found | ({"recall": _recall(content["recall"])} if content["recall"] else {})


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw recall against the time of a row."""
    return {"recall": _draw(content["recall"])} if content["recall"] else {}


def _load(content: dict[str, Any]) -> str:
    rows = [
        (
            f"{each['classes']:,}",
            each["rows"],
            each["batches"],
            str(each["clients"]),
            f"{1e3 * each['p50']:.1f}",
            f"{1e3 * each['p99']:.1f}",
            f"{each['per_second']:.0f}",
            f"{1e3 * each['cpu_seconds']:.1f}",
            f"{each['start_seconds']:.0f} s",
            megabytes(each["memory_bytes"]),
        )
        for each in content["load"]
    ]
    headings = ["classes", "rows", "batches", "clients", "p50 (ms)", "p99 (ms)", "rows/s", "computed for a row (ms)"]
    headings += ["start", "memory"]
    return f"Workers: {content['workers']}.\n\n{table(headings, rows, right=7)}"


def _recall(results: list[dict[str, Any]]) -> str:
    rows = [
        (
            each["index"],
            str(each.get("probes", "–")),
            f"{each['recall_1']:.4f}",
            f"{each['recall_10']:.4f}",
            f"{each['accuracy']:.4f}",
            f"{1e3 * each['p50']:.2f}",
            f"{1e3 * each['p99']:.2f}",
            f"{1e3 * each['together']:.3f}",
            f"{each['log_probability_error']:.3f}",
            f"{each['building']:.1f} s" if "building" in each else "–",
        )
        for each in results
    ]
    headings = ["index", "probes", "recall@1", "recall@10", "accuracy", "a row (ms)", "p99 (ms)"]
    headings += ["in a batch (ms)", "log p off by", "building"]
    first = results[0]
    head = (
        f"{first['rows']:,} test rows of {first['data']}: {first['classes']:,} classes, {first['features']} features."
    )
    return f"{head}\n\n{table(headings, rows, right=9)}"


def _draw(results: list[dict[str, Any]]) -> Figure:
    with style():
        figure = Figure(figsize=(5.4, 3.4), layout="constrained")
        axes = figure.subplots()
        for k, index in enumerate(dict.fromkeys(each["index"] for each in results)):
            curve = [each for each in results if each["index"] == index]
            label = "all classes" if index == "none" else index
            xs, ys = [1e3 * each["p50"] for each in curve], [each["recall_10"] for each in curve]
            axes.plot(xs, ys, color=COLORS[k], marker=MARKERS[k], label=label)
        axes.set_xlim(left=0)
        axes.set_xlabel("ms computed for a row alone")
        axes.set_ylabel("recall at 10")
        axes.legend(frameon=False)
        sns.despine(figure)
    return figure
