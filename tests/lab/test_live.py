"""A fit that is logged to MLflow as it goes, and `track` after it."""

import shutil
import time

import pytest

from faults.between import Between
from training.interruptions import KillAfter, KilledError
from training.problems import K, curve, method, rows
from xsoftmax.lab.tracking import SETTINGS, live, track
from xsoftmax.lab.tracking.live import LiveRun
from xsoftmax.lab.tracking.store import prepare_database
from xsoftmax.solvers import sampled
from xsoftmax.training.callbacks import Callback
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.training.record import write_fit


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory):
    """A new database, which takes seconds to make."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    prepare_database(f"sqlite:///{path}")
    return path


@pytest.fixture
def client(tmp_path, monkeypatch, empty_store):
    """A store of its own."""
    from mlflow import MlflowClient

    shutil.copy(empty_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 100)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)  # what a live run would set for good
    return MlflowClient(uri)


def runs_of(client):
    return client.search_runs([client.get_experiment_by_name("live").experiment_id])


def awaited(client, n):
    """The run and its points, as soon as there are so many: another thread logs them."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        experiment = client.get_experiment_by_name("live")
        for run in client.search_runs([experiment.experiment_id]) if experiment else []:
            points = client.get_metric_history(run.info.run_id, "test_log_likelihood")
            if len(points) >= n:
                return run, points
        time.sleep(0.02)
    raise TimeoutError


@pytest.mark.slow
def test_rows_are_there_as_they_come_and_track_replaces_the_run(client, dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "true")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    data, chosen, plan, seen = dataset(*rows(500), K, n_test=100), method(), Plan(epochs=2, at=(0.5, 1.0)), []

    class Follow(Callback):
        def evaluated(self, fit, row):
            run, points = awaited(client, len(fit.state.history))
            seen.append([(point.step, point.value) for point in points])
            assert (run.info.status, run.data.tags["status"]) == ("RUNNING", "running")

    result = fit(data, chosen, 0, plan, callbacks=[LiveRun("live"), Follow()])
    expected = [(row["step"], row["test_log_likelihood"]) for row in result.state.history]
    assert seen == [expected[: n + 1] for n in range(4)]
    (run,) = runs_of(client)
    assert (run.info.status, run.data.tags["status"]) == ("FINISHED", "finished")
    assert run.data.params["optimizer.name"] == "u-max"
    write_fit(tmp_path / "fit", result, data, chosen, 0, plan, "")
    (tmp_path / "fit" / "metrics.json").write_text('{"status": "finished", "test": {"n_samples": 100}}')
    assert not track([tmp_path / "fit"], "live")["pending"]
    (replaced,) = runs_of(client)
    assert replaced.info.run_id != run.info.run_id
    assert replaced.data.tags["fit"] != live.LIVE
    measured = "system/cpu_utilization_percentage"
    assert run.data.metrics[measured] == replaced.data.metrics[measured]


@pytest.mark.slow
def test_a_resumed_fit_goes_on_with_its_run(client, dataset, tmp_path):
    data, plan = dataset(*rows(500), K), {"epochs": 2, "at": (0.5, 1.0)}
    plan = Plan(**plan, checkpoint=tmp_path / "kept.h5", checkpoint_seconds=0.0)
    with pytest.raises(KilledError):
        fit(data, method(), 0, plan, callbacks=[LiveRun("live"), KillAfter(6)])
    (killed,) = runs_of(client)
    assert killed.info.status == "RUNNING"
    result = fit(data, method(), 0, plan, callbacks=[LiveRun("live")])
    (run,) = runs_of(client)
    assert (run.info.run_id, run.info.status) == (killed.info.run_id, "FINISHED")
    points = client.get_metric_history(run.info.run_id, "objective")
    assert {point.step: point.value for point in points} == {
        row["step"]: row["objective"] for row in result.state.history
    }


def test_a_trial_is_of_its_search(client, dataset):
    fit(dataset(*rows(500), K), method(), 0, Plan(epochs=1), callbacks=[LiveRun("live", "swift")])
    (run,) = runs_of(client)
    assert (run.info.run_name, run.data.tags["trial"]) == ("swift", "swift")
    assert "system/cpu_utilization_percentage" not in run.data.metrics


@pytest.mark.fault(
    "an MLflow server that never answers, while a fit logs to it as it goes",
    happens="no step and no evaluation waits for it; the end of the fit waits five seconds; the bits are the same",
    user="`warning: callback LiveRun: …; training goes on without it`, once",
)
@pytest.mark.parametrize("most", [1, 1000])
def test_a_server_that_never_answers_holds_up_no_fit(dataset, monkeypatch, capsys, most):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", Between(0, delay=3600).uri)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(live, "MOST_WAITING", most)
    monkeypatch.setattr(live, "SECONDS_AT_THE_END", 0.2)
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 100)
    data, plan, waited = dataset(*rows(500), K), Plan(epochs=1, at=(0.2, 0.4, 0.6, 0.8)), []

    class Timed(LiveRun):
        def evaluated(self, fit, row):
            begin = time.monotonic()
            super().evaluated(fit, row)
            waited.append(time.monotonic() - begin)

    watched = fit(data, method(), 0, plan, callbacks=[Timed("live")])
    said = capsys.readouterr().err
    assert len(waited) == 6
    assert max(waited) < 1  # MLFLOW_HTTP_REQUEST_TIMEOUT is 30
    assert said.count("training goes on without it") == 1
    assert "the last rows were not taken in time" in said
    assert curve(watched) == curve(fit(data, method(), 0, plan))


@pytest.mark.fault(
    "an MLflow server that nobody can reach, while a fit logs to it as it goes",
    happens="the fit goes on without it and ends with the same bits; `track` logs it later",
    user="`warning: callback LiveRun: …; training goes on without it`, once, without secrets",
)
def test_a_server_that_nobody_reaches_loses_no_fit(dataset, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    data, plan = dataset(*rows(500), K), Plan(epochs=1, at=(0.5,))
    watched = fit(data, method(), 0, plan, callbacks=[LiveRun("live")])
    said = capsys.readouterr().err
    assert said.count("training goes on without it") == 1
    assert said.startswith("warning: callback LiveRun: http://")
    assert "secret" not in said
    assert curve(watched) == curve(fit(data, method(), 0, plan))
