"""Minibatches that share their draws against slow ones that are given the same draws."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
import naive_loop
import naive_sampled
from covering import in_tiers
from kernels.drawing import drawn
from kernels.layouts import decayed, laid_out
from kernels.loops import run_shared
from problems import sparse_problem
from training.problems import method
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.objectives.augment_reduce import AugmentReduce
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.objectives.sampled_softmax import SampledSoftmax
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.advi import Advi
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import FittedFrequency, Frequency, FrequencyDraws
from xsoftmax.proposals.uniform import Uniform, UniformDraws
from xsoftmax.solvers import make_solver

KEY = np.uint64(stream(5, 3))
FIRST, STEP = 11, 3
L2 = 8.0
OBJECTIVES = {
    "sampled-softmax": SampledSoftmax(),
    "negative-sampling": NegativeSampling(0.05),
    "one-vs-each": OneVsEach(),
    "augment-reduce": AugmentReduce(),
    "double-sum": DoubleSum(),
}
OPTIMIZERS = {
    "sgd": Sgd(),
    "adagrad": Adagrad(initial_accumulator=1e-3),
    "u-max": UMax(),
    "advi": Advi(gradient_scale=5.0),
}


def problem(n=30, n_features=9, n_classes=7, filled=0.6):
    return sparse_problem(np.random.default_rng(0), n, n_features, n_classes, filled=filled)


def batches_of(kernel, data, order, size, n_sampled, excludes):
    """What the loop draws: per batch its samples, each with the same classes and the log_q of all classes."""
    n_classes = len(data.W)
    log_q = np.full(n_classes, -np.log(n_classes))
    if isinstance(kernel, FrequencyDraws):
        log_q = kernel.log_probabilities.astype(float)
    batches = []
    for first in range(0, order.size, size):
        classes = drawn(kernel, order[first], -1, KEY, FIRST + first, 1, n_sampled)[0][0].tolist()
        batches.append([(i, classes, log_q) for i in order[first : first + size]])
    return batches


def advi_rule(scale, rate):
    """Every entry of the weights, step after step."""
    s, number = 0.0, STEP

    def move(W, gradient):
        nonlocal s, number
        s = 0.9 * s + 0.1 * (scale * gradient) ** 2
        number += 1
        return W - rate / np.sqrt(number) * scale * gradient / (1 + np.sqrt(s))

    return move


def run(objective, optimizer, kernel, data, order, rate, n_sampled, size, dense, decay=0.0):
    """Weights, and what the objective keeps, after the compiled loop."""
    parameters = OBJECTIVES[objective]
    auxiliary = naive_loop.states_of(parameters, len(data.X), len(data.W))
    layout = laid_out(optimizer, data.W, dense)
    if decay:
        layout = decayed(layout, decay)
    features = features_of(data.X if dense else csr_array(data.X), True)
    arguments = (
        features,
        data.y,
        auxiliary,
        layout,
        order,
        Clock(KEY, FIRST, STEP),
        np.float32(rate),
        n_sampled,
        size,
    )
    assert run_shared(parameters, kernel, optimizer, *arguments) == order.size
    return layout.weights(), auxiliary


def naive_run(objective, optimizer, batches, data, rate, l2=0.0):
    """The same, by the slow loop."""
    rule = None
    if isinstance(optimizer, Adagrad):
        rule = np.full(data.W.shape, optimizer.initial_accumulator)
    if isinstance(optimizer, Advi):
        rule = advi_rule(optimizer.gradient_scale, rate)
    threshold = optimizer.threshold if isinstance(optimizer, UMax) else None
    parameters, inputs = OBJECTIVES[objective], naive.with_constant(data.X)
    W, _, auxiliary = naive_loop.steps(parameters, inputs, data.y, data.W, batches, rate, rule, threshold, l2)
    return W, auxiliary


CASES = [
    (objective, optimizer, proposal, storage)
    for objective in OBJECTIVES
    for optimizer in (*OPTIMIZERS, "sgd and l2", "u-max and l2")
    for proposal in ("uniform", "frequency")
    for storage in ("dense", "csr")
    if ("u-max" not in optimizer or objective == "double-sum")
    and ("l2" not in optimizer or objective != "negative-sampling")
]
FEW = [("augment-reduce", "adagrad", "frequency", "dense")]
both_storages = pytest.mark.parametrize(
    "dense", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["dense", "csr"]
)
PROBLEMS = {
    "a remainder, repeats and hits": (problem(), 8, 4),
    "more draws than classes": (problem(), 8, 20),
    "one draw": (problem(), 8, 1),
    "a batch larger than the data": (problem(), 50, 3),
    "one class": (problem()._replace(y=np.full(30, 2, np.int32)), 8, 3),
    "few entries in many columns, several tiles": (problem(20, 600, 140, 0.005), 6, 190),
    "no entries": (problem(12, 5, 7, 0.0), 5, 4),
}


@pytest.mark.parametrize(("objective", "optimizer", "proposal", "storage"), in_tiers(CASES, FEW))
def test_batches_are_the_naive_loop(objective, optimizer, proposal, storage):
    how, rate, dense = OPTIMIZERS[optimizer.removesuffix(" and l2")], 0.1, storage == "dense"
    l2 = L2 if "l2" in optimizer else 0.0
    seen = set()
    for name, (data, size, n_sampled) in PROBLEMS.items():
        order = np.random.default_rng(1).permutation(len(data.X))
        kernel = kernel_of(proposal, name, data)
        batches = batches_of(kernel, data, order, size, n_sampled, objective != "negative-sampling")
        expected, expected_auxiliary = naive_run(objective, how, batches, data, rate, l2)
        found, auxiliary = run(objective, how, kernel, data, order, rate, n_sampled, size, dense, l2 / len(data.X))
        assert np.allclose(found, expected, rtol=2e-4, atol=5e-5), name
        assert np.allclose(auxiliary, expected_auxiliary, rtol=1e-4, atol=1e-5), name
        assert np.abs(found - data.W).max() > 0.02, name
        seen |= situations(data, batches)
    assert seen == {"hit", "drawn for another", "repeat", "true class twice"}


def kernel_of(proposal, name, data):
    """Low classes are drawn often, and where there is but one class, another is drawn too."""
    n_classes = len(data.W)
    if proposal == "uniform":
        return UniformDraws(n_classes)
    if name == "a remainder, repeats and hits":
        return Frequency().fit(TrainingSet(data.X, data.y, n_classes)).kernel(data.X)
    return FittedFrequency(np.full(n_classes, -np.log(n_classes), np.float32)).kernel(data.X)


def situations(data, batches):
    """What happens in some batch."""
    seen = set()
    for batch in batches:
        classes = batch[0][1]
        labels = [data.y[i] for i, *_ in batch]
        hits = {k for k in labels if k in classes}
        seen |= {"repeat"} if len(set(classes)) < len(classes) else set()
        seen |= {"hit"} if hits else set()
        seen |= {"drawn for another"} if hits and len(set(labels)) > 1 else set()
        seen |= (
            {"true class twice"} if len({k for k in labels if k not in classes and labels.count(k) > 1}) else set()
        )
    return seen


@both_storages
def test_same_seed_same_bits(dense):
    data, order = problem(), np.random.default_rng(1).permutation(30)
    kernel = Frequency().fit(TrainingSet(data.X, data.y, 7)).kernel(data.X)
    arguments = ("augment-reduce", OPTIMIZERS["adagrad"], kernel, data, order, 0.1, 4, 8, dense)
    one, other = run(*arguments), run(*arguments)
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_a_chunk_of_whole_batches_does_not_matter():
    data = problem()
    settings = {"batch": {"size": 4, "shared": True}}
    chosen = method("augment-reduce", {"name": "frequency", "n_sampled": 3}, "adagrad", **settings)
    rows = TrainingSet(data.X, data.y, 7, 3)
    solvers = [make_solver(chosen, chosen.objective, chosen.proposal.fit(rows), rows) for _ in range(2)]
    order = np.random.default_rng(1).permutation(30)
    solvers[0].advance(order, 2, 0, 0.1)
    solvers[1].advance(order[:12], 2, 0, 0.1)
    solvers[1].advance(order[12:], 2, 12, 0.1)
    assert np.array_equal(solvers[0].weights(), solvers[1].weights())
    assert np.array_equal(solvers[0].auxiliary, solvers[1].auxiliary)
    assert solvers[0].weights().any()


@both_storages
def test_no_samples_no_step(dense):
    """A fit takes this to compile."""
    data = problem()
    kernel = Frequency().fit(TrainingSet(data.X, data.y, 7)).kernel(data.X)
    arguments = (OPTIMIZERS["adagrad"], kernel, data, np.empty(0, np.int64), 0.1, 4, 8, dense)
    assert np.array_equal(run("augment-reduce", *arguments)[0], data.W)


@both_storages
@pytest.mark.parametrize("where", ["true", "drawn"])
def test_it_stops_before_a_batch_whose_scores_are_not_finite(where, dense):
    """Nothing of that batch has moved, weights or states."""
    data, size = problem(), 4
    W = data.W.copy()
    data.X[:, 2] = 0
    data.X[17, 2] = 1e3
    kernel = Frequency().fit(TrainingSet(data.X, data.y, 7)).kernel(data.X)
    classes = drawn(kernel, 16, -1, KEY, FIRST + 16, 1, 2)[0][0]
    data.y[16:20] = next(k for k in range(7) if k not in classes)
    W[data.y[17] if where == "true" else classes[1], 2] = 3e38
    features = features_of(data.X if dense else csr_array(data.X), True)
    results = []
    for last in (30, 16):
        layout = laid_out(OPTIMIZERS["adagrad"], W, dense)
        auxiliary = AugmentReduce().initial_auxiliary(30, 7)
        arguments = (data.y, auxiliary, layout, np.arange(last), Clock(KEY, FIRST, 0), np.float32(0.1), 2, size)
        used = run_shared(AugmentReduce(), kernel, OPTIMIZERS["adagrad"], features, *arguments)
        assert used == 16
        results.append((layout.W, auxiliary))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


# What claims to be unbiased is; what does not is what its paper's step is in the mean over all draws.

STEPS = 20_000
EXACT = {
    "negative-sampling": lambda s, y, state, log_q: naive.negative_sampling(s, y, log_q, 0.05)[1],
    "one-vs-each": lambda s, y, state, log_q: naive.one_vs_each(s, y)[1],
    "augment-reduce": lambda s, y, state, log_q: naive.double_sum(s, y, state[0])[1],
    "double-sum": lambda s, y, state, log_q: naive.double_sum(s, y, state[0])[1],
    "sampled-softmax": lambda s, y, state, log_q: sum(
        np.exp(log_q[j] + log_q[k]) * naive_sampled.sampled_softmax_draws(s, y, [j, k], log_q)[1]
        for j in range(len(s))
        for k in range(len(s))
    ),
}


MEANS = [
    ("sampled-softmax", Uniform()),
    *(
        pytest.param(objective, proposal, marks=pytest.mark.slow)
        for objective, proposal in [
            ("negative-sampling", Uniform()),
            ("one-vs-each", Frequency()),
            ("augment-reduce", Uniform()),
            ("double-sum", Frequency()),
        ]
    ),
]


@pytest.mark.parametrize(("objective", "proposal"), MEANS)
def test_the_mean_step_is_the_mean_of_the_samples_gradients(objective, proposal):
    """Two draws, within 5 standard errors, of all weights; eta as its local rate falls to 0."""
    data, batch = problem(), np.array([0, 4, 9, 21, 25])
    parameters = AugmentReduce(1e-6) if objective == "augment-reduce" else OBJECTIVES[objective]
    kernel = proposal.fit(TrainingSet(data.X, data.y, 7)).kernel(data.X)
    log_q = batches_of(kernel, data, batch, 5, 2, True)[0][0][2]
    start = np.array([1.9, 3.0])[: parameters.n_auxiliary]
    inputs, expected = naive.with_constant(data.X), np.zeros(data.W.shape)
    for i in batch:
        slopes = EXACT[objective](naive.scores(data.X, data.W)[i], data.y[i], start, log_q)
        expected += np.outer(slopes, inputs[i]) / batch.size
    features, moves = features_of(data.X, True), []
    for position in range(STEPS):
        layout, auxiliary = laid_out(Sgd(), data.W), np.tile(start, (30, 1))
        arguments = (features, data.y, auxiliary, layout, batch, Clock(KEY, position, 0), np.float32(1), 2, 5)
        run_shared(parameters, kernel, Sgd(), *arguments)
        moves.append((data.W - layout.W).astype(float))
    error = np.std(moves, axis=0) / np.sqrt(STEPS)
    assert (np.abs(np.mean(moves, axis=0) - expected) <= 5 * error + 1e-5).all()
    assert error.max() < 0.03
    assert np.abs(expected).max() > 0.1
