"""Processes on two nodes of a SLURM, which share files and no network of this host: ``NODES=2 up.sh``."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.jobs import (
    CHECKPOINT,
    FIT,
    LONG,
    OFTEN,
    jobs,
    log_of,
    nodes,
    return_node,
    slurm,
    snakemake,
    take_node,
    wait,
    wait_for_checkpoint,
    write,
)
from training.same_fit import fit_of

pytestmark = pytest.mark.cluster

TWO = LONG | {
    "set": {"softmax": {"device": "cpu"}},
    "ranks": {"softmax": 2},
    "resources": {"train": {"nodes": 2}},
    "budget": {"epochs": 100},
}
WORDS = ("--configfile", "config.yaml", "--until", "train_by_ranks")
BY_FABRIC = ("--set-resources", "train_by_ranks:network=fabric")
IMPATIENT = {"XSOFTMAX_RANK_SECONDS": "5"}


@pytest.fixture(scope="module", autouse=True)
def two_nodes(cluster):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    if len(nodes()) < 2:
        pytest.skip("ONE NODE HERE: fits on several are not tested; start SLURM with NODES=2 tests/cluster/up.sh")


@pytest.fixture(scope="module")
def alone(prepared):
    """The same fit by two processes on this machine, started by torchrun."""
    write(prepared, TWO | {"experiment": "calm"})
    prepared.snakemake(*WORDS[2:], config="config.yaml")
    return fit_of(prepared.folder / FIT.format("calm"))


@contextmanager
def unplugged(node: str) -> Iterator[None]:
    """Cut a node off the others, as when its cable is pulled."""
    slurm("ip", "-netns", node, "link", "set", "fabric", "down")
    try:
        yield
    finally:
        slurm("ip", "-netns", node, "link", "set", "fabric", "up")


@contextmanager
def interrupted(tree, experiment: str, **environment: str) -> Iterator[None]:
    """Train on both nodes, let something happen once there is a checkpoint, and wait for the end after a retry."""
    write(tree, TWO | {"experiment": experiment})
    with snakemake(tree, *WORDS, *BY_FABRIC, **OFTEN, **environment) as program:
        wait_for_checkpoint(tree.folder / CHECKPOINT.format(experiment))
        yield
        program.wait(300)
        assert program.returncode == 0, program.log.read_text()
    assert "resumed" in log_of(tree, experiment)


def test_processes_on_two_nodes_train_one_model(prepared, alone):
    """With the bits of processes on one: the network is another, what is added up is not."""
    write(prepared, TWO | {"experiment": "two"})
    with snakemake(prepared, *WORDS, *BY_FABRIC) as program:
        wait(lambda: jobs("RUNNING"))
        (job,) = jobs("RUNNING")
        assert slurm("squeue", "--noheader", f"--job={job}", "--format=%D %N").split() == ["2", "xsoftmax-[1-2]"]
        program.wait(200)
        assert program.returncode == 0, program.log.read_text()
    assert fit_of(prepared.folder / FIT.format("two")) == alone


def test_without_the_name_of_a_network_nodes_find_each_other_by_their_own(prepared, alone):
    write(prepared, TWO | {"experiment": "names"})
    with snakemake(prepared, *WORDS) as program:
        program.wait(200)
        assert program.returncode == 0, program.log.read_text()
    assert fit_of(prepared.folder / FIT.format("names")) == alone


@pytest.mark.fault(
    "the network between nodes fails while processes of one fit run on them",
    happens="each gives the others up after XSOFTMAX_RANK_SECONDS, and the job ends; its retry resumes",
    user="`another rank has ended or does not answer`, then `resumed` in the fit's log",
)
def test_a_fit_whose_nodes_lose_each_other_ends_with_the_same_bits(prepared, alone):
    with interrupted(prepared, "cut", **IMPATIENT), unplugged("xsoftmax-2"):
        wait(lambda: "does not answer" in log_of(prepared, "cut"))
    assert fit_of(prepared.folder / FIT.format("cut")) == alone


@pytest.mark.fault(
    "a node lost while processes of one fit run on it and on others",
    happens="SLURM ends the job on all, and puts it back into the queue; it resumes when there are enough nodes",
    user="the job's state is REQUEUED; `resumed` in the fit's log",
)
def test_a_fit_one_of_whose_nodes_is_lost_ends_with_the_same_bits(prepared, alone):
    with interrupted(prepared, "lost"):
        take_node("down")
        wait(lambda: not jobs("RUNNING", "COMPLETING"))
        return_node()
    assert fit_of(prepared.folder / FIT.format("lost")) == alone
