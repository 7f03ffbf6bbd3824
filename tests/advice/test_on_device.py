"""Exact softmax on a card as a candidate of ``auto``: by given rates, of which none is measured here."""

import json

import numpy as np
import pytest

from xsoftmax.advice.model import shipped
from xsoftmax.advice.on_device import (
    ASSUMED,
    NOT_RECORDED,
    Rates,
    contenders_on,
    costs_of,
    counted,
    rates_of,
    with_device,
)
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.race import ranked
from xsoftmax.advice.ranking import Budget, explain, predicted_seconds, rank
from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.gpu import device
from xsoftmax.internal.errors import InputError
from xsoftmax.proposals import Size
from xsoftmax.solvers.torch_full import PRODUCTS_A_SECOND, TorchFullSolver

FAST = Rates(5e13, 3e12, 2e-4, "by rates measured on a card")
SLOW = Rates(1e9, 1e9, 1.0, "by rates measured on a toy")
LARGE = DatasetStatistics(500_000, 20_000, 512, 512.0, False)
SMALL = DatasetStatistics(2_000, 10, 20, 20.0, False)


def first(statistics, rates, seconds=300.0):
    return rank(counted(shipped(), "cuda", rates), statistics, Budget(seconds=seconds))[0].method


def test_a_fast_card_takes_many_classes_and_a_slow_one_nothing():
    assert first(LARGE, FAST).endswith("-on-cuda")
    assert not first(LARGE, SLOW).endswith("-on-cuda")
    assert first(LARGE, SLOW) == rank(shipped(), LARGE, Budget(seconds=300.0))[0].method


def test_few_classes_stay_with_compiled_code():
    """Steps of a card take a while, however small: of 10 classes compiled code is faster."""
    by_name = {each.method: each for each in rank(counted(shipped(), "cuda", FAST), SMALL, Budget(epochs=5))}
    assert by_name["softmax"].seconds_per_epoch < by_name["softmax-on-cuda"].seconds_per_epoch
    large = {each.method: each for each in rank(counted(shipped(), "cuda", FAST), LARGE, Budget(epochs=5))}
    assert large["softmax"].seconds_per_epoch > 10 * large["softmax-on-cuda"].seconds_per_epoch


def test_costs_are_the_solvers_estimate_of_seconds():
    """But for what a step takes at least, and moving the weights."""
    model = counted(shipped(), "cuda", Rates(PRODUCTS_A_SECOND, np.inf, 0.0, "assumed"))
    found = LARGE.n_samples * predicted_seconds(model, "softmax-on-cuda", LARGE, threads=2)
    size = Size(LARGE.n_samples, LARGE.n_classes, LARGE.n_features, LARGE.n_entries)
    assert found == pytest.approx(TorchFullSolver.seconds(model.method("softmax-on-cuda"), size))
    costs = costs_of(FAST, "cuda")
    step, moved = costs.dense[1], costs.dense[4]
    assert costs.sparse[1] == NOT_RECORDED > step == costs_of(FAST, "cpu").sparse[1], "sparse rows are not recorded"
    assert (step, moved) == (FAST.step_seconds, 16 / FAST.bandwidth)


def test_it_learns_as_compiled_code_does_and_the_sentence_says_whose_rates_these_are():
    model = counted(shipped(), "cuda", FAST)
    for each in model.experience:
        there, here = (np.array(each.epochs.get(name, [])) for name in ("softmax-on-cuda", "softmax"))
        assert (there <= here).all()
        assert each.rates.get("softmax-on-cuda") == each.rates.get("softmax")
    budget = Budget(seconds=300.0)
    assert "by rates measured on a card" in explain(model, LARGE, budget, rank(model, LARGE, budget))
    assumed = counted(shipped(), "cuda", rates_of(None))
    ranking = rank(assumed, LARGE, budget, among=["softmax-on-cuda"])
    assert "by assumed rates of a card, as none were given" in explain(assumed, LARGE, budget, ranking)


def test_a_device_is_looked_for(monkeypatch):
    assert with_device(shipped(), "numba") is shipped()
    monkeypatch.setattr(device, "has_card", lambda: False)
    assert with_device(shipped(), "auto") is shipped()
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="auto: device is cuda, and PyTorch is not installed"):
        with_device(shipped(), "cuda")


def test_contenders_that_look_at_all_classes_race_there():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing races on its devices here")
    assert torch
    base = {"objective": {"name": "softmax"}, "optimizer": {"name": "sgd", "learning_rate": 1.0}}
    others = {
        "all": base | {"proposal": {"name": "all", "batch_size": 64}},
        "drawn": base | {"objective": {"name": "sampled-softmax"}, "proposal": {"name": "uniform", "n_sampled": 5}},
        "sparse": base | {"proposal": {"name": "all", "batch_size": 64}, "frequency_power": 0.5},
    }
    found = contenders_on(others, "cpu")
    assert list(found) == ["all-on-cpu"]
    assert found["all-on-cpu"]["device"] == "cpu"


def test_of_one_method_at_two_places_the_faster_one_is_ahead():
    def outcome(name, value, pace):
        return {"name": name, "rate": 1.0, "log_likelihood": value, "pace": pace}

    outcomes = [outcome("all", -2.0, 0.2), outcome("all-on-cuda", -1.999999, 3.0), outcome("other", -2.1, 0.1)]
    assert [each["name"] for each in ranked(outcomes)] == ["all", "all-on-cuda", "other"]
    outcomes[1]["pace"] = 0.1
    assert [each["name"] for each in ranked(outcomes)] == ["all-on-cuda", "all", "other"]
    outcomes[0]["log_likelihood"] = -1.9
    assert ranked(outcomes)[0]["name"] == "all"


def test_options_name_a_device_and_a_file_of_rates():
    options = AutoOptions.from_settings({"device": "auto", "rates": "gpu.json"}, "--set")
    assert (options.device, options.rates) == ("auto", "gpu.json")
    for settings, said in (({"device": "gpu"}, "device is 'gpu'; set it to numba or"), ({"rates": 1}, "rates is 1;")):
        with pytest.raises(InputError, match=said):
            AutoOptions.from_settings(settings, "--set")


@pytest.mark.fault(
    "a file of a device's rates that is none, or has wrong numbers",
    happens="`auto` and `advise` refuse it",
    user="one line: the file, what is wrong with it, and which command writes one",
)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "no rates; give the file that `xsoftmax benchmark gpu --json` wrote"),
        ({"rates": {"products": 1.0}}, "no rates"),
        ({"rates": ASSUMED | {"products": 0}}, "products is 0"),
        ({"rates": ASSUMED | {"bandwidth": "1"}}, "bandwidth is '1'"),
        ({"rates": ASSUMED | {"step_seconds": float("nan")}}, "step_seconds is nan"),
    ],
)
def test_files_of_rates_are_checked(tmp_path, content, said):
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=said):
        rates_of(path)
    path.write_text(json.dumps({"rates": ASSUMED, "device": {"name": "a card"}}))
    assert rates_of(path) == Rates(*ASSUMED.values(), "by rates measured on a card")
