"""Where MLflow keeps runs: which store, one writer at a time, and a database that is MLflow's or is left alone."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from xsoftmax.internal.addresses import without_secrets
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import locked
from xsoftmax.internal.places import own_folder, user_cache

URI = "MLFLOW_TRACKING_URI"
LEFT_ALONE = f"it stays as it is; name another store in {URI}"
TABLES = {"alembic_version", "experiments", "runs", "metrics", "params", "tags"}  # of any MLflow since 2019
SECONDS_OF_WAITING = 600.0


def tracking_uri() -> str:
    """Name the store: ``MLFLOW_TRACKING_URI``, or the database in the root of the repository."""
    return os.environ.get(URI) or f"sqlite:///{repository_root() / 'mlflow.db'}"


def repository_root() -> Path:
    """Find the folder with a ``Snakefile`` or ``.git`` at or above the working directory, else that."""
    here = Path.cwd()
    roots = (f for f in (here, *here.parents) if (f / "Snakefile").exists() or (f / ".git").exists())
    return next(roots, here)


def artifact_location(name: str, uri: str) -> str | None:
    """Name the place for an experiment's artifacts; None where a server has one."""
    if uri.startswith(("http:", "https:", "databricks")):
        return None
    database = sqlite_file(uri)
    folder = database.parent if database else repository_root()
    return (folder.resolve() / "mlartifacts" / name).as_uri()


def sqlite_file(uri: str) -> Path | None:
    """Name the file of an SQLite database; None for other stores.

    Raises
    ------
    InputError
        If the database is in memory, where nothing of it would be left.
    """
    if not uri.startswith(("sqlite:", "sqlite+")):
        return None
    from sqlalchemy import make_url

    name = (make_url(uri).database or "").removeprefix("file:").partition("?")[0]
    if name in ("", ":memory:"):
        raise InputError(f"{without_secrets(uri)}: a database in memory keeps nothing; name a file in {URI}")
    return Path(name)


@contextmanager
def only_one(uri: str, seconds: float | None = None) -> Iterator[None]:
    """Let one process at a time write to a store: with a lock beside a database, else among the user's own files.

    Raises
    ------
    BusyError
        If another one writes for longer than ``seconds``, or else ``SECONDS_OF_WAITING``.
    """
    database = sqlite_file(uri)
    if database:
        path = database.resolve()
        path = path.with_name(path.name + ".lock")
    else:
        name = hashlib.sha256(without_secrets(uri).encode()).hexdigest()[:16]
        path = own_folder(user_cache() / "locks") / f"mlflow-{name}.lock"
    with locked(path, "log the fits", SECONDS_OF_WAITING if seconds is None else seconds):
        yield


def prepare_database(uri: str) -> None:
    """Make or upgrade an SQLite store before its use; a new one appears whole.

    MLflow's own first use of a new database is not safe for two processes at once, and a database that was
    left half made is never mended.

    Raises
    ------
    InputError
        If it is another program's, or of a newer MLflow; it is not changed.
    """
    path = sqlite_file(uri)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _check_database(path)
        _upgrade(path)
    else:
        aside = path.with_name(path.name + ".partial")
        for left in ("", "-journal", "-wal", "-shm"):  # an old journal would be played back into the new database
            aside.with_name(aside.name + left).unlink(missing_ok=True)
        _upgrade(aside)
        aside.replace(path)


def _check_database(path: Path) -> None:
    """Make sure that a database is MLflow's, or empty."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError:  # such as a lock: says nothing of what the file is
        raise
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: no database of MLflow's ({error}); {LEFT_ALONE}") from error
    if tables and not tables >= TABLES:
        known = ", ".join(sorted(tables)[:3])
        raise InputError(f"{path}: another program's database, with tables such as {known}; {LEFT_ALONE}")


def _upgrade(path: Path) -> None:
    import mlflow
    from alembic.util import CommandError
    from mlflow.db import commands

    try:
        commands.main(["upgrade", f"sqlite:///{path}"], standalone_mode=False)
    except CommandError as error:
        raise InputError(
            f"{path}: MLflow {mlflow.__version__} does not know its schema ({error}); a newer one has written it:"
            f" install that, or name another store in {URI}"
        ) from error
