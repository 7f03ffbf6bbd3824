"""Rules of verdicts: each is fed results that must give each of its verdicts."""

import math

import numpy as np
import pytest

from xsoftmax.lab.reproduction.estimates import Estimate, above, difference, paired, quotient
from xsoftmax.lab.reproduction.rules import (
    Verdict,
    agrees,
    judge_level,
    judge_numbers,
    judge_orders,
    not_tested,
    together,
)


@pytest.mark.parametrize(
    ("orders", "verdict", "otherwise"),
    [
        ([], Verdict.OPEN, "any result of such a run"),
        ([True, True], Verdict.REPRODUCED, "less if any of them were too close or reversed"),
        ([True, True, None], Verdict.IN_SHAPE, "reproduced if 1 more held, less if 1 fewer"),
        ([True, True, False], Verdict.IN_SHAPE, "reproduced if 1 more held, less if 1 fewer"),
        ([True, None], Verdict.CLOSE, "reproduced if 1 more held, not reproduced if 1 more were reversed"),
        ([None], Verdict.CLOSE, "reproduced if 1 more held, not reproduced if 1 more were reversed"),
        ([True, None, None, False], Verdict.CLOSE, "in shape if 2 more held, not reproduced if 1 more were reversed"),
        ([True, False], Verdict.NOT, "better if 1 fewer were reversed"),
        ([False, False, None], Verdict.NOT, "better if 1 fewer were reversed"),
        ([False], Verdict.NOT, "better if 1 fewer were reversed"),
    ],
)
def test_orders(orders, verdict, otherwise):
    found = judge_orders(orders)
    assert (found.verdict, found.otherwise) == (verdict, otherwise)
    assert judge_orders(dict(enumerate(orders))) == found


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ("comparisons", "1 comparison: 1"),
        ("data sets", "1 data set: 1"),
        ("comparisons on the same test rows", "1 comparison on the same test rows: 1"),
        ("comparison", "1 comparison: 1"),
    ],
)
def test_one_order_is_told_in_the_singular(of, told):
    assert judge_orders([True], of).n.startswith(told)
    assert judge_orders([True, True], of).n.startswith(f"2 {of}: 2")


def test_orders_that_hold_together_are_one():
    assert together([True, True]) is True
    assert together([True, None]) is None
    assert together([None, False, True]) is False
    assert together([]) is None


def test_what_would_have_changed_a_verdict_of_orders_does():
    assert judge_orders([True, True, True, False, None]).otherwise == "reproduced if 2 more held, less if 1 fewer"
    assert judge_orders([True, True, None, False, None]).verdict == Verdict.CLOSE
    assert judge_orders([True] * 5).verdict == Verdict.REPRODUCED
    found = judge_orders([True, None, None, False])
    assert found.n == "4 comparisons: 1 as claimed, 2 too close, 1 reversed"
    assert judge_orders([True, True, True, False]).verdict == Verdict.IN_SHAPE
    assert judge_orders([True, None, False, False]).verdict == Verdict.NOT


@pytest.mark.parametrize(
    ("hits", "of", "verdict"),
    [
        (0, 0, Verdict.OPEN),
        (3, 3, Verdict.REPRODUCED),
        (2, 3, Verdict.IN_SHAPE),
        (2, 4, Verdict.NOT),
        (6, 14, Verdict.NOT),
        (0, 1, Verdict.NOT),
    ],
)
def test_numbers(hits, of, verdict):
    assert judge_numbers([True] * hits + [False] * (of - hits)).verdict == verdict


@pytest.mark.parametrize(
    ("mean", "near", "verdict"),
    [
        (10.0, None, Verdict.REPRODUCED),
        (9.9, None, Verdict.NOT),
        (9.9, 5, Verdict.IN_SHAPE),
        (4.9, 5, Verdict.NOT),
        (math.nan, 5, Verdict.OPEN),
    ],
)
def test_levels_of_exact_values(mean, near, verdict):
    assert judge_level(Estimate.exact(mean), at_least=10, near=near).verdict == verdict
    assert judge_level(Estimate.exact(-mean), at_most=-10, near=near and -near).verdict == verdict


