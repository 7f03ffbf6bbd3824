"""What a method says of its encoder, and what does not go with one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.parameters import with_parameters
from xsoftmax.proposals import Size, TrainingSet, parts_of
from xsoftmax.solvers._rules import named


class Encoder(NamedTuple):
    """A table in front of the linear layer: see ``xsoftmax.kernels.encoded``.

    Parameters
    ----------
    dimension : int
        Columns of the table.
    table : str
        File of a table that was trained before (``xsoftmax.data.pretrained``); empty: it begins at random.
    frozen : bool
        Whether it stays as it begins.
    """

    dimension: int = 100
    table: str = ""
    frozen: bool = False

    def size(self, n_classes: int, n_features: int) -> int:
        """Count the weights: the table's, and those of the classes with their biases."""
        return n_classes * (self.dimension + 1) + n_features * self.dimension


def build_encoder(where: str, settings: Any) -> Encoder | None:
    """Build an encoder from its settings as they stand in a config; None stands for none.

    Raises
    ------
    InputError
        If a parameter or a value is wrong; the message begins with ``where``.
    """
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise InputError(f"{where}: encoder is {settings!r}; write it as encoder: {{dimension: 100}}")
    table = settings.get("table", "")
    if not isinstance(table, str):
        raise InputError(f"{where}: encoder: table is {table!r}; set it to the name of a file")
    others = {key: value for key, value in settings.items() if key != "table"}
    return with_parameters(f"{where}: encoder", Encoder, others)._replace(table=table)


def rules_of_encoders(method: Any) -> list[tuple[Any, str]]:
    """What no method with an encoder can be made of."""
    _, proposal, optimizer = named(method)
    encoder = f"encoder has dimension {method.encoder.dimension}"
    return [
        (
            method.proposal.adaptive and any(part.by_row and not part.adaptive for part in parts_of(method.proposal)),
            f"{encoder}, and {proposal} has a part that knows rows by themselves, and one that follows the weights "
            "behind the table; take one of the two",
        ),
        (
            any(getattr(part, "shortlist", 0) for part in parts_of(method.proposal)),
            f"{encoder}, and {proposal} has a shortlist of classes that score highest where weights begin, and they "
            "begin at zero; leave shortlist or encoder out",
        ),
        (
            method.weights != "dense",
            f"{encoder}, after which no row has zeros, and weights are sparse; take weights: dense, or no encoder",
        ),
        (
            method.settings["start"]["name"] != "zero",
            f"{encoder}, and start is {method.settings['start']['name']}, weights for the rows themselves; leave "
            "start or encoder out",
        ),
        (
            method.l2 or method.decay,
            f"{encoder}, and {'l2' if method.l2 else 'decay'} is {method.l2 or method.decay:g}, which would shrink "
            "the classes' weights and not the table; leave it or encoder out",
        ),
        (
            method.frequency_power,
            f"{encoder}, and frequency_power is {method.frequency_power:g}, which is for steps along the features "
            "themselves; leave it or encoder out",
        ),
        (
            method.optimizer.needs == "full_gradient",
            f"{encoder}, and {optimizer} needs the gradient of all rows, which no solver makes through a table; take "
            "optimizer sgd or adagrad",
        ),
    ]


def behind(encoder: Encoder, size: Size) -> Size:
    """Give the size of data as classes see them, behind a table."""
    return size._replace(n_features=encoder.dimension, n_entries=float(encoder.dimension))


def seen_by(method: Any, data: TrainingSet) -> TrainingSet:
    """Give the rows as a method's proposal is fitted to them.

    With an encoder, those that follow the weights get zeros, of as many columns as the table has: the solver shows
    them what it makes of rows before each refresh. The others learn from the rows themselves.
    """
    if method.encoder is None or not method.proposal.adaptive:
        return data
    zeros = np.broadcast_to(np.zeros(1, np.float32), (len(data.y), method.encoder.dimension))
    return replace(data, X=zeros)


def memory_of_table(method: Any, size: Size) -> dict[str, int]:
    """Estimate the bytes that a table takes before training: that of a file, beside the one that trains."""
    return {"the table as it begins": 4 * size.n_features * method.encoder.dimension * bool(method.encoder.table)}
