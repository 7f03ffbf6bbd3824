"""Log fits to MLflow: one run per fit, as often as wanted without doubles, and never at the cost of a fit.

The only module that imports MLflow. A fit is known by the hash of its files, so a second call logs what is
missing and a fit that was trained again replaces its run (MLflow keeps deleted runs until ``mlflow gc``). A
store that can't be reached leaves fits pending, with the reason.
"""

import fcntl
import hashlib
import math
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from xsoftmax.fits import FILES, Fit, flatten, read_fits

BATCH = 1000  # metrics that one call of log_batch takes
BATCH_PARAMETERS = 100
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def track(folders: Iterable[Path], experiment: str) -> dict[str, Any]:
    """Log each fit that is not logged yet as one MLflow run.

    Parameters
    ----------
    folders : iterable of Path
        Fit directories that `train` and `evaluate` have filled.
    experiment : str
        Name of the MLflow experiment; it is made if there is none.

    Returns
    -------
    dict
        ``experiment``, ``uri``, ``logged`` (a list of data set, method, seed, ``fit`` hash, ``run_id`` and
        ``new``) and ``pending`` (the same with a ``reason`` in place of the run). Nothing that MLflow or its
        server does is raised.
    """
    fits = read_fits(folders)
    uri = tracking_uri()
    record: dict[str, Any] = {
        "experiment": experiment,
        "uri": without_password(uri),
        "logged": [],
        "pending": [],
    }
    os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
    try:
        with _only_one(uri):
            _log_all(fits, experiment, uri, record)
    except _failures() as error:
        done = len(record["logged"]) + len(record["pending"])
        record["pending"] += [_entry(fit) | {"reason": _reason(error, uri)} for fit in fits[done:]]
    return record


def tracking_uri() -> str:
    """Name the store: ``MLFLOW_TRACKING_URI``, or the database in the root of the repository."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{repository_root() / 'mlflow.db'}"


def repository_root() -> Path:
    """Find the folder with a ``Snakefile`` or ``.git`` at or above the working directory, else that."""
    here = Path.cwd()
    roots = (f for f in (here, *here.parents) if (f / "Snakefile").exists() or (f / ".git").exists())
    return next(roots, here)


def without_password(uri: str) -> str:
    """Hide the password in a URI."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc="…@" + parts.netloc.rpartition("@")[2]))


def _log_all(fits: Sequence[Fit], experiment: str, uri: str, record: dict[str, Any]) -> None:
    """Log the fits in a row; one that MLflow does not accept is left pending, and the others go on."""
    import mlflow

    _prepare_database(uri)
    client = mlflow.MlflowClient(uri)
    experiment_id = _experiment(client, experiment, uri)
    runs = _runs(client, experiment_id)
    for fit in fits:
        entry = _entry(fit)
        try:
            logged = _log(client, experiment_id, fit, entry["fit"], runs.get(_key(entry), []))
            record["logged"].append(entry | logged)
        except mlflow.MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            record["pending"].append(entry | {"reason": _reason(error, uri)})


def _log(client: Any, experiment_id: str, fit: Fit, content: str, runs: Sequence[Any]) -> dict[str, Any]:
    """Log one fit unless a finished run has its content; delete the other runs of the same identity."""
    same = [run for run in runs if run.data.tags["fit"] == content and run.info.status == "FINISHED"]
    run_id = same[0].info.run_id if same else _new_run(client, experiment_id, fit, content)
    for run in runs:
        if run.info.run_id != run_id:
            client.delete_run(run.info.run_id)
    return {"run_id": run_id, "new": not same}


def _new_run(client: Any, experiment_id: str, fit: Fit, content: str) -> str:
    seconds = fit.status.get("seconds") or 0.0
    end = int((fit.folder / "status.json").stat().st_mtime * 1000)
    start = end - int(seconds * 1000)
    name = f"{fit.method} {fit.dataset} seed {fit.seed}"
    run = client.create_run(experiment_id, start_time=start, tags=_tags(fit, content), run_name=name)
    run_id = run.info.run_id
    parameters, metrics = _parameters(fit), _metrics(fit, start)
    for first in range(0, len(parameters), BATCH_PARAMETERS):
        client.log_batch(run_id, params=parameters[first : first + BATCH_PARAMETERS])
    for first in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + BATCH])
    for path in (fit.folder / name for name in FILES):
        if path.exists():
            client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, end_time=end)
    return run_id


def _tags(fit: Fit, content: str) -> dict[str, str]:
    named = {"dataset": fit.dataset, "method": fit.method, "seed": str(fit.seed), "fit": content}
    named["status"] = fit.status["status"]
    named["mlflow.source.name"] = "xsoftmax"
    if fit.status.get("objective_name"):
        named["objective_name"] = fit.status["objective_name"]
    if fit.status.get("git_commit"):
        named["mlflow.source.git.commit"] = fit.status["git_commit"]
    if fit.status.get("message"):
        named["mlflow.note.content"] = fit.status["message"]
    return named