@pytest.mark.parametrize(
    ("mean", "near", "verdict"),
    [
        (11.0, 5, Verdict.REPRODUCED),
        (10.3, 5, Verdict.CLOSE),
        (9.7, None, Verdict.CLOSE),
        (8.0, 5, Verdict.IN_SHAPE),
        (5.3, 5, Verdict.CLOSE),
        (4.0, 5, Verdict.NOT),
    ],
)
def test_levels_of_means_over_seeds(mean, near, verdict):
    value = Estimate(mean, 0.1, 3)  # the interval is 0.43 on either side
    assert judge_level(value, at_least=10, near=near).verdict == verdict


def test_a_level_needs_a_known_error():
    one = Estimate.of([20.0])
    assert judge_level(one, at_least=10).verdict == Verdict.OPEN
    with pytest.raises(ValueError, match="either"):
        judge_level(one)


def test_what_was_not_tested_is_open():
    assert not_tested("no such data").verdict == Verdict.OPEN
    assert "no such data" in not_tested("no such data").n


@pytest.mark.parametrize(("mean", "error", "verdict"), [(1.02, 0, True), (1.1, 0, False), (1.1, 0.06, True)])
def test_a_number_agrees_within_the_tolerance_or_two_standard_errors(mean, error, verdict):
    assert agrees(1.0, Estimate(mean, error, 3)) is verdict


def test_a_number_agrees_as_it_is_rounded():
    assert agrees(0.09, Estimate.exact(0.086), decimals=2)
    assert not agrees(0.09, Estimate.exact(0.084), decimals=2)
    assert not agrees(0.09, Estimate.exact(0.086))


def test_quotients_are_seed_by_seed():
    assert quotient([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == Estimate(0.5, 0.0, 3)
    some = quotient([1.0, None, 0.0], [0.0, 1.0, 2.0])
    assert (some.mean, some.n, some.n_diverged) == (0.0, 1, 2)


def test_an_order_is_outside_the_interval():
    assert above(Estimate(1.0, 0.01, 3), Estimate(0.9, 0.01, 3)) is True
    assert above(Estimate(0.9, 0.01, 3), Estimate(1.0, 0.01, 3)) is False
    assert above(Estimate(1.0, 0.1, 3), Estimate(0.9, 0.1, 3)) is None
    assert above(Estimate(1.0, 0.02, 3), Estimate(0.9, 0.0, 3)) is True  # 4.3 standard errors with three seeds
    assert above(Estimate(1.0, 0.03, 3), Estimate(0.9, 0.0, 3)) is None
    assert difference(Estimate(1.0, 0.02, 3), Estimate.exact(0.9)).half_width == pytest.approx(0.0861, abs=1e-4)


def test_one_fit_gives_no_order():
    assert above(Estimate.of([1.0]), Estimate.exact(0.5)) is None
    assert above(Estimate.of([None]), Estimate(1.0, 0.1, 3)) is None
    assert above(Estimate.exact(1.0), Estimate.exact(0.5)) is True


def test_rows_are_compared_in_pairs(rng):
    rows = rng.normal(size=1000)
    better = [rows + 0.1 + 0.01 * rng.normal(size=1000) for _ in range(3)]
    worse = [rows + 0.01 * rng.normal(size=1000) for _ in range(3)]
    assert paired(better, worse).is_above is True
    assert paired(worse, better).is_above is False
    unpaired = [0.1 + rng.normal(size=1000) for _ in range(3)]
    assert paired(unpaired, worse).is_above is None  # the rows' noise hides the difference


def test_seeds_count_in_a_comparison_of_rows(rng):
    rows = rng.normal(size=1000)
    by_seed = [rows + 0.1 + shift for shift in (-0.2, 0.0, 0.2)]
    assert paired(by_seed, [rows] * 3).is_above is None
    assert paired(by_seed[:1], [rows], [False, True]).is_above is None
    assert paired([rows + 0.1], [rows], [True, True]).is_above is True


def test_equal_rows_are_too_close():
    rows = np.ones(10)
    assert paired([rows], [rows], [True, True]).is_above is None


def test_in_other_units_mean_and_error_are_multiplied():
    found, expected = Estimate.of([1.0, 2.0, 4.0, None]).times(10), Estimate.of([10.0, 20.0, 40.0, None])
    assert (found.n, found.n_diverged) == (expected.n, expected.n_diverged) == (3, 1)
    assert (found.mean, found.error) == pytest.approx((expected.mean, expected.error))
