"""Log a fit to MLflow as it goes: a run that shows the curve meanwhile; ``track`` replaces it by the whole fit."""

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.tracking import SETTINGS, find_experiment, printed_without_secrets, reason_of
from xsoftmax.lab.tracking.store import only_one, prepare_database, tracking_uri
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.folders import flatten

LIVE = "live"  # in place of the hash of a fit's files, by which `track` sees that it is not the whole fit
SECONDS_OF_WAITING = 30.0  # for others that write to the store


class LiveRun(Callback):
    """Log each row of the history to a run of its own as it comes; a resumed fit goes on with its run.

    Parameters
    ----------
    experiment : str
        It is made if there is none.
    """

    def __init__(self, experiment: str) -> None:
        self._experiment, self._uri = experiment, tracking_uri()
        self._client: Any = None
        self._run_id, self._began = "", 0

    def begin(self, fit: RunningFit) -> None:
        """Begin a run, or find that of the fit that is resumed.

        Raises
        ------
        InputError
            If the store cannot be reached, as in all that follows: without what may be secret in its address.
        """
        os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
        self._log(lambda: self._begin(fit))

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Log a row; its time is that of training, as ``track`` has it."""
        self._log(lambda: self._add(row))

    def end(self, fit: RunningFit) -> None:
        """End the run; that of a fit that was interrupted is left open for the one that resumes it."""
        if fit.state.status != "running":
            self._log(lambda: self._end(fit.state.status))

    def _begin(self, fit: RunningFit) -> None:
        import mlflow
        from mlflow.entities import Param

        with only_one(self._uri, SECONDS_OF_WAITING):
            prepare_database(self._uri)
            self._client = mlflow.MlflowClient(self._uri)
            experiment_id = find_experiment(self._client, self._experiment, self._uri)
        tags = {"dataset": fit.dataset, "method": fit.method.name, "seed": str(fit.seed), "fit": LIVE}
        if fit.resumed:
            wanted = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
            found = self._client.search_runs([experiment_id], f"{wanted} and attributes.status = 'RUNNING'")
            if found:
                self._run_id, self._began = found[0].info.run_id, found[0].info.start_time
                return
        self._began = int(time.time() * 1000)
        run = self._client.create_run(experiment_id, self._began, tags | {"status": "running"}, run_name=fit.name)
        self._run_id = run.info.run_id
        settings = flatten(fit.method.settings)
        self._client.log_batch(self._run_id, params=[Param(name, str(settings[name])) for name in settings])
        for row in fit.state.history:
            self._add(row)

    def _add(self, row: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now, step = self._began + int(1000 * row["seconds"]), int(row["step"])
        values = {name: value for name, value in row.items() if name != "step" and math.isfinite(value)}
        metrics = [Metric(name, float(value), now, step) for name, value in values.items()]
        self._client.log_batch(self._run_id, metrics=metrics)

    def _end(self, status: str) -> None:
        self._client.set_tag(self._run_id, "status", status)
        self._client.set_terminated(self._run_id)

    def _log(self, call: Callable[[], None]) -> None:
        try:
            with printed_without_secrets(self._uri):
                call()
        except Exception as error:  # noqa: BLE001 - whatever a store does
            raise InputError(reason_of(error, self._uri)) from None
