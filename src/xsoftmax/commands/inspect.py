"""Say what is in a model's file: how it was trained, of what sizes it is, and how it reads new rows, as JSON.

xsoftmax inspect model.h5
"""

import argparse
import json
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from xsoftmax.data.transform import Transform
from xsoftmax.model import Model, load_model

# Names of classes that are shown.
SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit, or of an estimator's save")


def run(options: argparse.Namespace) -> None:
    """Print a JSON object."""
    model = load_model(options.model)
    print(json.dumps(described(model, options.model.stat().st_size), indent=2, ensure_ascii=False))


def described(model: Model, n_bytes: int) -> dict[str, Any]:
    """Describe a model whose file has so many bytes."""
    known = ("dataset", "method", "seed", "status", "message")
    names = list(model.class_names[:SHOWN])
    return {
        **{key: model.attributes[key] for key in known if key in model.attributes},
        "classes": model.n_classes,
        "class_names": names + ["..."] * (model.n_classes > len(names)),
        "features": model.n_features,
        "rows": None if model.transform is None else _rows(model.transform),
        "weights": _weights(model),
        "probabilities": model.link,
        "calibrated": model.calibration is not None,
        "corrected_by": None if model.correction is None else getattr(model.correction, "name", "a proposal"),
        "bytes": n_bytes,
        "settings": model.attributes.get("parameters"),
    }


def _rows(transform: Transform) -> dict[str, Any]:
    """Say what rows it reads, and what becomes of them."""
    options = transform.source.get("options", {})
    columns = {key: options[key] for key in ("text", "numeric", "categorical", "label") if key in options}
    steps = {"steps": [step.kind for step in transform.steps]}
    parts = {"parts": [_rows(part) for part in transform.parts]} if transform.parts else {}
    return {"kind": transform.kind, **columns, **_words(transform), **steps, **parts}


def _words(transform: Transform) -> dict[str, Any]:
    """Say how texts are cut into words."""
    if not transform.counts_words:
        return {}
    found: dict[str, Any] = {"words": len(transform.words), "weighting": transform.weighting}
    if transform.cut.analyzer != "word" or transform.ngram_range != (1, 1):
        found |= {"analyzer": transform.cut.analyzer, "ngram_range": list(transform.ngram_range)}
    return found | ({"sublinear_tf": True} if transform.sublinear_tf else {})


def _weights(model: Model) -> dict[str, Any]:
    if model.W is None:
        return {"form": "none"}
    found: dict[str, Any] = {"form": "sparse" if issparse(model.W) else "dense", "biases": model.bias}
    if issparse(model.W):
        found["stored"] = int(model.W.nnz)
    return found | ({} if model.encoder is None else {"encoder_dimension": int(model.encoder.shape[1])})
