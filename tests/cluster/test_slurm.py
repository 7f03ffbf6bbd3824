"""The workflow on a running SLURM; ``tests/cluster/up.sh`` starts one of one node."""

import shutil
import subprocess

import pytest

from workflow.checkout import Checkout

pytestmark = pytest.mark.cluster

# Snakemake waits for ever for a job that can never start, and may not end on SIGTERM.
COMMAND = [
    "timeout",
    "--signal=INT",
    "--kill-after=20",
    "600",
    "snakemake",
    "--configfile",
    "tiny.yaml",
    "--profile",
    "slurm",
]
QUICK = ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "20"]


@pytest.fixture(scope="module")
def slurm():
    if not shutil.which("sinfo") or subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        pytest.skip("NO SLURM ANSWERS HERE: the cluster is not tested; start one with tests/cluster/up.sh")


@pytest.fixture(scope="module")
def tree(slurm, tmp_path_factory):
    tree = Checkout(tmp_path_factory.mktemp("cluster"))
    done = tree.run(*COMMAND, *QUICK)
    tree.output = done.stdout + done.stderr
    assert done.returncode == 0, tree.output
    return tree


def test_the_workflow_reaches_its_report(tree):
    assert (tree.folder / "results/tiny/report.html").exists()


def test_all_but_the_light_rules_ran_as_jobs_of_the_cluster(tree):
    # prepare, the tree, three fits with their evaluations, tables with the report
    assert tree.output.count("has been submitted with SLURM jobid") == 6


def test_a_second_run_submits_nothing(tree):
    assert "Nothing to be done" in tree.run(*COMMAND).stderr
