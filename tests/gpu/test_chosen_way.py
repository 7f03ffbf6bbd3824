"""What a fit of exact softmax computes with on a block's scores: on a card what is compiled, where that works.

There is no card here: the CPU device stands for one.
"""

import shutil

import numpy as np
import pytest

from gpu.problems import after, method_of, solver_for

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

from xsoftmax.gpu import elementwise  # noqa: E402
from xsoftmax.gpu.elementwise import ONE_BY_ONE, Block, chosen  # noqa: E402
from xsoftmax.gpu.precision import precision_of  # noqa: E402

CPU = torch.device("cpu")
BLOCK = Block(7, 5, precision_of("bfloat16"), has_biases=True)
SOFTMAX = ("softmax", "all", "adagrad")


@pytest.fixture(scope="module")
def one_by_one():
    """Weights after a fit on the CPU device."""
    return after(solver_for(method_of(SOFTMAX, "cpu")), epochs=2)[0]


@pytest.fixture
def card(one_by_one, monkeypatch):
    """Let the CPU device be one on which fits take what is compiled."""
    monkeypatch.setattr(elementwise, "COMPILED_ON", ("cpu",))
    elementwise.warn.cache_clear()


def compiled_as(monkeypatch, **functions):
    way = ONE_BY_ONE._replace(**functions)
    monkeypatch.setattr(elementwise, "compiled", lambda *_: way)
    return way


def fails(*_):
    raise RuntimeError("Cannot find a working triton installation\nmore")


def test_the_cpu_device_computes_one_by_one(monkeypatch):
    compiled_as(monkeypatch, added=fails)
    assert chosen(CPU, BLOCK) is ONE_BY_ONE


def test_a_fit_takes_what_is_compiled(card, one_by_one, monkeypatch):
    """In both passes over the classes; its first calls have the sizes of the fit, whatever the last minibatch's."""
    calls = []

    def added(scores, *rest):
        calls.append(("added", *scores.shape))
        return ONE_BY_ONE.added(scores, *rest)

    def coefficients(scores, *rest):
        calls.append(("coefficients", *scores.shape))
        return ONE_BY_ONE.coefficients(scores, *rest)

    compiled_as(monkeypatch, added=added, coefficients=coefficients)
    solver = solver_for(method_of(SOFTMAX, "cpu"))
    solver.advance(np.empty(0, np.int64), 0, 0, 0.0)
    sizes = (solver._steps._block, solver._steps._block - 1)
    assert calls == [(name, solver._batch_size, size) for size in sizes for name in ("added", "coefficients")]
    calls.clear()
    assert np.array_equal(after(solver, epochs=2)[0], one_by_one)
    assert {name for name, *_ in calls} == {"added", "coefficients"}


@pytest.mark.fault(
    "PyTorch's compiler does not run where a fit trains on a card",
    happens="blocks are computed on by operations one by one, with the same results",
    user="`warning: torch.compile does not run here (…); exact softmax takes more time without it`",
)
@pytest.mark.parametrize("part", ["added", "coefficients"])
def test_where_the_compiler_fails_a_fit_goes_on_without(part, card, one_by_one, monkeypatch, capsys):
    compiled_as(monkeypatch, **{part: fails})
    for _ in range(2):
        assert np.array_equal(after(solver_for(method_of(SOFTMAX, "cpu")), epochs=2)[0], one_by_one)
    assert capsys.readouterr().err == (
        "warning: torch.compile does not run here (RuntimeError: Cannot find a working triton installation); "
        "exact softmax takes more time without it\n"
    )


def test_too_little_memory_is_no_fault_of_the_compiler(card, monkeypatch):
    def allocates(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB")

    compiled_as(monkeypatch, added=allocates)
    with pytest.raises(torch.OutOfMemoryError):
        chosen(CPU, BLOCK)


@pytest.mark.slow
def test_a_fit_by_what_torch_compiles_is_that_of_operations_one_by_one(card, one_by_one, capsys):
    """It takes about half a minute; no shape of a fit is too much for the compiler's limit."""
    if not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        pytest.skip("there is no C++ compiler")
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        solver = solver_for(method_of(SOFTMAX, "cpu"))
        found = after(solver, epochs=2)[0]
    assert solver._steps.get_ready(1) is not ONE_BY_ONE
    assert np.allclose(found, one_by_one, rtol=1e-5, atol=1e-5)
    assert not capsys.readouterr().err
