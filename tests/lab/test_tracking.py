import fcntl
import json
import logging
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pandas as pd
import pytest

from lab.report.fake_fits import change, write_fits, write_model, write_search
from xsoftmax.cli import main
from xsoftmax.lab import tracking
from xsoftmax.lab.tracking import SETTINGS, track
from xsoftmax.lab.tracking import store as tracking_store
from xsoftmax.lab.tracking.content import metric_name
from xsoftmax.lab.tracking.store import repository_root
from xsoftmax.training.search import read_search

NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory of its own, with the default store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)  # what track would set for good
    (tmp_path / "Snakefile").touch()
    return tmp_path


def client_of(folder):
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")


def runs_of(folder, experiment="quick"):
    client = client_of(folder)
    return client.search_runs([client.get_experiment_by_name(experiment).experiment_id])


def test_each_fit_is_a_run_that_a_second_call_keeps_and_a_new_fit_replaces(here):
    folders = write_fits(here, methods=("softmax", "u-max"), diverged=(("icd10", "u-max", 0),))
    record = track(folders, "quick")
    assert not record["pending"]
    runs = {run.data.tags["method"]: run for run in runs_of(here)}
    _check_run(here, runs["softmax"], folders[0])
    assert runs["u-max"].data.tags["status"] == "diverged"
    assert "diverged at step" in runs["u-max"].data.tags["mlflow.note.content"]

    again = track(folders, "quick")
    assert [entry["new"] for entry in again["logged"]] == [False, False]
    assert [entry["run_id"] for entry in again["logged"]] == [entry["run_id"] for entry in record["logged"]]

    client_of(here).update_run(runs["u-max"].info.run_id, status="RUNNING")  # as if killed halfway
    write_model(folders[0] / "model.h5", "trained again")
    replaced = track(folders, "quick")
    assert [entry["new"] for entry in replaced["logged"]] == [True, True]
    assert {run.info.run_id for run in runs_of(here)} == {entry["run_id"] for entry in replaced["logged"]}


