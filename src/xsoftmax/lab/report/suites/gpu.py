"""A card: what exact and drawn softmax, losses of other programs and a large model take there, by its ceilings."""

from itertools import groupby
from operator import itemgetter
from typing import Any

from matplotlib.figure import Figure

from xsoftmax.internal.text import duration, megabytes
from xsoftmax.lab.report.suites import table

VERDICTS = {True: ", met", False: ", **not met**", None: ""}


def blocks(content: dict[str, Any]) -> dict[str, str]:
    """Give the block ``card``: the device and its ceilings, then a table for each part."""
    parts = [_ceilings(content)]
    for part, results in groupby(content["results"], itemgetter("part")):
        headings = ["way", "reached", "target", "time", "peak beyond weights"]
        parts.append(f"{part}:\n\n" + table(headings, [_row(each) for each in results], right=2))
    return {"card": "\n\n".join(parts)}


def figures(content: dict[str, Any]) -> dict[str, Figure]:
    """Draw nothing."""
    return {}


def _ceilings(content: dict[str, Any]) -> str:
    """Say which device it was, what it can do at best, and the rates that ``auto`` takes from it."""
    device, limits, rates = content["device"], content["ceilings"], content.get("rates")
    products = ", ".join(f"{name} {rate / 1e12:.3g}" for name, rate in limits.items() if name != "bandwidth")
    versions = f"PyTorch {device['torch']}" + (f", CUDA {device['cuda']}" if device.get("cuda") else "")
    text = (
        f"{device['name']}, {versions}: one large product runs at {products} TFLOP/s, a copy at "
        f"{limits['bandwidth'] / 1e9:.4g} GB/s."
    )
    if device["type"] != "cuda":
        text = f"This is no card, sizes are reduced, and figures say nothing of one. {text}"
    if training := content.get("training"):
        text += f" Exact softmax trains {training['way']}, in blocks of {training['block_bytes'] / 2**20:g} MiB."
    if rates:
        text += (
            f" Rates for `auto`: {rates['products']:.3g} products and {rates['bandwidth']:.3g} bytes a second, "
            f"{duration(rates['step_seconds'])} a step at least."
        )
    return text


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    if "left_out" in each:
        return each["name"], f"left out: {each['left_out']}".replace("|", "/"), "–", "–", "–"
    overhead = f" ({each['overhead']:.0%})" if "overhead" in each else ""
    target = f"{each['target']}{VERDICTS[each.get('met')]}" if each.get("target") else "–"
    return (
        each["name"],
        each.get("reached", "–"),
        target,
        f"{duration(each['value'])} per {each['unit']}",
        f"{megabytes(each['peak_bytes_beyond'])}{overhead}",
    )
