"""Blocks of classes: however they are cut, steps are the same ones, and no more scores are held than asked for."""

import numpy as np
import pytest

from gpu.problems import DEVICE, D, K, N, after, in_float64, method_of, solver_for
from xsoftmax.gpu.device import check_room
from xsoftmax.internal.errors import InputError
from xsoftmax.solvers import torch_full

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

SOFTMAX = method_of(("softmax", "all", "adagrad"), decay=0.3, average="all")


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("most", [8, 8 * 4, 8 * K - 1])
def test_blocks_change_nothing(storage, most, monkeypatch):
    in_float64(monkeypatch)
    monkeypatch.setattr(torch_full, "is_softmax", lambda method: False)  # whose dense rows take fused steps
    whole = after(solver_for(SOFTMAX, storage), epochs=2)[0]
    monkeypatch.setattr(torch_full, "MOST_SCORES", most)
    assert np.allclose(after(solver_for(SOFTMAX, storage), epochs=2)[0], whole, rtol=1e-10, atol=1e-10)


def test_sparse_products_are_added_up_in_parts(monkeypatch):
    in_float64(monkeypatch)
    whole = after(solver_for(SOFTMAX, "csr"))[0]
    monkeypatch.setattr("xsoftmax.gpu.layouts.MOST_PRODUCTS", 100)
    assert np.allclose(after(solver_for(SOFTMAX, "csr"))[0], whole, rtol=1e-10, atol=1e-10)


def test_candidates_are_gathered_in_parts(monkeypatch):
    in_float64(monkeypatch)
    method = method_of(("one-vs-each", "uniform", "adagrad"))
    whole = after(solver_for(method))[0]
    monkeypatch.setattr("xsoftmax.gpu.candidates.MOST_GATHERED", 2 * 4 * (D + 1))
    assert np.allclose(after(solver_for(method))[0], whole, rtol=1e-10, atol=1e-10)


def test_the_gradient_is_that_of_the_mean_log_likelihood(monkeypatch):
    """From zero, a step of SGD over all samples is torch's own gradient of its cross-entropy."""
    in_float64(monkeypatch)
    solver = solver_for(method_of(("softmax", "all", "sgd"), proposal={"name": "all", "batch_size": N}))
    found, _ = after(solver, rate=1.0)
    data = solver._features.take(np.arange(N)).inputs
    W = torch.zeros((K, D + 1), dtype=torch.float64, device=DEVICE, requires_grad=True)
    labels = torch.from_numpy(solver._labels.astype(np.int64)).to(DEVICE)
    torch.nn.functional.cross_entropy(data @ W.T, labels).backward()
    assert np.allclose(found, -W.grad.cpu().numpy(), rtol=1e-6, atol=1e-7)


def test_what_is_asked_for_is_compared_with_what_is_free(monkeypatch):
    monkeypatch.setattr("xsoftmax.gpu.device.free_on", lambda place: 10 * 2**20)
    check_room("mine", "cuda", {"weights": 10 * 2**20})
    said = (
        "mine: device is cuda, which has 10 MB free, and the fit takes 12 MB of it: 8 MB for weights, 4 MB for rows"
    )
    with pytest.raises(InputError, match=said):
        check_room("mine", "cuda", {"weights": 8 * 2**20, "rows": 4 * 2**20})
