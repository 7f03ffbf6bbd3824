"""Which of our modules a verb is made of."""

from pathlib import Path

from xsoftmax.commands import verbs
from xsoftmax.internal.fingerprint import _closure, modules_below, source_of

# Found by name when a verb runs, and so not seen among its imports.
COMPONENTS = {
    "prepare": ["xsoftmax.data.readers"],
    "proposal": ["xsoftmax.proposals"],
    "train": [
        f"xsoftmax.{name}"
        for name in ("solvers", "objectives", "proposals", "optimizers", "starts", "advice", "evaluation.metrics")
    ],
    **{verb: ["xsoftmax.evaluation.metrics"] for verb in ("choose", "compare", "evaluate", "report")},
}


def code(*parts: str) -> set[Path]:
    """Files of all that these verbs, or modules by dotted name, import from this package."""
    modules = {part if "." in part else verbs()[part] for part in parts}
    modules |= {module for part in parts for package in COMPONENTS.get(part, []) for module in modules_below(package)}
    return {source_of(module) for module in set().union(*map(_closure, modules))}
