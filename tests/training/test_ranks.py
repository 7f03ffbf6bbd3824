"""`xsoftmax train` in several processes: a rank that is killed ends the others soon, and the same command goes on."""

import os
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from gpu.test_sharded import ENVIRONMENT, free_port
from training.problems import K, rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

SECONDS = 240
METHOD = ["--method", "softmax", "--set", '{"device": "cpu"}', "--keep", "last"]


def start(folder, n_ranks, path, *words):
    """Start the processes of a fit, as torchrun does."""
    port = str(free_port())
    told = {"WORLD_SIZE": str(n_ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, "-m", "xsoftmax", "train", str(path), *METHOD, *words, "-o", str(folder)]
    return [
        subprocess.Popen(
            command,
            env=os.environ | ENVIRONMENT | told | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(n_ranks)
    ]


def said_by(programs):
    """What each has printed in the end; none outlives the test."""
    try:
        return [program.communicate(timeout=SECONDS)[0] for program in programs]
    finally:
        for program in programs:
            program.kill()


def weights(folder):
    with h5py.File(folder / "model.h5") as file:
        return file["W"][:]


@pytest.mark.slow
@pytest.mark.fault(
    "one rank of a fit is killed, or its node is lost",
    happens="the others end within seconds, or after XSOFTMAX_RANK_SECONDS (600) if its machine no longer answers",
    user="`another rank has ended or does not answer`; the same command goes on from the last checkpoint",
)
def test_a_rank_that_is_killed_ends_the_others_and_the_fit_goes_on(prepare, tmp_path):
    path, checkpoint = prepare(*rows(), K, n_validation=50), tmp_path / "kept.h5"
    plan = ["--epochs", "200", "--points", "1"]
    kept = ["--checkpoint", str(checkpoint), "--checkpoint-seconds"]
    programs = start(tmp_path / "fit", 2, path, *plan, *kept, "0")
    end = time.monotonic() + SECONDS
    while not checkpoint.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    programs[1].kill()
    killed = time.monotonic()
    said = said_by(programs)
    assert time.monotonic() - killed < 120
    assert programs[0].returncode == 1
    assert "error: rank 0 of 2: another rank has ended or does not answer" in said[0]
    assert "Traceback" not in said[0]
    assert not (tmp_path / "fit").exists()
    said = said_by(start(tmp_path / "fit", 2, path, *plan, *kept, "60"))
    assert f"resumed {checkpoint}" in said[0]
    assert not said[1], "rank 0 alone says how it goes"
    assert not list(tmp_path.glob("kept*"))
    calm = said_by(start(tmp_path / "calm", 2, path, *plan))
    assert np.array_equal(weights(tmp_path / "fit"), weights(tmp_path / "calm")), calm