def test_without_mlflow_fits_are_pending_and_what_to_type_is_said(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    pending = track(write_fits(here, methods=("softmax",)), "quick")["pending"]
    assert [entry["reason"] for entry in pending] == [
        "mlflow is not installed, which this needs; type: pip install 'xsoftmax[track]'"
    ]


def test_a_search_is_a_run_with_its_trials_below_it(here):
    fits, folder = write_fits(here, methods=("softmax",)), here / "search"
    write_search(folder)
    record = track(fits, "quick", [read_search(folder)])
    assert [entry["seed"] for entry in record["logged"]] == [0, "search"]
    runs = {run.info.run_name: run for run in runs_of(here)}
    assert sorted(runs) == ["search softmax icd10", "slow", "softmax icd10 seed 0", "swift"]
    parent = runs["search softmax icd10"]
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["best"] == "swift"
    assert parent.data.params["optimizer.learning_rate"] == "1.0"
    for name, chosen in (("slow", "false"), ("swift", "true")):
        assert runs[name].data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert (runs[name].data.tags["trial"], runs[name].data.tags["chosen"]) == (name, chosen)
    again = track(fits, "quick", [read_search(folder)])
    assert [entry["new"] for entry in again["logged"]] == [False, False]
    assert {run.info.run_id for run in runs_of(here)} == {run.info.run_id for run in runs.values()}


def test_a_search_that_was_done_again_replaces_its_runs(here):
    fits, folder = write_fits(here, methods=("softmax",)), here / "search"
    write_search(folder)
    before = track(fits, "quick", [read_search(folder)])
    write_search(folder, value=-3.0)
    after = track(fits, "quick", [read_search(folder)])
    assert [entry["new"] for entry in after["logged"]] == [False, True]
    assert before["logged"][0]["run_id"] == after["logged"][0]["run_id"]
    assert len(runs_of(here)) == 4


def test_a_search_that_was_cut_off_is_logged_anew(here, monkeypatch):
    fits, folder = write_fits(here, methods=("softmax",)), here / "search"
    write_search(folder)
    new_run, names = tracking._new_run, []

    def fails(client, experiment_id, fit, content, name, more=None):
        names.append(name)
        if name == "swift":
            raise OSError("the disk is full")
        return new_run(client, experiment_id, fit, content, name, more)

    monkeypatch.setattr(tracking, "_new_run", fails)
    assert [entry["reason"] for entry in track(fits, "quick", [read_search(folder)])["pending"]] == [
        "the disk is full"
    ]
    monkeypatch.undo()
    monkeypatch.chdir(here)
    record = track(fits, "quick", [read_search(folder)])
    assert not record["pending"]
    assert sorted(run.info.run_name for run in runs_of(here)) == [
        "search softmax icd10", "slow", "softmax icd10 seed 0", "swift",
    ]  # fmt: skip


def _check_run(here, run, folder):
    history = pd.read_csv(folder / "history.csv")
    status = json.loads((folder / "status.json").read_text())
    logged = client_of(here).get_metric_history(run.info.run_id, "test_log_likelihood")
    assert [point.step for point in logged] == list(history.step)
    assert [point.value for point in logged] == list(history.test_log_likelihood)
    own = client_of(here).get_metric_history(run.info.run_id, f"objective/{status['objective_name']}")
    assert [point.value for point in own] == list(history.objective)
    assert run.data.metrics["objective"] == history.objective.iloc[-1]
    assert run.data.tags["objective_name"] == status["objective_name"]
    assert run.data.params["optimizer.learning_rate"] == "0.1"
    assert run.data.params["data.n_train"] == "66646"
    assert run.data.params["git_commit"] == run.data.tags["mlflow.source.git.commit"] == status["git_commit"]
    assert run.data.metrics["system/threads"] == 1
    assert run.data.metrics["system/peak_memory_megabytes"] == status["peak_memory_bytes"] / 1e6
    assert run.data.metrics["final_test_accuracy"] == history.test_accuracy.iloc[-1]
    assert run.info.end_time - run.info.start_time == pytest.approx(1000 * status["seconds"], abs=1)
    artifacts = Path(url2pathname(urlsplit(run.info.artifact_uri).path))
    assert artifacts.is_relative_to(here / "mlartifacts" / "quick")
    assert (artifacts / "history.csv").exists()
    assert run.info.status == "FINISHED"


@pytest.mark.fault(
    "an MLflow server that is down",
    happens="no fit waits for it; all are pending, and the next `track` logs them",
    user="`warning: n fits are not logged: …`, with the server's address",
)
def test_an_unreachable_server_leaves_fits_pending_and_the_next_call_logs_them(here, monkeypatch, capsys):
    folders = [str(folder) for folder in write_fits(here, methods=("softmax", "u-max"))]
    call = ["track", *folders, "--experiment", "quick", "-o", "tracking.json"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", NOBODY_LISTENS)
    assert main(call) == 0
    record = json.loads((here / "tracking.json").read_text())
    assert not record["logged"]
    assert [entry["method"] for entry in record["pending"]] == ["softmax", "u-max"]
    assert all("127.0.0.1" in entry["reason"] for entry in record["pending"])
    assert "2 fits are not logged" in capsys.readouterr().err

    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert main(call) == 0
    record = json.loads((here / "tracking.json").read_text())
    assert (len(record["logged"]), record["pending"]) == (2, [])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////proc/nowhere/mlflow.db", "no-such-store:x", "http://[::1", "http://", "sqlite:no", "sqlite://",
        "sqlite:///:memory:", "sqlite+none:///x.db", "http://host:port/", "ann:pass@host", " ", "nonsense://x:y:z",
    ],
)  # fmt: skip
def test_a_store_that_does_not_work_is_a_reason_and_no_error(here, monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    folders = write_fits(here, methods=("softmax",))
    assert main(["track", *map(str, folders), "--experiment", "quick", "-o", "tracking.json"]) == 0
    assert json.loads((here / "tracking.json").read_text())["pending"][0]["reason"]


@pytest.mark.fault(
    "an MLflow database of a newer MLflow",
    happens="it is not changed; the fits are pending",
    user="`warning: n fits are not logged: …`, with the version of MLflow that does not know it",
)
def test_a_database_of_a_newer_mlflow_is_left_alone(here):
    folders = write_fits(here, methods=("softmax",))
    track(folders, "quick")
    with sqlite3.connect(here / "mlflow.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'fedcba987654'")
    before = (here / "mlflow.db").read_bytes()
    assert main(["track", *map(str, folders), "--experiment", "quick", "-o", "tracking.json"]) == 0
    reason = json.loads((here / "tracking.json").read_text())["pending"][0]["reason"]
    assert "mlflow.db: MLflow " in reason
    assert "does not know its schema" in reason
    assert "fedcba987654" in reason
    assert (here / "mlflow.db").read_bytes() == before


FOREIGN = {
    "a text": "",
    "a browser's": "CREATE TABLE moz_places (id INTEGER)",
    "another tracker's": "CREATE TABLE experiments (id INTEGER); CREATE TABLE runs (id INTEGER)",
    "one with alembic": "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('1')",
    "one with alembic and no revision": "CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE a (id INT)",
}


@pytest.mark.fault(
    "another program's file or database where MLflow's should be",
    happens="it is not changed; the fits are pending",
    user="`warning: n fits are not logged: …`, with the file",
)
@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("uri", ["sqlite:///own.db", "sqlite+pysqlite:///own.db", "sqlite:///file:own.db?uri=true"])
def test_another_programs_database_is_left_alone(here, monkeypatch, capsys, kind, uri):
    if kind == "a text":
        (here / "own.db").write_text("this is not a database, and stays as it is")
    else:
        with sqlite3.connect(here / "own.db") as connection:
            connection.executescript(FOREIGN[kind])
    before = (here / "own.db").read_bytes()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    folders = write_fits(here, methods=("softmax",))
    assert main(["track", *map(str, folders), "--experiment", "quick"]) == 0
    said = capsys.readouterr().err
    assert "1 fits are not logged: own.db: " in said
    assert "it stays as it is; name another store in MLFLOW_TRACKING_URI" in said
    assert (here / "own.db").read_bytes() == before
    assert not (here / "mlartifacts").exists()


@pytest.mark.fault(
    "an MLflow that another program has written to for ten minutes",
    happens="nothing waits for longer; the fits are pending, and the next `track` logs them",
    user="`waiting for another program …` after a few seconds, then `warning: n fits are not logged: …`",
)
@pytest.mark.parametrize("uri", ["sqlite:///mlflow.db", NOBODY_LISTENS])
def test_a_lock_is_waited_for_so_long_and_not_longer(here, monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr(tracking_store, "SECONDS_OF_WAITING", 0.3)
    folders = write_fits(here, methods=("softmax",))
    track(folders, "quick")
    lock = next(iter((here / "cache" / "xsoftmax" / "locks").glob("*.lock")), here / "mlflow.db.lock")
    with lock.open("r") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        reason = track(folders, "quick")["pending"][0]["reason"]
    assert reason == f"{lock}: another program has held it for more than 0.3 s; log the fits later"


def test_a_lock_is_no_link_that_is_followed(here):
    (here / "precious").write_text("of great value")
    (here / "mlflow.db.lock").symlink_to(here / "precious")
    assert track(write_fits(here, methods=("softmax",)), "quick")["pending"]
    assert (here / "precious").read_text() == "of great value"


def test_no_lock_lies_among_everyones_temporary_files(here, monkeypatch):
    (here / "shared").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "shared"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", NOBODY_LISTENS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    track(write_fits(here, methods=("softmax",)), "quick")
    assert not list((here / "shared").rglob("*lock*"))
    assert (here / "cache" / "xsoftmax" / "locks").stat().st_uid == here.stat().st_uid


@pytest.mark.fault(
    "a model file that is damaged before MLflow has it",
    happens="the fit is not logged, the others are; what MLflow has of the fit stays",
    user="`warning: n fits are not logged: damaged model: …`",
)
@pytest.mark.parametrize("damage", ["cut", "flipped", "zeroed"])
def test_a_damaged_model_is_not_logged(here, damage):
    folders = write_fits(here, methods=("softmax", "u-max"))
    path = folders[0] / "model.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = {"cut": content[:-1], "flipped": content, "zeroed": content[:8] + bytes(len(content) - 8)}
    path.write_bytes(bytes(damaged[damage]))
    record = track(folders, "quick")
    assert [entry["method"] for entry in record["logged"]] == ["u-max"]
    assert record["pending"][0]["method"] == "softmax"
    assert record["pending"][0]["reason"].startswith(f"damaged model: {path}: ")
    assert {run.data.tags["method"] for run in runs_of(here)} == {"u-max"}


def test_a_fit_that_mlflow_refuses_does_not_hold_up_the_others(here):
    folders = write_fits(here, methods=("softmax", "u-max"))
    status = json.loads((folders[0] / "status.json").read_text())
    change(folders[0], parameters=status["parameters"] | {"bad*name": 1})
    record = track(folders, "quick")
    assert [entry["method"] for entry in record["pending"]] == ["softmax"]
    assert [entry["method"] for entry in record["logged"]] == ["u-max"]
    track(folders, "quick")
    assert len(runs_of(here)) == 2  # what was begun of the one, and the other: they do not pile up


@pytest.mark.parametrize(
    ("words", "name"), [("one-vs-each bound", "one-vs-each_bound"), ("a (β) loss: 2", "a_loss_2"), (None, "")]
)
def test_an_objective_gives_a_name_that_mlflow_takes(words, name):
    assert metric_name(words) == name


@pytest.mark.slow
def test_two_processes_at_once_on_a_new_database(here):
    folders = [str(folder) for folder in write_fits(here, methods=("softmax", "u-max"))]
    call = [sys.executable, "-m", "xsoftmax", "track", *folders, "--experiment", "quick"]
    processes = [subprocess.Popen([*call, "-o", f"{k}.json"], stderr=subprocess.PIPE) for k in range(2)]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0
        assert all(line.startswith(b"waiting for another program") for line in said.splitlines())
    records = [json.loads((here / f"{k}.json").read_text()) for k in range(2)]
    assert sorted(sum(entry["new"] for entry in record["logged"]) for record in records) == [0, 2]
    assert len(runs_of(here)) == 2


def test_the_root_is_the_folder_with_the_workflow(here, monkeypatch):
    (here / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(here / "a" / "b")
    assert repository_root() == here


@pytest.mark.parametrize(
    "uri",
    [
        "http://ann:s3cr3t@127.0.0.1:9", "http://127.0.0.1:9/?password=s3cr3t", "http://127.0.0.1:9/x?token=s3cr3t&a=1",
        "http://ann:pw@s3cr3t@127.0.0.1:9", "http://ann:p/s3cr3t@127.0.0.1:9", "http://ann:s3cr3t@[::1",
        "sqlite:////proc/nowhere/mlflow.db?password=s3cr3t", "nonsense://ann:s3cr3t@host/db", "s3cr3t@127.0.0.1",
    ],
)  # fmt: skip
def test_a_password_is_neither_said_nor_written_down(here, monkeypatch, capfd, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    folders = write_fits(here, methods=("softmax",))
    assert main(["track", *map(str, folders), "--experiment", "quick", "-o", "tracking.json"]) == 0
    written = (here / "tracking.json").read_text()
    said = "".join(capfd.readouterr())
    assert json.loads(written)["pending"]
    assert "…" in json.loads(written)["uri"]
    assert "s3cr3t" not in written + said


def test_what_mlflow_prints_and_logs_says_no_password(here, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:s3cr3t@127.0.0.1:9")

    def speaks(*_):
        print("to http://ann:s3cr3t@127.0.0.1:9")
        logging.getLogger("mlflow").warning("no port 's3cr3t@127.0.0.1'")

    monkeypatch.setattr(tracking, "_log_all", speaks)
    import mlflow  # noqa: F401 - sets up its log

    track(write_fits(here, methods=("softmax",)), "quick")
    out, err = capfd.readouterr()
    assert out == "to http://…@127.0.0.1:9\n"
    assert "s3cr3t" not in err
    assert "no port '…@127.0.0.1'" in err
