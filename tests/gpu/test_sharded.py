"""Classes spread over processes that speak gloo: they find what one process finds, and send what the formula says."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from edited import edited  # noqa: E402
from gpu import rank as worker  # noqa: E402
from gpu.problems import K as N_CLASSES  # noqa: E402
from gpu.problems import N, in_float64, method_of  # noqa: E402
from training.interruptions import CountChunks  # noqa: E402
from training.problems import K, curve, rows  # noqa: E402
from xsoftmax.data.store import open_prepared  # noqa: E402
from xsoftmax.gpu.launch import first_node, joined, world_of  # noqa: E402
from xsoftmax.gpu.ranks import ALONE, Alone, shard_of  # noqa: E402
from xsoftmax.internal.errors import InputError  # noqa: E402
from xsoftmax.internal.fingerprint import ROOT  # noqa: E402
from xsoftmax.model import load_model  # noqa: E402
from xsoftmax.training.memory import check_memory, estimate  # noqa: E402
from xsoftmax.training.ranks import check_ranks  # noqa: E402

SECONDS = 600
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


@pytest.fixture(scope="module")
def folder(prepare, tmp_path_factory):
    """Data, and a checkpoint that one process has left."""
    folder = tmp_path_factory.mktemp("ranks")
    for kind in ("dense", "csr"):
        prepare(*rows(), K, n_validation=50, n_test=50, sparse=kind == "csr", path=folder / f"{kind}.h5")
    worker.interrupted(folder, checkpoint=folder / "alone.h5")
    return folder


def run_together(n, folder, task="everything"):
    """What each of n ranks has found, each a program of its own, with what it has said."""
    paths = os.pathsep.join([str(ROOT.parent), str(Path(__file__).parents[1])])
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": paths}
    start = [sys.executable, "-m", worker.__name__]
    port = str(free_port())
    commands = [[*start, str(rank), str(n), port, str(folder), task] for rank in range(n)]
    programs = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for command in commands]
    said = [program.communicate(timeout=SECONDS)[1] for program in programs]
    assert [program.returncode for program in programs] == [0] * n, "\n".join(said)
    found = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(n)]
    return [each | {"said": words} for each, words in zip(found, said, strict=True)]


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def ranks(request, folder, tmp_path_factory):
    """The folder of some ranks, and what each of them has found."""
    own = tmp_path_factory.mktemp("ranks")
    shutil.copytree(folder, own, dirs_exist_ok=True)
    return own, run_together(request.param, own)


@pytest.mark.long_cases
@pytest.mark.parametrize("name", worker.STEPS)
def test_steps_are_those_of_one_process(name, ranks, monkeypatch):
    """In float64; 9 classes are not shared evenly."""
    in_float64(monkeypatch)
    W, auxiliary, _ = worker.steps_of(name)
    found = [each["steps"][name] for each in ranks[1]]
    joined = np.concatenate([each[0] for each in found])
    assert np.allclose(joined, W, rtol=1e-6, atol=1e-7)
    assert np.abs(W).max() > 0.1, "steps are not small beside the tolerance"
    for each in found:
        assert np.allclose(each[1], auxiliary, rtol=1e-12, atol=1e-12)


def test_bytes_are_those_of_the_formula(ranks):
    """Those of docs/sharding.md, but that all numbers are float64 here."""
    others, n_samples = len(ranks[1]) - 1, 2 * N
    sent = {name: sum(each["steps"][name][2] for each in ranks[1]) for name in worker.STEPS}
    assert sent["softmax"] == 48 * others * n_samples
    assert sent["softmax, sparse"] == 32 * others * n_samples
    assert sent["max-margin"] == 16 * N_CLASSES * others * n_samples
    assert sent["one-vs-each"] == 16 * (3 + 1) * others * n_samples
    assert sent["one-vs-each, sparse"] == sent["one-vs-each"]
    assert sent["nce, shared"] < sent["one-vs-each"]


@pytest.mark.parametrize("name", worker.FITS)
def test_a_fit_is_that_of_one_process(name, ranks):
    """Its curve, with all metrics and the objective's own loss; and its file."""
    folder, found = ranks
    alone = worker.trained(name, folder)
    assert len({repr(each["fits"][name]) for each in found}) == 1, "all ranks have the same history"
    for ours, theirs in zip(found[0]["fits"][name], curve(alone), strict=True):
        assert ours.keys() == theirs.keys()
        assert list(ours.values()) == pytest.approx(list(theirs.values()), abs=2e-5, nan_ok=True)
    model = load_model(folder / f"{list(worker.FITS).index(name)}.h5")
    assert np.allclose(model.W, alone.model.W, atol=2e-5)
    assert np.allclose(model.b, alone.model.b, atol=2e-5)
    if alone.model.calibration is not None:
        expected = alone.model.calibration.inverse_temperature
        assert model.calibration.inverse_temperature == pytest.approx(expected, rel=1e-4)


