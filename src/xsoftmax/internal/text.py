"""Times, sizes and tables as people read them."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """Write a time with three digits, in the unit that suits it: "1.23 µs"."""
    scale, name = next((pair for pair in _SCALES if seconds >= pair[0]), _SCALES[-1])
    digits = seconds / scale
    return f"{digits:,.0f} {name}" if digits >= 100 else f"{digits:.3g} {name}"


def megabytes(n_bytes: float) -> str:
    """Write a size: "1,024 MB"."""
    return f"{n_bytes / 2**20:,.0f} MB"


def text_table(rows: Sequence[Mapping[str, str]], headings: Mapping[str, str], widths: Mapping[str, int]) -> str:
    """Align a table for a terminal; cells of the columns in ``widths`` are wrapped."""
    wrapped = [
        {key: textwrap.wrap(row[key], widths.get(key, 200), break_on_hyphens=False) or [""] for key in headings}
        for row in [headings, *rows]
    ]
    size = {key: max(len(line) for row in wrapped for line in row[key]) for key in headings}
    lines = []
    for row in wrapped:
        for k in range(max(map(len, row.values()))):
            parts = ((row[key][k] if k < len(row[key]) else "").ljust(size[key]) for key in headings)
            lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


def pruning_in_words(cost: Mapping[str, Any]) -> str:
    """Say in a line what pruning cost: see ``xsoftmax.evaluation.pruning``."""
    left = f"pruned: {cost['n_after']:,} of {cost['n_before']:,} weights are left"
    if not cost["before"]:
        return f"{left}; there are no validation rows to say what that costs"
    nats, share = ([cost[when][key] for when in ("before", "after")] for key in ("log_likelihood", "accuracy"))
    return (
        f"{left}; on validation rows log-likelihood {nats[0]:.4f} became {nats[1]:.4f} nats a row, accuracy "
        f"{share[0]:.4f} became {share[1]:.4f}"
    )
