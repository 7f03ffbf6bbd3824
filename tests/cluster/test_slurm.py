"""The workflow on a running SLURM; ``tests/cluster/up.sh`` starts one of one node."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from cluster.jobs import (
    CHECKPOINT,
    COMMAND,
    FIT,
    LONG,
    OFTEN,
    QUICK,
    jobs,
    log_of,
    return_node,
    slurm,
    snakemake,
    take_node,
    wait,
    wait_for_checkpoint,
    write,
)
from training.same_fit import fit_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("cluster")]

QUICKSTART = ["config/config.yaml", "short.yaml"]


@pytest.fixture(scope="module")
def tree(prepared):
    """The same, where the quick start has run on the cluster, with fewer epochs."""
    (prepared.folder / "short.yaml").write_text("budget: {epochs: 2}\nevaluate: {at: [1, 2]}\n")
    done = prepared.run(*COMMAND, *QUICK, "--configfile", *QUICKSTART)
    prepared.output = done.stdout + done.stderr
    assert done.returncode == 0, prepared.output
    return prepared


def submitted(printed: str) -> int:
    return printed.count("has been submitted with SLURM jobid")


def resumes_of(tree):
    """Lines of the long fit's log that tell where it was resumed."""
    try:
        return {line for line in log_of(tree).splitlines() if "resumed scratch/long" in line}
    except FileNotFoundError:
        return set()


def test_the_workflow_reaches_its_report(tree):
    assert (tree.folder / "results/quickstart/report.html").exists()
    assert len(list((tree.folder / "results/quickstart/fits").rglob("metrics.json"))) == 7


def test_all_but_the_light_rules_ran_as_jobs_of_the_cluster(tree):
    # prepare, the tree, seven fits with their evaluations, tables with the report
    assert submitted(tree.output) == 10


def test_a_second_run_submits_nothing(tree):
    assert "Nothing to be done" in tree.run(*COMMAND, "--configfile", *QUICKSTART).stderr


def test_a_method_on_a_gpu_goes_to_the_gpu_partition_and_asks_for_one(tree):
    """Where it is refused, as the tests' PyTorch, if there is one, has no CUDA; the other methods are trained."""
    config = {"experiment": "gpu", "datasets": ["digits"], "methods": ["softmax", "one-vs-each"]}
    write(tree, config | {"budget": {"epochs": 1}, "set": {"softmax": {"device": "cuda"}}})
    done = tree.run(*COMMAND, *QUICK, "--configfile", "config.yaml", "--verbose", "--retries", "0", "--keep-going")
    assert done.returncode == 1
    assert "error: method softmax: device is cuda, and PyTorch" in log_of(tree, "gpu")
    status = tree.folder / "results/gpu/fits/digits/one-vs-each/seed-0/status.json"
    assert json.loads(status.read_text())["device"] == {"asked": "numba", "used": "numba", "visible": None}
    calls = [line for line in done.stderr.splitlines() if "sbatch" in line and "--parsable" in line]
    gpu = [call for call in calls if "--gpus=1" in call]
    assert len(gpu) == 1
    assert "-p gpu" in gpu[0]
    assert all("-p cpu" in call for call in calls if call not in gpu)


