"""Fits of exact softmax in each precision: fused steps over blocks of classes, on PyTorch's CPU device."""

import numpy as np
import pytest

from gpu.problems import K, N, after, in_float64, method_of, solver_for
from training.interruptions import KillAfter, KilledError
from training.problems import curve, rows
from training.problems import K as N_CLASSES
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.store import open_prepared
from xsoftmax.gpu.device import BYTES_PER_WEIGHT
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.proposals import Size
from xsoftmax.solvers import check_precision, place_of, solver_of, torch_full
from xsoftmax.solvers.torch_full import TorchFullSolver
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import estimate
from xsoftmax.training.plan import Plan

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

from xsoftmax.gpu.fused_steps import FusedSteps  # noqa: E402
from xsoftmax.gpu.precision import PRECISIONS  # noqa: E402
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes  # noqa: E402

SOFTMAX = ("softmax", "all", "adagrad")
BFLOAT16 = [name for name in BYTES_PER_WEIGHT if name.startswith("bfloat16")]
# Of a fit's mean log-likelihood, in nats, from that of float32.
TOLERANCE = {"tf32": 1e-6} | dict.fromkeys(BFLOAT16, 5e-3)
OTHERS = {"plain": {}, "averaged": {"average": "half", "decay": 0.5}}
each_precision = pytest.mark.parametrize("precision", BYTES_PER_WEIGHT)


@pytest.fixture(scope="session")
def dense(prepare):
    return prepare(*rows(), N_CLASSES, n_validation=50, n_test=50)


def trained(path, method, callbacks=(), **plan):
    with open_prepared(path) as data:
        return fit(data, method, 3, Plan(**({"epochs": 6, "keep": "last"} | plan)), callbacks=callbacks)


def test_what_a_method_may_ask_for_is_there():
    assert {name: each.bytes_per_weight for name, each in PRECISIONS.items() if name != "float64"} == BYTES_PER_WEIGHT
    page = (ROOT.parents[1] / "docs/gpu.md").read_text(encoding="utf-8")
    for name, size in BYTES_PER_WEIGHT.items():
        assert f"| `{name}` | {size} |" in page


@pytest.mark.parametrize("others", [{}, {"decay": 0.3, "average": "all"}, {"bias": False}], ids=str)
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("numbers", ["float32", "float64"])
def test_fused_steps_are_those_of_compiled_code(numbers, optimizer, others, monkeypatch):
    """To 1e-6 in float64, as compiled code is float32; to 1e-5 in float32."""
    names = ("softmax", "all", optimizer)
    expected = after(solver_for(method_of(names, "numba", **others)), epochs=3)[0]
    if numbers == "float64":
        in_float64(monkeypatch)
    solver = solver_for(method_of(names, **others))
    assert isinstance(solver._steps, FusedSteps)
    tolerance = {"float64": 1e-6, "float32": 1e-5}[numbers]
    assert np.allclose(after(solver, epochs=3)[0], expected, rtol=tolerance, atol=tolerance)


