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


def run(n_ranks, folder, case):
    """Run all ranks; give their statuses and what they say."""
    environment = os.environ | {"PYTHONPATH": str(ROOT.parent), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, worker.__file__]
    programs = [
        subprocess.Popen(
            [*command, str(rank), str(n_ranks), str(folder), case], env=environment, stderr=subprocess.PIPE, text=True
        )
        for rank in range(n_ranks)
    ]
    said = [program.communicate(timeout=SECONDS)[1] for program in programs]
    return [program.returncode for program in programs], said


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize(("name", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_ranks_find_what_one_process_finds(n_ranks, name, tolerance, tmp_path):
    """Steps of Adagrad, biases too; 103 classes are not shared evenly."""
    statuses, said = run(n_ranks, tmp_path, name)
    assert statuses == [0] * n_ranks, said
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in range(n_ranks)]
    expected = worker.whole(name)
    for part in ("W", "b", "last"):
        joined = torch.cat([each[part] for each in found])
        torch.testing.assert_close(joined, expected[part], rtol=tolerance, atol=tolerance)
    for each in found:
        torch.testing.assert_close(each["steps"], expected["steps"], rtol=tolerance, atol=tolerance)
    assert float(expected["steps"][-1] - expected["steps"][0]) != 0


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_bytes_are_those_of_the_formula(n_ranks, tmp_path):
    """docs/sharding.md has 4 (n - 1) (D + 3) for each sample; ours sends 11 numbers more, and 8 bytes a step."""
    statuses, said = run(n_ranks, tmp_path, "float32")
    assert statuses == [0] * n_ranks, said
    sent = sum(int(torch.load(tmp_path / f"{rank}.pt")["sent"]) for rank in range(n_ranks))
    n_samples = worker.N_STEPS * worker.N_SAMPLES
    of_the_page = 4 * (n_ranks - 1) * (worker.N_FEATURES + 3) * n_samples
    more = 4 * (n_ranks - 1) * 11 * n_samples + 8 * n_ranks * (n_ranks - 1) * worker.N_STEPS
    assert sent == of_the_page + more


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("other-classes", "InputError: ranks have 103, 104 classes; give each as many"),
        ("other-shard", "InputError: "),
        ("other-samples", "InputError: ranks have 24, 25 samples of a batch; give each as many"),
    ],
)
def test_ranks_that_differ_say_so_and_end(case, words, tmp_path):
    statuses, said = run(2, tmp_path, case)
    assert statuses == [1, 1]
    assert all(words in each for each in said), said


@pytest.mark.parametrize(("n_ranks", "n_classes"), [(1, 5), (2, 5), (4, 103), (7, 7)])
def test_shards_cover_all_classes_once(n_ranks, n_classes):
    shards = [shard_of(rank, n_ranks, n_classes) for rank in range(n_ranks)]
    assert [k for shard in shards for k in range(*shard)] == list(range(n_classes))
    sizes = [stop - first for first, stop in shards]
    assert max(sizes) - min(sizes) <= 1


def test_more_ranks_than_classes_are_refused():
    with pytest.raises(InputError, match="3 classes are fewer than 4 ranks; use at most 3 ranks"):
        shard_of(0, 4, 3)
