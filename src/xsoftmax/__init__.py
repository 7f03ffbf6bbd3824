"""Train a softmax over very many classes.

The pieces are three independent axes (objective, proposal, optimizer); a method is a point in their product.
"""

from importlib import import_module
from typing import Any

from xsoftmax.internal.fingerprint import point_numba_cache_at_sources

__version__ = "0.1.0"

point_numba_cache_at_sources()
# What is imported when it is asked for, from where: by name, so that no command depends on it.
_LATE = {
    "MultiLabelClassifier": "xsoftmax.estimators.multi_label",
    "SoftmaxClassifier": "xsoftmax.estimators.softmax",
}


__all__ = ["MultiLabelClassifier", "SoftmaxClassifier", "__version__"]


def __dir__() -> list[str]:
    return [*globals(), *_LATE]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
