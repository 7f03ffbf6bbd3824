"""Every objective's array form compared with its compiled code; a new file is tested when it exists."""

import numpy as np
import pytest

from objectives.array_forms import compiled_loss, compiled_step, members, noise_of, problem, slopes
from xsoftmax.internal.errors import InputError
from xsoftmax.objectives import _arrays

OBJECTIVES = members()
RATE = 0.05
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
# What float64 and differences leave. Two casts in compiled code leave more: u of the double sum and the regularizer's
# factor of negative sampling are float32 (2^-24), so that float32 loops stay float32.
TOLERANCE = 1e-9
CASTS = {"DoubleSum": 1e-6, "NegativeSampling": 1e-6}


def close(found, expected, objective, tolerance=TOLERANCE):
    tolerance = max(tolerance, CASTS.get(type(objective).__name__, 0))
    return np.allclose(found, expected, rtol=tolerance, atol=tolerance)


def prepared(objective, draws, auxiliary, **threshold):
    noise = noise_of(objective, len(auxiliary)) if objective.n_numbers else None
    return objective.prepare(np, RATE, auxiliary, draws, noise, **threshold)


@every_objective
def test_its_value_is_the_compiled_loss(objective, rng):
    draws, auxiliary = problem(objective, rng)
    value = objective.value(np, objective.settle(np, auxiliary, draws), draws)
    assert value.shape == (len(auxiliary),)
    assert np.allclose(value, compiled_loss(objective, auxiliary, draws), rtol=1e-9, atol=0)


@every_objective
def test_its_derivatives_are_the_compiled_slopes_and_its_states_the_compiled_ones(objective, rng):
    draws, auxiliary = problem(objective, rng)
    at, after = prepared(objective, draws, auxiliary)
    expected, expected_after = compiled_step(objective, RATE, auxiliary, draws)
    found = slopes(objective, at, draws)
    assert close(found.of_true, expected.of_true, objective)
    assert close(found.of_others, expected.of_others, objective)
    assert after.shape == auxiliary.shape
    assert close(after, expected_after, objective)
    assert not objective.n_auxiliary or not np.allclose(after, auxiliary)


@pytest.mark.parametrize("objective", [o for o in OBJECTIVES if "raise_bound" in o.offers], ids=repr)
def test_with_a_threshold_it_lifts_the_bound_first(objective, rng):
    draws, auxiliary = problem(objective, rng)
    auxiliary -= 2.0  # low enough to be lifted, but for some
    lifted = prepared(objective, draws, auxiliary, threshold=0.5)
    assert 0 < np.count_nonzero(lifted[0] != auxiliary) < auxiliary.size
    expected, expected_after = compiled_step(objective, RATE, auxiliary, draws, 0.5)
    found = slopes(objective, lifted[0], draws)
    assert close(found.of_true, expected.of_true, objective)
    assert close(found.of_others, expected.of_others, objective)
    assert close(lifted[1], expected_after, objective)


@every_objective
def test_a_class_of_weight_0_counts_nothing(objective, rng):
    draws, auxiliary = problem(objective, rng)
    n = len(auxiliary)
    more = draws._replace(
        classes=np.column_stack([draws.classes, np.zeros(n, int)]),
        scores=np.column_stack([draws.scores, draws.score_true]),
        weights=np.column_stack([draws.weights, np.zeros(n)]),
        log_q=np.column_stack([draws.log_q, draws.log_q_true]),
    )
    at, after = prepared(objective, draws, auxiliary)
    at_more, after_more = prepared(objective, more, auxiliary)
    assert np.allclose(objective.value(np, at_more, more), objective.value(np, at, draws), rtol=1e-12)
    assert np.allclose(after_more, after, rtol=1e-12, atol=1e-12)
    found, expected = slopes(objective, at_more, more), slopes(objective, at, draws)
    assert np.allclose(found.of_true, expected.of_true, atol=1e-9)
    assert np.allclose(found.of_others, np.column_stack([expected.of_others, np.zeros(n)]), atol=1e-9)


@every_objective
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_torch_differentiates_it(objective, threshold, rng):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing differentiates the array forms here")
    lifting = {"threshold": threshold} if threshold is not None and "raise_bound" in objective.offers else {}
    draws, auxiliary = problem(objective, rng)
    at, after = prepared(objective, draws, auxiliary, **lifting)
    given, auxiliary_given = type(draws)(*map(torch.asarray, draws)), torch.asarray(auxiliary)
    noise = torch.asarray(noise_of(objective, len(auxiliary))) if objective.n_numbers else None
    at_given, after_given = objective.prepare(torch, RATE, auxiliary_given, given, noise, **lifting)
    scores = [given.score_true.clone().requires_grad_(), given.scores.clone().requires_grad_()]
    value = objective.value(torch, at_given, given._replace(score_true=scores[0], scores=scores[1]))
    assert np.allclose(value.detach().numpy(), objective.value(np, at, draws), rtol=1e-10)
    assert np.allclose(after_given.numpy(), after, rtol=1e-10, atol=1e-12)
    by_torch, expected = torch.autograd.grad(value.sum(), scores), slopes(objective, at, draws)
    assert np.allclose(by_torch[0].numpy(), expected.of_true, rtol=1e-9, atol=1e-9)
    assert np.allclose(by_torch[1].numpy(), expected.of_others, rtol=1e-9, atol=1e-9)
    settled = objective.value(torch, objective.settle(torch, auxiliary_given, given), given)
    assert np.allclose(settled.numpy(), compiled_loss(objective, auxiliary, draws), rtol=1e-9)


def test_an_unknown_array_library_is_refused():
    with pytest.raises(InputError, match=r"array library 'math' is not known; use numpy, torch, jax.numpy"):
        _arrays.special(__import__("math"))