def test_several_tasks_of_one_job_train_one_model(prepared):
    """By gloo on the processors; and as many GPUs are asked for as there are tasks."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    names = ["softmax", "one-vs-each"]
    config = {"experiment": "ranks", "datasets": ["digits"], "methods": names, "budget": {"epochs": 1}}
    config["set"] = {"softmax": {"device": "cpu"}, "one-vs-each": {"device": "cuda"}}
    write(prepared, config | {"ranks": dict.fromkeys(names, 2)})
    words = ("--configfile", "config.yaml", "--until", "evaluate", "--verbose", "--retries", "0", "--keep-going")
    done = prepared.run(*COMMAND, *QUICK, *words)
    calls = [line for line in done.stderr.splitlines() if "sbatch" in line and "--parsable" in line]
    assert sorted(("--ntasks=2" in call, "--gpus=2" in call, "-p gpu" in call) for call in calls) == [
        (True, False, False),
        (True, True, True),
    ]
    assert log_of(prepared, "ranks").count("softmax: finished after 1 epochs") == 1, "rank 0 alone says so"
    status = json.loads((prepared.folder / FIT.format("ranks") / "status.json").read_text())
    assert status["ranks"]["n"] == 2
    assert (prepared.folder / FIT.format("ranks") / "metrics.json").exists()


def test_ranks_are_spread_over_the_nodes_of_the_config_by_the_network_of_the_profile(prepared):
    """One node here, with all ranks; a network that is there trains, and one that is not is named in the log."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    names = ["softmax", "one-vs-each"]
    config = {"experiment": "nodes", "datasets": ["digits"], "methods": names, "budget": {"epochs": 1}}
    config["set"] = {"softmax": {"device": "cpu"}, "one-vs-each": {"device": "cuda"}}
    write(prepared, config | {"ranks": dict.fromkeys(names, 2), "resources": {"train": {"nodes": 1}}})
    words = (
        "--configfile",
        "config.yaml",
        "--until",
        "train_by_ranks",
        "--verbose",
        "--retries",
        "0",
        "--keep-going",
    )
    done = prepared.run(*COMMAND, *QUICK, *words, "--set-resources", "train_by_ranks:network=lo")
    calls = [line for line in done.stderr.splitlines() if "sbatch" in line and "--parsable" in line]
    assert all("--nodes=1" in call and "--ntasks-per-node=2" in call and "--gpus" not in call for call in calls)
    assert sorted(("--gres=gpu:2" in call, "-p gpu" in call) for call in calls) == [(False, False), (True, True)]
    status = json.loads((prepared.folder / FIT.format("nodes") / "status.json").read_text())
    assert status["ranks"]["n"] == 2
    write(prepared, config | {"ranks": {"softmax": 2}, "methods": ["softmax"], "set": {"softmax": {"device": "cpu"}}})
    words = (
        "--configfile",
        "config.yaml",
        "--until",
        "train_by_ranks",
        "--retries",
        "0",
        "--forcerun",
        "train_by_ranks",
    )
    done = prepared.run(*COMMAND, *QUICK, *words, "--set-resources", "train_by_ranks:network=nosuch0")
    assert done.returncode == 1
    assert "nosuch0" in log_of(prepared, "nodes")


def test_memory_and_minutes_of_a_rule_are_those_of_the_config(tree):
    config = {"experiment": "asked", "datasets": ["digits"], "methods": ["softmax"], "budget": {"epochs": 1}}
    write(tree, config | {"resources": {"train": {"mem_mb": 1234, "runtime": 7}, "evaluate": {"runtime": 3}}})
    done = tree.run(*COMMAND, *QUICK, "--configfile", "config.yaml", "--verbose", "--until", "train")
    assert done.returncode == 0, done.stderr
    (call,) = [line for line in done.stderr.splitlines() if "sbatch" in line and "--parsable" in line]
    assert "-t 7 " in call
    assert "--mem 1234 " in call


def test_trials_of_a_search_are_packed_into_jobs(tree):
    rates = [round(0.001 * (k + 1), 3) for k in range(25)]
    config = {"experiment": "grid", "datasets": ["digits"], "methods": ["softmax"], "budget": {"epochs": 1}}
    write(tree, config | {"search": {"grid": {"softmax": {"optimizer.learning_rate": rates}}}})
    done = tree.run(*COMMAND, *QUICK, "--configfile", "config.yaml", "--until", "choose")
    assert done.returncode == 0, done.stderr
    assert submitted(done.stdout + done.stderr) == 2
    chosen = json.loads((tree.folder / "results/grid/search/digits/softmax/chosen.json").read_text())
    assert len(chosen["trials"]) == 25


