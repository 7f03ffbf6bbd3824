import shutil
import subprocess

import psutil
import pytest

from cluster.jobs import LONG, write
from workflow.checkout import Checkout


@pytest.fixture(scope="session")
def cluster():
    if not shutil.which("sinfo") or subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        pytest.skip("NO SLURM ANSWERS HERE: the cluster is not tested; start one with tests/cluster/up.sh")


@pytest.fixture(scope="module")
def prepared(cluster, tmp_path_factory):
    """A working tree where digits are prepared, and nothing has run on the cluster."""
    tree = Checkout(tmp_path_factory.mktemp("cluster"))
    write(tree, LONG)
    tree.snakemake("--until", "prepare", config="config.yaml")
    yield tree
    for process in psutil.process_iter(["cwd"]):  # jobs that SLURM has killed, without cgroups
        if (process.info["cwd"] or "").startswith(str(tree.folder)):
            process.kill()
