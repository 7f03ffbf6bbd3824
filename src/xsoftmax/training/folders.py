"""Read fit directories: what `train` and `evaluate` left of one (data set, method, seed)."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xsoftmax.internal.checksummed import DamagedError, opened, verify_checksum
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import text_of
from xsoftmax.internal.outputs import FILES

if TYPE_CHECKING:  # an optional dependency, which takes half a second to import
    import pandas as pd

DIVERGED = "diverged"
IDENTITY = ("dataset", "method", "seed", "parameters")
AGAIN = "delete it and start the same command again"


@dataclass(frozen=True)
class Fit:
    """One trained model with its learning curve.

    Attributes
    ----------
    folder : Path
        Where it lies.
    status : dict
        ``status.json``: how it ended, its parameters, machine and versions.
    metrics : dict
        ``metrics.json``: the exact measures of the final model, by split; None where it diverged.
    history : DataFrame
        ``history.csv``: one row per recorded epoch.
    """

    folder: Path
    status: dict[str, Any]
    metrics: dict[str, Any]
    history: "pd.DataFrame"

    @property
    def dataset(self) -> str:
        """Name the data set."""
        return self.status["dataset"]

    @property
    def method(self) -> str:
        """Name the method."""
        return self.status["method"]

    @property
    def seed(self) -> int:
        """Give the seed."""
        return self.status["seed"]

    @property
    def identity(self) -> tuple[str, str, int]:
        """Give what no two fits of an experiment share: data set, method, seed."""
        return self.dataset, self.method, self.seed

    @property
    def diverged(self) -> bool:
        """Tell whether training ended in numbers that are not finite."""
        return self.status["status"] == DIVERGED

    def content_hash(self) -> str:
        """Hash the files of the fit: 32 hexadecimal digits."""
        digest = hashlib.sha256()
        for path in (self.folder / name for name in FILES):
            if path.exists():
                with path.open("rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").digest()
                digest.update(path.name.encode() + b"\0" + content)
        return digest.hexdigest()[:32]


def read_fit(folder: Path) -> Fit:
    """Read one fit directory; its model is looked at if it is there, and damage of it is left to who needs it.

    Raises
    ------
    InputError
        If a file is missing or is not what `train` and `evaluate` write, or the model is of another fit.
    """
    model = folder / "model.h5"
    if model.exists():
        _check_file(model, "train")
        try:
            check_model(model)
        except InputError:
            with suppress(DamagedError):
                verify_checksum(model)
                raise
    return Fit(folder, read_status(folder), _read_json(folder / "metrics.json", "evaluate"), read_history(folder))


def read_status(folder: Path) -> dict[str, Any]:
    """Read how a fit ended, and all that it was made with.

    Raises
    ------
    InputError
        If it is missing, or not what `train` writes.
    """
    status = _read_json(folder / "status.json", "train")
    missing = {"dataset", "method", "seed", "status"} - status.keys()
    if missing:
        raise InputError(f"{folder / 'status.json'}: no {', '.join(sorted(missing))}; train this fit again")
    return status


def check_model(path: Path) -> None:
    """Make sure that a model is the one that the ``status.json`` beside it tells of, by all that both say.

    Raises
    ------
    InputError
        If it is another's, or either cannot be read.
    """
    status = read_status(path.parent)
    with opened(path, ["model"], AGAIN, whole=False) as file:
        known = json.loads(text_of(file["attributes"]))
        keys = dict.fromkeys([*IDENTITY, *known])
        pairs = [(key, _plain(known.get(key)), _plain(status.get(key))) for key in keys]
    for key, found, told in pairs:
        if found != told:
            raise InputError(
                f"{path}: the model of another fit ({key}: it has {found:.60}, status.json {told:.60}); {AGAIN}"
            )


def read_fits(folders: Iterable[Path]) -> list[Fit]:
    """Read fit directories, in the order of data set, method and seed.

    Raises
    ------
    InputError
        If there is none, one can't be read, or two are of the same data set, method and seed.
    """
    fits = sorted((read_fit(folder) for folder in folders), key=lambda fit: fit.identity)
    if not fits:
        raise InputError("no fit directory is given; name at least one")
    for fit, following in pairwise(fits):
        if fit.identity == following.identity:
            names = f"{fit.dataset}, {fit.method}, seed {fit.seed}"
            raise InputError(f"{fit.folder} and {following.folder} are both of {names}; leave one out")
    return fits


def commits(statuses: Iterable[dict[str, Any]]) -> list[str]:
    """List the commits of the code that fits are by, shortened; a plus sign, for uncommitted changes, stays."""
    known = {status["git_commit"] for status in statuses if status.get("git_commit")}
    return sorted({commit[:10] + ("+" if commit.endswith("+") else "") for commit in known})


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested parameters: ``{"optimizer": {"name": "sgd"}}`` becomes ``{"optimizer.name": "sgd"}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _plain(value: Any) -> str:
    """Write a value as text that is equal wherever the value is, NaN too."""
    return json.dumps(value, sort_keys=True)


def _check_file(path: Path, verb: str) -> None:
    """Make sure that a file is there and can be read to its end, as a FIFO cannot."""
    if not path.exists():
        raise InputError(f"{path} is missing; run `python -m xsoftmax {verb}` first")
    if not path.is_file():
        raise InputError(f"{path}: no regular file; delete it and run `python -m xsoftmax {verb}` again")


def _read_json(path: Path, verb: str) -> dict[str, Any]:
    _check_file(path, verb)
    again = f"run `python -m xsoftmax {verb}` again"
    try:
        found = read_json(path)
    except InputError as error:
        raise InputError(f"{error}; {again}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not what {verb} writes, keys and values; {again}")
    return found


def read_history(folder: Path) -> "pd.DataFrame":
    """Read a learning curve.

    Raises
    ------
    InputError
        If it is missing, or not what `train` writes.
    """
    import pandas as pd

    path = folder / "history.csv"
    _check_file(path, "train")
    try:
        history = pd.read_csv(path)
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InputError(f"{path} is not a table ({error}); run `python -m xsoftmax train` again") from None
    missing = [name for name in ("epoch", "step", "seconds", "test_log_likelihood") if name not in history]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; train this fit again")
    return history