def test_short_fits_may_be_packed_into_jobs(tree):
    """Each with its evaluation, one after the other: the minutes add up, the memory does not."""
    config = {"experiment": "packed", "datasets": ["digits"], "methods": ["softmax"], "budget": {"epochs": 1}}
    write(
        tree, config | {"seeds": [0, 1, 2, 3, 4], "resources": {"train": {"runtime": 7}, "evaluate": {"runtime": 3}}}
    )
    words = ("--configfile", "config.yaml", "--verbose", "--until", "evaluate", "--group-components", "fit=4")
    done = tree.run(*COMMAND, *QUICK, *words)
    assert done.returncode == 0, done.stderr
    calls = [line for line in done.stderr.splitlines() if "sbatch" in line and "--parsable" in line]
    assert sorted(re.search(r" -t (\d+) ", call)[1] for call in calls) == ["10", "40"]
    assert all("--mem 4000 " in call for call in calls)
    assert len(list((tree.folder / "results/packed").rglob("metrics.json"))) == 5


@pytest.fixture(scope="module")
def undisturbed(tree):
    """The same fit on this machine, without a cluster."""
    write(tree, LONG)
    tree.snakemake("--config", "experiment=calm", "--until", "train", config="config.yaml")
    return fit_of(tree.folder / FIT.format("calm"))


def requeue(job):
    slurm("scontrol", "requeue", job)


def lose_node(job):
    take_node("down")
    wait(lambda: job not in jobs("RUNNING", "COMPLETING"))
    return_node()


@pytest.mark.fault(
    "a SLURM job cancelled, requeued or preempted, its node down",
    happens="the fit is told, writes a checkpoint and ends; SLURM or Snakemake starts it again",
    user="the job's number changes or its state is REQUEUED; `resumed` in the fit's log",
)
def test_whatever_happens_to_its_jobs_a_fit_ends_with_the_same_bits(tree, undisturbed):
    write(tree, LONG)
    resumed: set[str] = set()  # lines, each with its epoch; a retry begins the log anew
    with snakemake(tree, "--configfile", "config.yaml", "--until", "train", **OFTEN) as program:
        for do in (requeue, lose_node, lambda job: slurm("scancel", job)):
            wait(lambda: jobs("RUNNING"))
            wait_for_checkpoint(tree.folder / CHECKPOINT.format("long"))
            do(jobs("RUNNING")[0])
            wait(lambda before=frozenset(resumed): resumes_of(tree) - before)
            resumed |= resumes_of(tree)
        program.wait(300)
        assert program.returncode == 0, program.log.read_text()
    assert fit_of(tree.folder / FIT.format("long")) == undisturbed


@pytest.mark.fault(
    "a node drained",
    happens="running jobs end on it, others wait for it or go to another",
    user="`squeue` says why a job waits",
)
def test_a_drained_node_finishes_its_job_and_is_given_no_other(tree, undisturbed):
    write(tree, LONG | {"experiment": "drained", "seeds": [0, 1], "budget": {"epochs": 3000}})
    with snakemake(tree, "--configfile", "config.yaml", "--until", "train", "--jobs", "1") as program:
        wait(lambda: jobs("RUNNING"))
        take_node("drain")
        try:
            wait(lambda: len(list((tree.folder / "results/drained").rglob("model.h5"))) == 1)
            wait(lambda: jobs("PENDING"))
            time.sleep(3)
            assert not jobs("RUNNING")
        finally:
            return_node()
        program.wait(200)
        assert program.returncode == 0, program.log.read_text()


