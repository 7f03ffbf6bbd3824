"""Classes spread over processes that speak gloo: they find what one process finds, and send what the formula says."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from gpu import rank as worker  # noqa: E402
from xsoftmax.gpu.sharded import shard_of  # noqa: E402
from xsoftmax.internal.errors import InputError  # noqa: E402
from xsoftmax.internal.fingerprint import ROOT  # noqa: E402

SECONDS = 120


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def ranks(request, tmp_path_factory):
    """What each of some ranks has found, each a program of its own."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = os.environ | {"PYTHONPATH": str(ROOT.parent), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    commands = [
        [sys.executable, worker.__file__, str(rank), str(request.param), str(folder)] for rank in range(request.param)
    ]
    programs = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for command in commands]
    said = [program.communicate(timeout=SECONDS)[1] for program in programs]
    assert [program.returncode for program in programs] == [0] * request.param, said
    return [torch.load(folder / f"{rank}.pt") for rank in range(request.param)]


@pytest.mark.parametrize(("name", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_ranks_find_what_one_process_finds(ranks, name, tolerance):
    """Steps of Adagrad, biases too; 103 classes are not shared evenly."""
    found = [each[name] for each in ranks]
    expected = worker.whole(name)
    for part in ("W", "b", "last"):
        joined = torch.cat([each[part] for each in found])
        torch.testing.assert_close(joined, expected[part], rtol=tolerance, atol=tolerance)
    for each in found:
        torch.testing.assert_close(each["steps"], expected["steps"], rtol=tolerance, atol=tolerance)
    moved = torch.cat([each["W"] for each in found]) - worker.weights(name)[0].values
    assert float(moved.abs().mean()) > 0.03, "steps are not small beside the tolerance"


def test_bytes_are_those_of_the_formula(ranks):
    """docs/sharding.md has 4 (n - 1) (D + 3) for each sample; ours sends 11 numbers more, and 8 bytes a step."""
    n, n_samples = len(ranks), worker.N_STEPS * worker.N_SAMPLES
    sent = sum(int(each["float32"]["sent"]) for each in ranks)
    of_the_page = 4 * (n - 1) * (worker.N_FEATURES + 3) * n_samples
    assert sent == of_the_page + 4 * (n - 1) * 11 * n_samples + 8 * n * (n - 1) * worker.N_STEPS


def test_ranks_that_differ_say_so_and_none_waits(ranks):
    n = len(ranks)
    sizes = [stop - first for first, stop in (shard_of(rank, n, worker.N_CLASSES) for rank in range(n))]
    for each in ranks:
        classes, shards, samples = each["refusals"]
        assert classes == (
            f"ranks have {', '.join(str(103 + rank) for rank in range(n))} classes, rank by rank; "
            f"give them {', '.join(['103'] * n)}"
        )
        assert shards.startswith(
            f"ranks have {', '.join([str(sizes[1])] * n)} classes in their shards, rank by rank; "
        )
        assert shards.endswith(f"give them {', '.join(map(str, sizes))}")
        assert "samples of a batch, rank by rank; give them" in samples


@pytest.mark.parametrize(("n_ranks", "n_classes"), [(1, 5), (2, 5), (4, 103), (7, 7)])
def test_shards_cover_all_classes_once(n_ranks, n_classes):
    shards = [shard_of(rank, n_ranks, n_classes) for rank in range(n_ranks)]
    assert [k for shard in shards for k in range(*shard)] == list(range(n_classes))
    sizes = [stop - first for first, stop in shards]
    assert max(sizes) - min(sizes) <= 1


def test_more_ranks_than_classes_are_refused():
    with pytest.raises(InputError, match="3 classes are fewer than 4 ranks; use at most 3 ranks"):
        shard_of(0, 4, 3)
