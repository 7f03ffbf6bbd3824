"""Expected calibration error: how far confidence is from accuracy, in bins (Guo et al., ICML 2017)."""

from xsoftmax.evaluation.metrics import Metric, RowScores
from xsoftmax.evaluation.reliability import reliability


def expected_calibration_error(rows: RowScores) -> float:
    """Average over bins, as ``evaluation.reliability`` makes them."""
    return reliability(rows).error


MEMBERS = [
    Metric(
        "expected_calibration_error",
        "calibration error",
        ["rank", "confidence"],
        expected_calibration_error,
        least=0,
        greatest=1,
        higher_is_better=False,
        at="end",
        shown=False,  # figures of reliability tell it
    )
]