@pytest.mark.fault(
    "a fit by several ranks is killed, and goes on, or its checkpoint goes on in another number of processes",
    happens="each rank reads its classes from the parts; with the same number of ranks, bits are the same",
    user="`resumed` in the log",
)
def test_a_checkpoint_is_gone_on_from_by_any_number_of_ranks(ranks, tmp_path, capsys):
    folder, found = ranks
    alone = worker.trained("softmax", folder)
    for each in found:
        assert np.array_equal(each["resumed"][0][1], each["whole"])
    for at in (0, 1):
        assert np.allclose(np.concatenate([each["resumed"][at][1] for each in found]), alone.model.W, atol=2e-5)
    parts = copied(folder, tmp_path)
    assert len(parts) == len(found)
    result = worker.trained("softmax", folder, checkpoint=tmp_path / "ranks.h5")
    assert np.allclose(result.model.W, alone.model.W, atol=2e-5)
    assert not np.array_equal(result.model.W, alone.model.W), "some of its steps were those of ranks"
    assert not capsys.readouterr().err


@pytest.mark.slow
def test_a_checkpoint_of_2_ranks_is_gone_on_from_by_4_and_of_4_by_2(ranks, tmp_path):
    """Each reads its classes from parts that are cut elsewhere: 9 classes are not shared evenly."""
    folder, found = ranks
    others = {2: 4, 4: 2}[len(found)]
    assert len(copied(folder, tmp_path)) == len(found)
    shutil.copy(folder / "dense.h5", tmp_path)
    resumed = run_together(others, tmp_path, "resumed")
    W = np.concatenate([each["W"] for each in resumed])
    alone = CountChunks()
    assert np.allclose(W, worker.trained("softmax", folder, callbacks=[alone]).model.W, atol=2e-5)
    for each in resumed:
        assert 0 < each["n_chunks"] < alone.n_chunks
        assert "training from the start" not in each["said"]


def copied(folder, to):
    """Copy the checkpoint of ranks; give its parts."""
    for each in folder.glob("ranks.h5*"):
        shutil.copy(each, to)
    return sorted(to.glob("ranks.h5.part-*"))


def cut_short(part):
    part.write_bytes(part.read_bytes()[:-100])


def missing(part):
    part.unlink()


def of_another_rank(part):
    shutil.copy(part, part.with_name(part.name.replace("part-1", "part-0")))


def of_another_step(part):
    """Whole, with a checksum of its own, and of the same rank."""
    with edited(part) as file:
        for array in file["arrays"].values():
            array[...] = array[...] * 2


@pytest.mark.fault(
    "a part of a checkpoint by ranks is missing, damaged or of another checkpoint",
    happens="the checkpoint is as good as none, on all ranks",
    user="`warning: …part-1-of-2…: …; training from the start`",
)
@pytest.mark.parametrize("damage", [cut_short, missing, of_another_rank, of_another_step])
def test_a_part_that_is_not_whole_is_found(damage, ranks, tmp_path, capsys):
    folder, _ = ranks
    damage(copied(folder, tmp_path)[1])
    result = worker.trained("softmax", folder, checkpoint=tmp_path / "ranks.h5")
    assert np.array_equal(result.model.W, worker.trained("softmax", folder).model.W)
    said = capsys.readouterr().err
    assert said.startswith("warning: ")
    assert said.endswith("training from the start\n")
    assert said.count("\n") == 1


def test_where_one_rank_cannot_read_its_part_all_begin_anew(ranks):
    _, (first, second, *_) = ranks
    for each in (first, second):
        assert np.array_equal(each["damaged"], each["whole"])
    assert "damaged.h5: another rank cannot read its part" in first["said"]
    assert "no checksum at its end: cut short" in second["said"]


@pytest.mark.fault(
    "one rank of a fit has no room for its part of a checkpoint",
    happens="the checkpoint before stays as it is on all ranks, no new part is left, and training goes on",
    user="`warning: …: cannot be written (No space left on device); training goes on, and an older one is kept`",
)
def test_where_one_rank_cannot_write_its_part_the_checkpoint_before_stays(ranks):
    _, found = ranks
    for each in found:
        before, after, W = each["full"]
        assert after == before
        assert len(before) == 1 + len(found)
        assert np.array_equal(W, each["whole"])
    for rank, why in ((0, "another rank could not write its part"), (1, "No space left on device")):
        assert f"full.h5: cannot be written ({why}); training goes on, and an older one" in found[rank]["said"]