def test_they_are_those_of_the_other_way(monkeypatch):
    """The one of sparse rows and of other objectives, in float64: to 1e-10, as both round what they find to float32."""
    in_float64(monkeypatch)
    method = method_of(SOFTMAX, decay=0.3)
    fused = solver_for(method)
    monkeypatch.setattr(torch_full, "is_softmax", lambda method: False)
    other = solver_for(method)
    assert not isinstance(other._steps, FusedSteps)
    found, expected = (after(each, epochs=2)[0] for each in (fused, other))
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("block", [1, 4, K - 1])
def test_blocks_change_nothing(block, monkeypatch):
    in_float64(monkeypatch)
    method = method_of(SOFTMAX, decay=0.3, average="all")
    whole = after(solver_for(method), epochs=2)[0]
    monkeypatch.setattr(torch_full, "_block", lambda method, size: block)
    assert np.allclose(after(solver_for(method), epochs=2)[0], whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_each_reaches_the_optimum(precision, optimizer, dense):
    """That of L-BFGS, with an L2 penalty; Adagrad's decay, which is none, brings it to where float32 gets."""
    penalty, rate = ({"l2": 1.0}, 2.0) if optimizer == "sgd" else ({"decay": 1.0}, 0.3)
    settings = penalty | {"optimizer": {"name": optimizer, "learning_rate": rate}, "schedule": {"name": "linear"}}
    names = ("softmax", "all", optimizer)
    if optimizer == "sgd":
        best = trained(dense, method_of(("softmax", "all", "lbfgs"), "numba", **penalty), epochs=200)
    else:
        best = trained(dense, method_of(names, **settings), epochs=100)
    ours = trained(dense, method_of(names, precision=precision, **settings), epochs=300 if optimizer == "sgd" else 100)
    found, expected = (each.state.history[-1]["train_log_likelihood"] for each in (ours, best))
    assert found == pytest.approx(expected, abs=max(1e-3, TOLERANCE[precision]))
    assert ours.model.W.dtype == np.float32


def test_precisions_differ_and_float32_is_the_default(dense):
    models = {name: trained(dense, method_of(SOFTMAX, precision=name)).model.W for name in BYTES_PER_WEIGHT}
    assert np.array_equal(models["float32"], trained(dense, method_of(SOFTMAX)).model.W)
    for name in BFLOAT16:
        assert not np.array_equal(models[name], models["float32"])
        assert np.allclose(models[name], models["float32"], atol=0.1)


def test_biases_are_not_rounded(dense):
    model = trained(dense, method_of(SOFTMAX, precision="bfloat16-stochastic")).model
    held = [torch.from_numpy(each).bfloat16().float().numpy() for each in (model.W, model.b)]
    assert np.array_equal(held[0], model.W)
    assert not np.array_equal(held[1], model.b)
    assert not trained(dense, method_of(SOFTMAX, precision="bfloat16-stochastic", bias=False)).model.b.any()


@each_precision
@pytest.mark.parametrize("others", OTHERS)
def test_killed_and_resumed_it_ends_with_the_same_bits(precision, others, dense, tmp_path):
    method = method_of(SOFTMAX, precision=precision, **OTHERS[others])
    whole = trained(dense, method)
    checkpoint = tmp_path / "checkpoint.h5"
    with pytest.raises(KilledError):
        trained(dense, method, [KillAfter(3, save=True)], checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = trained(dense, method, checkpoint=checkpoint)
    assert np.array_equal(resumed.model.W, whole.model.W)
    assert np.array_equal(resumed.model.b, whole.model.b)
    assert curve(resumed) == curve(whole)


@each_precision
def test_what_a_checkpoint_holds_is_all_that_changes(precision):
    method = method_of(SOFTMAX, precision=precision, average="all", start="class-means")
    first, second = solver_for(method), solver_for(method)
    first.advance(np.arange(16), 0, 0, 0.2)
    second.restore({name: array.copy() for name, array in first.arrays().items()})
    for solver in (first, second):
        solver.advance(np.arange(16, N), 0, 16, 0.2)
    arrays = [solver.arrays() for solver in (first, second)]
    assert all(np.array_equal(array, arrays[1][name]) for name, array in arrays[0].items())
    assert arrays[0]["W"].itemsize == (2 if BYTES_PER_WEIGHT[precision] == 2 else arrays[0]["W"].itemsize)


def test_rounding_follows_from_the_seed_and_the_step():
    method = method_of(SOFTMAX, precision="bfloat16-stochastic")
    states = []
    for seed, numbers in ((5, (0, 1)), (5, (1,)), (6, (1,))):
        solver = solver_for(method)
        solver._steps._seed = seed
        for number in numbers:
            solver._weights.load(np.zeros((K, solver._features.width), np.float32))
            solver._weights.biases._beside.fill_(0.1)
            solver._weights.of_samples._beside.fill_(0.1)
            solver.advance(np.arange(8), 0, 8 * number, 0.2)
        states.append(solver.weights().copy())
    # the same samples, in the same place of the fit
    assert np.array_equal(states[0], states[1])
    assert not np.array_equal(states[1], states[2])


@pytest.mark.parametrize(
    ("names", "others", "said"),
    [
        (SOFTMAX, {"device": "numba"}, "precision is bfloat16, and device numba, compiled code, has float32 only; take"),
        (
            ("one-vs-each", "all", "sgd"),
            {},
            "precision is bfloat16, and objective one-vs-each with proposal all has float32 only; take objective softmax",
        ),
        (
            ("sampled-softmax", "uniform", "sgd"),
            {},
            "objective sampled-softmax with proposal uniform has float32 only; take objective softmax and proposal all",
        ),
        (SOFTMAX, {"precision": "bf16"}, "precision is 'bf16'; .*float32, tf32, bfloat16"),
        (SOFTMAX, {"precision": "float64"}, "precision is 'float64'; .*float32, tf32, bfloat16"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_it_is_not_for_says_so(names, others, said):
    assert method_of(names, **{"precision": "float32"} | {key: v for key, v in others.items() if key == "device"})
    with pytest.raises(InputError, match=said) as raised:
        method_of(names, **{"device": "cpu", "precision": "bfloat16"} | others)
    assert "\n" not in str(raised.value)
