"""A transform in an HDF5 file: stored, and checked before it is used, as the file may be from anyone."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import h5py
import numpy as np

from xsoftmax.data.encoding import word_pattern
from xsoftmax.data.names import Names
from xsoftmax.data.normalization import Step
from xsoftmax.data.transform import Transform
from xsoftmax.data.vocabulary import ANALYZERS, Cut
from xsoftmax.internal.hdf5 import attributes, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_below

# Of rows, and of the parts of a table.
KINDS = ("texts", "sparse", "dense", "table")
PARTS = ("texts", "categories", "dense")
WEIGHTINGS = ("tfidf", "counts", "binary")


def put_transform(group: h5py.Group, transform: Transform) -> None:
    """Store in an HDF5 group."""
    put(group, kind=transform.kind, n_columns=transform.n_columns, weighting=transform.weighting)
    put(group, steps=" ".join(step.kind for step in transform.steps), n_parts=len(transform.parts))
    put(group, analyzer=transform.analyzer, ngram_range=list(transform.ngram_range))
    put(group, sublinear_tf=transform.sublinear_tf)
    put_text(group, "token", transform.token)
    put_text(group, "source", json.dumps(transform.source, sort_keys=True))
    if transform.counts_words:
        Names(transform.words).to_group(group.create_group("words"))
    if transform.feature_names:
        Names(transform.feature_names).to_group(group.create_group("feature_names"))
    for name, array in (("columns", transform.columns), ("idf", transform.idf)):
        if array is not None:
            group.create_dataset(name, data=array)
    for number, step in enumerate(transform.steps):
        for name, array in sorted(step.arrays.items()):
            group.create_dataset(f"step-{number}/{name}", data=array)
    for number, part in enumerate(transform.parts):
        put_transform(group.create_group(f"part-{number}"), part)


def transform_of(group: h5py.Group, n_features: int) -> Transform:
    """Load what ``put_transform`` stored of a transform to so many features.

    Raises
    ------
    ContentError
        If it is none.
    """
    found, n = _restored(group)
    if n != n_features:
        raise ContentError(f"transform to {n} features, expected {n_features}")
    return found


def _restored(group: h5py.Group, is_part: bool = False) -> tuple[Transform, int]:
    """Load a transform, and tell to how many features it is."""
    found, names = attributes(group), {}
    for name in ("words", "feature_names"):
        names[name] = Names.from_group(group[name]) if name in group else Names()
        if (twice := names[name].repeated()) is not None:
            raise ContentError(f"{group.name}: {twice[:40]!r} comes twice in {name}")
    words, feature_names = tuple(names["words"]), tuple(names["feature_names"])
    kind, n_columns, weighting = str(found["kind"]), int(found["n_columns"]), str(found["weighting"])
    if kind not in (PARTS if is_part else KINDS) or weighting not in WEIGHTINGS or n_columns < 0:
        raise ContentError(f"transform of {kind} with {n_columns} columns, {weighting}")
    if feature_names and len(feature_names) != n_columns:
        raise ContentError(f"transform of {n_columns} columns with {len(feature_names)} names")
    restored = Transform(
        kind=kind,
        n_columns=n_columns,
        columns=_columns(group, n_columns),
        words=words,
        token=word_pattern(text_of(group["token"]), "token", groups=1).pattern,
        weighting=weighting,
        source=_source(json.loads(text_of(group["source"]))),
        feature_names=feature_names,
        **_cut(found),
    )
    n_parts = int(found["n_parts"]) if kind == "table" else 0
    inner = [_restored(group[f"part-{number}"], True) for number in range(n_parts)]
    restored = replace(restored, parts=tuple(part for part, _ in inner))
    _check_parts(restored)
    n = sum(n for _, n in inner) if inner else restored.n_raw
    if "idf" in group:
        check_array(group["idf"], np.float32, n)
        if not np.isfinite(group["idf"][()]).all():
            raise ContentError("weights of words that are NaN or infinite")
    steps = []
    for number, name in enumerate(str(found["steps"]).split()):
        arrays = group.get(f"step-{number}", {})
        step, n = Step.restored(name, {key: values[()] for key, values in arrays.items()}, n)
        steps.append(step)
    return replace(restored, idf=group["idf"][()] if "idf" in group else None, steps=tuple(steps)), n


def _columns(group: h5py.Group, n_columns: int) -> np.ndarray | None:
    if "columns" not in group:
        return None
    check_array(group["columns"], np.int64, None)
    check_below(group["columns"], n_columns)
    return group["columns"][()]


def _cut(found: Mapping[str, Any]) -> dict[str, Any]:
    """Check how texts are cut and weighed; files of before say nothing of it."""
    analyzer, sublinear_tf = found.get("analyzer", "word"), found.get("sublinear_tf", False)
    ngram_range = tuple(int(n) for n in found.get("ngram_range", (1, 1)))
    problem = Cut("", analyzer, ngram_range).problem
    if analyzer not in ANALYZERS or problem or not isinstance(sublinear_tf, bool):
        raise ContentError(f"analyzer {analyzer!r:.40}, sublinear_tf {sublinear_tf!r:.40}, ngram_range {problem}")
    return {"analyzer": analyzer, "ngram_range": ngram_range, "sublinear_tf": sublinear_tf}


def _check_parts(found: Transform) -> None:
    """Make sure that a table, and nothing else, has parts, and that these have names for all of its columns."""
    widths = [part.n_columns for part in found.parts]
    if (found.kind == "table") != bool(widths) or (widths and min(widths) < 1):
        raise ContentError(f"transform of {found.kind} with parts of {widths} columns")
    if widths and not sum(widths) == found.n_columns == len(found.feature_names):
        raise ContentError(f"transform of {len(found.feature_names)} columns with parts of {widths}")
    if any(part.kind == "texts" and part.n_columns != 1 for part in found.parts):
        raise ContentError(f"a part of texts with parts of {widths} columns")


def _source(found: Any) -> dict[str, Any]:
    """Check what a file says of the reader of its training rows, whose ``read_new`` takes options from it.

    Raises
    ------
    ContentError
        If it is nothing that a reader takes.
    """
    told = isinstance(found, dict) and isinstance(found.get("options", {}), dict)
    if not told or ("options" in found) > isinstance(found.get("format"), str):
        raise ContentError(f"source: {str(found)[:60]!r}, expected a format and its options")
    # by name, so that the fingerprint of training does not contain the readers
    import_module("xsoftmax.data.reading").check_options(found.get("format", ""), found.get("options", {}))
    return found
