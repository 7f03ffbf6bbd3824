"""The model of a fit as MLflow has it: a LoggedModel with a signature and an example, whose weights lie there once.

What MLflow loads it with is ``xsoftmax.lab.tracking.predictor``, by name: no pickle. The file of the weights goes
into the store as it is, without a copy on the way; a store on the same disk gets a second name of the same file,
which is safe since ``model.h5`` is never changed in place.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import h5py
import numpy as np

from xsoftmax import __version__
from xsoftmax.data.names import Names
from xsoftmax.internal.checksummed import opened
from xsoftmax.internal.hdf5 import attributes
from xsoftmax.training.folders import AGAIN, Fit

MODEL = "model.h5"
LOADER = "xsoftmax.lab.tracking.predictor"
EXAMPLE_WORDS = 3


class RawRows(NamedTuple):
    """What rows a model takes.

    Attributes
    ----------
    kind : str
        ``texts``, ``sparse``, ``dense``, or ``table``.
    n_columns : int
    names, kinds : list of str
        Of columns that have names: ``texts``, ``categories`` or ``dense``.
    words : list of str
        Some of those that texts are counted by.
    """

    kind: str
    n_columns: int
    names: list[str]
    kinds: list[str]
    words: list[str]

    @property
    def named(self) -> list[tuple[str, bool]]:
        """Give the columns that have names, each with whether it holds numbers."""
        return [(name, kind == "dense") for name, kind in zip(self.names, self.kinds, strict=True)]


def has_model(fit: Fit) -> bool:
    """Tell whether a fit has kept a model: it has not diverged, and was no trial of a search."""
    return not fit.diverged and "trial" not in fit.status and (fit.folder / MODEL).exists()


def log_model(client: Any, experiment_id: str, run_id: str, fit: Fit, tags: dict[str, str], settings: Any) -> str:
    """Log the model of a fit, and return its ID; until it is there as a whole, MLflow says that it is pending."""
    from mlflow.entities import LoggedModelOutput, LoggedModelStatus

    path = fit.folder / MODEL
    rows = rows_of(path)
    own = {name: value for name, value in tags.items() if not name.startswith("mlflow.")}
    logged = client.create_logged_model(experiment_id, model_name(fit), run_id, own, dict(settings), "xsoftmax")
    client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, int(fit.status.get("step") or 0))])
    with TemporaryDirectory() as folder:
        write_description(Path(folder) / "model", rows, logged.model_id, run_id, path.stat().st_size)
        client.log_model_artifacts(logged.model_id, str(Path(folder) / "model"))
    link_into(path, logged.artifact_location)
    client.log_model_artifact(logged.model_id, str(path))  # which MLflow leaves out if it is the same file
    client.finalize_logged_model(logged.model_id, LoggedModelStatus.READY)
    return logged.model_id


def delete_models(client: Any, experiment_id: str, run_id: str) -> None:
    """Delete the model of a run that is replaced, unless the registry has a version of it."""
    for model in client.search_logged_models([experiment_id], f"source_run_id = '{run_id}'"):
        if not client.search_model_versions(f"run_id = '{run_id}'"):
            client.delete_logged_model(model.model_id)


def model_name(fit: Fit) -> str:
    """Name the model, without characters that MLflow does not take."""
    return re.sub(r"[/:.%\"']", "-", f"{fit.method}-{fit.dataset}-seed-{fit.seed}")


def rows_of(path: Path) -> RawRows:
    """Read what rows a model takes; one that does not say takes features."""
    with opened(path, ["model"], AGAIN, whole=False) as file:
        if "transform" not in file:
            return RawRows("dense", int(attributes(file)["n_features"]), [], [], [])
        group = file["transform"]
        known = attributes(group)
        kind, n_columns, n_parts = str(known["kind"]), int(known["n_columns"]), int(known.get("n_parts", 0))
        names, words = _names(group, "feature_names", None), _names(group, "words", EXAMPLE_WORDS)
        parts = [attributes(group[f"part-{number}"]) for number in range(n_parts)] or [known]
        kinds = [str(part["kind"]) for part in parts for _ in range(int(part["n_columns"]))] if names else []
        return RawRows(kind, n_columns, names, kinds, words)


def _names(group: h5py.Group, name: str, most: int | None) -> list[str]:
    return list(Names.from_group(group[name])[:most]) if name in group else []


def write_description(folder: Path, rows: RawRows, model_id: str, run_id: str, size: int) -> None:
    """Write all files of an MLflow model but the weights."""
    import mlflow.pyfunc
    from mlflow.models import Model

    description = Model(model_id=model_id, run_id=run_id)
    mlflow.pyfunc.save_model(
        folder,
        loader_module=LOADER,
        signature=signature_of(rows),
        input_example=example_of(rows),
        pip_requirements=[f"xsoftmax[track]=={__version__}"],
        mlflow_model=description,
    )
    description.model_size_bytes = size
    description.save(str(folder / "MLmodel"))


def signature_of(rows: RawRows) -> Any:
    """Say what rows a model takes and gives, in MLflow's terms; ``top`` is how many classes of each row."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
    from mlflow.types.schema import Array

    from xsoftmax.serving.requests import TOP

    if rows.kind == "texts":
        inputs = Schema([ColSpec(DataType.string)])
    elif rows.names:
        columns = [(DataType.double if is_number else DataType.string, name) for name, is_number in rows.named]
        inputs = Schema([ColSpec(kind, name) for kind, name in columns])
    else:
        inputs = Schema([TensorSpec(np.dtype(np.float64), (-1, rows.n_columns))])
    given: list[tuple[Any, str]] = [(DataType.string, "class"), (DataType.double, "probability")]
    given += [(Array(DataType.string), "classes"), (Array(DataType.double), "probabilities")]
    outputs = Schema([ColSpec(kind, name) for kind, name in given])
    return ModelSignature(inputs, outputs, ParamSchema([ParamSpec("top", DataType.long, TOP)]))


def example_of(rows: RawRows) -> Any:
    """Make a row that a model takes."""
    import pandas as pd
    from scipy.sparse import csr_matrix

    if rows.kind == "texts":
        return pd.DataFrame({"text": [" ".join(rows.words)]})
    if rows.names:
        return pd.DataFrame({name: [0.0 if is_number else ""] for name, is_number in rows.named})
    if rows.kind == "sparse":
        return csr_matrix(([1.0], ([0], [0])), shape=(1, rows.n_columns))
    return np.zeros((1, rows.n_columns))


def link_into(path: Path, location: str) -> None:
    """Give a file a second name in a folder of artifacts, if that is on the same disk."""
    where = urlsplit(location)
    if where.scheme not in ("", "file"):
        return
    folder = Path(url2pathname(where.path))
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.link(path.resolve(), folder / path.name)
