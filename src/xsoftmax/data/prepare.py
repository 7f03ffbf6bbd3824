"""From raw files to one prepared file: labels, empty rows, truncation, split, normalisation, classes."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data import labels as labelling
from xsoftmax.data import raw as raw_files
from xsoftmax.data import splits
from xsoftmax.data.config import DatasetConfig
from xsoftmax.data.dataset import Split
from xsoftmax.data.features import RawFeatures
from xsoftmax.data.features_of_columns import RawColumns, features_of
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.normalization import Matrix, fit_steps, parse
from xsoftmax.data.reading import read_parts
from xsoftmax.data.rows import Rows
from xsoftmax.data.store import write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError

NOT_PARAMETERS = ("files", "folder", "expect", "title", "description", "homepage", "licence", "citation")


@dataclass(frozen=True)
class Examples:
    """The rows of one split, with their original label ids.

    Attributes
    ----------
    X : csr_array or ndarray of shape (n_samples, n_columns)
    labels : ndarray, int64
    starts : ndarray of shape (n_samples + 1,), int64, or None
        Labels of row i are ``labels[starts[i]:starts[i + 1]]``, in file order; None: one each.
    weight : ndarray of shape (n_samples,), float32, or None
    filtered : LabelSets or None
        Of each row the labels that never count, by original id.
    """

    X: Matrix
    labels: np.ndarray
    starts: np.ndarray | None = None
    weight: np.ndarray | None = None
    filtered: LabelSets | None = None

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return self.X.shape[0]

    def with_labels(self, kept: np.ndarray) -> "Examples":
        """Keep some labels, given by a mask, and the rows that have one of them."""
        row = np.arange(self.n_samples) if self.starts is None else _rows_of_labels(self.starts)
        counts = np.bincount(row[kept], minlength=self.n_samples)
        rows = np.flatnonzero(counts)
        starts = None if self.starts is None else np.concatenate([[0], np.cumsum(counts[rows])])
        weight = None if self.weight is None else self.weight[rows]
        filtered = None if self.filtered is None else self.filtered.of_rows(rows)
        return Examples(_rows_of(self.X, rows), self.labels[kept], starts, weight, filtered)


def prepare(config: DatasetConfig, raw: str | Path, output: str | Path) -> dict[str, int]:
    """Prepare a data set.

    Parameters
    ----------
    config : DatasetConfig
    raw : path
        Folder that ``download`` filled.
    output : path
        The prepared file to write.

    Returns
    -------
    dict of str to int
        The sizes, under the names that ``expect`` uses.

    Raises
    ------
    InputError
        If the raw files are missing or damaged, do not parse, or the sizes are not those expected.
    """
    parse(config.normalize)
    entries = raw_files.checked_files(Path(raw), config.name, [source.name for source in config.files])
    parts = _truncated(read_parts(config, Path(raw), entries), config.max_samples)
    chosen, names = labelling.choose(parts, config.labels)
    filtered = labelling.filtered(parts, names)
    _check_labels(parts, config)
    features = features_of(parts, config)
    sizes = {
        "rows": sum(rows.n_samples for rows in parts.values()),
        "labels": np.unique(np.concatenate([each.labels for each in chosen.values()])).size,
        "dropped_unlabelled": sum(_unlabelled(rows) for rows in parts.values()),
    }
    del parts
    examples, features = _split(features, chosen, filtered, config, sizes)
    examples, classes = _seen_in_training(examples, sizes, config.name)
    transform = _fitted(features, examples["train"].X, config)
    final = {name: _final(transform, examples.pop(name), classes) for name in list(examples)}
    final = {name: split if name == "train" else replace(split, weight=None) for name, split in final.items()}
    _check_weights(final["train"], config.name)
    sizes.update({name: each.n_samples for name, each in final.items()})
    sizes.update(features=final["train"].X.shape[1], classes=classes.size)
    _check_sizes(config, sizes)
    write_prepared(
        output,
        dataset=config.name,
        splits=final,
        class_names=[str(label) if names is None else names[label] for label in classes],
        class_counts=final["train"].class_counts(classes.size),
        transform=transform,
        parameters=parameters_of(config),
        source_sha256={name: entry["sha256"] for name, entry in entries.items()},
        dropped={name.removeprefix("dropped_"): n for name, n in sizes.items() if name.startswith("dropped_")},
        propensity=config.propensity,
    )
    return sizes


def _check_labels(parts: Mapping[str, Rows], config: DatasetConfig) -> None:
    """Make sure that there are labels, and say how many are passed over."""
    counts = {name: np.diff(rows.label_starts) for name, rows in parts.items()}
    n_rows, n_labels = sum(each.size for each in counts.values()), sum(int(each.sum()) for each in counts.values())
    if not n_labels:
        raise InputError(
            f"{config.name}: none of {n_rows} rows has a label; look at options.label (--label of `fit`)"
        )
    several = {name: int((each > 1).sum()) for name, each in counts.items()}
    if config.labels == "sets" and not any(several.values()):
        print(
            f"warning: {config.name}: no row has several labels; if a table has them, look at "
            "options.label_separator (--label-separator of `fit`), or leave out `labels: sets`",
            file=sys.stderr,
        )
    if config.labels in ("pairs", "sets") or not any(several.values()):
        return
    left = sum(int(np.maximum(each - 1, 0).sum()) for each in counts.values())
    parts_of = ", ".join(f"{n} of {counts[name].size} in {name}" for name, n in several.items())
    kept = {"first": "the first", "min": "the one with the smallest id"}[config.labels]
    print(
        f"warning: {config.name}: rows with several labels ({parts_of}) keep {kept}, test rows too: {left} of "
        f"{n_labels} labels are left out, and what is measured is measured by one label a row; "
        "`labels: sets` keeps all of them, `labels: pairs` makes a row of each",
        file=sys.stderr,
    )


def _truncated(parts: dict[str, Rows], max_samples: int | None) -> dict[str, Rows]:
    """Keep the first rows of each part; features are cut later, where they are counted."""
    if max_samples is None:
        return parts
    cut = {}
    for name, rows in parts.items():
        starts = rows.label_starts[: max_samples + 1]
        weight = None if rows.weight is None else rows.weight[:max_samples]
        pairs = None if rows.filtered is None else rows.filtered[rows.filtered[:, 0] < starts.size - 1]
        labels = rows.labels[: starts[-1]]
        cut[name] = replace(rows, label_starts=starts, labels=labels, weight=weight, filtered=pairs)
    return cut


def _unlabelled(rows: Rows) -> int:
    return int((np.diff(rows.label_starts) == 0).sum())


def _split(
    features: RawFeatures | RawColumns,
    chosen: Mapping[str, labelling.Labelled],
    filtered: Mapping[str, LabelSets | None],
    config: DatasetConfig,
    sizes: dict[str, int],
) -> tuple[dict[str, Examples], RawFeatures | RawColumns]:
    """Drop empty rows, split, choose words where training rows decide on them, and drop what that empties."""
    empty_before = {part: features.empty(part) for part in features.matrices}
    kept = {part: _usable(each, empty_before[part]) for part, each in chosen.items()}
    assigned = splits.assign(kept, chosen, config.split)
    features = features.with_words_of(*assigned["train"])
    examples, dropped = (
        {},
        sum(int(empty[_distinct(chosen[part])].sum()) for part, empty in empty_before.items()),
    )
    for split, (part, rows) in assigned.items():
        empty = features.empty(part)
        dropped += int(empty[rows].sum())
        kept_rows = rows[~empty[rows]]
        sets = config.labels == "sets"
        examples[split] = _examples(features.matrices[part], chosen[part], filtered[part], kept_rows, sets)
    sizes["dropped_empty"] = dropped
    if examples["train"].labels.size == 0:
        raise InputError(f"{config.name}: no training row is left ({dropped} rows have no features)")
    return examples, features.without_rows()


def _distinct(chosen: labelling.Labelled) -> np.ndarray:
    return chosen.rows[np.diff(chosen.rows, prepend=-1) > 0]  # they are in order; np.unique takes 1 s a million


def _usable(chosen: labelling.Labelled, empty: np.ndarray) -> np.ndarray:
    rows = _distinct(chosen)
    return rows[~empty[rows]]


def _examples(
    X: Matrix, chosen: labelling.Labelled, filtered: LabelSets | None, rows: np.ndarray, sets: bool
) -> Examples:
    """Take the examples of the given rows: one each, or one for every label, or (sets) one with all labels."""
    mask = np.zeros(X.shape[0], dtype=bool)
    mask[rows] = True
    taken = mask[chosen.rows]
    rows, labels, starts = chosen.rows[taken], chosen.labels[taken], None
    weight = None if chosen.weight is None else chosen.weight[taken]
    if sets:
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        rows, starts = rows[first], np.append(first, labels.size)
        weight = None if weight is None else weight[first]
    return Examples(_rows_of(X, rows), labels, starts, weight, None if filtered is None else filtered.of_rows(rows))


def _rows_of_labels(starts: np.ndarray) -> np.ndarray:
    """Number the row of each label."""
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def _rows_of(X: Matrix, rows: np.ndarray) -> Matrix:
    """Take rows; without a copy if these are all, in order."""
    return X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows]


def _seen_in_training(
    examples: dict[str, Examples], sizes: dict[str, int], dataset: str
) -> tuple[dict[str, Examples], np.ndarray]:
    """Drop labels of validation and test rows that no training row has, and rows that have no others."""
    classes = np.unique(examples["train"].labels)
    kept = {"train": examples["train"]}
    for name in ("validation", "test"):
        each = examples[name]
        seen = np.isin(each.labels, classes)
        kept[name] = each.with_labels(seen)
        sizes[f"dropped_unseen_{name}"] = dropped = each.n_samples - kept[name].n_samples
        if each.starts is not None:
            sizes[f"dropped_unseen_labels_{name}"] = int((~seen).sum())
        if each.starts is not None and not seen.all():
            print(
                f"warning: {dataset}: {int((~seen).sum())} of {seen.size} labels of {name} rows are of classes that "
                f"no training row has: they are left out, and {dropped} rows with no others",
                file=sys.stderr,
            )
    for name, each in kept.items():
        if each.filtered is not None:
            sizes[f"dropped_unseen_filter_{name}"] = int((~np.isin(each.filtered.classes, classes)).sum())
    return kept, classes


def _fitted(features: RawFeatures | RawColumns, X: Matrix, config: DatasetConfig) -> Transform:
    """Learn weights and normalisation from training rows."""
    weighted = features.transform(X, config)
    return replace(weighted, steps=tuple(fit_steps(config.normalize, weighted.finish(X))))


def _final(transform: Transform, examples: Examples, classes: np.ndarray) -> Split:
    X = transform.finish(examples.X)
    X = X if issparse(X) else np.ascontiguousarray(X, dtype=np.float32)
    y, starts = np.searchsorted(classes, examples.labels).astype(np.int32), examples.starts
    filtered = None if examples.filtered is None else _of_classes(examples.filtered, classes)
    if starts is None:
        return Split(X, y, examples.weight, None, filtered)
    label_sets = LabelSets.of_pairs(_rows_of_labels(starts), y, starts.size - 1)
    return Split(X, y[starts[:-1]], examples.weight, label_sets, filtered)


def _of_classes(filtered: LabelSets, classes: np.ndarray) -> LabelSets:
    """Number labels by their class; those of no class are left out."""
    known = np.isin(filtered.classes, classes)
    places = np.searchsorted(classes, filtered.classes[known])
    return LabelSets.of_pairs(filtered.rows[known], places, filtered.starts.size - 1)


def _check_weights(train: Split, dataset: str) -> None:
    if train.weight is not None and train.n_samples and not train.weight.any():
        raise InputError(f"{dataset}: all {train.n_samples} train rows have weight 0; look at options.weight")


def _check_sizes(config: DatasetConfig, sizes: Mapping[str, int]) -> None:
    wrong = [
        f"{name} {sizes.get(name, 0)}, expected {expected}"
        for name, expected in config.expect.items()
        if sizes.get(name, 0) != expected
    ]
    if wrong:
        raise InputError(
            f"{config.name}: unexpected sizes: {'; '.join(wrong)}; the source or the preprocessing differs"
            " from what the description was written for (correct 'expect' if that is intended)"
        )


def parameters_of(config: DatasetConfig) -> dict[str, Any]:
    """Take from a description what the prepared file tells of it, beside what the raw files were."""
    return {key: value for key, value in asdict(config).items() if key not in NOT_PARAMETERS}
