"""Log fits to MLflow: one run per fit, as often as wanted without doubles, and never at the cost of a fit.

Only this package imports MLflow. A fit is known by the hash of its files, so a second call logs what is
missing and a fit that was trained again replaces its run (MLflow keeps deleted runs until ``mlflow gc``). Its model
is a LoggedModel, its data set an input. A search is a run with its trials below it. A store that can't be reached
leaves fits pending, with the reason.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from xsoftmax.internal.addresses import text_without_secrets, without_secrets
from xsoftmax.internal.checksummed import DamagedError, verify_checksum
from xsoftmax.internal.errors import InputError, as_line, first_line
from xsoftmax.internal.outputs import CHOSEN, FILES
from xsoftmax.lab.tracking import content as run_content
from xsoftmax.lab.tracking.models import MODEL, delete_models, has_model, log_model
from xsoftmax.lab.tracking.store import artifact_location, only_one, prepare_database, tracking_uri
from xsoftmax.training.folders import Fit, read_fits
from xsoftmax.training.search import Search

PARENT = "mlflow.parentRunId"
SEARCH = "search"  # in place of a seed
LIVE = "live"  # in place of the hash of a fit's files: a run that is not of the whole fit
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


def track(folders: Iterable[Path], experiment: str, searches: Sequence[Search] = ()) -> dict[str, Any]:
    """Log each fit that is not logged yet as one MLflow run, and each search as one with its trials below it.

    Parameters
    ----------
    folders : iterable of Path
        Fit directories that `train` and `evaluate` have filled.
    experiment : str
        Name of the MLflow experiment; it is made if there is none.
    searches : sequence of Search

    Returns
    -------
    dict
        ``experiment``, ``uri``, ``logged`` (a list of data set, method, seed, ``fit`` hash, ``run_id`` and
        ``new``) and ``pending`` (the same with a ``reason`` in place of the run). A search is of no seed; it is
        ``new`` if it or one of its trials is. Nothing that MLflow or its server does is raised.
    """
    wanted: list[Fit | Search] = [*read_fits(folders), *searches]
    uri = tracking_uri()
    record: dict[str, Any] = {
        "experiment": experiment,
        "uri": without_secrets(uri),
        "logged": [],
        "pending": [],
    }
    os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
    try:
        with printed_without_secrets(uri), only_one(uri):
            _log_all(wanted, experiment, uri, record)
    except Exception as error:  # noqa: BLE001 - whatever a store or the libraries on the way to it do
        done = len(record["logged"]) + len(record["pending"])
        record["pending"] += [_entry(each) | {"reason": reason_of(error, uri)} for each in wanted[done:]]
    return record


def _log_all(wanted: Sequence[Fit | Search], experiment: str, uri: str, record: dict[str, Any]) -> None:
    """Log in a row; what MLflow does not accept is left pending, and the others go on."""
    import mlflow

    prepare_database(uri)
    client = mlflow.MlflowClient(uri)
    experiment_id = find_experiment(client, experiment, uri)
    runs = _runs(client, experiment_id)
    for each in wanted:
        entry = _entry(each)
        try:
            logged = _log(client, experiment_id, each, entry["fit"], runs.get(_key(entry), []))
            record["logged"].append(entry | logged)
        except mlflow.MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            record["pending"].append(entry | {"reason": reason_of(error, uri)})
        except (InputError, LookupError, TypeError, ValueError) as error:  # it is this one's files
            record["pending"].append(entry | {"reason": reason_of(error, uri)})


def _log(client: Any, experiment_id: str, each: Fit | Search, content: str, runs: Sequence[Any]) -> dict[str, Any]:
    """Log one unless a finished run has its content; delete the other runs of the same identity."""
    finished = [run for run in runs if run.info.status == "FINISHED"]
    same = [run for run in finished if run.data.tags["fit"] == content]
    if not same:
        _check_models(each)
    watched = [run for run in runs if run.data.tags["fit"] == LIVE and isinstance(each, Fit)]
    live = [metric for run in watched for metric in machine_use(client, run)]
    for run in runs:
        if run not in finished:  # left by a process that was killed
            _delete(client, experiment_id, run.info.run_id)
    run_id = same[0].info.run_id if same else _new(client, experiment_id, each, content)
    for first in range(0, len(live), BATCH):
        client.log_batch(run_id, metrics=live[first : first + BATCH])
    for run in finished:
        parent = run.data.tags.get(PARENT, run.info.run_id)
        if run_id not in (run.info.run_id, parent):
            _delete(client, experiment_id, run.info.run_id)
    return {"run_id": run_id, "new": not same}


def machine_use(client: Any, run: Any) -> list[Any]:
    """List what MLflow measured of the machine while a fit was running, as metrics of its live run."""
    names = [name for name in run.data.metrics if name.startswith("system/")]
    return [point for name in names for point in client.get_metric_history(run.info.run_id, name)]


def _delete(client: Any, experiment_id: str, run_id: str) -> None:
    """Delete a run, and the models that are of no use without it."""
    delete_models(client, experiment_id, run_id)
    client.delete_run(run_id)


def _check_models(each: Fit | Search) -> None:
    """Make sure that models, which are kept as artifacts, are as they were written."""
    for fit in [each] if isinstance(each, Fit) else each.trials:
        path = fit.folder / MODEL
        try:
            if path.exists():
                verify_checksum(path)
        except DamagedError as error:
            raise DamagedError(f"damaged model: {error}; train this fit again") from None


def _new(client: Any, experiment_id: str, each: Fit | Search, content: str) -> str:
    if isinstance(each, Fit):
        return _new_run(client, experiment_id, each, content, f"{each.method} {each.dataset} seed {each.seed}")
    return _new_search(client, experiment_id, each, content)


def _new_search(client: Any, experiment_id: str, search: Search, content: str) -> str:
    """Log a search: it is finished once all its trials are there."""
    from mlflow.entities import Metric, Param

    name = f"search {search.method} {search.dataset}"
    run = client.create_run(experiment_id, tags=run_content.search_tags(search, content), run_name=name)
    run_id = run.info.run_id
    client.log_batch(run_id, params=[Param(*parameter) for parameter in run_content.chosen(search)])
    now = int((search.folder / CHOSEN).stat().st_mtime * 1000)
    client.log_batch(run_id, metrics=[Metric(search.chosen["by"], search.chosen["value"], now, 0)])
    client.log_artifact(run_id, str(search.folder / CHOSEN))
    for trial in search.trials:
        point = trial.folder.name
        more = {"trial": point, "chosen": str(point == search.chosen["name"]).lower(), PARENT: run_id}
        _new_run(client, experiment_id, trial, trial.content_hash(), point, more)
    client.set_terminated(run_id)
    return run_id


def _new_run(
    client: Any, experiment_id: str, fit: Fit, content: str, name: str, more: Mapping[str, str] | None = None
) -> str:
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    seconds = fit.status.get("seconds") or 0.0
    end = int((fit.folder / "status.json").stat().st_mtime * 1000)
    start = end - int(seconds * 1000)
    tags = run_content.tags(fit, content) | dict(more or {})
    run = client.create_run(experiment_id, start_time=start, tags=tags, run_name=name)
    run_id = run.info.run_id
    data = run_content.data_set(fit)
    if data:
        client.log_inputs(run_id, [DatasetInput(Dataset(**data), [InputTag("mlflow.data.context", "training")])])
    model_id = None
    if has_model(fit):
        model_id = log_model(client, experiment_id, run_id, fit, tags, run_content.settings(fit))
    of_model: dict[str, Any] = {
        "model_id": model_id,
        "dataset_name": data.get("name"),
        "dataset_digest": data.get("digest"),
    }
    of_model = of_model if model_id else {}
    parameters = [Param(*parameter) for parameter in run_content.parameters(fit)]
    metrics = [Metric(*point) for point in run_content.curve(fit, start)]
    metrics += [Metric(*point) for point in run_content.machine(fit, start)]
    metrics += [Metric(*point, **of_model) for point in run_content.final(fit, start)]
    for first in range(0, len(parameters), BATCH_PARAMETERS):
        client.log_batch(run_id, params=parameters[first : first + BATCH_PARAMETERS])
    for first in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + BATCH])
    for path in (fit.folder / name for name in FILES):
        if path.exists() and path.name != MODEL:
            client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, end_time=end)
    return run_id


def find_experiment(client: Any, name: str, uri: str) -> str:
    """Find or make the experiment; a store without a server gets an absolute place for artifacts."""
    found = client.get_experiment_by_name(name)
    if found is None:
        kind = {"mlflow.experimentKind": "custom_model_development"}  # as MLflow calls what is not of language models
        return client.create_experiment(name, artifact_location(name, uri), tags=kind)
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return found.experiment_id


def _runs(client: Any, experiment_id: str) -> dict[tuple[str, ...], list[Any]]:
    """Find the runs of the experiment that are fits, or searches and their trials: by data set, method and seed."""
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
    """Tell what a run is of; a trial is a part of its search."""
    searched = tags.get("seed") == SEARCH or "trial" in tags
    return str(tags.get("dataset")), str(tags.get("method")), SEARCH if searched else str(tags.get("seed"))


def _entry(each: Fit | Search) -> dict[str, Any]:
    seed = each.seed if isinstance(each, Fit) else SEARCH
    return {"dataset": each.dataset, "method": each.method, "seed": seed, "fit": each.content_hash()}


class _WithoutSecrets:
    """A stream that hides what may be secret in an address before it passes a text on."""

    def __init__(self, stream: TextIO, uri: str) -> None:
        self._stream, self._uri = stream, uri

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.write(text_without_secrets(text, self._uri))
        return len(text)


@contextmanager
def printed_without_secrets(uri: str) -> Iterator[None]:
    """Hide what may be secret in whatever MLflow and other libraries print and log."""
    out, err = (_WithoutSecrets(stream, uri) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):  # type: ignore[type-var]
        yield


def reason_of(error: Exception, uri: str) -> str:
    """Say in a line why something is not logged."""
    if isinstance(error, ImportError):
        return as_line(error)
    plain = isinstance(error, InputError | OSError) and str(error).strip()
    said = str(error).strip().splitlines()[0] if plain else f"{without_secrets(uri)}: {first_line(error)}"
    return text_without_secrets(said, uri)[:300]
