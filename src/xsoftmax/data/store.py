"""The prepared file: one HDF5 file with splits, classes, and how to make features of new rows.

Layout (schema version 3): groups ``train``, ``validation`` and ``test``, each with ``y``, either a dense ``X`` or
``X/{indptr,indices,data}``, perhaps ``weight``, where rows may have several labels ``label_starts`` and
``label_classes``, and where pairs of a row and a class never count ``filter_starts`` and ``filter_classes``;
``classes/names/{text,ends}`` and ``classes/counts``; ``transform``; JSON texts ``parameters`` and ``source_sha256``;
the rest is in attributes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data.config import PROPENSITY
from xsoftmax.data.dataset import SPLITS, Dataset, Split, known_split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.names import Names
from xsoftmax.data.rows import csr_of
from xsoftmax.data.transform import Transform
from xsoftmax.data.transform_file import put_transform, transform_of
from xsoftmax.internal.checksummed import checksum_of, open_checksummed, opened, reading, written_checksummed
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5 import attributes, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import (
    ContentError,
    check_array,
    check_below,
    check_label_sets,
    check_sets,
    check_starts,
    check_weights,
)

REMEDY = "make it with `python -m xsoftmax prepare`"
CHUNK_BYTES = 2**18
PLAIN_ABOVE = 2**24  # bytes; decompressing takes 10 to 30 times as long as reading
PAGE = 4096
# What a split has beside features, where it has it.
LABELLING = ("y", "weight", "label_starts", "label_classes", "filter_starts", "filter_classes")


class Prepared(Dataset):
    """An open prepared file; a context manager. Only what is asked for is read.

    Labels and the places of features are compared with the sizes as it is opened: compiled code does not look again.
    """

    in_memory = False

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with ExitStack() as stack:
            self._file = stack.enter_context(open_checksummed(self.path, ["prepared"], REMEDY))
            self._checksum = checksum_of(self.path)
            with reading(self.path, REMEDY):
                self.attributes = _attributes(self._file)
                self.name = str(self.attributes["dataset"])
                self.sparse = _is_sparse(self.attributes["storage"])
                self.n_features = int(self.attributes["n_features"])
                self.n_classes = int(self.attributes["n_classes"])
                self.weighted = frozenset(split for split in SPLITS if "weight" in self._file[split])
                self.multilabel = "label_starts" in self._file["train"]
                self.propensity = _propensity(self.attributes)
                self._check()
            stack.pop_all()

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @cached_property
    def class_names(self) -> Names:
        """Original names of classes 0..n_classes-1."""
        with reading(self.path, REMEDY):
            return Names.from_group(self._file["classes/names"])

    @property
    def class_counts(self) -> np.ndarray:
        """See ``Dataset``."""
        with reading(self.path, REMEDY):
            return self._file["classes/counts"][:]

    @cached_property
    def transform(self) -> Transform:
        """What makes features of new raw rows."""
        with reading(self.path, REMEDY):
            return transform_of(self._file["transform"], self.n_features)

    @property
    def identity(self) -> str:
        """The file's checksum: the SHA-256 of all that it holds."""
        return self._checksum

    @property
    def dropped(self) -> dict[str, int]:
        """Rows that were left out as the file was made, by reason."""
        start = "n_dropped_"
        return {key.removeprefix(start): int(n) for key, n in self.attributes.items() if key.startswith(start)}

    def n_samples(self, split: str) -> int:
        """Count the rows of a split."""
        return int(self._group(split)["y"].shape[0])

    def n_entries(self, split: str) -> int:
        """Count the stored numbers of a split's features: of dense rows, all."""
        X = self._group(split)["X"]
        return int((X["data"] if self.sparse else X).size)

    def nbytes(self, split: str) -> int:
        """Bytes that a whole split takes in memory."""
        group = self._group(split)
        stored = list(group["X"].values()) if self.sparse else [group["X"]]
        return sum(dataset.nbytes for dataset in stored) + self.label_bytes(split)

    def label_bytes(self, split: str) -> int:
        """See ``Dataset``."""
        group = self._group(split)
        return sum(group[name].nbytes for name in LABELLING if name in group)

    def labels(self, split: str) -> np.ndarray:
        """Classes of all rows of a split, int32; of several labels the first."""
        with reading(self.path, REMEDY):
            return self._group(split)["y"][:]

    def labelling(self, split: str) -> dict[str, Any]:
        """Read what a ``Split`` has beside features, by its parameters: ``Split(X, **labelling)``."""
        with reading(self.path, REMEDY):
            return self._labelling(self._group(split), 0, self.n_samples(split))

    def array(self, split: str, name: str) -> h5py.Dataset:
        """Give an array of a split as it lies in the file, not read: ``y``, ``X``, ``X/data`` ..."""
        return self._group(split)[name]

    def split(self, split: str) -> Split:
        """Read a whole split; an InputError says if memory does not hold it."""
        check_free(self.nbytes(split), f"{self.path}: {split} rows")
        return self.rows(split, 0, self.n_samples(split))

    def rows(self, split: str, start: int, stop: int) -> Split:
        """Read rows start..stop-1 of a split; like a slice, the range is clipped to what is there."""
        group, n_samples = self._group(split), self.n_samples(split)
        start, stop = min(max(start, 0), n_samples), min(max(stop, 0), n_samples)
        stop = max(start, stop)
        with reading(self.path, REMEDY):
            X = self._csr(group["X"], start, stop) if self.sparse else group["X"][start:stop]
            return Split(X, **self._labelling(group, start, stop))

    def _check(self) -> None:
        """Look at the type and shape of every array, and at the range of all that is used as a place."""
        if self.n_features < 0 or self.n_classes < 0:
            raise ContentError(f"{self.n_features} features, {self.n_classes} classes")
        check_array(self._file["classes/names/ends"], np.int64, self.n_classes + 1)
        check_array(self._file["classes/counts"], np.int64, self.n_classes)
        for split in SPLITS:
            group = self._file[split]
            check_array(group["y"], np.int32, None)
            check_below(group["y"], self.n_classes)
            self._check_labelling(group)
            if not self.sparse:
                check_array(group["X"], np.float32, len(group["y"]), self.n_features)
                continue
            check_array(group["X/indptr"], np.int64, len(group["y"]) + 1)
            check_array(group["X/data"], np.float32, None)
            check_array(group["X/indices"], np.int32, len(group["X/data"]))
            check_starts(group["X/indptr"], len(group["X/data"]))
            check_below(group["X/indices"], self.n_features)

    def _check_labelling(self, group: h5py.Group) -> None:
        """As ``_check``, of weights, of several labels, and of those that never count."""
        if "weight" in group:
            check_array(group["weight"], np.float32, len(group["y"]))
            check_weights(group["weight"])
        if self.multilabel:
            check_label_sets(group["label_starts"], group["label_classes"], group["y"][:], self.n_classes)
        elif "label_starts" in group or "label_classes" in group:
            raise ContentError(f"{group.name} has several labels per row, training rows have one")
        if "filter_starts" in group or "filter_classes" in group:
            check_sets(group["filter_starts"], group["filter_classes"], len(group["y"]), self.n_classes)

    def _labelling(self, group: h5py.Group, start: int, stop: int) -> dict[str, Any]:
        found: dict[str, Any] = {name: group[name][start:stop] for name in ("y", "weight") if name in group}
        for name, kind in (("label_sets", "label"), ("filtered", "filter")):
            if f"{kind}_starts" in group:
                starts = group[f"{kind}_starts"][start : stop + 1]
                classes = group[f"{kind}_classes"][int(starts[0]) : int(starts[-1])]
                found[name] = LabelSets(starts - starts[0], classes)
        return found

    def _csr(self, group: h5py.Group, start: int, stop: int) -> csr_array:
        indptr = group["indptr"][start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        X = csr_of(group["data"][first:last], group["indices"][first:last], indptr - first, self.n_features)
        X.has_canonical_format = True
        return X

    def _group(self, split: str) -> h5py.Group:
        return known_split(self._file, split)


def _propensity(found: Mapping[str, Any]) -> tuple[float, float]:
    a, b = (float(found.get(f"propensity_{name}", PROPENSITY[i])) for i, name in enumerate("ab"))
    if not (0 < a < math.inf and 0 < b < math.inf):
        raise ContentError(f"propensity {a}, {b}")
    return a, b


def _is_sparse(storage: object) -> bool:
    if storage not in ("csr", "dense"):
        raise ContentError(f"storage {storage!r}")
    return storage == "csr"


def open_prepared(path: str | Path) -> Prepared:
    """Open a prepared file for reading; rows stay in it until they are asked for.

    Parameters
    ----------
    path : str or Path
        HDF5, as ``prepare`` writes it.

    Returns
    -------
    Prepared
        A ``Dataset``.

    Raises
    ------
    InputError
        If the file is missing, damaged, not a prepared file, or has another schema version.
    """
    return Prepared(path)


def origin(path: Path, remedy: str) -> dict[str, Any]:
    """Tell what a prepared file was made from, without reading its rows.

    Parameters
    ----------
    path : Path
    remedy : str
        What to do if it cannot be used: ends the error message.

    Returns
    -------
    dict
        ``dataset``, its name; ``parameters``, as ``prepare.parameters_of`` gives them; ``source_sha256``, by file.

    Raises
    ------
    InputError
        If it is no prepared file.
    """
    with opened(path, ["prepared"], remedy, whole=False) as file:
        known = _attributes(file)
        return {name: known[name] for name in ("dataset", "parameters", "source_sha256")}


def write_prepared(
    path: str | Path,
    *,
    dataset: str,
    splits: Mapping[str, Split],
    class_names: Sequence[str],
    class_counts: np.ndarray,
    transform: Transform,
    parameters: Mapping[str, Any],
    source_sha256: Mapping[str, str],
    dropped: Mapping[str, int],
    propensity: Sequence[float] = PROPENSITY,
) -> None:
    """Write a prepared file: aside, with a checksum, then renamed; the same input gives the same bytes.

    Parameters
    ----------
    splits : mapping of str to Split
        ``train``, ``validation`` and ``test``; X float32 (CSR or dense), y int32. All of them have several labels
        per row, or none has.
    dropped : mapping of str to int
        Counts of dropped rows, stored as attributes ``n_dropped_<key>``.
    propensity : sequence of two float
        See ``Dataset``.
    """
    X = splits["train"].X
    attributes = {
        "dataset": dataset,
        "storage": "csr" if issparse(X) else "dense",
        "n_features": X.shape[1],
        "n_classes": len(class_names),
        "propensity_a": float(propensity[0]),
        "propensity_b": float(propensity[1]),
        **{f"n_dropped_{key}": count for key, count in sorted(dropped.items())},
    }
    aligned = {"alignment_threshold": PLAIN_ABOVE, "alignment_interval": PAGE}  # so that they can be mapped
    with written_checksummed(Path(path), "prepared", libver="v110", **aligned) as file:
        put(file, **attributes)
        for name, value in (("parameters", parameters), ("source_sha256", source_sha256)):
            put_text(file, name, json.dumps(value, sort_keys=True))
        for name in SPLITS:
            _write_split(file.create_group(name), splits[name])
        Names(class_names).to_group(file.create_group("classes/names"))
        _write(file, "classes/counts", np.asarray(class_counts, dtype=np.int64))
        put_transform(file.create_group("transform"), transform)


def _write_split(group: h5py.Group, split: Split) -> None:
    kinds = {"weight": np.float32, "label_starts": np.int64, "filter_starts": np.int64}
    for name, values in split.label_arrays.items():
        _write(group, name, values.astype(kinds.get(name, np.int32), copy=False))
    if not issparse(split.X):
        _write(group, "X", split.X.astype(np.float32, copy=False))
        return
    X = csr_array(split.X)
    X.sum_duplicates()
    _write(group, "X/indptr", X.indptr.astype(np.int64))
    _write(group, "X/indices", X.indices.astype(np.int32, copy=False))
    _write(group, "X/data", X.data.astype(np.float32, copy=False))


def _write(group: h5py.Group, name: str, values: np.ndarray) -> None:
    """Write one array: small ones in compressed chunks, large ones in one piece, to be mapped."""
    if values.size == 0 or values.nbytes > PLAIN_ABOVE:
        group.create_dataset(name, data=values)
    else:
        row = max(1, values[0].nbytes)
        chunk = (min(len(values), max(1, CHUNK_BYTES // row)), *values.shape[1:])
        group.create_dataset(name, data=values, chunks=chunk, compression="gzip", shuffle=True)


def _attributes(file: h5py.File) -> dict[str, Any]:
    return attributes(file) | {name: json.loads(text_of(file[name])) for name in ("parameters", "source_sha256")}
