"""Which device a method gets, and what is said where there is none; nothing is written by then."""

import gc
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gpu.problems import method_of, settings_of, solver_for
from training.problems import K, rows
from xsoftmax.gpu import device
from xsoftmax.internal.errors import InputError
from xsoftmax.solvers import place_of, solver_of
from xsoftmax.solvers.full import FullSolver
from xsoftmax.solvers.torch_full import TorchFullSolver
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

SOFTMAX = ("softmax", "all", "adagrad")


def with_torch(monkeypatch, cuda, available):
    """Pretend that PyTorch is installed, for some version of CUDA or none, and finds a card or none."""
    built = SimpleNamespace(cuda=cuda)
    torch = SimpleNamespace(__version__="2.13.0", version=built, cuda=SimpleNamespace(is_available=lambda: available))
    monkeypatch.setattr(device, "find_spec", lambda name: object())
    monkeypatch.setattr(device, "loaded_torch", lambda: torch)


def refusal(dataset, tmp_path, asked):
    """What a fit says that cannot have its device; a checkpoint is not begun."""
    checkpoint = tmp_path / "checkpoint.h5"
    with pytest.raises(InputError) as caught:
        fit(dataset(*rows(), K), method_of(SOFTMAX, asked), 0, Plan(epochs=1, checkpoint=checkpoint))
    assert not any(tmp_path.iterdir())
    return str(caught.value)


@pytest.mark.fault(
    "`device: cuda` or `cpu` without PyTorch",
    happens="refused before anything is written",
    user="`device is cuda, and PyTorch is not installed; pip install 'xsoftmax[gpu]', …`",
    lost="nothing",
)
@pytest.mark.parametrize("asked", ["cpu", "cuda"])
def test_without_torch(dataset, tmp_path, asked, monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    said = refusal(dataset, tmp_path, asked)
    assert f"method mine: device is {asked}, and PyTorch is not installed; pip install 'xsoftmax[gpu]'" in said


@pytest.mark.fault(
    "`device: cuda`, and PyTorch was built without CUDA",
    happens="refused before anything is written",
    user="`device is cuda, and PyTorch 2.13.0 was built without CUDA; install one with it …`",
    lost="nothing",
)
def test_a_torch_without_cuda(dataset, tmp_path, monkeypatch):
    with_torch(monkeypatch, None, False)
    said = refusal(dataset, tmp_path, "cuda")
    assert "device is cuda, and PyTorch 2.13.0 was built without CUDA; install one with it" in said
    assert "or set device: auto" in said


@pytest.mark.fault(
    "`device: cuda` on a machine without a card",
    happens="refused before anything is written",
    user="`device is cuda, and PyTorch finds no card; run it where there is one, or set device: auto`",
    lost="nothing",
)
@pytest.mark.parametrize("visible", [None, "-1"])
def test_no_card(dataset, tmp_path, monkeypatch, visible):
    with_torch(monkeypatch, "12.8", False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    said = refusal(dataset, tmp_path, "cuda")
    seen = "" if visible is None else " (CUDA_VISIBLE_DEVICES is '-1')"
    assert f"device is cuda, and PyTorch finds no card{seen}; run it where there is one" in said


@pytest.mark.fault(
    "a card, or PyTorch's CPU device, with too little memory",
    happens="refused before anything is allocated there",
    user="`device is cuda, which has 3 MB free, and the fit takes 9 MB of it: 5 MB for weights …`",
    lost="nothing",
)
def test_too_little_memory_is_told_with_the_numbers(dataset, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: nothing asks for its memory here")
    monkeypatch.setattr("xsoftmax.gpu.device.free_on", lambda place: 3000)
    said = refusal(dataset, tmp_path, "cpu")
    assert "device is cpu, which has 0 MB free, and the fit takes " in said
    assert "weights and what the optimizer keeps" in said
    assert "scores of a minibatch" in said
    assert "take a larger card, a smaller batch, or leave device out" in said


def test_what_recorded_steps_hold_is_not_free(monkeypatch):
    """What PyTorch keeps for whoever asks is; nor does it matter what another card holds, or a graph that is gone."""
    replay = pytest.importorskip("xsoftmax.gpu.replay", reason="torch is not installed: nothing is recorded here")
    cuda = SimpleNamespace(
        current_device=lambda: 0,
        memory_reserved=lambda: 150,
        memory_allocated=lambda: 50,
        mem_get_info=lambda: (1000, 2000),
    )
    monkeypatch.setattr(device, "loaded_torch", lambda: SimpleNamespace(cuda=cuda))
    recorded = [replay._Recorded.__new__(replay._Recorded) for _ in range(2)]
    for number, each in enumerate(recorded):
        each.device, each.held = SimpleNamespace(index=number), 40
        replay._LIVE.add(each)
    assert device.free_on("cuda") == 1060
    del each
    recorded.clear()
    gc.collect()
    assert device.free_on("cuda") == 1100


def test_auto_is_a_card_where_there_is_one_and_compiled_code_elsewhere(monkeypatch):
    on_card, elsewhere = method_of(SOFTMAX, "auto"), method_of(("softmax", "all", "lbfgs"), "auto")
    monkeypatch.setattr(device, "has_card", lambda: False)
    assert (place_of(on_card), solver_of(on_card)) == ("numba", FullSolver)
    monkeypatch.setattr(device, "has_card", lambda: True)
    with_torch(monkeypatch, "12.8", True)
    assert (place_of(on_card), solver_of(on_card)) == ("cuda", TorchFullSolver)
    assert place_of(elsewhere) == "numba"


def test_without_a_device_nothing_is_asked_of_torch(monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: pytest.fail("torch was looked for"))
    method = method_of(SOFTMAX, "numba")
    assert solver_of(method) is FullSolver
    settings = {key: value for key, value in method.settings.items() if key != "device"}
    assert method.settings["device"] == "numba"
    assert settings


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match="device is 'gpu'; set it to numba or cpu or cuda or auto"):
        method_of(SOFTMAX, "gpu")


def test_torch_is_imported_only_by_who_trains_there():
    program = f"""
import sys
import xsoftmax.commands.train, xsoftmax.commands.predict, xsoftmax.estimators, xsoftmax.lab.report
from xsoftmax.methods import build_method
from xsoftmax.solvers import solver_of
for asked in ("numba", "cpu"):
    method = build_method("mine", {settings_of(SOFTMAX)!r} | {{"device": asked}})
    solver_of(method)
sys.exit("torch" in sys.modules)
"""
    pytest.importorskip("torch", reason="torch is not installed: nothing can import it here")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)


def test_the_bits_of_others_do_not_change_what_torch_allows():
    torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to allow here")
    before = torch.are_deterministic_algorithms_enabled()
    solver = solver_for(method_of(SOFTMAX))
    solver.advance(np.arange(8), 0, 0, 0.1)
    assert torch.are_deterministic_algorithms_enabled() == before
