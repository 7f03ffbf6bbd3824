"""The order of candidates, for budgets and for qualities."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from xsoftmax.advice.costs import setup_work
from xsoftmax.advice.facts import Facts
from xsoftmax.advice.learned import LEVELS, Learned
from xsoftmax.advice.model import CostModel, Costs, from_json
from xsoftmax.advice.ranking import PILOT_SHARE, Budget, explain, rank
from xsoftmax.errors import InputError

FACTS = Facts(1_000, 100, 50, 50.0, False)
SINGLE = {
    "objective": {"name": "sampled-softmax"},
    "proposal": {"name": "uniform"},
    "optimizer": {"name": "adagrad", "learning_rate": 1.0},
}


def costs(seconds):
    """So many seconds for a sample, whatever its sizes."""
    return Costs([seconds, 0, 0, 0, 0, 0], [seconds, 0, 0, 0, 0, 0], 0.5)


@pytest.fixture
def model():
    """``fast`` has cheap epochs, and never gets below 0.12; ``good`` costs ten times as much and gets everywhere."""
    n = len(LEVELS)
    fast = [2.0**k if LEVELS[k] >= 0.12 else np.inf for k in range(n)]
    good = [2.0**k for k in range(n)]
    experience = [Learned("data", FACTS, {"fast": fast, "good": good}, {"fast": 0.3, "good": 1.0})]
    return CostModel(
        {"processor": "a machine"},
        {"fast": SINGLE, "good": SINGLE},
        {"fast": costs(1e-3), "good": costs(1e-2)},
        experience,
    )


def test_an_epoch_costs_its_samples(model):
    by_name = {each.method: each for each in rank(model, FACTS, Budget(epochs=1))}
    assert by_name["fast"].seconds_per_epoch == pytest.approx(1.0)
    assert by_name["good"].seconds_per_epoch == pytest.approx(10.0)
    assert by_name["fast"].rate == pytest.approx(0.3)


def test_threads_divide(model):
    alone, both = (rank(model, FACTS, Budget(epochs=1), threads)[0].seconds_per_epoch for threads in (1, 2))
    assert alone / both == pytest.approx(1.5)


def test_a_quality_is_ranked_by_the_time_to_it(model):
    quick = rank(model, FACTS, Budget(gap=0.12))
    assert [each.method for each in quick] == ["fast", "good"]
    assert quick[0].seconds == pytest.approx(2.0 ** LEVELS.index(0.12))
    assert quick[1].seconds == pytest.approx(10 * 2.0 ** LEVELS.index(0.12))
    exact = rank(model, FACTS, Budget(gap=0.02))
    assert [each.method for each in exact] == ["good", "fast"]
    assert exact[1].seconds == np.inf


def test_a_budget_is_ranked_by_the_quality_at_its_end(model):
    short, long = (rank(model, FACTS, Budget(seconds=seconds)) for seconds in (20, 1000))
    assert [each.method for each in short] == ["fast", "good"]
    assert [each.method for each in long] == ["good", "fast"]
    assert long[0].gap == pytest.approx(
        np.exp(np.interp(np.log(100 * (1 - PILOT_SHARE)), np.log(2.0 ** np.arange(12)), np.log(LEVELS)))
    )
    assert long[1].gap == pytest.approx(0.12)
    assert long[1].seconds == pytest.approx(2.0 ** LEVELS.index(0.12))


def test_setting_up_is_part_of_the_time(model):
    """Here it takes as long as a hundred epochs of ``fast``."""
    setup = replace(model.costs["fast"], setup=100 / setup_work(FACTS))
    slow = replace(model, costs=model.costs | {"fast": setup})
    ranked = rank(slow, FACTS, Budget(gap=0.12))
    assert [each.method for each in ranked] == ["fast", "good"]
    assert ranked[0].setup_seconds == pytest.approx(100)
    assert ranked[0].seconds == pytest.approx(100 + 2.0 ** LEVELS.index(0.12))
    short = rank(slow, FACTS, Budget(seconds=50))
    assert [each.method for each in short] == ["good", "fast"]
    assert short[1].gap == 1.0  # it would not take a step
    left = {each.method: each.gap for each in rank(slow, FACTS, Budget(seconds=104 / (1 - PILOT_SHARE)))}
    assert left["fast"] == pytest.approx(LEVELS[2])  # four seconds, four epochs


def test_epochs_do_not_ask_what_they_cost(model):
    assert rank(model, FACTS, Budget(epochs=1000))[0].method == "good"


@pytest.mark.parametrize("unit", ["seconds", "epochs"])
def test_more_is_never_worse(model, unit):
    for name in ("fast", "good"):
        gaps = [rank(model, FACTS, Budget(**{unit: b}), among=[name])[0].gap for b in np.geomspace(1e-3, 1e6, 60)]
        assert all(later <= earlier for earlier, later in pairwise(gaps))
        assert gaps[0] > 0.99


def test_among(model):
    assert [each.method for each in rank(model, FACTS, Budget(seconds=1000), among=["fast"])] == ["fast"]
    with pytest.raises(InputError, match="nothing was measured of 'better'; known: fast, good"):
        rank(model, FACTS, Budget(seconds=1), among=["fast", "better"])


def test_a_sentence(model):
    def sentence(**budget):
        return explain(model, FACTS, Budget(**budget), rank(model, FACTS, Budget(**budget)))

    begin = "good: with 1,000 rows, 100 classes, 50 dense features, it should come within "
    end = "; data is the most like it of the data sets that this was learned from"
    best = "of the best log-likelihood (a guess is 100 %)"
    assert sentence(seconds=1000) == f"{begin}6.3 % {best} after 1000 s, at 10 s an epoch; fast 12 %{end}"
    assert sentence(gap=0.02) == f"{begin}2 % {best} in 5,120 s, at 10 s an epoch; fast never{end}"
    assert f"{best} after 64 epochs, at" in sentence(epochs=64)


def test_json_and_back(model):
    again = from_json(model.as_json())
    assert rank(again, FACTS, Budget(gap=0.02)) == rank(model, FACTS, Budget(gap=0.02))
    assert again.as_json() == model.as_json()
