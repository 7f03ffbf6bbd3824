"""The order of candidates, for budgets and for qualities."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from xsoftmax.advice.costs import setup_work
from xsoftmax.advice.learned import LEVELS, Learned, Measured
from xsoftmax.advice.model import CostModel, Costs, from_json
from xsoftmax.advice.ranking import PILOT_SHARE, Budget, explain, rank
from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.internal.errors import InputError

STATISTICS = DatasetStatistics(1_000, 100, 50, 50.0, False)
SINGLE = {
    "objective": {"name": "sampled-softmax"},
    "proposal": {"name": "uniform", "n_sampled": 5},
    "optimizer": {"name": "adagrad", "learning_rate": 1.0},
}


MEASURED = {"fast": Measured(0.12, 8.0, 8.0), "good": Measured(0.01, 4.0, 40.0)}


def costs(seconds):
    """So many seconds for a sample, whatever its sizes."""
    return Costs([seconds, 0, 0, 0, 0, 0], [seconds, 0, 0, 0, 0, 0], 0.5)


@pytest.fixture
def model():
    """``fast`` has cheap epochs, and never gets below 0.12; ``good`` costs ten times as much and gets everywhere."""
    n = len(LEVELS)
    fast = [2.0**k if LEVELS[k] >= 0.12 else np.inf for k in range(n)]
    good = [2.0**k for k in range(n)]
    experience = [Learned("data", STATISTICS, {"fast": fast, "good": good}, {"fast": 0.3, "good": 1.0}, MEASURED)]
    return CostModel(
        {"processor": "a machine"},
        {"fast": SINGLE, "good": SINGLE},
        {"fast": costs(1e-3), "good": costs(1e-2)},
        experience,
    )


def test_an_epoch_costs_its_samples(model):
    by_name = {each.method: each for each in rank(model, STATISTICS, Budget(epochs=1))}
    assert by_name["fast"].seconds_per_epoch == pytest.approx(1.0)
    assert by_name["good"].seconds_per_epoch == pytest.approx(10.0)
    assert by_name["fast"].rate == pytest.approx(0.3)


def test_threads_divide(model):
    alone, both = (rank(model, STATISTICS, Budget(epochs=1), threads)[0].seconds_per_epoch for threads in (1, 2))
    assert alone / both == pytest.approx(1.5)


def test_a_quality_is_ranked_by_the_time_to_it(model):
    quick = rank(model, STATISTICS, Budget(gap=0.12))
    assert [each.method for each in quick] == ["fast", "good"]
    assert quick[0].seconds == pytest.approx(2.0 ** LEVELS.index(0.12))
    assert quick[1].seconds == pytest.approx(10 * 2.0 ** LEVELS.index(0.12))
    exact = rank(model, STATISTICS, Budget(gap=0.02))
    assert [each.method for each in exact] == ["good", "fast"]
    assert exact[1].seconds == np.inf


def test_a_budget_is_ranked_by_the_quality_at_its_end(model):
    short, long = (rank(model, STATISTICS, Budget(seconds=seconds)) for seconds in (20, 1000))
    assert [each.method for each in short] == ["fast", "good"]
    assert [each.method for each in long] == ["good", "fast"]
    assert long[0].gap == pytest.approx(
        np.exp(np.interp(np.log(100 * (1 - PILOT_SHARE)), np.log(2.0 ** np.arange(12)), np.log(LEVELS)))
    )
    assert long[1].gap == pytest.approx(0.12)
    assert long[1].seconds == pytest.approx(2.0 ** LEVELS.index(0.12))


def test_setting_up_is_part_of_the_time(model):
    """Here it takes as long as a hundred epochs of ``fast``."""
    setup = replace(model.costs["fast"], setup=100 / setup_work(model.method("fast"), STATISTICS))
    slow = replace(model, costs=model.costs | {"fast": setup})
    ranked = rank(slow, STATISTICS, Budget(gap=0.12))
    assert [each.method for each in ranked] == ["fast", "good"]
    assert ranked[0].setup_seconds == pytest.approx(100)
    assert ranked[0].seconds == pytest.approx(100 + 2.0 ** LEVELS.index(0.12))
    short = rank(slow, STATISTICS, Budget(seconds=50))
    assert [each.method for each in short] == ["good", "fast"]
    assert short[1].gap == 1.0  # it would not take a step
    left = {each.method: each.gap for each in rank(slow, STATISTICS, Budget(seconds=104 / (1 - PILOT_SHARE)))}
    assert left["fast"] == pytest.approx(LEVELS[2])  # four seconds, four epochs


def test_epochs_do_not_ask_what_they_cost(model):
    assert rank(model, STATISTICS, Budget(epochs=1000))[0].method == "good"


@pytest.mark.parametrize("unit", ["seconds", "epochs"])
def test_more_is_never_worse(model, unit):
    for name in ("fast", "good"):
        gaps = [
            rank(model, STATISTICS, Budget(**{unit: b}), among=[name])[0].gap for b in np.geomspace(1e-3, 1e6, 60)
        ]
        assert all(later <= earlier for earlier, later in pairwise(gaps))
        assert gaps[0] > 0.99


def test_among(model):
    assert [each.method for each in rank(model, STATISTICS, Budget(seconds=1000), among=["fast"])] == ["fast"]
    with pytest.raises(InputError, match="nothing was measured of 'better'; known: fast, good"):
        rank(model, STATISTICS, Budget(seconds=1), among=["fast", "better"])


def test_a_sentence(model):
    """It says what was measured elsewhere, and promises nothing of what the fit comes to."""

    def sentence(statistics=STATISTICS, timed=None, **budget):
        return explain(model, statistics, Budget(**budget), rank(model, statistics, Budget(**budget)), timed)

    begin = (
        "good: a guess for 1,000 rows, 100 classes, 50 dense features, from short fits of 1 other data sets;"
        " the most like it is data (of the same sizes); there it came within 1 % of the best validation"
        " log-likelihood of 2 candidates, where a uniform guess is 100 %, after 4 epochs, 40 s;"
        " an epoch takes about 10 s, "
    )
    end = "; how good it becomes on these data is not known before it is trained"
    assert sentence(seconds=1000) == f"{begin}by a formula for a machine{end}"
    assert sentence(epochs=64, timed={"good": 0.01}) == f"{begin}timed here{end}"
    others = "; others came within 2 % after as many epochs as take 5,120 s here"
    assert sentence(gap=0.02) == f"{begin}by a formula for a machine{others}{end}"
    far = STATISTICS._replace(n_samples=2_000_000, n_entries=25.0, sparse=True)
    apart = "yours has 2,000 times the rows, 1 times the classes, 0.5 times the entries a row"
    assert f"({apart}, sparse rows, not dense ones, which is far from all that was measured)" in sentence(
        far, epochs=64
    )
    assert "within 0.5 %" not in sentence(seconds=1e9)


def test_the_best_of_a_data_set_is_said_to_be(model):
    known = replace(model.experience[0], measured=MEASURED | {"good": Measured(0.0, 4.0, 40.0)})
    told = explain(
        replace(model, experience=[known]), STATISTICS, Budget(epochs=64), rank(model, STATISTICS, Budget(epochs=64))
    )
    assert "there it was the best of 2 candidates after 4 epochs, 40 s" in told


def test_json_and_back(model):
    again = from_json(model.as_json())
    assert rank(again, STATISTICS, Budget(gap=0.02)) == rank(model, STATISTICS, Budget(gap=0.02))
    assert again.as_json() == model.as_json()
