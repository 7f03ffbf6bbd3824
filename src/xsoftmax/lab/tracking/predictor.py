"""What MLflow loads a model of ours with: ``mlflow.pyfunc.load_model(...).predict(...)`` and ``mlflow models serve``.

MLflow finds ``_load_pyfunc`` by the name of this module, which a model's ``MLmodel`` says.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from scipy.sparse import csr_array, issparse

from xsoftmax.internal.errors import InputError
from xsoftmax.serving.request_rows import read_rows
from xsoftmax.serving.requests import TOP, Asked
from xsoftmax.serving.served import Served


class Predictor:
    """A model that answers MLflow as ``xsoftmax serve`` answers a request.

    Parameters
    ----------
    path : Path
        Of ``model.h5``.
    """

    def __init__(self, path: Path) -> None:
        self._served = Served(path)

    def predict(self, rows: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Predict the likeliest classes of raw rows.

        Parameters
        ----------
        rows : DataFrame, ndarray or sparse matrix
            Texts are in the first column; columns of several kinds are found by their names.
        params : mapping, optional
            ``top``: how many classes of each row.

        Returns
        -------
        DataFrame
            ``class`` and ``probability`` of the likeliest one, and ``classes`` and ``probabilities``, lists of the
            ``top`` likeliest.

        Raises
        ------
        MlflowException
            If the model does not take such rows: of others ``mlflow models serve`` hides the message.
        """
        try:
            return self._table(rows, int((params or {}).get("top", TOP)))
        except InputError as error:
            raise MlflowException(str(error), INVALID_PARAMETER_VALUE) from error

    def _table(self, rows: Any, top: int) -> pd.DataFrame:
        if top < 1:
            raise InputError(f"top is {top}; give a whole number above 0")
        (answer,) = self._served.answers([Asked(self._raw(rows), top, False)])
        if isinstance(answer, Exception):
            raise answer
        found = [row["classes"] for row in answer["rows"]]
        lists = [[[each[key] for each in row] for row in found] for key in ("class", "probability")]
        first = [[each[0] for each in column] for column in lists]
        columns = zip(("class", "probability", "classes", "probabilities"), [*first, *lists], strict=True)
        return pd.DataFrame(dict(columns))

    def _raw(self, rows: Any) -> Any:
        """Bring rows to the form that ``Transform.apply`` takes."""
        if self._served.form.kind == "texts":
            return [str(text) for text in pd.DataFrame(rows).iloc[:, 0]]
        if self._served.form.kind == "table":
            table = pd.DataFrame(rows).astype(object)
            return read_rows(table.where(table.notna(), None).to_dict("records"), self._served.form)
        if issparse(rows):
            return csr_array(rows, dtype=np.float32)
        return np.asarray(rows, np.float32)


def _load_pyfunc(folder: str) -> Predictor:
    return Predictor(Path(folder) / "model.h5")
