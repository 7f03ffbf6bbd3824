"""Disks that are full or may not be written to: an error that says so, and what was there is still there."""

import errno
import json
import os
import resource

import pytest

from faults.programs import train
from forked import run, xsoftmax
from lab.report.fake_fits import write_fits
from training.same_fit import fit_of
from xsoftmax.internal.errors import as_line

FULL = "No space left on device; make room on the disk and run it again"


def fill(folder, left=0):
    """Leave no more room than this on a disk."""
    with (folder / "filling").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            file.truncate(max(0, file.tell() - left))


@pytest.mark.fault(
    "disk full while a checkpoint is written",
    happens="training goes on; the older checkpoint stays, and the next one is tried a minute later",
    user="`warning: …: cannot be written (No space left on device)`",
)
def test_a_fit_goes_on_without_checkpoints(data, tmp_path, small_disk):
    disk, budget = small_disk(400_000), ("--epochs", 30, "--points", 2)
    kept = disk / "kept.h5"
    fill(disk)
    words = train(data, tmp_path, "implicit", *budget, "--checkpoint", kept, "--checkpoint-seconds", 0)
    done = run(words)
    assert done.returncode == 0
    assert f"warning: {kept}: cannot be written (No space left on device)" in done.stderr
    assert [path.name for path in disk.iterdir()] == ["filling"]
    (tmp_path / "calm").mkdir()
    assert run(train(data, tmp_path / "calm", "implicit", *budget)).returncode == 0
    assert fit_of(tmp_path / "fit") == fit_of(tmp_path / "calm" / "fit")


@pytest.mark.fault(
    "disk full while `--live` writes a row of the history",
    happens="half a line is taken back; the fit goes on without the file, and ends with the same bits",
    user="`warning: callback LiveHistory: …: No space left on device …; training goes on without it`, once",
)
def test_a_live_history_that_finds_no_room(data, tmp_path, small_disk):
    disk, budget = small_disk(40_000), ("--epochs", 300, "--points", 300)
    live = disk / "live.csv"
    done = run(train(data, tmp_path, "implicit", *budget, "--live", live))
    assert done.returncode == 0
    assert done.stderr.count("warning: callback LiveHistory: ") == 1
    assert "No space left on device; make room on the disk and run it again; training goes on" in done.stderr
    written, whole = live.read_text(), (tmp_path / "fit" / "history.csv").read_text()
    assert whole.startswith(written)
    assert written.endswith("\n")
    assert 20_000 < len(written) < len(whole)
    expected = fit_of(tmp_path / "fit")
    assert run(train(data, tmp_path, "implicit", *budget)).returncode == 0
    assert fit_of(tmp_path / "fit") == expected


@pytest.mark.slow
@pytest.mark.fault(
    "disk full while a model is written",
    happens="the job fails; what was there is still there, and the checkpoint too, from which the next run goes on",
    user=f"`error: … {FULL}`",
)
def test_a_model_that_finds_no_room_is_an_error_and_the_old_one_stays(data, tmp_path, small_disk):
    disk, kept = small_disk(400_000), tmp_path / "kept.h5"
    first = train(data, disk, "implicit", "--epochs", 1, "--points", 1)
    assert run(first).returncode == 0
    before = (disk / "fit" / "model.h5").read_bytes()
    fill(disk, left=2000)
    again = train(data, disk, "negative", "--epochs", 30, "--checkpoint", kept, "--checkpoint-seconds", 0)
    (disk / "filling").write_bytes(b"")  # room for the methods file that `train` wrote
    fill(disk, left=2000)
    done = run(again)
    assert done.returncode == 1
    assert FULL in done.stderr
    assert "Traceback" not in done.stderr
    assert (disk / "fit" / "model.h5").read_bytes() == before
    assert not list((disk / "fit").glob(".*"))
    assert kept.exists()
    (disk / "filling").unlink()
    done = run(again)
    assert done.returncode == 0
    assert "resumed" in done.stderr


@pytest.mark.slow
@pytest.mark.fault(
    "a limit on the size of files (`ulimit -f`), or a quota, reached by a model",
    happens="the job fails; what was there is still there",
    user="`error: … File too large; the file would be larger than the file system or `ulimit -f` allows`",
)
def test_a_limit_on_the_size_of_files(data, tmp_path):
    words = train(data, tmp_path, "implicit", "--epochs", 1, "--points", 1)
    assert run(words).returncode == 0
    before = (tmp_path / "fit" / "model.h5").read_bytes()
    done = run(
        train(data, tmp_path, "negative", "--epochs", 1),
        limits={resource.RLIMIT_FSIZE: 4000},
    )
    assert done.returncode == 1
    assert "File too large; the file would be larger than the file system or `ulimit -f` allows" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "fit" / "model.h5").read_bytes() == before
    assert not list((tmp_path / "fit").glob(".*"))


def test_a_quota_says_what_to_do():
    """Kernels without quotas can't try the real one."""
    error = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "model.h5")
    assert as_line(error).endswith("Disk quota exceeded; make room within your quota and run it again")


@pytest.mark.fault(
    "disk full while data are prepared",
    happens="nothing is left of the file; one that was there stays",
    user=f"`error: … {FULL}`",
)
@pytest.mark.parametrize("room", [0, 5000, 20_000])
def test_prepared_data_that_find_no_room(room, tmp_path, small_disk):
    disk = small_disk(400_000)
    lines = [f"{k % 7} {' '.join(f'{j + 1}:{(j * k) % 11 + 0.123 * k}' for j in range(40))}" for k in range(600)]
    (tmp_path / "mine.svm").write_text("\n".join(lines) + "\n")
    config = tmp_path / "mine.yaml"
    config.write_text("name: mine\nformat: svmlight\nfiles: [{path: mine.svm}]\n")
    assert run(xsoftmax("download", config, "-o", tmp_path / "raw")).returncode == 0
    fill(disk, left=room)
    before = sorted(disk.iterdir())
    done = run(xsoftmax("prepare", config, "--raw", tmp_path / "raw", "-o", disk / "mine.h5"))
    assert done.returncode == 1, done.stderr
    assert FULL in done.stderr
    assert sorted(disk.iterdir()) == before


@pytest.mark.fault(
    "a results folder that may not be written to",
    happens="the job fails before anything is written",
    user="`error: … Read-only file system; write somewhere else, or have it mounted to be written to`",
)
def test_a_read_only_folder(data, tmp_path, small_disk, read_only):
    disk = small_disk(400_000)
    words = train(data, disk, "implicit", "--epochs", 1)
    assert run(words).returncode == 0
    before = fit_of(disk / "fit")
    read_only(disk)
    done = run(words)
    assert done.returncode == 1
    assert "Read-only file system; write somewhere else" in done.stderr
    assert "Traceback" not in done.stderr
    assert fit_of(disk / "fit") == before


@pytest.mark.slow
@pytest.mark.fault(
    "MLflow's store on a full disk",
    happens="fits stay pending, with the reason; a later `track` logs them",
    user="`warning: n fits are not logged: …`, and where the store is",
)
def test_a_full_disk_under_mlflows_store(tmp_path, small_disk, monkeypatch):
    disk = small_disk(300_000)
    folders = write_fits(tmp_path, methods=("softmax", "u-max"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{disk / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)
    words = xsoftmax("track", *folders, "--experiment", "quick", "-o", "tracking.json")
    done = run(words)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "tracking.json").read_text())
    assert len(record["pending"]) == 2
    assert "warning: 2 fits are not logged" in done.stderr
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert run(words).returncode == 0
    assert not json.loads((tmp_path / "tracking.json").read_text())["pending"]
