"""The rows of the benchmark of documents: generated, and written in the forms that programs read."""

from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.dataset import SPLITS, Split
from xsoftmax.data.readers import documents
from xsoftmax.data.store import write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.lab.benchmark.peers.exports import export

ROWS_OF_A_CLASS = 2.3
# Of validation and test, each.
ROWS_TO_LOOK_AT = 2_000
N_FEATURES = 135_000


def written(n_classes: int, folder: Path, n_features: int = N_FEATURES) -> dict[str, Any]:
    """Write texts of so many classes into ``folder``, unless they are there; return their ``meta.json``."""
    prepared = folder / "prepared.h5"
    if not prepared.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(prepared, n_classes, n_features)
    return export(prepared, folder / "exported", {})


def _write(path: Path, n_classes: int, n_features: int) -> None:
    n_samples = {"train": round(ROWS_OF_A_CLASS * n_classes), "validation": ROWS_TO_LOOK_AT, "test": ROWS_TO_LOOK_AT}
    splits = {}
    for part in SPLITS:
        rows = documents.read(part=part, n_samples=n_samples, n_classes=n_classes, n_features=n_features)
        splits[part] = Split(rows.features, rows.labels.astype(np.int32))
    write_prepared(
        path,
        dataset=f"documents, {n_classes:,} classes",
        splits=splits,
        class_names=[str(k) for k in range(n_classes)],
        class_counts=np.bincount(splits["train"].y, minlength=n_classes),
        transform=Transform("sparse", n_columns=n_features),
        parameters={},
        source_sha256={},
        dropped={},
    )
