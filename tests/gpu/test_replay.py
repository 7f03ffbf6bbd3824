"""Steps that a card replays: what a call gives, and where nothing can be recorded the call itself."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing is replayed")

from gpu.problems import DEVICE, after, method_of, solver_for  # noqa: E402
from xsoftmax.gpu import replay  # noqa: E402
from xsoftmax.gpu.device import BYTES_PER_WEIGHT  # noqa: E402
from xsoftmax.gpu.elementwise import warn  # noqa: E402
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


class Repeats:
    """Stands for a graph: calls the function again on inputs of its own."""

    def __init__(self, function, given, generators):
        self.shapes = replay._shapes(given)
        self._function, self._inputs = function, [torch.empty_like(each) for each in given]

    def replayed(self, given):
        for place, each in zip(self._inputs, given, strict=True):
            place.copy_(each)
        return self._function(*self._inputs).clone()


@pytest.fixture
def recording(monkeypatch):
    """Let PyTorch's CPU device record; a card does so by itself."""
    if DEVICE == "cpu":
        monkeypatch.setattr(replay, "REPLAYED_ON", ("cpu",))
        monkeypatch.setattr(replay, "_Recorded", Repeats)
    warn.cache_clear()


def test_a_replay_is_the_call_with_the_same_bits(recording):
    called, replayed = Walk(), Walk()
    expected = called.steps(called)
    function = Replayed([replayed.generator])
    found = replayed.steps(partial(function, replayed))
    assert torch.equal(found, expected)
    assert torch.equal(replayed.place, called.place)
    assert function._recorded.shapes == ((5,),), "not those that came once"
    if DEVICE == "cuda":
        assert replayed.n_calls == 3, "the first, one that is recorded, and one of another shape"


@pytest.mark.parametrize("precision", BYTES_PER_WEIGHT)
@pytest.mark.parametrize("others", [{}, {"decay": 0.5, "average": "half"}], ids=str)
def test_steps_at_other_rates_have_the_bits_of_those_that_are_not_replayed(precision, others, recording, monkeypatch):
    """Minibatches of eight samples; periods of an average end in between."""
    rates, places = (0.5, 0.2, 0.7, 0.1), replay.REPLAYED_ON

    def trained(rates, places):
        monkeypatch.setattr(replay, "REPLAYED_ON", places)
        solver = solver_for(method_of(SOFTMAX, precision=precision, **others))
        solver.advance(np.empty(0, np.int64), 0, 0, 0.0)
        for epoch, rate in enumerate(rates):
            for first in (0, 16, 32):
                solver.advance(np.arange(first, first + 16), epoch, first, rate)
        assert (solver._steps._replayed._recorded is not None) == bool(places)
        return {name: each.copy() for name, each in solver.arrays().items()}

    called, replayed = trained(rates, ()), trained(rates, places)
    assert all(np.array_equal(each, replayed[name]) for name, each in called.items())
    assert not np.array_equal(replayed["W"], trained([rates[0]] * 4, places)["W"]), "each step has its own rate"


@pytest.mark.skipif(torch.__version__ < "2.13", reason="what a failed recording leaves behind was mended in 2.13")
@of_a_card
def test_a_recording_that_fails_leaves_the_card_as_it_was(capsys):
    warn.cache_clear()
    walk, stream = Walk(), torch.cuda.current_stream()
    waits = lambda by: walk(by) * by.sum().item()  # noqa: E731 - the host waits, which cannot be recorded
    function = Replayed([walk.generator])
    steps = walk.steps(partial(function, waits))
    other = Walk()
    assert torch.equal(steps, other.steps(lambda by: other(by) * by.sum().item()))
    assert "warning: steps are not recorded as a CUDA graph here (" in capsys.readouterr().err
    assert torch.cuda.current_stream() == stream


@pytest.mark.skipif(DEVICE != "cpu", reason="a card replays")
def test_elsewhere_it_is_the_call():
    called, replayed = Walk(), Walk()
    function = Replayed([replayed.generator])
    assert torch.equal(replayed.steps(partial(function, replayed)), called.steps(called))
    assert (replayed.n_calls, function._recorded) == (6, None)


@pytest.mark.fault(
    "CUDA does not record the steps of a fit on a card as a graph, or has no memory for one",
    happens="they are taken operation by operation, with the same results",
    user="`warning: steps are not recorded as a CUDA graph here (…); they take more time without it`",
)
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("operation not permitted when stream is capturing\nmore"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_where_nothing_is_recorded_a_fit_goes_on_without(error, recording, monkeypatch, capsys):
    expected = after(solver_for(method_of(SOFTMAX)), epochs=2)[0]

    def refuses(*_):
        raise error

    monkeypatch.setattr(replay, "_Recorded", refuses)
    for _ in range(2):
        assert np.array_equal(after(solver_for(method_of(SOFTMAX)), epochs=2)[0], expected)
    said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    assert capsys.readouterr().err == (
        f"warning: steps are not recorded as a CUDA graph here ({said}); they take more time without it\n"
    )