@pytest.mark.fault(
    "a SLURM job that reaches its time limit",
    happens="SLURM sends SIGTERM, the fit writes a checkpoint; the retry asks for more minutes and resumes",
    user="`TIMEOUT` from SLURM, then a second job",
)
def test_the_time_limit_ends_a_job_and_not_the_fit(tree):
    slow = LONG | {"experiment": "slow", "budget": {"seconds": 90}, "resources": {"train": {"runtime": 1}}}
    write(tree, slow)
    with snakemake(tree, "--configfile", "config.yaml", "--until", "train", **OFTEN) as program:
        program.wait(400)
        assert program.returncode == 0, program.log.read_text()
        assert submitted(program.log.read_text()) >= 2
    status = json.loads((tree.folder / FIT.format("slow") / "status.json").read_text())
    assert status["seconds"] == pytest.approx(90, abs=5)  # trained before the limit and after, not begun anew
    assert "resumed" in log_of(tree, "slow")


@pytest.mark.fault(
    "Snakemake killed while its jobs run on a cluster",
    happens="the jobs run on; the next run, after `snakemake --unlock`, submits them again",
    user="that the folder is locked, and how to unlock it",
)
def test_a_killed_snakemake_may_be_started_again_while_its_jobs_run(tree, undisturbed):
    """Two jobs then write the same fit, each whole."""
    write(tree, LONG | {"experiment": "again"})
    with snakemake(tree, "--configfile", "config.yaml", "--until", "train", **OFTEN) as program:
        wait_for_checkpoint(tree.folder / CHECKPOINT.format("again"))
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        assert len(jobs("RUNNING")) == 1
        words = ("--configfile", "config.yaml", "--until", "train")
        locked = tree.run(*COMMAND, *QUICK, *words)
        assert locked.returncode != 0
        assert "--unlock" in locked.stderr
        assert tree.run("snakemake", "--unlock", "--configfile", "config.yaml").returncode == 0
        done = tree.run(*COMMAND, *QUICK, *words, **OFTEN)
        assert done.returncode == 0, done.stderr
        wait(lambda: not jobs("RUNNING", "COMPLETING"))
    assert fit_of(tree.folder / FIT.format("again")) == undisturbed


@pytest.mark.fault(
    "the config edited while jobs of a cluster wait",
    happens="jobs that start later are refused: they were planned by another config",
    user="`config: changed since this run began`, with what to do",
)
def test_jobs_planned_by_another_config_are_refused(tree):
    write(tree, LONG | {"experiment": "edited", "seeds": [0, 1], "budget": {"epochs": 6000}})
    words = ["--configfile", "config.yaml", "--until", "train", "--jobs", "1", "--retries", "0"]
    with snakemake(tree, *words) as program:
        wait(lambda: jobs("RUNNING"))
        wait(lambda: list((tree.folder / "logs/edited").rglob("*.log")))
        write(tree, LONG | {"experiment": "edited", "seeds": [0, 1], "budget": {"epochs": 2}})
        program.wait(200)
        assert program.returncode != 0
        assert "changed since this run began" in program.log.read_text()
    trained = [json.loads(path.read_text()) for path in (tree.folder / "results/edited").rglob("status.json")]
    assert [status["budget"]["epochs"] for status in trained] == [6000]


def test_accounts_are_used_where_there_are_some(prepared):
    """``sacct`` as the way to ask for jobs, and an account to book them on."""
    if subprocess.run(["sacct"], capture_output=True, check=False).returncode:
        pytest.skip("NO ACCOUNTING HERE: sacct is not tested; start SLURM with ACCOUNTING=1 tests/cluster/up.sh")
    config = {"experiment": "accounts", "datasets": ["digits"], "methods": ["softmax"], "budget": {"epochs": 1}}
    write(prepared, config)
    words = ["--slurm-status-command", "sacct", "--default-resources", "slurm_account=xsoftmax", "mem_mb=2000"]
    done = prepared.run(*COMMAND, *QUICK, "--configfile", "config.yaml", "--until", "train", *words)
    assert done.returncode == 0, done.stderr
    accounts = slurm("sacct", "--noheader", "--allocations", "--format=account%20,state%20").split()
    assert "xsoftmax" in accounts
    assert "COMPLETED" in accounts
