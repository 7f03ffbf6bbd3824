"""Log a fit to MLflow as it goes: a run that shows the curve meanwhile; ``track`` replaces it by the whole fit.

A thread of its own talks to the store, so that the fit waits for nobody: rows stand in a short queue, what finds no
place there is left to ``track``, and a store that fails is told of once.
"""

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.tracking import LIVE, SETTINGS, find_experiment, printed_without_secrets, reason_of
from xsoftmax.lab.tracking.store import only_one, prepare_database, tracking_uri
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.folders import flatten

MOST_WAITING = 1000  # rows that a slow store has not taken yet
SECONDS_AT_THE_END = 5.0  # for what is still waiting
SECONDS_OF_WAITING = 30.0  # for others that write to the store


class LiveRun(Callback):
    """Log each row of the history to a run of its own as it comes; a resumed fit goes on with its run.

    With ``MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=true``, MLflow measures the use of the machine meanwhile.

    Parameters
    ----------
    experiment : str
        It is made if there is none.
    trial : str, optional
        Of a search.
    """

    def __init__(self, experiment: str, trial: str | None = None) -> None:
        self._uri, self._trial = tracking_uri(), trial
        self._run = _Run(self._uri, experiment)
        self._calls: queue.Queue[Callable[[], None] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="live-run", daemon=True)
        self._printed, self._failure = ExitStack(), ""

    def begin(self, fit: RunningFit) -> None:
        """Begin a run, or find that of the fit that is resumed.

        Raises
        ------
        InputError
            If the store failed, as in all that follows: without what may be secret in its address.
        """
        import mlflow  # noqa: F401 - off the clock, and not beside the first steps

        os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
        self._printed.enter_context(printed_without_secrets(self._uri))
        tags = {"dataset": fit.dataset, "method": fit.method.name, "seed": str(fit.seed), "fit": LIVE}
        tags |= {"trial": self._trial} if self._trial else {}
        parameters = {name: str(value) for name, value in flatten(fit.method.settings).items()}
        self._call(partial(self._run.begin, self._trial or fit.name, tags, parameters, fit.resumed))
        self._call(partial(self._run.add, [dict(row) for row in fit.state.history]))
        self._thread.start()

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Log a row; its time is that of training, as ``track`` has it."""
        self._call(partial(self._run.add, [dict(row)]))

    def end(self, fit: RunningFit) -> None:
        """End the run; that of a fit that was interrupted is left open for the one that resumes it."""
        if fit.state.status != "running":
            self._call(partial(self._run.end, fit.state.status))
        self._check()
        with suppress(queue.Full):
            self._calls.put_nowait(None)
            self._thread.join(SECONDS_AT_THE_END)
        self._check()
        if self._thread.is_alive():
            raise InputError(reason_of(TimeoutError("the last rows were not taken in time"), self._uri))
        self._printed.close()

    def _call(self, call: Callable[[], None]) -> None:
        self._check()
        with suppress(queue.Full):
            self._calls.put_nowait(call)

    def _check(self) -> None:
        if self._failure:
            self._printed.close()
            raise InputError(self._failure)

    def _work(self) -> None:
        try:
            while call := self._calls.get():
                call()
        except Exception as error:  # noqa: BLE001 - whatever a store does
            self._failure = reason_of(error, self._uri)
        self._run.stop_measuring()


class _Run:
    """The run of a fit in a store, of which only one thread knows."""

    def __init__(self, uri: str, experiment: str) -> None:
        self._uri, self._experiment = uri, experiment
        self._client: Any = None
        self._monitor: Any = None
        self._run_id, self._began = "", 0

    def begin(self, name: str, tags: dict[str, str], parameters: Mapping[str, str], resumed: bool) -> None:
        """Begin a run, or go on with that of these tags."""
        import mlflow
        from mlflow.entities import Param

        with only_one(self._uri, SECONDS_OF_WAITING):
            prepare_database(self._uri)
            self._client = mlflow.MlflowClient(self._uri)
            experiment_id = find_experiment(self._client, self._experiment, self._uri)
        wanted = " and ".join(f"tags.{tag} = '{value}'" for tag, value in tags.items())
        wanted += " and attributes.status = 'RUNNING'"
        found = self._client.search_runs([experiment_id], wanted) if resumed else []
        if found:
            self._run_id, self._began = found[0].info.run_id, found[0].info.start_time
        else:
            self._began = int(time.time() * 1000)
            run = self._client.create_run(experiment_id, self._began, tags | {"status": "running"}, run_name=name)
            self._run_id = run.info.run_id
            self._client.log_batch(self._run_id, params=[Param(*parameter) for parameter in parameters.items()])
        self._measure(resumed=bool(found))

    def add(self, rows: Iterable[Mapping[str, float]]) -> None:
        """Log rows of the history; those that are there already stay as they are."""
        from mlflow.entities import Metric

        for row in rows:
            now, step = self._began + int(1000 * row["seconds"]), int(row["step"])
            values = {name: value for name, value in row.items() if name != "step" and math.isfinite(value)}
            metrics = [Metric(name, float(value), now, step) for name, value in values.items()]
            self._client.log_batch(self._run_id, metrics=metrics)

    def end(self, status: str) -> None:
        """Say how the fit ended."""
        self.stop_measuring()
        self._client.set_tag(self._run_id, "status", status)
        self._client.set_terminated(self._run_id)

    def _measure(self, resumed: bool) -> None:
        """Have MLflow measure the use of the machine, if it is told to."""
        from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        if MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get():
            self._monitor = SystemMetricsMonitor(self._run_id, resume_logging=resumed, tracking_uri=self._uri)
            self._monitor.start()

    def stop_measuring(self) -> None:
        """Log what was measured, and measure no more."""
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.finish()
