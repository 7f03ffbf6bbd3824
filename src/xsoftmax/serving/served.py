"""A model that is served: requests for it are scored together, and its file is watched."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data.rows import Form
from xsoftmax.evaluation.prediction import Prediction, top_k
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model, load_model
from xsoftmax.serving.index import ClassIndex
from xsoftmax.serving.request_rows import ANY, RequestError
from xsoftmax.serving.requests import Asked, empty_rows, joined

ALL_CLASSES = "all classes"


class Served:
    """A model with what it takes to answer requests.

    Parameters
    ----------
    path : Path
        Its file, whose checksum is compared once. Weights that lie there as in memory are left there.
    index : str, optional
        The kind of index that is asked unless a request wants all classes: one of ``index.KINDS``.
    probes : int, optional
        How far the index looks; None: as far as it does by itself.

    Raises
    ------
    InputError
        If it holds no model, the memory for a copy of its weights is not there, or it can have no such index.
    """

    def __init__(self, path: Path, index: str | None = None, probes: int | None = None) -> None:
        self.path = path
        self.model = load_model(path, mapped=True)
        self._file = path.open("rb")
        self._seen = self._state()
        self.form = _form(self.model)
        self._kept = ExitStack()
        self._keep_copy()
        self.index = None if index is None else ClassIndex.of(self.model, index)
        if self.index is not None and probes is not None:
            self.index.look(probes)
        self._warm_up()

    def _keep_copy(self) -> None:
        """Promise that weights stay, so that what is copied of them for sparse rows is copied once."""
        W, sparse = self.model.W, any(issparse(self._features(rows)) for rows in empty_rows(self.form))
        if isinstance(W, np.ndarray) and sparse and self.model.encoder is None:
            check_free(W.nbytes, f"a copy of the weights of {self.path}, by feature")
        self._kept.enter_context(self.model.unchanging(whole=True))

    def _warm_up(self) -> None:
        """Answer a row of nothing, so that code is compiled and copies are made before workers are forked."""
        for rows in empty_rows(self.form):
            for exact in {True, self.index is None}:
                (answer,) = self.answers([Asked(rows, 1, exact)])
                if isinstance(answer, Exception):
                    raise answer

    def _state(self) -> tuple[int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns

    def problem(self) -> str:
        """Say why no answer can be trusted, or nothing: weights that are read from the file must be as they were."""
        if self._state() == self._seen:
            return ""
        return f"{self.path.name} was changed in place while it is served; put a whole model there and start again"

    def is_replaced(self) -> bool:
        """Whether another file has its name now, or none; answers come from the one that was loaded."""
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            return True

    def answers(self, asked: Sequence[Asked], pool: ThreadPool | None = None) -> list[Any]:
        """Answer requests together: for each what ``answer`` gives, or the exception that came of it alone."""
        if said := self.problem():
            return [RequestError(said, 503)] * len(asked)
        found: list[Any] = [None] * len(asked)
        for kind in {self._kind(each) for each in asked}:
            places = [place for place, each in enumerate(asked) if self._kind(each) == kind]
            for place, answer in zip(places, self._together([asked[k] for k in places], kind[0], pool), strict=True):
                found[place] = answer
        return found

    def _kind(self, asked: Asked) -> tuple[bool, bool]:
        """What is scored together: by all classes or not, and rows that are stored alike."""
        return self.index is None or asked.exact, issparse(asked.rows)

    def _together(self, asked: Sequence[Asked], exact: bool, pool: ThreadPool | None) -> list[Any]:
        try:
            X = self._features(joined(asked))
            top = max(each.top for each in asked)
            if exact or self.index is None:
                found, normaliser = top_k(self.model, X, top, pool), ALL_CLASSES
            else:
                found, normaliser = self.index.top_k(X, top), self.index.normaliser
        except Exception as error:  # noqa: BLE001 - of one of them, which is found alone
            return [error] if len(asked) == 1 else [self._together([each], exact, pool)[0] for each in asked]
        ends = np.cumsum([each.n_rows for each in asked])
        return [
            self._answer(found, slice(end - each.n_rows, end), each.top, normaliser)
            for each, end in zip(asked, ends, strict=True)
        ]

    def _features(self, rows: Any) -> Any:
        """Make features of raw rows."""
        if self.model.transform is None:  # sparse weights are walked by the features of sparse rows
            return csr_array(rows) if issparse(self.model.W) and not issparse(rows) else rows
        try:
            return self.model.transform.apply(rows)
        except InputError as error:
            raise RequestError(str(error)) from None

    def _answer(self, found: Prediction, rows: slice, top: int, normaliser: str) -> dict[str, Any]:
        """Give the classes of some rows, the likeliest first, as JSON has them."""
        names = self.model.class_names
        pairs = zip(found.classes[rows, :top].tolist(), found.probabilities[rows, :top].tolist(), strict=True)
        return {
            "rows": [
                {
                    "classes": [
                        {"class": names[k], "probability": float(f"{p:.6g}")}
                        for k, p in zip(classes, probabilities, strict=True)
                        if k >= 0
                    ]
                }
                for classes, probabilities in pairs
            ],
            "normaliser": normaliser,
        }


def _form(model: Model) -> Form:
    """Say what raw rows of a model look like; one that does not say takes features, in lists or sparse."""
    return Form(ANY, model.n_features) if model.transform is None else model.transform
