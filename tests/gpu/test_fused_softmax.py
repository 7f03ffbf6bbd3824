"""Exact softmax over blocks of classes: compared with PyTorch's own cross entropy and autograd in float64."""

import shutil
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from gpu.problems import DEVICE  # noqa: E402
from xsoftmax.gpu import elementwise, fused_softmax  # noqa: E402
from xsoftmax.gpu.fused_softmax import block_size, gradients, sums_of  # noqa: E402
from xsoftmax.gpu.precision import PRECISIONS, ClassWeights, Precision, precision_of  # noqa: E402
from xsoftmax.gpu.rules import adagrad, along_gradient  # noqa: E402
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes  # noqa: E402

N_SAMPLES, N_CLASSES, N_FEATURES = 37, 101, 13
# Largest error of a gradient by its largest entry: float32 sums of products, and factors of 8 bits.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}
OF_TF32 = 5e-3  # on a card: a gradient's factors have 10 bits


class Problem:
    """Random samples, classes and weights; ``scale`` makes scores large. Values are such that bfloat16 holds them."""

    def __init__(self, seed: int = 0, scale: float = 1.0, n_samples: int = N_SAMPLES, n_classes: int = N_CLASSES):
        rng = torch.Generator().manual_seed(seed)
        self.X, self.W = (
            torch.randn(n, N_FEATURES, generator=rng).bfloat16().double() for n in (n_samples, n_classes)
        )
        self.X *= scale
        self.b = torch.randn(n_classes, generator=rng).double()
        self.y = torch.randint(n_classes, (n_samples,), generator=rng)
        self.X, self.W, self.b, self.y = (each.to(DEVICE) for each in (self.X, self.W, self.b, self.y))

    def rows(self, name: str = "float64", shard: slice = slice(None)) -> ClassWeights:
        W = self.W[shard]
        rows = ClassWeights.allocate(len(W), N_FEATURES, precision_of(name), torch.device(DEVICE))
        rows.values.copy_(W)
        return rows

    def bias(self, rows: ClassWeights, shard: slice = slice(None)) -> torch.Tensor:
        return self.b[shard].to(rows.precision.sums)

    def reference(self, bias: bool = True) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Mean log-likelihood and its negative's gradients of X, W and b."""
        leaves = [each.clone().requires_grad_() for each in (self.X, self.W, self.b if bias else 0 * self.b)]
        X, W, b = leaves
        loss = cross_entropy(X @ W.T + b, self.y)
        loss.backward()
        return -loss.detach(), [each.grad for each in leaves]


class Update(NamedTuple):
    """A rule that moves weights in place: SGD, or with accumulators of squared gradients Adagrad.

    The accumulators have the shapes of W and b, and start above 0, as nothing is added to their roots.
    """

    learning_rate: float
    W_accumulator: torch.Tensor | None = None
    b_accumulator: torch.Tensor | None = None

    def move(
        self, W: ClassWeights, b: torch.Tensor | None, rows: slice, of_W: torch.Tensor, of_b: torch.Tensor | None
    ) -> None:
        """See `Rule`."""
        W.add(self._change(of_W, self.W_accumulator, rows), rows)
        if b is not None and of_b is not None:
            b[rows] += self._change(of_b, self.b_accumulator, rows)

    def _change(self, gradient: torch.Tensor, accumulator: torch.Tensor | None, rows: slice) -> torch.Tensor:
        """Turn a block's gradient, which is overwritten, into what is added to its weights."""
        direction = along_gradient(gradient, None) if accumulator is None else adagrad(gradient, accumulator[rows])
        return direction.mul_(-self.learning_rate)


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("name", PRECISIONS)
@pytest.mark.parametrize("block", [1, 10, 64, N_CLASSES, 1000, None])
def test_sums_and_gradients_are_those_of_cross_entropy(name, block):
    problem = Problem(seed=block or 0)
    W = problem.rows(name)
    sums = sums_of(problem.X, problem.y, W, problem.bias(W), block=block)
    found = gradients(problem.X, problem.y, W, problem.bias(W), sums.log_partition, block=block)
    log_likelihood, expected = problem.reference()
    precision = precision_of(name)
    unrounded = torch.float64 if name == "float64" else torch.float32  # scores and sums, as inputs are exact
    assert float(sums.log_likelihood.mean()) == pytest.approx(float(log_likelihood), rel=TOLERANCE[unrounded])
    tolerance = OF_TF32 if precision.tf32 and DEVICE != "cpu" else TOLERANCE[precision.factors]
    for each, exact in zip(found, expected, strict=True):
        assert each.dtype == precision.sums
        assert error(each, exact) < tolerance


