"""The workflow on a running SLURM; ``tests/cluster/up.sh`` starts one of one node."""

import shutil
import subprocess
from pathlib import Path

import pytest

from workflow.checkout import Checkout

pytestmark = pytest.mark.cluster

PROFILE = Path(__file__).parents[2] / "slurm" / "profile.yaml"
QUICK = ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "20"]


@pytest.fixture(scope="module")
def slurm():
    if not shutil.which("sinfo") or subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        pytest.skip("NO SLURM ANSWERS HERE: the cluster is not tested; start one with tests/cluster/up.sh")


@pytest.fixture(scope="module")
def tree(slurm, tmp_path_factory):
    tree = Checkout(tmp_path_factory.mktemp("cluster"))
    tree.output = tree.snakemake("--profile", "slurm", *QUICK)
    return tree


def test_the_workflow_reaches_its_report(tree):
    assert (tree.folder / "results/tiny/report.html").exists()


def test_fits_ran_as_jobs_of_the_cluster(tree):
    assert tree.output.count("has been submitted with SLURM jobid") >= 5


def test_a_second_run_submits_nothing(tree):
    assert "Nothing to be done" in tree.snakemake("--profile", "slurm")
