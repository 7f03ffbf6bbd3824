"""Raw features of a table with several kinds of columns: those of each part, one beside the other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.data.config import DatasetConfig, TextOptions
from xsoftmax.data.features import RawFeatures, feature_names_of, kind_of, reader_options_of
from xsoftmax.data.normalization import Matrix, fit_steps
from xsoftmax.data.rows import Form, Rows
from xsoftmax.data.transform import Transform, beside
from xsoftmax.data.vocabulary import CELLS, Cut


class Categories(TextOptions):
    """Each cell is a word, with the number of its column."""

    @property
    def cut(self) -> Cut:
        """How a row is cut into words."""
        return Cut("", CELLS)


# A category counts if one training row has it.
CATEGORIES = Categories(min_df=1, weighting="binary")


@dataclass(frozen=True)
class RawColumns:
    """Features by part of the columns: texts, numbers, categories; has what ``RawFeatures`` has.

    Attributes
    ----------
    columns : tuple of RawFeatures
    forms : tuple of Form
        What columns each is made of.
    feature_names : tuple of str
    reader_options : mapping
    """

    columns: tuple[RawFeatures, ...]
    forms: tuple[Form, ...]
    feature_names: tuple[str, ...]
    reader_options: Mapping[str, Any]

    @classmethod
    def of(cls, parts: Mapping[str, Rows], config: DatasetConfig) -> "RawColumns":
        """Count words and categories."""
        forms = next(iter(parts.values())).features.forms
        columns = []
        for place, form in enumerate(forms):
            own = {
                part: replace(rows, features=rows.features.parts[place], feature_names=())
                for part, rows in parts.items()
            }
            columns.append(RawFeatures.of(own, _config_of(form, config)))
        names, options = feature_names_of(parts, config.name), reader_options_of(parts, config)
        return cls(tuple(columns), forms, names, options)

    @cached_property
    def matrices(self) -> dict[str, csr_array]:
        """Put the features of all columns beside each other, by part of the data."""
        first, *others = (each.matrices for each in self.columns)
        return {part: beside([X, *(each[part] for each in others)]) for part, X in first.items()}

    def empty(self, part: str) -> np.ndarray:
        """Tell which rows have no feature; numbers always are some."""
        found = [each.empty(part) & (each.kind != "dense") for each in self.columns]
        return np.logical_and.reduce(found)

    def with_words_of(self, part: str, rows: np.ndarray) -> "RawColumns":
        """Keep the words and categories that the given rows, which train, decide on."""
        return replace(self, columns=tuple(each.with_words_of(part, rows) for each in self.columns))

    def without_rows(self) -> "RawColumns":
        """Forget the matrices."""
        return replace(self, columns=tuple(each.without_rows() for each in self.columns))

    def transform(self, X: Matrix, config: DatasetConfig) -> Transform:
        """Make the transform; each part is scaled, so that none outweighs the others. ``X`` are the training rows."""
        parts: list[Transform] = []
        end = 0
        for features, form in zip(self.columns, self.forms, strict=True):
            begin, end = end, end + features.n_raw
            own = X[:, begin:end].toarray() if form.kind == "dense" else X[:, begin:end]
            part = features.transform(own, config)
            steps = tuple(fit_steps(_scaling(form), part.finish(own)))
            parts.append(replace(part, kind=form.kind, n_columns=form.n_columns, source={}, steps=steps))
        return Transform(
            kind="table",
            n_columns=len(self.feature_names),
            source={"format": config.format, "options": self.reader_options},
            feature_names=self.feature_names,
            parts=tuple(parts),
        )


def features_of(parts: Mapping[str, Rows], config: DatasetConfig) -> RawFeatures | RawColumns:
    """Bring rows of any kind to raw features."""
    return RawColumns.of(parts, config) if kind_of(parts, config.name) == "table" else RawFeatures.of(parts, config)


def _config_of(form: Form, config: DatasetConfig) -> DatasetConfig:
    """Describe a part of the columns as if there were no others."""
    if form.kind == "texts":
        return config
    return replace(config, text=CATEGORIES, max_features=None)


def _scaling(form: Form) -> Any:
    """Say how a part is brought to about unit length."""
    scaled = {"texts": "l2", "dense": "standardize", "categories": {"divide": math.sqrt(form.n_columns)}}
    return scaled[form.kind]
