"""Fits of exact softmax in each precision: fused steps over blocks of classes."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpu.problems import DEVICE, K, N, after, in_float64, method_of, solver_for
from training.interruptions import KillAfter, KilledError
from training.problems import K as N_CLASSES
from training.problems import curve, rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.store import open_prepared
from xsoftmax.gpu.device import BYTES_PER_WEIGHT
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.proposals import Size, TrainingSet
from xsoftmax.solvers import make_solver, place_of, solver_of, torch_full
from xsoftmax.solvers.torch_full import TorchFullSolver
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import estimate
from xsoftmax.training.plan import Plan

torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

from xsoftmax.gpu.fused_steps import FusedSteps  # noqa: E402
from xsoftmax.gpu.precision import PRECISIONS  # noqa: E402
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes  # noqa: E402

SOFTMAX = ("softmax", "all", "adagrad")
# Of a fit's mean log-likelihood from the optimum's, in nats; float32 gets as near as the first.
TOLERANCE = {"bfloat16": 2e-3, "bfloat16-compensated": 2e-3, "bfloat16-stochastic": 5e-3}
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
    """That of sparse rows and other objectives, in float64: to 1e-6, as both give weights in float32."""
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


@pytest.fixture(scope="module")
def optimum(dense):
    """That of L-BFGS, with an L2 penalty."""
    return last(trained(dense, method_of(("softmax", "all", "lbfgs"), "numba", l2=1.0), epochs=200))


def last(result):
    return result.state.history[-1]["train_log_likelihood"]


@pytest.mark.long_cases
@pytest.mark.parametrize("precision", TOLERANCE)
def test_each_reaches_the_optimum(precision, dense, optimum):
    optimizer, schedule = {"name": "sgd", "learning_rate": 2.0}, {"name": "linear"}
    others = {"precision": precision, "l2": 1.0, "optimizer": optimizer, "schedule": schedule}
    ours = trained(dense, method_of(("softmax", "all", "sgd"), **others), epochs=100)
    assert last(ours) == pytest.approx(optimum, abs=TOLERANCE[precision])
    assert ours.model.W.dtype == np.float32


def test_precisions_differ_and_float32_is_the_default(dense):
    models = {name: trained(dense, method_of(SOFTMAX, precision=name)).model.W for name in BYTES_PER_WEIGHT}
    assert np.array_equal(models["float32"], trained(dense, method_of(SOFTMAX)).model.W)
    same = np.array_equal(models["float32"], models["tf32"])
    assert same == (DEVICE == "cpu"), "PyTorch's CPU device has no tf32"
    for name in TOLERANCE:
        assert not np.array_equal(models[name], models["float32"])


def test_biases_are_not_rounded(dense):
    model = trained(dense, method_of(SOFTMAX, precision="bfloat16-stochastic")).model
    held = [torch.from_numpy(each).bfloat16().float().numpy() for each in (model.W, model.b)]
    assert np.array_equal(held[0], model.W)
    assert not np.array_equal(held[1], model.b)


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
    begun = solver_for(method)
    begun.advance(np.arange(8), 0, 0, 0.2)
    kept = {name: array.copy() for name, array in begun.arrays().items()}
    found = []
    for seed, position in ((5, 8), (5, 8), (5, 16), (6, 8)):
        solver = solver_for(method)
        solver.restore(kept)
        solver._steps._seed = seed
        solver.advance(np.arange(8, 16), 0, position, 0.2)
        found.append(solver.weights())
    assert np.array_equal(found[0], found[1])
    assert not any(np.array_equal(found[0], other) for other in found[2:])


@pytest.mark.parametrize(
    ("names", "others", "said"),
    [
        (
            SOFTMAX,
            {"device": "numba"},
            "precision is bfloat16, and device numba, compiled code, has float32 only; take",
        ),
        (
            ("one-vs-each", "all", "sgd"),
            {},
            "precision is bfloat16, and objective one-vs-each with proposal all has float32 only; take obj",
        ),
        (
            ("sampled-softmax", "uniform", "sgd"),
            {},
            "objective sampled-softmax with proposal uniform has float32 only; take objective softmax and p",
        ),
        (SOFTMAX, {"precision": "bf16"}, "precision is 'bf16'; set it to float32 or tf32 or bfloat16 or"),
        (SOFTMAX, {"precision": "float64"}, "precision is 'float64'; set it to float32 or tf32 or"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_it_is_not_for_says_so(names, others, said):
    assert method_of(names, **{"precision": "float32"} | {key: v for key, v in others.items() if key == "device"})
    with pytest.raises(InputError, match=said) as raised:
        method_of(names, **{"device": DEVICE, "precision": "bfloat16"} | others)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["sparse", "several labels"])
def test_rows_that_it_is_not_for_say_so(kind):
    X, y = rows()
    X = X.astype(np.float32)
    several = [sorted({int(k), (int(k) + 1) % N_CLASSES}) for k in y]
    data = Dataset.from_arrays(csr_array(X), y) if kind == "sparse" else Dataset.from_arrays(X, several)
    fit(data, method_of(SOFTMAX), 0, Plan(epochs=1))
    with pytest.raises(
        InputError, match=f"precision is tf32, and rows of .* {kind}, which train in float32 only; leav"
    ):
        fit(data, method_of(SOFTMAX, precision="tf32"), 0, Plan(epochs=1))


def test_auto_trains_it_on_pytorch_card_or_not(monkeypatch):
    method = method_of(SOFTMAX, "auto", precision="bfloat16")
    assert solver_of(method) is TorchFullSolver
    for card, place in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr("xsoftmax.gpu.device.has_card", lambda card=card: card)
        assert place_of(method) == place


def test_settings_name_it_unless_it_is_float32():
    assert "precision" not in method_of(SOFTMAX, precision="float32").settings
    assert method_of(SOFTMAX, precision="tf32").settings["precision"] == "tf32"


def test_estimates_know_it(dense):
    """Weights of two bytes, an accumulator of four, and on the host a copy of four, and one more as it is made."""
    with open_prepared(dense) as data:
        one_copy = 4 * data.n_classes * (data.n_features + 1)
        for precision, copies in (("float32", 3), ("bfloat16-stochastic", 3.5), ("bfloat16-compensated", 4)):
            needed = estimate(method_of(SOFTMAX, "cpu", precision=precision), data, keeps_best=False)
            assert needed["weights and what the optimizer keeps"] == int(copies * one_copy)


def test_three_million_classes_train_in_under_8_gb(monkeypatch):
    """Of 768 features, by SGD, in batches of 512: what is asked of a card."""
    asked = {}
    monkeypatch.setattr(TorchFullSolver, "_begin", lambda *others: None)
    monkeypatch.setattr(TorchFullSolver, "_steps_of", lambda *others: None)
    monkeypatch.setattr(
        "xsoftmax.solvers._torch.check_room", lambda name, place, needed, n_here: asked.update(needed)
    )
    X = np.broadcast_to(np.zeros(1, np.float32), (100_000, 768))
    data = TrainingSet(X, np.zeros(len(X), np.int32), 3_000_000, 0, 1)
    optimizer, proposal = {"name": "sgd"}, {"name": "all", "batch_size": 512}
    method = method_of(
        ("softmax", "all", "sgd"), precision="bfloat16-stochastic", optimizer=optimizer, proposal=proposal
    )
    TorchFullSolver(method, method.objective, method.proposal, data, None)
    assert 4.6e9 < sum(asked.values()) < 6e9


@each_precision
@pytest.mark.parametrize(("n_samples", "n_features"), [(256, 8), (8, 256)])
def test_a_step_takes_no_more_than_is_asked_for(precision, n_samples, n_features):
    """Of many scores, or of many weights."""
    X = np.zeros((n_samples, n_features), np.float32)
    data = TrainingSet(X, np.zeros(n_samples, np.int32), 2**17, 0, 1)
    method = method_of(
        SOFTMAX, precision=precision, decay=1.0, average="all", proposal={"name": "all", "batch_size": n_samples}
    )
    solver = make_solver(method, method.objective, method.proposal, data)
    asked = solver.room(method, Size(n_samples, 2**17, n_features, n_features))
    # on a card the first step is made, and the second one recorded, which takes memory of its own
    steps = range(2) if DEVICE == "cuda" else range(1)
    run = lambda: [solver.advance(np.arange(n_samples), each, 0, 0.1) for each in steps]  # noqa: E731
    peak = peak_bytes(run, torch.device(DEVICE))
    assert sum(asked.values()) / (8 if DEVICE == "cuda" else 4) < peak < sum(asked.values())