def _parameters(fit: Fit) -> list[Any]:
    from mlflow.entities import Param

    status = fit.status
    groups = ("data", "versions", "machine")
    flat = flatten(status.get("parameters", {})) | flatten({name: status.get(name, {}) for name in groups})
    names = ("dataset", "method", "seed", "objective_name", "epochs", "budget", "n_parameters", "git_commit")
    flat |= flatten({name: status.get(name) for name in (*names, "fingerprint")})
    return [Param(name, str(value)) for name, value in flat.items() if value is not None]


def _metrics(fit: Fit, start: int) -> list[Any]:
    """List the curve by step, the measures of the final model and the use of the machine.

    A point's time is the start plus its seconds of training, so that MLflow's relative time is training time.
    The training objective is logged twice: as ``objective``, and under its own name, since only like objectives
    can be compared.
    """
    from mlflow.entities import Metric

    points: list[tuple[str, Any, int, int]] = []
    history, own_name = fit.history, _metric_name(fit.status.get("objective_name"))
    if own_name and "objective" in history:
        history = history.assign(**{f"objective/{own_name}": history["objective"]})
    for row in history.to_dict("records"):
        now = start + int(1000 * row["seconds"])
        points += [(str(name), row[name], now, int(row["step"])) for name in row if name != "step"]
    step, end = int(fit.status.get("step") or 0), start + int(1000 * (fit.status.get("seconds") or 0))
    points += [(name, value, end, step) for name, value in _outcome(fit).items()]
    return [Metric(*point) for point in points if _is_number(point[1])]


def _outcome(fit: Fit) -> dict[str, Any]:
    status = fit.status
    peak = status.get("peak_memory_bytes")
    system = {name: status.get(name) for name in ("threads", "seconds_per_epoch", "seconds", "setup_seconds")}
    system["peak_memory_megabytes"] = peak and peak / 1e6
    final = {
        f"final_{split}_{name}": value
        for split in ("validation", "test")
        for name, value in fit.metrics.get(split, {}).items()
    }
    return final | {f"system/{name}": value for name, value in system.items()}


def _metric_name(words: str | None) -> str:
    """Turn words into what MLflow takes as the name of a metric."""
    return re.sub(r"[^\w.-]+", "_", words or "", flags=re.ASCII).strip("_")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _experiment(client: Any, name: str, uri: str) -> str:
    """Find or make the experiment; a store without a server gets an absolute place for artifacts."""
    found = client.get_experiment_by_name(name)
    if found is None:
        kind = {"mlflow.experimentKind": "custom_model_development"}  # or the page opens on language models
        return client.create_experiment(name, _artifact_location(name, uri), tags=kind)
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return found.experiment_id


def _artifact_location(name: str, uri: str) -> str | None:
    if uri.startswith(("http:", "https:", "databricks")):
        return None
    database = _sqlite_file(uri)
    folder = database.parent if database else repository_root()
    return (folder.resolve() / "mlartifacts" / name).as_uri()


def _runs(client: Any, experiment_id: str) -> dict[tuple[str, ...], list[Any]]:
    """Find the runs of the experiment that are fits, by data set, method and seed."""
    found: dict[tuple[str, ...], list[Any]] = {}
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=1000, page_token=token)
        for run in page:
            if "fit" in run.data.tags:
                found.setdefault(_key(run.data.tags), []).append(run)
        token = page.token
        if not token:
            return found


def _key(tags: Any) -> tuple[str, ...]:
    return tuple(str(tags.get(name)) for name in ("dataset", "method", "seed"))


def _entry(fit: Fit) -> dict[str, Any]:
    return {"dataset": fit.dataset, "method": fit.method, "seed": fit.seed, "fit": fit.content_hash()}


def _sqlite_file(uri: str) -> Path | None:
    if not uri.startswith("sqlite:"):
        return None
    from sqlalchemy import make_url

    name = make_url(uri).database
    return Path(name) if name and name != ":memory:" else None


def _prepare_database(uri: str) -> None:
    """Make or upgrade an SQLite store before its use; a new one appears whole.

    MLflow's own first use of a new database is not safe for two processes at once, and a database that was
    left half made is never mended.
    """
    path = _sqlite_file(uri)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA schema_version")
        _upgrade(path)
    else:
        aside = path.with_name(path.name + ".partial")
        aside.unlink(missing_ok=True)
        _upgrade(aside)
        aside.replace(path)


def _upgrade(path: Path) -> None:
    from mlflow.db import commands

    commands.main(["upgrade", f"sqlite:///{path}"], standalone_mode=False)


@contextmanager
def _only_one(uri: str) -> Iterator[None]:
    """Let one process of this user at a time write to a store."""
    database = _sqlite_file(uri)
    if database:
        path = database.with_name(database.name + ".lock")
    else:
        name = hashlib.sha256(uri.encode()).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"xsoftmax-mlflow-{os.getuid()}-{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _failures() -> tuple[type[Exception], ...]:
    """List what a store that does not work may raise."""
    failures: tuple[type[Exception], ...] = (OSError, ImportError, sqlite3.Error)
    try:
        from mlflow import MlflowException
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        return failures
    return (*failures, MlflowException, SQLAlchemyError)


def _reason(error: Exception, uri: str) -> str:
    if isinstance(error, ImportError):
        return f"{error}; install the extra 'track'"
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0].replace(uri, without_password(uri))[:300]
