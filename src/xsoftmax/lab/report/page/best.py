"""What the page shows of a data set's best model: what it takes for what, and whether its confidence is accuracy."""

from collections.abc import Sequence
from typing import Any

from xsoftmax.lab.report.page.winner import Verdict

SPLIT = "test"


def best_fit(found: Verdict | None, fits: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Collect what `evaluate` has said of the winner's best seed; None where there is no winner.

    Parameters
    ----------
    found : Verdict or None
    fits : sequence of dict
        Entries of ``fits.json`` of the data set.

    Returns
    -------
    dict
        ``method`` and ``seed``; ``calibration``: a row for each bin with ``confidence``, ``accuracy`` and ``n``;
        ``error``: the expected calibration error; ``confusions``: as `xsoftmax.evaluation.confusions` has them, or
        None where they are not known.
    """
    own = [fit for fit in fits if found is not None and (fit["method"], fit["seed"]) == (found.method, found.seed)]
    if not own:
        return None
    measured = own[0].get("metrics") or {}
    return {
        "method": own[0]["method"],
        "seed": own[0]["seed"],
        "calibration": _bins((measured.get("reliability") or {}).get(SPLIT) or {}),
        "error": (measured.get(SPLIT) or {}).get("expected_calibration_error"),
        "confusions": (measured.get("confusions") or {}).get(SPLIT),
    }


def _bins(found: dict[str, Any]) -> list[dict[str, float]]:
    names = ("confidence", "accuracy", "n")
    columns = [found.get(name, []) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