@pytest.fixture(scope="module")
def compiled():
    """What torch.compile makes; it takes about half a minute."""
    if not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        pytest.skip("there is no C++ compiler")
    return elementwise.compiled()


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("n_samples", [29, 37])
def test_what_is_compiled_gives_the_same(name, bias, n_samples, compiled):
    """For blocks and batches of any size, and without falling back to what is not compiled."""
    problem = Problem(seed=2, n_samples=n_samples)
    W, precision = problem.rows(name), precision_of(name)
    b = problem.bias(W) if bias else None
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        sums = sums_of(problem.X, problem.y, W, b, block=30, elementwise=compiled)
        found = gradients(problem.X, problem.y, W, b, sums.log_partition, block=30, elementwise=compiled)
    log_likelihood, expected = problem.reference(bias)
    assert float(sums.log_likelihood.mean()) == pytest.approx(
        float(log_likelihood), rel=1e-12 if name == "float64" else 1e-5
    )
    for each, exact in zip(found, expected, strict=True):
        assert each is None or error(each, exact) < TOLERANCE[precision.factors]


def test_there_need_be_no_bias_and_no_gradient_of_samples():
    problem = Problem()
    sums = sums_of(problem.X, problem.y, problem.rows(), block=7)
    found = gradients(problem.X, problem.y, problem.rows(), None, sums.log_partition, block=7, of_X=False)
    log_likelihood, (_, dW, _) = problem.reference(bias=False)
    assert float(sums.log_likelihood.mean()) == pytest.approx(float(log_likelihood), rel=1e-12)
    assert error(found.W, dW) < 1e-12
    assert found.X is None
    assert found.b is None


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_large_scores_do_not_overflow(name):
    """Scores of thousands: exp would be infinite without the running maximum."""
    problem = Problem(scale=500)
    W = problem.rows(name)
    sums = sums_of(problem.X, problem.y, W, problem.bias(W), block=9)
    assert float(sums.maximum.max()) > 2000
    log_likelihood, _ = problem.reference()
    assert float(sums.log_likelihood.mean()) == pytest.approx(float(log_likelihood), rel=TOLERANCE[W.values.dtype])


@pytest.mark.parametrize("cuts", [[50], [1, 100], [20, 40, 60, 80]])
def test_shards_add_up_to_the_whole(cuts):
    problem = Problem(seed=3)
    bounds = [0, *cuts, N_CLASSES]
    shards = [slice(*each) for each in pairwise(bounds)]
    parts = [
        sums_of(problem.X, problem.y, problem.rows(shard=s), problem.b[s], first_class=s.start, block=8)
        for s in shards
    ]
    sums = parts[0]
    for part in parts[1:]:
        sums = sums.plus(part)
    log_likelihood, (dX, dW, db) = problem.reference()
    assert float(sums.log_likelihood.mean()) == pytest.approx(float(log_likelihood), rel=1e-12)
    found = [
        gradients(
            problem.X,
            problem.y,
            problem.rows(shard=s),
            problem.b[s],
            sums.log_partition,
            first_class=s.start,
            block=8,
        )
        for s in shards
    ]
    assert error(sum(each.X for each in found), dX) < 1e-12
    assert error(torch.cat([each.W for each in found]), dW) < 1e-12
    assert error(torch.cat([each.b for each in found]), db) < 1e-12


