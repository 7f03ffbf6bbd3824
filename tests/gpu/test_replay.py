"""Steps that a card replays: what a call gives, and where nothing can be recorded the call itself."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing is replayed")

from gpu.problems import DEVICE, after, method_of, solver_for  # noqa: E402
from xsoftmax.gpu import replay  # noqa: E402
from xsoftmax.gpu.replay import Replayed  # noqa: E402

SOFTMAX = ("softmax", "all", "adagrad")
of_a_card = pytest.mark.skipif(DEVICE != "cuda", reason="no card here: XSOFTMAX_TEST_DEVICE=cuda where there is one")


class Walk:
    """Adds a number and noise to where it is; counts its calls."""

    def __init__(self) -> None:
        self.place = torch.zeros(5, device=DEVICE)
        self.generator = torch.Generator(DEVICE)
        self.n_calls = 0

    def __call__(self, by):
        self.n_calls += 1
        self.place += by + torch.rand(by.shape, generator=self.generator, device=DEVICE)
        return self.place.sum()

    def steps(self, function):
        """Give what each of six steps gives, with seeds of their own, the fourth of another shape."""
        found = []
        for number in range(6):
            self.generator.manual_seed(number)
            found.append(function(torch.full((1 if number == 3 else 5,), float(number), device=DEVICE)))
        return torch.stack(found).cpu()


@of_a_card
def test_a_replay_is_the_call_with_the_same_bits():
    called, replayed = Walk(), Walk()
    expected = called.steps(called)
    found = replayed.steps(partial(Replayed([replayed.generator]), replayed))
    assert torch.equal(found, expected)
    assert torch.equal(replayed.place, called.place)
    assert replayed.n_calls == 3, "the first, one that is recorded, and one of another shape"


def test_elsewhere_it_is_the_call():
    called, replayed = Walk(), Walk()
    function = partial(Replayed([replayed.generator]), replayed) if DEVICE == "cpu" else replayed
    assert torch.equal(replayed.steps(function), called.steps(called))
    assert replayed.n_calls == 6


@pytest.mark.fault(
    "CUDA does not record the steps of a fit on a card as a graph",
    happens="they are taken operation by operation, with the same results",
    user="`warning: steps are not recorded as a CUDA graph here (…); they take more time without it`",
)
def test_where_nothing_is_recorded_a_fit_goes_on_without(monkeypatch, capsys):
    expected = after(solver_for(method_of(SOFTMAX)), epochs=2)[0]

    def refuses(*_):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(replay, "REPLAYED_ON", ("cpu", "cuda"))
    monkeypatch.setattr(replay, "_Recorded", refuses)
    assert np.array_equal(after(solver_for(method_of(SOFTMAX)), epochs=2)[0], expected)
    assert capsys.readouterr().err == (
        "warning: steps are not recorded as a CUDA graph here (RuntimeError: operation not permitted when stream is "
        "capturing); they take more time without it\n"
    )


def test_too_little_memory_is_said(monkeypatch):
    def allocates(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB")

    monkeypatch.setattr(replay, "REPLAYED_ON", ("cpu", "cuda"))
    monkeypatch.setattr(replay, "_Recorded", allocates)
    walk = Walk()
    with pytest.raises(torch.OutOfMemoryError):
        walk.steps(partial(Replayed(), walk))
