"""Data sets as the workers read them: the same rows for all, as arrays, and as a prepared file for ours."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.data.config import load_config
from xsoftmax.data.dataset import SPLITS, Split
from xsoftmax.data.download import download
from xsoftmax.data.prepare import prepare
from xsoftmax.data.store import Prepared, open_prepared, write_prepared
from xsoftmax.internal.files import write_json


def prepared_file(name: str, data: Path = Path("data"), configs: Path = Path("config/datasets")) -> Path:
    """Path of a prepared data set, which is downloaded and prepared if it is not there.

    Raises
    ------
    InputError
        If it can't be downloaded here.
    """
    path = data / "prepared" / f"{name}.h5"
    if not path.exists():
        config = load_config(configs / f"{name}.yaml")
        download(config, data / "raw" / name, os.environ.get("XSOFTMAX_MIRROR"))
        prepare(config, data / "raw" / name, path)
    return path


def export(prepared: Path, folder: Path, rows: dict[str, int]) -> dict[str, Any]:
    """Write what workers read into ``folder``, unless it is there; return its ``meta.json``.

    Parameters
    ----------
    prepared : Path
    folder : Path
    rows : dict of str to int
        Most rows of ``validation`` and ``test``, chosen once at random.
    """
    meta_file, date = folder / "meta.json", prepared.stat().st_mtime_ns
    if meta_file.exists() and (meta := json.loads(meta_file.read_text(encoding="utf-8")))["source"] == [date, rows]:
        return meta
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    with open_prepared(prepared) as data:
        splits = {name: _some(data.split(name), rows.get(name)) for name in SPLITS}
        for name, split in splits.items():
            for part, values in _arrays(split).items():
                np.save(folder / f"{name}_{part}.npy", values)
        _write_prepared(data, splits, folder / "data.h5")
        meta = {"name": data.name, "storage": "csr" if data.sparse else "dense", "n_features": data.n_features}
        meta |= {"n_classes": data.n_classes, "source": [date, rows], "multilabel": data.multilabel}
        meta |= {f"n_{name}": split.n_samples for name, split in splits.items()}
    write_json(meta_file, meta)
    return meta


def _some(split: Split, most: int | None) -> Split:
    """At most ``most`` rows, in their order."""
    if most is None or split.n_samples <= most:
        return split
    chosen = np.sort(np.random.default_rng(0).permutation(split.n_samples)[:most])
    return split.with_labels_of(split.X[chosen], chosen)


def _arrays(split: Split) -> dict[str, np.ndarray]:
    labels = {"y": split.y} | ({} if split.label_sets is None else split.label_sets.arrays)
    if isinstance(split.X, np.ndarray):
        return {"X": split.X} | labels
    indptr = split.X.indptr.astype(np.int32)
    return {"data": split.X.data, "indices": split.X.indices.astype(np.int32), "indptr": indptr} | labels


def _write_prepared(data: Prepared, splits: dict[str, Split], path: Path) -> None:
    write_prepared(
        path,
        dataset=data.name,
        splits=splits,
        class_names=data.class_names,
        class_counts=data.class_counts,
        transform=data.transform,
        parameters=data.attributes["parameters"],
        source_sha256=data.attributes["source_sha256"],
        dropped=data.dropped,
        propensity=data.propensity,
    )
