"""Times and sizes as people read them."""

_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """Write a time with three digits, in the unit that suits it: "1.23 µs"."""
    scale, name = next((pair for pair in _SCALES if seconds >= pair[0]), _SCALES[-1])
    digits = seconds / scale
    return f"{digits:,.0f} {name}" if digits >= 100 else f"{digits:.3g} {name}"


def megabytes(n_bytes: float) -> str:
    """Write a size: "1,024 MB"."""
    return f"{n_bytes / 2**20:,.0f} MB"