@pytest.mark.parametrize("block", [10, N_CLASSES])
@pytest.mark.parametrize("adagrad", [False, True])
def test_a_step_moves_weights_along_the_gradient(adagrad, block):
    problem = Problem(seed=5)
    log_likelihood, (_, dW, db) = problem.reference()
    W, b = problem.rows(), problem.b.clone()
    accumulators = [torch.full_like(each, 0.01) for each in (W.values, b)] if adagrad else []
    found = fused_softmax.step(problem.X, problem.y, W, b, Update(0.5, *accumulators), block=block)
    squares = [0.01 + each**2 if adagrad else torch.ones_like(each) for each in (dW, db)]
    assert float(found) == pytest.approx(float(log_likelihood), rel=1e-12)
    assert error(W.values, problem.W - 0.5 * dW / squares[0].sqrt()) < 1e-12
    assert error(b, problem.b - 0.5 * db / squares[1].sqrt()) < 1e-12
    for each, square in zip(accumulators, squares, strict=False):
        assert error(each, square) < 1e-12


def test_steps_of_each_precision_learn_as_much(monkeypatch):
    """Steps small beside what bfloat16 resolves: if each is rounded to nearest, less is learned."""
    reached = {}
    monkeypatch.setitem(PRECISIONS, "nearest", Precision(torch.bfloat16, torch.bfloat16))
    for name in PRECISIONS:
        problem = Problem(seed=7, n_classes=20)
        W, b = problem.rows(name), problem.b.float()
        for _ in range(200):
            reached[name] = float(fused_softmax.step(problem.X, problem.y, W, b, Update(0.02), block=6))
    first = float(Problem(seed=7, n_classes=20).reference()[0])
    gain = {name: value - first for name, value in reached.items()}
    assert gain.pop("nearest") < 0.8 * gain["float64"]
    assert gain["float64"] > 0.5
    # rounding that is random has other numbers on a card
    assert gain == pytest.approx(dict.fromkeys(gain, gain["float64"]), rel=0.01 if DEVICE == "cpu" else 0.03)


def test_a_block_has_as_many_classes_as_its_bytes_hold():
    assert block_size(n_samples=100, n_classes=10**6, n_bytes=400 * 1000) == 960, "a multiple of 64"
    assert block_size(n_samples=100, n_classes=10**6, n_bytes=400 * 10) == 10
    assert block_size(n_samples=100, n_classes=7) == 7
    assert block_size(n_samples=10**9, n_classes=7) == 1
    assert block_size(n_samples=0, n_classes=7) == 7


@pytest.mark.parametrize(("name", "per_score"), [("float32", 4), ("bfloat16", 10)])
def test_memory_is_that_of_a_block(name, per_score):
    """The page of the module says how many bytes; a second block's scores would be seen."""
    problem = Problem(n_samples=512, n_classes=20_000)
    W, X, size = problem.rows(name), problem.X.float(), 256
    b, update = problem.b.float(), Update(0.1)
    run = partial(fused_softmax.step, X, problem.y, W, b, update, block=size)
    if DEVICE != "cpu":
        run()  # CUDA's libraries take memory when they are called first, and keep it
    peak = peak_bytes(run, torch.device(DEVICE))
    of_samples = 512 * (64 + 8 * N_FEATURES)
    assert peak < per_score * 512 * size + 20 * size * N_FEATURES + of_samples
    assert peak < 4 * 512 * 20_000 / 20


def test_results_are_the_same_bits_whenever():
    runs = []
    for _ in range(2):
        problem = Problem(seed=9)
        W, b = problem.rows("bfloat16-stochastic"), problem.b.float()
        for _ in range(3):
            fused_softmax.step(problem.X, problem.y, W, b, Update(0.1), block=11)
        runs.append(np.concatenate([W.values.float().cpu().numpy().ravel(), b.cpu().numpy()]))
    assert np.array_equal(*runs)
