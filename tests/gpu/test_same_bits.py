"""What PyTorch is told while something computes, and what it is told afterwards."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: it is told nothing")

from xsoftmax.gpu.same_bits import same_bits  # noqa: E402


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_what_was_set_is_put_back(before, wanted, monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", before)
    with same_bits(wanted):
        assert torch.are_deterministic_algorithms_enabled() == wanted
        assert torch.utils.deterministic.fill_uninitialized_memory is False, "new memory is not written to"
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory is before
