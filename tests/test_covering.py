from itertools import combinations, product

import pytest

from covering import covering, in_tiers
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.optimizers.sgd import Sgd

CASES = [case for case in product("abcd", "xyz", (True, False)) if case[:2] != ("d", "z")]


def pairs(cases):
    return {(i, case[i], j, case[j]) for case in cases for i, j in combinations(range(3), 2)}


def test_every_value_and_every_pair_is_there():
    values, both = covering(CASES, 1), covering(CASES, 2)
    assert [{case[axis] for case in values} for axis in range(3)] == [set("abcd"), set("xyz"), {True, False}]
    assert len(values) == 4
    assert pairs(both) == pairs(CASES)
    assert len(both) < 15 < len(CASES)


def test_what_is_chosen_already_is_not_chosen_again():
    first = covering(CASES, 1)
    more = covering(CASES, 2, first)
    assert pairs([*first, *more]) == pairs(CASES)
    assert not pairs(first) >= pairs(more)
    assert covering(CASES, 2, CASES) == []


def test_parts_of_a_method_with_equal_parameters_are_told_apart():
    assert Sgd(0.1) == Implicit(0.1)
    assert covering([(Sgd(0.1),), (Implicit(0.1),)], 1) == [(Sgd(0.1),), (Implicit(0.1),)]


def test_the_rest_is_slow():
    few, found = covering(CASES, 1), in_tiers(CASES)
    assert found[: len(few)] == few
    slow = found[len(few) :]
    assert all(case.marks == (pytest.mark.slow,) for case in slow)
    assert pairs([*few, *(case.values for case in slow)]) == pairs(CASES)