def test_ranks_that_differ_say_so_and_none_waits(ranks):
    n = len(ranks[1])
    for rank, each in enumerate(ranks[1]):
        seed, start, written = each["refusals"]
        others = ", ".join(map(str, range(1, n)))
        assert seed.startswith(f"rank {others} of {n} trains something else than rank 0: data, method, seed, ")
        assert start.startswith(f"method mine: {n} ranks have some of the classes each, and start class-means makes ")
        expected = "rank 0 could not write the fit; its message says why"
        assert written == (f"rank {rank}: {expected}" if rank else "no room")


@pytest.mark.parametrize(("n_ranks", "n_classes"), [(1, 5), (2, 5), (4, 103), (7, 7)])
def test_shards_cover_all_classes_once(n_ranks, n_classes):
    shards = [shard_of(rank, n_ranks, n_classes) for rank in range(n_ranks)]
    assert [k for shard in shards for k in range(*shard)] == list(range(n_classes))
    sizes = [shard.n for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_more_ranks_than_classes_are_refused():
    with pytest.raises(InputError, match="3 classes are fewer than 4 ranks; use at most 3 ranks"):
        shard_of(0, 4, 3)


class OneOfTwo(Alone):
    n_ranks = n_here = 2


@pytest.mark.fault(
    "a fit by several ranks that together need more memory than their machine has",
    happens="each asks for its part of the weights, of its share of the memory, before it takes any",
    user="`method … needs … MB: …; it may take … MB`",
)
def test_ranks_on_one_machine_share_its_memory(folder):
    method, weights = method_of(worker.SOFTMAX), "weights and what the optimizer keeps"
    with open_prepared(folder / "dense.h5") as data:
        whole, part = (estimate(method, data, False, n_ranks=n) for n in (1, 2))
        assert whole[weights] == 2 * part[weights]
        enough = 2 * sum(check_memory(method, data, False, ranks=OneOfTwo()).values()) + 2**27
        check_memory(method, data, False, enough, ranks=OneOfTwo())
        with pytest.raises(InputError, match=r"method mine on synthetic .* needs .* MB: .*; it may take "):
            check_memory(method, data, False, enough // 2, ranks=OneOfTwo())


@pytest.mark.parametrize(
    ("names", "others", "said"),
    [
        (("double-sum", "uniform", "implicit"), {"batch": {"size": 1}}, "implicit moves weights by itself; take sgd"),
        (worker.SOFTMAX, {"encoder": {"dimension": 3}}, "the table of an encoder is one; leave encoder out"),
        (worker.SOFTMAX, {"start": "class-means"}, "start class-means makes the weights of all; leave start out"),
        (worker.SOFTMAX, {"prune": 0.5}, r"prune is 0\.5, which compares the weights of all; leave prune out"),
    ],
    ids=["implicit", "encoder", "start", "prune"],
)
def test_what_looks_at_all_weights_trains_in_one_process(names, others, said):
    method = method_of(names, **others)
    check_ranks(ALONE, method, K, False, [])
    with pytest.raises(InputError, match=f"method mine: 2 ranks have some of the classes each, and {said}"):
        check_ranks(OneOfTwo(), method, K, False, [])


TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}
SLURM = {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "12"}


def test_processes_are_told_their_numbers_by_torchrun_or_slurm():
    assert world_of({}) is None
    assert world_of({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"}) is None, "a job's script"
    assert world_of({"RANK": "0", "WORLD_SIZE": "1"}) is None
    assert world_of(TORCHRUN) == (1, 2, 1, "a", 29500)
    assert world_of(SLURM | {"SLURM_STEP_NODELIST": "gpu-[03-04,07]"}, 4) == (2, 4, 0, "gpu-03", 20_012)
    names = ["n1", "n1,n2", "n[1,3]", "n[01-02]-a,b"]
    assert [first_node(each) for each in names] == ["n1", "n1", "n1", "n01-a"]


@pytest.mark.parametrize(
    ("environment", "asked", "said"),
    [
        ({}, 4, "--ranks is 4, and 1 process of it was started; start it with torchrun --nproc-per-node 4"),
        (TORCHRUN, 3, "--ranks is 3, and 2 processes of it were started"),
        (TORCHRUN | {"RANK": "2"}, None, "RANK is 2 and WORLD_SIZE 2; ranks count from 0"),
        (TORCHRUN | {"WORLD_SIZE": "two"}, None, "WORLD_SIZE is 'two'; it is a number that torchrun or srun sets"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, None, "MASTER_ADDR is not set; it names the machine of rank 0"),
    ],
)
def test_a_world_that_is_none_is_refused(environment, asked, said):
    with pytest.raises(InputError, match=said):
        world_of(environment, asked)


def test_compiled_code_trains_in_one_process():
    with (
        pytest.raises(
            InputError, match="method mine: 2 processes were started together, and compiled code trains in one; set "
        ),
        joined(world_of(TORCHRUN), "numba", "mine"),
    ):
        pass
