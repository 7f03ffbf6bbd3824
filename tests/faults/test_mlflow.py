"""An MLflow server that is slow, hangs, or dies: no fit waits for it or is lost, and what is missing is logged later.

A server that is down from the start, and a store that is no store, are in tests/lab/test_tracking.py.
"""

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import time

import pytest

from faults.between import Between, free_port
from forked import run, xsoftmax
from lab.report.fake_fits import write_fits, write_search


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The port of a real MLflow server."""
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    with (folder / "log").open("w") as log:
        program = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    end = time.monotonic() + 120
    while not answers(port):
        assert program.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.2)
    yield port
    program.terminate()
    program.wait(30)


def answers(port):
    try:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
    except OSError:
        return False


def track(folder, folders, uri, experiment, monkeypatch, timeout="30"):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", timeout)
    done = run(
        xsoftmax("track", *folders, "--experiment", experiment, "-o", folder / "tracking.json"),
        cwd=folder,
        imports=["mlflow"],
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "tracking.json").read_text()), done.stderr


@pytest.fixture
def folders(tmp_path):
    return write_fits(tmp_path, methods=("softmax", "u-max", "one-vs-each"))


@pytest.mark.fault(
    "an MLflow server that dies in the middle",
    happens="what it has taken stays, the other fits are pending; the next `track` logs them, and none twice",
    user="`warning: n fits are not logged: …`; no fit fails",
)
@pytest.mark.slow
def test_a_server_that_dies_in_the_middle(server, folders, tmp_path, monkeypatch):
    dying = Between(server, calls=25)
    record, said = track(tmp_path, folders, dying.uri, "dying", monkeypatch)
    assert record["pending"]
    assert record["logged"]
    assert f"warning: {len(record['pending'])} fits are not logged" in said
    before = {entry["fit"]: entry["run_id"] for entry in record["logged"]}
    record, said = track(tmp_path, folders, f"http://127.0.0.1:{server}", "dying", monkeypatch)
    assert len(record["logged"]) == 3
    assert not record["pending"]
    assert before.items() <= {entry["fit"]: entry["run_id"] for entry in record["logged"]}.items()
    from mlflow import MlflowClient

    client = MlflowClient(f"http://127.0.0.1:{server}")
    runs = client.search_runs([client.get_experiment_by_name("dying").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) == 3


@pytest.mark.slow
@pytest.mark.fault(
    "an MLflow server that takes a second for every call",
    happens="everything is logged, slowly; fits are not held up: one rule logs them when they are done",
    user="a `track` job that takes long",
)
def test_a_slow_server_is_waited_for(server, folders, tmp_path, monkeypatch):
    slow = Between(server, delay=1.0)
    record, said = track(tmp_path, folders, slow.uri, "slow", monkeypatch)
    assert len(record["logged"]) == 3
    assert said == ""
    assert slow.seen < 70  # a fit takes a call for each file and a handful of others, not one for each number


@pytest.mark.slow
@pytest.mark.fault(
    "an MLflow server that never answers",
    happens="it is given up after MLFLOW_HTTP_REQUEST_TIMEOUT (30 s) and one more try; the fits are pending",
    user="`warning: n fits are not logged: …`",
)
def test_a_server_that_hangs_is_given_up(server, folders, tmp_path, monkeypatch):
    record, said = track(tmp_path, folders, Between(server, delay=3600).uri, "hanging", monkeypatch, timeout="1")
    assert len(record["pending"]) == 3
    assert "warning: 3 fits are not logged" in said


KILLED = """
import os, signal, sys
from mlflow import MlflowClient
from mlflow.db import commands
left = [int(sys.argv.pop(1))]
def dying(function):
    def call(*words, **options):
        result = function(*words, **options)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
commands.main = dying(commands.main)
for name in ("create_experiment", "create_run", "log_batch", "log_artifact", "set_terminated", "delete_run",
             "create_logged_model", "log_model_artifacts", "finalize_logged_model", "delete_logged_model"):
    setattr(MlflowClient, name, dying(getattr(MlflowClient, name)))
from xsoftmax.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.fault(
    "`track` killed at any point",
    happens="the next `track` logs what is missing, and what was half logged anew: each fit is there once",
    user="nothing; what was half logged is among MLflow's deleted runs, until `mlflow gc`",
)
@pytest.mark.parametrize("calls", [[12], pytest.param([1, 2, 3, 4, 5, 8, 11, 14, 17], marks=pytest.mark.slow)])
def test_track_killed_at_any_point(tmp_path, monkeypatch, calls):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    write_search(tmp_path / "search")
    words = ["track", *folders, "--searches", tmp_path / "search", "--experiment", "killed"]
    for call in calls:
        done = run([sys.executable, "-c", KILLED, str(call), *map(str, words)], cwd=tmp_path, imports=["mlflow"])
        assert done.returncode == -signal.SIGKILL, (call, done.stdout, done.stderr)
    done = run(xsoftmax(*words, "-o", tmp_path / "tracking.json"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads((tmp_path / "tracking.json").read_text())
    assert (len(record["logged"]), record["pending"]) == (3, [])
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("killed").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert sorted(run.info.run_name for run in runs) == [
        "search softmax icd10", "slow", "softmax icd10 seed 0", "swift", "u-max icd10 seed 0",
    ]  # fmt: skip
    for each in runs:
        assert len(client.list_artifacts(each.info.run_id)) == {"slow": 2, "swift": 2}.get(
            each.info.run_name, 1 if each.data.tags["seed"] == "search" else 3
        )
    models = client.search_logged_models([each.info.experiment_id])
    assert sorted(model.name for model in models) == ["softmax-icd10-seed-0", "u-max-icd10-seed-0"]
    assert {str(model.status) for model in models} == {"READY"}


@pytest.mark.slow
@pytest.mark.fault(
    "eight programs that log to one new database at once",
    happens="they take turns (a lock beside the database); every fit is logged once",
    user="nothing",
)
def test_eight_programs_log_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    programs = [
        subprocess.Popen(
            xsoftmax("track", *write_fits(tmp_path, methods=("u-max",), seeds=(seed,)), "--experiment", "eight"),
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(8)
    ]  # fmt: skip
    said = [program.communicate(timeout=300) for program in programs]
    assert [program.returncode for program in programs] == [0] * 8, said
    assert all("1 logged, 0 there before" in out for out, _ in said), said
    assert all(line.startswith("waiting for another") for _, err in said for line in err.splitlines()), said
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("eight").experiment_id])
    assert sorted(run.data.tags["seed"] for run in runs) == [str(seed) for seed in range(8)]
