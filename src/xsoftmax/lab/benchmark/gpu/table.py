"""What was measured, as a short table in text."""

from itertools import groupby
from operator import itemgetter
from typing import Any

HEADER = ("", "time", "peak beyond weights", "reached", "target")


def lines(found: dict[str, Any]) -> list[str]:
    """Give the table of a run: the device and its ceilings, what training takes, then one line per result."""
    limits = found["ceilings"]
    rates = ", ".join(f"{name} {rate / 1e12:.3g} TFLOP/s" for name, rate in limits.items() if name != "bandwidth")
    head = f"{found['device']['name']}: products {rates}; memory {limits['bandwidth'] / 1e9:.4g} GB/s"
    rows: list[tuple[str, ...]] = [HEADER]
    for part, results in groupby(found["results"], itemgetter("part")):
        rows += [(part, "", "", "", ""), *(_row(each) for each in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    texts = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    training = found["training"]
    taken = f"training takes: {training['way']}, blocks of {training['block_bytes'] / 2**20:g} MiB"
    return [head, taken, *(text.rstrip() for text in texts)]


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    if "left_out" in each:
        return f"  {each['name']}", "left out", "", each["left_out"], ""
    overhead = f" ({each['overhead']:.0%})" if "overhead" in each else ""
    verdict = {True: ": met", False: ": NOT MET", None: " (of a card)"}[each.get("met")]
    return (
        f"  {each['name']}",
        f"{each['value']:.3g} s/{each['unit']}",
        f"{each['peak_bytes_beyond'] / 1e9:.3g} GB{overhead}",
        each.get("reached", ""),
        f"{each['target']}{verdict}" if each.get("target") else "",
    )
