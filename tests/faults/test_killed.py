"""Programs that are killed, or told to stop: what is done stays, and the rest ends with the same bits."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest

from faults.programs import train
from forked import run
from training.same_fit import fit_of
from workflow.checkout import Checkout

KILLS = 20


def whole(data, folder, method, *budget):
    """The fit that nobody disturbed."""
    (folder / "whole").mkdir()
    done = run(train(data, folder / "whole", method, *budget))
    assert done.returncode == 0, done.stderr
    return fit_of(folder / "whole" / "fit")


@pytest.mark.slow
@pytest.mark.fault(
    "SIGKILL of a training job, 20 times at random moments",
    happens="the next run goes on from the last checkpoint, and ends with the same bits",
    user="`resumed … at epoch …` in the log",
)
@pytest.mark.parametrize("method", ["implicit", "negative"])
def test_a_fit_killed_twenty_times_ends_with_the_same_bits(method, data, tmp_path):
    """Five times while it starts, fifteen times after it has written a checkpoint."""
    budget = ("--epochs", 1500, "--points", 5)
    expected = whole(data, tmp_path, method, *budget)
    kept = tmp_path / "scratch" / "kept.h5"
    words = train(data, tmp_path, method, *budget, "--checkpoint", kept, "--checkpoint-seconds", 0.05)
    rng, resumed = np.random.default_rng(1), 0
    for kill in range(KILLS):
        program = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        if kill % 4:
            wait_for_checkpoint(kept, program)
        time.sleep(rng.uniform(0, 0.2 if kill % 4 else 1.5))
        program.kill()
        resumed += "resumed" in program.communicate()[1]
        assert program.returncode in (-signal.SIGKILL, 0)
    done = run(words)
    assert done.returncode == 0, done.stderr
    assert resumed >= KILLS / 2
    assert fit_of(tmp_path / "fit") == expected
    assert not list(kept.parent.iterdir())


def wait_for_checkpoint(kept, program):
    """Wait until the program has written another checkpoint, or has ended."""
    before = kept.stat().st_mtime_ns if kept.exists() else 0
    while program.poll() is None and not (kept.exists() and kept.stat().st_mtime_ns != before):
        time.sleep(0.002)


@pytest.mark.long_cases
@pytest.mark.fault(
    "SIGTERM, Ctrl-C or SIGHUP to a training job",
    happens="it writes a checkpoint and ends with status 143",
    user="`stopped: … at epoch …; the same command goes on from …`",
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_fit_that_is_told_to_stop_keeps_all_of_its_work(number, data, tmp_path):
    budget = ("--epochs", 4000, "--points", 4)  # two seconds, so that a busy machine interrupts it too
    kept = tmp_path / "kept.h5"
    words = train(data, tmp_path, "implicit", *budget, "--checkpoint", kept, "--checkpoint-seconds", 1000)
    program = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert any("epoch 0" in line for line in iter(program.stderr.readline, ""))  # after a word on compiling
    time.sleep(0.05)
    program.send_signal(number)
    _, said = program.communicate(timeout=60)
    assert program.returncode == 128 + signal.SIGTERM
    assert "stopped: synthetic implicit seed 3 at epoch" in said
    assert f"the same command goes on from {kept}" in said
    assert not (tmp_path / "fit").exists()
    done = run(words)
    assert done.returncode == 0
    assert "resumed" in done.stderr
    assert fit_of(tmp_path / "fit") == whole(data, tmp_path, "implicit", *budget)


@pytest.mark.slow
@pytest.mark.fault(
    "SIGKILL of Snakemake and all of its jobs, at random moments",
    happens="`snakemake --unlock`, then the next run repeats what was not done, and ends with the same bits",
    user="that the folder is locked, and how to unlock it",
)
def test_a_workflow_killed_again_and_again_ends_with_the_same_results(tmp_path):
    calm, killed = Checkout(tmp_path / "calm"), Checkout(tmp_path / "killed")
    calm.snakemake("--until", "evaluate")
    rng = np.random.default_rng(2)
    for _ in range(5):
        command = ["snakemake", "--configfile", "tiny.yaml", "--cores", "2", "--until", "evaluate"]
        program = killed.start(*command)
        time.sleep(rng.uniform(3, 9))
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        killed.run("snakemake", "--configfile", "tiny.yaml", "--unlock")
    killed.snakemake("--until", "evaluate")
    fits = [path.parent.relative_to(calm.folder) for path in sorted((calm.folder / "results").rglob("model.h5"))]
    assert len(fits) == 3
    for fit in fits:
        if "one-vs-each" not in fit.parts:  # which diverges, and has no weights
            assert fit_of(killed.folder / fit) == fit_of(calm.folder / fit)
        ours, theirs = ((tree.folder / fit / "metrics.json").read_text() for tree in (killed, calm))
        assert ours == theirs


@pytest.mark.fault(
    "two programs that train the same fit at once",
    happens="each writes aside and renames: the later one's files stay, of the same bits",
    user="nothing",
)
def test_two_that_write_the_same_fit(data, tmp_path):
    budget = ("--epochs", 50, "--points", 2, "--checkpoint", tmp_path / "kept.h5", "--checkpoint-seconds", 0)
    words = train(data, tmp_path, "negative", *budget)
    programs = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [program.communicate(timeout=120)[1] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    assert fit_of(tmp_path / "fit") == whole(data, tmp_path, "negative", "--epochs", 50, "--points", 2)
    assert not list(tmp_path.rglob(".*"))
