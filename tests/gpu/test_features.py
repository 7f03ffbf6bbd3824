"""Rows on their way to a device: cut out one by one, as to a card, they are those that are sent as one."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch", reason="torch is not installed: no rows are sent")

import torch

from gpu.problems import DEVICE, after, method_of, solver_for
from xsoftmax.gpu.features import Features, Pieces
from xsoftmax.gpu.sender import Sender


def features(storage):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((20, 5)) * (rng.random((20, 5)) < 0.5)).astype(np.float32)
    return Features(storage(X), 1.0, torch.device(DEVICE), torch.float64)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_pieces_are_cuts(storage):
    of_host, samples = features(storage), np.array([3, 19, 0, 3, 7, 11])
    whole, pieces = of_host.take(samples), Pieces(of_host, samples)
    for first, stop in ((0, 2), (2, 5), (5, 6)):
        one, other = whole.cut(first, stop), pieces.cut(first, stop)
        assert one.n == other.n == stop - first
        for part, same in zip(one, other, strict=True):
            if isinstance(part, torch.Tensor):
                assert torch.equal(part, same)


@pytest.mark.parametrize("names", [("softmax", "all", "sgd"), ("sampled-softmax", "uniform", "sgd")], ids=" ".join)
def test_steps_on_pieces_have_the_same_bits(names, monkeypatch):
    expected = after(solver_for(method_of(names)))
    monkeypatch.setattr(Features, "chunk", lambda self, samples: Pieces(self, samples))
    found = after(solver_for(method_of(names)))
    assert np.array_equal(found[0], expected[0])


def test_on_the_cpu_device_nothing_is_pinned():
    sender = Sender(torch.device("cpu"))
    array = sender.empty((2, 3), torch.float32)
    array[:] = 1
    sent = sender.send(array)
    assert not sender.pins
    assert sent.data_ptr() == array.ctypes.data, "no copy"
    assert sender.send(array, torch.float64).dtype == torch.float64
