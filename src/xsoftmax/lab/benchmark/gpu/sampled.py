"""Negative sampling: the steps of a fit, against the time to move the bytes of weights that they must touch."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.bits import starts
from xsoftmax.gpu.draws import Drawn, Sampler, UniformSampler
from xsoftmax.gpu.features import DenseRows
from xsoftmax.gpu.precision import precision_of
from xsoftmax.gpu.sampled_steps import Chosen, Clock, SampledSteps
from xsoftmax.gpu.shrinkage import Shrinkage
from xsoftmax.gpu.weights import Weights
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of, typical
from xsoftmax.lab.benchmark.gpu.sizes import Sizes
from xsoftmax.lab.benchmark.gpu.ways import as_in_training
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd

LEARNING_RATE = 0.3
OPTIMIZERS = {"Adagrad": ("adagrad", Adagrad(LEARNING_RATE, initial_accumulator=0.01)), "SGD": ("sgd", Sgd())}
# What a method's setting ``deterministic`` may be, in words.
MODES = {"deterministic": True, "not deterministic": False}
CLOCK = Clock(key=0, position=0, number=0)


class Case(NamedTuple):
    """Optimizer, by its name in ``OPTIMIZERS``, and mode, by its name in ``MODES``."""

    optimizer: str
    mode: str


class Settings(NamedTuple):
    """What steps want to know of a method: size of a batch and whether draws are shared; its optimizer."""

    batch: tuple[int, bool]
    optimizer: Any


CASES = [Case(*each) for each in product(OPTIMIZERS, MODES)]


def measured(sizes: Sizes, device: torch.device, ceilings: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Time steps of one batch each, its draws included, with each optimizer and in each mode."""
    n_classes, n_features, n_samples, n_sampled = sizes.sampled
    chosen = _chosen(torch.randn(n_samples, n_features + 1, device=device), n_classes)
    sampler = UniformSampler(n_classes)
    for case in CASES:
        weights = _weights(case, (n_classes, n_features + 1), "float32", device)
        steps = _steps(case, sampler, n_sampled, weights, chosen)
        run = lambda steps=steps: steps.run(chosen, CLOCK, LEARNING_RATE)  # noqa: E731 - what is timed
        with as_in_training(MODES[case.mode]):
            seconds = seconds_of(run, device)
            peak = peak_bytes(run, device)
        touched = 2 * _n_looked_at(sampler, chosen, n_sampled) * weights.n_bytes // n_classes  # read and written
        share = touched / typical(seconds) / ceilings["bandwidth"]
        aimed_at = case.optimizer == "Adagrad"
        yield {
            "part": f"negative sampling, K={n_classes:,}, D={n_features}, {n_sampled} drawn, {n_samples} samples",
            "name": f"float32, {case.optimizer}, {case.mode}",
            "deterministic": MODES[case.mode],
            "seconds": seconds,
            "unit": "step",
            "value": typical(seconds),
            "bytes_touched": touched,
            "share_of_bandwidth": share,
            "bytes_of_weights": weights.n_bytes,
            "peak_bytes_beyond": peak,
            "target": "50 %" if aimed_at else None,
            "reached": f"{share:.0%} of bandwidth",
            "met": share >= 0.5 if aimed_at else None,
        }


def errors_of_a_step(seed: int, device: torch.device) -> Iterator[tuple[str, float]]:
    """Compare a step in float64 with one by autograd, where classes repeat: for each case, by the largest weight.

    There are 4 draws, as a draw weighs 1 / 4 in float32, too.
    """
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(8, 5, generator=generator, dtype=torch.float64).to(device)
    y, classes = (torch.randint(6, shape, generator=generator).to(device) for shape in ((8,), (8, 4)))
    for case in CASES:
        weights = _weights(case, (6, 5), "float64", device)
        expected = _moved(case, weights.W.clone(), X, torch.cat([y[:, None], classes], 1))
        chosen = _chosen(X, 6)._replace(y=y)
        with as_in_training(MODES[case.mode]):
            _steps(case, _Given(classes), classes.shape[1], weights, chosen).run(chosen, CLOCK, LEARNING_RATE)
        error = (weights.W - expected).abs().max() / expected.abs().max()
        yield f"{case.optimizer}, {case.mode}", float(error)


def _moved(case: Case, W: Tensor, X: Tensor, classes: Tensor) -> Tensor:
    """Make a step by autograd; the first class of a row is the sample's own (Mikolov et al. 2013, equation 4)."""
    W.requires_grad_()
    scores = (W[classes] * X[:, None, :]).sum(2)
    of_true, of_others = torch.nn.functional.softplus(-scores[:, 0]), torch.nn.functional.softplus(scores[:, 1:])
    (g,) = torch.autograd.grad((of_true + of_others.mean(1)).mean(), W)
    optimizer = OPTIMIZERS[case.optimizer][1]
    size = (optimizer.initial_accumulator + g**2).sqrt() if isinstance(optimizer, Adagrad) else 1.0
    return W.detach() - LEARNING_RATE * g / size


class _Given(NamedTuple):
    """Draws that are given, (n, m), with log-probabilities and weights of 0."""

    classes: Tensor

    def draw(self, rows: Tensor, excluded: Tensor, states: Tensor, n: int) -> Drawn:
        """See ``xsoftmax.gpu.draws.Sampler``."""
        nothing = torch.zeros(self.classes.shape, device=rows.device)
        return Drawn(self.classes, nothing, nothing)

    def log_probability(self, rows: Tensor, classes: Tensor) -> Tensor:
        """See ``xsoftmax.gpu.draws.Sampler``."""
        return torch.zeros(len(rows), device=rows.device)


def _n_looked_at(sampler: Sampler, chosen: Chosen, n_sampled: int) -> int:
    """Count the classes that a step looks at, each once."""
    drawn = sampler.draw(chosen.samples, torch.full_like(chosen.samples, -1), chosen.states, n_sampled)
    return len(torch.cat([chosen.y, drawn.classes.reshape(-1)]).unique())


def _chosen(X: Tensor, n_classes: int) -> Chosen:
    """Give samples random classes, and states of their steps."""
    numbers = torch.arange(len(X), device=X.device)
    y = torch.randint(n_classes, (len(X),), device=X.device)
    return Chosen(DenseRows(X), numbers, y, starts(0, numbers))


def _weights(case: Case, shape: tuple[int, int], dtype: str, device: torch.device) -> Weights:
    """Make random weights, and what the optimizer keeps beside them."""
    name, optimizer = OPTIMIZERS[case.optimizer]
    found = Weights(optimizer, name, shape, False, device, precision_of(dtype), MODES[case.mode])
    found.W.normal_(std=0.1)
    return found


def _steps(case: Case, sampler: Sampler, n_sampled: int, weights: Weights, chosen: Chosen) -> SampledSteps:
    """Make the steps of a fit, all samples in a batch."""
    settings = Settings((len(chosen.y), False), OPTIMIZERS[case.optimizer][1])
    device = weights.W.device
    auxiliary = torch.zeros((len(chosen.y), 0), dtype=torch.float64, device=device)
    shrinkage = Shrinkage(0.0, 0.0, torch.zeros(0, device=device))
    return SampledSteps(settings, NegativeSampling(), sampler, n_sampled, weights, auxiliary, shrinkage)
