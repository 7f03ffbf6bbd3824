"""`auto` and `advise` as users call them, and what a fit keeps of a choice."""

import json
import re
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import yaml

from xsoftmax.advice import choice as choice_module
from xsoftmax.advice import contexts, measured
from xsoftmax.advice.choice import choice_for
from xsoftmax.advice.costs import setup_work
from xsoftmax.advice.model import CANDIDATES, FILE, CostModel, Costs, shipped
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.pilot import RATE_FACTORS
from xsoftmax.advice.ranking import PILOT_SHARE, Budget, rank
from xsoftmax.advice.statistics import statistics_of
from xsoftmax.advice.trial import PROBED, Trial, TrialContext
from xsoftmax.cli import main
from xsoftmax.data import windows
from xsoftmax.data.store import open_prepared
from xsoftmax.data.windows import Windows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import duration
from xsoftmax.methods import AUTO, build_method
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.solvers import sampled
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

AMONG = ["softmax", "sampled-softmax-5"]
N, K, D = 600, 12, 8
SLACK = 0.15  # seconds that a busy machine may add


@pytest.fixture(scope="module")
def file(prepare):
    """Classes that can be told apart."""
    rng = np.random.default_rng(0)
    centres, y = 3 * rng.standard_normal((K, D)), rng.integers(0, K, N)
    return prepare(centres[y] + rng.standard_normal((N, D)), y, K, n_validation=100, n_test=100)


@pytest.fixture
def data(file):
    with open_prepared(file) as data:
        yield data


def trained(file, folder, *others):
    arguments = ["train", file, "--method", AUTO, "--points", 1, "-o", folder, *others]
    assert main([str(argument) for argument in arguments]) == 0
    return json.loads((folder / "status.json").read_text())


@pytest.mark.slow
def test_train_says_what_it_chose_and_why(file, tmp_path, capsys):
    status = trained(file, tmp_path / "fit", "--epochs", 60, "--set", json.dumps({"among": AMONG}))
    chosen = status["choice"]
    assert status["method"] == AUTO
    assert chosen["name"] in AMONG
    assert chosen["sentence"].startswith(
        f"{chosen['name']}: a guess for 400 rows, 12 classes, 8 dense features, from"
    )
    told = capsys.readouterr().err
    assert f"auto: {chosen['sentence']}" in told
    assert re.search(
        "auto: the choice took .*s by the clock, compiling and scoring included, beside the budget", told
    )
    rates = [trial["rate"] for trial in chosen["trials"]]
    assert np.allclose(np.divide(rates, rates[1]), np.array(RATE_FACTORS) / RATE_FACTORS[1])
    best = max(chosen["trials"], key=lambda trial: trial["log_likelihood"])
    assert (
        f"chose the rate {best['rate']:.2g}, where it came to {best['log_likelihood']:.4f} nats" in chosen["sentence"]
    )
    assert status["parameters"]["optimizer"]["learning_rate"] == pytest.approx(best["rate"])
    expected = shipped().candidates[chosen["name"]]
    assert status["parameters"]["objective"]["name"] == expected["objective"]["name"]
    assert status["parameters"]["source"] == f"{chosen['name']}, chosen for these data: {expected['source']}"
    assert status["setup_seconds"] >= chosen["seconds"] > 0


@pytest.mark.slow
def test_the_same_seed_chooses_and_trains_the_same(data):
    choices = [choice_for(data, 3, Plan(epochs=40), AutoOptions(AMONG)) for _ in range(2)]
    assert choices[0].method == choices[1].method
    models = [fit(data, choices[0].method, 3, Plan(epochs=5)).model for _ in range(2)]
    assert np.array_equal(models[0].W, models[1].W)


def test_the_pilot_counts_as_training(data):
    choice = choice_for(data, 0, Plan(seconds=0.9), AutoOptions(AMONG))
    plan = Plan(seconds=0.9, spent=choice.seconds)
    history = fit(data, choice.method, 0, plan).state.history
    setup = choice.method.proposal.fit(TrainingSet(data.split("train").X, data.split("train").y, K)).seconds
    assert choice.seconds <= history[0]["seconds"] <= choice.seconds + 10 * setup + 0.01
    assert 0.9 <= history[-1]["seconds"] < 2.5


def test_a_pilot_without_validation_rows_or_too_short_is_left_out(dataset):
    X, y = np.eye(4, dtype=np.float32)[np.arange(40) % 4], np.arange(40) % 4
    without = choice_for(dataset(X, y, 4), 0, Plan(epochs=50), AutoOptions(AMONG))
    assert without.trials == []
    assert "without a pilot: there are no validation rows" in without.sentence
    short = choice_for(dataset(X, y, 4, n_validation=8), 0, Plan(epochs=1), AutoOptions(("softmax",)))
    assert short.trials == []
    assert "is a guess, without a pilot: a trial would see too little of the data" in short.sentence


@pytest.mark.slow
def test_a_rate_that_diverges_is_not_taken(data, monkeypatch):
    monkeypatch.setattr("xsoftmax.advice.pilot.RATE_FACTORS", (1e30, 1.0))
    choice = choice_for(data, 0, Plan(epochs=60), AutoOptions(("sampled-softmax-5",)))
    assert (choice.trials[0]["log_likelihood"] or -np.inf) < -np.log(K)
    assert choice.method.optimizer.learning_rate == pytest.approx(choice.trials[1]["rate"])


def test_a_resumed_fit_goes_on_with_its_choice(data, tmp_path, monkeypatch):
    plan = Plan(epochs=40, checkpoint=tmp_path / "fit.h5")
    first = choice_for(data, 0, plan, AutoOptions(AMONG))
    monkeypatch.setattr(measured, "tune_rate", lambda *_: pytest.fail("a second pilot"))
    again = choice_for(data, 0, plan, AutoOptions(AMONG))
    assert again == first
    monkeypatch.undo()
    for other in (Plan(epochs=80, checkpoint=plan.checkpoint), Plan(epochs=40, checkpoint=plan.checkpoint)):
        kept = choice_module.kept_choice(plan.checkpoint)
        before = kept.read_text()
        choice_for(data, 0, other, AutoOptions(AMONG))
        assert kept.read_text() != before  # another question
    kept.write_text("{")
    assert choice_for(data, 0, plan, AutoOptions(AMONG)).method == first.method


@pytest.mark.slow
def test_nothing_is_left_beside_a_finished_fit(file, tmp_path):
    trained(file, tmp_path / "fit", "--epochs", 5, "--checkpoint", tmp_path / "kept.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


@pytest.mark.slow
def test_rates_go_down_until_one_is_better_than_a_guess(data, monkeypatch):
    monkeypatch.setattr(
        measured, "improved", lambda method, *_: method
    )  # a temperature mends rates that are too large
    model = shipped()
    rates = [replace(each, rates=dict.fromkeys(each.rates, 1e4)) for each in model.experience]
    wild = CostModel(model.machine, model.candidates, model.costs, rates)
    choice = choice_for(data, 0, Plan(epochs=60), AutoOptions(("sampled-softmax-5",)), wild)
    values = [trial["log_likelihood"] or -np.inf for trial in choice.trials]
    assert max(values[:-1]) < -np.log(K) < values[-1]
    assert choice.method.optimizer.learning_rate == min(trial["rate"] for trial in choice.trials)


@pytest.fixture
def compiled(data, dataset):
    """Leave it to no test's clock to compile or to read compiled code, of averages and without them."""
    names = (*AMONG, "negative-frequency")
    unjudged = dataset(data.split("train").X, data.split("train").y, K)
    for name in names:
        choice_for(data, 0, Plan(epochs=60), AutoOptions((name,)))
        choice_for(unjudged, 0, Plan(seconds=60.0), AutoOptions(names))


@pytest.mark.alone
def test_a_pilot_ends_by_the_clock_where_the_machine_is_slower_than_predicted(data, compiled):
    model = shipped()
    fast = {name: Costs([1e-12] * 6, [1e-12] * 6, 0.0) for name in model.costs}
    wrong = CostModel(model.machine, model.candidates, fast, model.experience)
    plan = Plan(seconds=2.0)
    choice = choice_for(data, 0, plan, AutoOptions(("sampled-softmax-5",)), wrong)
    assert len(choice.trials) == len(RATE_FACTORS)
    assert choice.seconds < choice.took < 0.2 + SLACK
    state = fit(data, choice.method, 0, Plan(seconds=0.6, spent=choice.seconds)).state
    assert state.step > 0


def slowed(monkeypatch, **seconds):
    """Let parts of a trial take so long each: ``step`` a minibatch, ``scoring`` all rows, ``setup`` compiling."""
    began, advance, score = Trial.__init__, Trial.advance, Trial.log_likelihood

    def slow_begin(self, *arguments):
        time.sleep(seconds.get("setup", 0.0))
        began(self, *arguments)
        slowed.count += 1

    def slow_step(self, at_most):
        before = self.samples
        advance(self, at_most)
        wait = seconds.get("step", 0.0) * (self.samples - before) / self.minibatch_size
        time.sleep(wait) if wait else None
        self.seconds += wait

    def slow_scoring(self, at_most=10**9):
        n = self._context.validation.n_samples
        time.sleep(seconds.get("scoring", 0.0) * min(at_most, n) / n)
        return score(self, at_most)

    slowed.count = 0
    monkeypatch.setattr(Trial, "__init__", slow_begin)
    monkeypatch.setattr(Trial, "advance", slow_step)
    monkeypatch.setattr(Trial, "log_likelihood", slow_scoring)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("slow", "word"),
    [
        ({"step": 0.002}, "chose the rate"),
        ({"step": 0.05}, "is a guess, without a pilot: "),
        ({"scoring": 2.0}, "setting up and scoring rows leave it no time"),
        ({"scoring": 0.05}, "chose the rate"),
        ({}, "chose the rate"),
    ],
)
def test_a_choice_takes_a_tenth_of_the_seconds_or_less(data, compiled, monkeypatch, slow, word):
    """Of a machine on which all takes longer than on the one that was measured, with none of it foreseen."""
    slowed(monkeypatch, **slow)
    monkeypatch.setattr(measured, "TIMING_SHARE", 0.0)  # the formula is believed
    plan = Plan(seconds=5.0)
    choice = choice_for(data, 0, plan, AutoOptions(("softmax",)))
    assert word in choice.sentence
    unit = slow.get("step", 0.0) + 2 * slow.get("scoring", 0.0) * PROBED / 100
    assert choice.took < PILOT_SHARE * plan.seconds + unit + SLACK
    assert choice.account(plan).startswith(f"the choice took {duration(choice.took)} by the clock")
    assert f"{100 * choice.took / 5:.2g} % of 5 s" in choice.account(plan)


@pytest.mark.alone
def test_what_compiles_for_longer_than_the_tenth_is_compiled_once(data, compiled, monkeypatch):
    """And is what the fit trains, which needs it anyway; all others are left alone."""
    first = rank(shipped(), statistics_of(data), Budget(seconds=4.0), among=AMONG)[0].method
    slowed(monkeypatch, setup=0.5)
    choice = choice_for(data, 0, Plan(seconds=4.0), AutoOptions(AMONG))
    assert (slowed.count, choice.times, choice.trials, choice.name) == (1, {}, [], first)
    assert "is a guess, without a pilot: time was up" in choice.sentence
    assert "more than its tenth, as loading and compiling are not cut short" in choice.account(Plan(seconds=4.0))


@pytest.mark.alone
def test_the_first_few_are_timed_on_the_data(data, compiled, dataset, monkeypatch):
    """The formula prefers one; here its steps are slow."""
    names = ["sampled-softmax-5", "negative-frequency"]
    predicted = choice_for(data, 0, Plan(epochs=40), AutoOptions(tuple(names)))
    assert predicted.times == {}
    unjudged = dataset(data.split("train").X, data.split("train").y, K)  # so there is no pilot
    plain = choice_for(unjudged, 0, Plan(seconds=5.0), AutoOptions(tuple(names)))
    assert sorted(plain.times) == sorted(names)
    assert plain.seconds == sum(found["seconds"] for found in plain.times.values()) < 0.5
    for found in plain.times.values():
        assert 1e-7 < found["seconds_per_sample"] < 1e-4
        assert found["seconds"] >= 0.05
    assert f"{plain.name}: a guess" in plain.sentence
    assert ", timed here" in plain.sentence

    def slow(context, seconds, clock):
        objective = context.method.settings["objective"]["name"]
        return {"seconds_per_sample": 1.0 if objective in plain.name else 1e-6, "seconds": 0.0}

    monkeypatch.setattr(measured, "timed", slow)
    assert choice_for(data, 0, Plan(seconds=5.0), AutoOptions(tuple(names))).name == next(
        name for name in names if name != plain.name
    )


@pytest.mark.alone
def test_what_takes_long_to_set_up_is_not_timed_unless_the_budget_is_long(data):
    model = shipped()
    costs = model.costs | {
        "softmax": replace(
            model.costs["softmax"], setup=0.05 / setup_work(model.method("softmax"), statistics_of(data))
        )
    }
    slow = replace(model, costs=costs)
    choice_for(data, 0, Plan(seconds=6.0), AutoOptions(AMONG), slow)  # compiles
    assert sorted(choice_for(data, 0, Plan(seconds=6.0), AutoOptions(AMONG), slow).times) == sorted(AMONG)
    assert list(choice_for(data, 0, Plan(seconds=3.0), AutoOptions(AMONG), slow).times) == ["sampled-softmax-5"]


def test_no_candidate_is_timed_by_its_first_few_steps(data):
    assert choice_for(data, 0, Plan(seconds=0.9), AutoOptions(AMONG)).times == {}
    gap = choice_for(data, 0, Plan(seconds=30.0), AutoOptions(AMONG, 0.3))
    assert (gap.budget < 1, gap.times) == (True, {})


@pytest.mark.alone
def test_setting_up_for_the_timing_counts(data, compiled, dataset, monkeypatch):
    fit_quickly = Frequency.fit
    monkeypatch.setattr(Frequency, "fit", lambda self, data: replace(fit_quickly(self, data), seconds=7.0))
    unjudged = dataset(data.split("train").X, data.split("train").y, K)  # so there is no pilot
    times = choice_for(unjudged, 0, Plan(seconds=5.0), AutoOptions(AMONG)).times
    assert times["sampled-softmax-5"]["seconds"] > 7 > times["softmax"]["seconds"]


@pytest.mark.slow
def test_what_a_pilot_fitted_is_not_fitted_again(data, monkeypatch):
    """A tree counts once, and is the one that the fit itself would have made."""
    choice = choice_for(data, 0, Plan(epochs=60), AutoOptions(("adversarial",)))
    assert choice.trials
    alone = fit(data, choice.method, 0, Plan(epochs=2))
    monkeypatch.setattr(type(choice.method.proposal), "fit", lambda *_: pytest.fail("a second tree"))
    plan = choice.planned(Plan(epochs=2))
    assert plan.epochs == 60
    given = fit(data, choice.method, 0, replace(plan, epochs=2), choice.proposal)
    assert np.array_equal(given.model.rows, alone.model.rows)
    assert given.setup_seconds == choice.seconds + choice.proposal.seconds > choice.seconds


@pytest.mark.long_cases
@pytest.mark.parametrize("allowed", [{"epochs": 100}, {"seconds": 30.0}])
def test_a_gap_ends_the_fit_before_its_budget(data, allowed):
    """It is chosen, tried and trained for no more than the gap should take."""
    plan, key = Plan(**allowed), next(iter(allowed))
    wide, narrow, all_of_it = (choice_for(data, 0, plan, AutoOptions(AMONG, gap)) for gap in (0.5, 0.05, None))
    assert 0 < wide.budget < narrow.budget < all_of_it.budget == plan.budget
    ranking = rank(shipped(), statistics_of(data), Budget(gap=0.05), among=AMONG)
    assert narrow.times or narrow.name == ranking[0].method  # the first to be there, as predicted or as timed
    assert "others came within 5 % after as many epochs as take" in narrow.sentence
    assert getattr(narrow.planned(plan), key) == narrow.budget
    assert narrow.seconds < 5 * PILOT_SHARE * ranking[0].seconds + 0.1


def test_a_fit_ends_at_its_gap_and_looks_on_the_way(file, tmp_path):
    options = json.dumps({"among": ["softmax"], "gap": 0.3})
    status = trained(file, tmp_path / "fit", "--epochs", 90, "--set", options, "--checkpoint", tmp_path / "kept.h5")
    history = pd.read_csv(tmp_path / "fit" / "history.csv")
    assert 0 < status["choice"]["budget"] < 90
    assert history["epoch"].iloc[-1] == status["choice"]["budget"]


def test_no_rate_is_judged_by_less_than_half_an_epoch(data):
    """Early on, rates that are too small or too large look best."""
    assert choice_for(data, 0, Plan(epochs=14), AutoOptions(("softmax",))).trials == []
    assert len(choice_for(data, 0, Plan(epochs=16), AutoOptions(("softmax",))).trials) == len(RATE_FACTORS)


def test_rates_follow_the_scale_of_rows(dataset):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 3
    rates = [
        choice_for(
            dataset(scale * X, y, 3), 0, Plan(epochs=1), AutoOptions(("softmax",))
        ).method.optimizer.learning_rate
        for scale in (1, 100)
    ]
    assert rates[0] == pytest.approx(100 * rates[1], rel=1e-5)


def test_rows_that_stay_in_their_file(file, monkeypatch):
    """Each trial begins with the first window again."""
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 48)
    monkeypatch.setattr(windows, "Windows", partial(Windows, window_bytes=4000, block_bytes=400))
    with open_prepared(file) as data:
        choices = [
            choice_for(data, 0, Plan(epochs=60, stream=stream), AutoOptions(("sampled-softmax-5",)))
            for stream in (True, False)
        ]
    for trials in zip(*(choice.trials for choice in choices), strict=True):
        values = [trial["log_likelihood"] for trial in trials]
        assert values[0] == pytest.approx(values[1], abs=0.3)


def test_validation_rows_are_drawn_from_all(dataset, monkeypatch):
    """Files are often sorted by class."""
    monkeypatch.setattr("xsoftmax.advice.trial.ROWS", 60)
    y = np.r_[np.arange(100) % 10, np.repeat(np.arange(10), 60)]
    data = dataset(np.ones((700, 2)), y, 10, n_validation=600)
    context = TrialContext(data, data.split("train"), None, None, 0, None)
    assert context.validation.n_samples == 60
    assert len(set(context.validation.y.tolist())) == 10


def test_no_trial_begins_with_what_another_has_learned(dataset):
    data = dataset(np.ones((30, 2)), np.arange(30) % 3, 3)
    axes = {"objective": {"name": "nce", "learns_normalizer": True}, "proposal": {"name": "uniform"}}
    method = build_method("mine", axes | {"optimizer": {"name": "adagrad"}})
    context = TrialContext(data, data.split("train"), None, method, 0, None)
    context.objective.normalizer[:] = 5.0
    assert context.objective.normalizer[0] == 0


@pytest.mark.parametrize(("seed", "message"), [(-1, "seed is -1"), (0, "has 1 class")])
def test_what_no_fit_takes_is_refused_before_a_pilot(dataset, seed, message):
    n_classes = 1 if seed == 0 else 2
    data = dataset(np.ones((30, 2)), np.arange(30) % n_classes, n_classes, n_validation=10)
    with pytest.raises(InputError, match=message):
        choice_for(data, seed, Plan(seconds=1.0))


def test_what_memory_does_not_hold_is_not_chosen(data, monkeypatch):
    names = [choice_for(data, 0, Plan(epochs=40), AutoOptions(AMONG)).name]

    def check(method, *others):
        if method.name == names[0]:
            raise InputError("too large")

    monkeypatch.setattr(contexts, "check_memory", check)
    assert choice_for(data, 0, Plan(epochs=40), AutoOptions(AMONG)).name not in names
    with pytest.raises(InputError, match="too large"):
        choice_for(data, 0, Plan(epochs=40), AutoOptions(tuple(names)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"among": ["u-max"]}, "nothing was measured of 'u-max'; known: .*softmax"),
        ({"optimizer": {}}, "auto has no 'optimizer'; it takes among"),
        ({"among": []}, r"among is \[\]; give a list of methods"),
        ({"among": "softmax"}, "among is 'softmax'; give a list of methods"),
        ({"gap": 1}, "gap is 1; give a number above 0 and below 1"),
        ({"gap": "small"}, "gap is 'small'; give a number"),
        ({"gap": 1e-4}, "a gap of 0.0001 cannot be predicted"),
    ],
)
def test_wrong_settings(file, tmp_path, capsys, changes, message):
    arguments = ["train", file, "--method", AUTO, "--epochs", 1, "-o", tmp_path, "--set", json.dumps(changes)]
    assert main([str(argument) for argument in arguments]) == 1
    assert re.search(message, capsys.readouterr().err)


def advised(capsys, *arguments):
    assert main(["advise", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_advise_prints_a_ranking(file, capsys):
    found = json.loads(advised(capsys, "--data", file, "--budget", "1min", "--json"))
    assert found["facts"].pop("norm") == pytest.approx(20, rel=0.1)
    assert found["facts"] == {
        "n_samples": 400,
        "n_classes": 12,
        "n_features": 8,
        "n_entries": 8.0,
        "sparse": False,
    }
    assert sorted(each["method"] for each in found["ranking"]) == sorted(shipped().candidates)
    gaps = [each["gap"] for each in found["ranking"]]
    assert gaps == sorted(gaps)
    lines = advised(capsys, "--data", file, "--budget", "1min").splitlines()
    assert lines[1].split()[0] == found["ranking"][0]["method"]
    assert f"{found['sentence']}." in lines
    assert "No fit was made for this table." in lines[-2]
    assert "none below 0.5 %; times are by a formula" in lines[-1]


def test_what_is_never_reached_is_null(file, capsys):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    text = advised(capsys, "--data", file, "--gap", 0.005, "--among", "one-vs-each", "softmax", "--json")
    seconds = {each["method"]: each["seconds"] for each in json.loads(text, parse_constant=refuse)["ranking"]}
    assert seconds["one-vs-each"] is None


def test_more_threads_are_predicted_to_be_no_slower(file, capsys):
    one, two = (
        {each["method"]: each["seconds_per_epoch"] for each in found["ranking"]}
        for found in (
            json.loads(advised(capsys, "--data", file, "--gap", 0.1, "--threads", n, "--json")) for n in (1, 2)
        )
    )
    assert all(two[name] <= one[name] for name in one)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data is missing"),
        (["--data", "FILE", "--budget", "soon"], "--budget is 'soon'; write a time above 0, such as 60s"),
        (["--data", "FILE", "--budget", "0s"], "--budget is '0s'"),
        (["--data", "FILE", "--gap", "2"], "a gap of 2 cannot be predicted; ask for 0.005 or more"),
        (["--data", "FILE", "--gap", "0.001"], "a gap of 0.001 cannot be predicted"),
        (["--data", "FILE", "--epochs", "0"], "--epochs is 0"),
        (["--data", "FILE", "--threads", "0"], "--threads is 0"),
        (["--data", "FILE", "--among", "best"], "nothing was measured of 'best'"),
    ],
)
def test_advise_refuses(file, capsys, arguments, message):
    assert main(["advise", *(str(file) if each == "FILE" else each for each in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_learn_refuses_what_was_not_measured(file, capsys):
    for given, message in (("nowhere.json", "no such file"), (file, "holds no curves of `benchmark learning`")):
        assert main(["learn", str(given)]) == 1
        assert message in capsys.readouterr().err


def test_budgets_are_read():
    from xsoftmax.commands.advise import seconds_of

    assert [seconds_of(text) for text in ("60s", "60", "1.5h", "5 min", ".5m")] == [60, 60, 5400, 300, 30]


ADAGRAD = ("learning_rate", "initial_accumulator")


def _without_steps(settings):
    """Settings without Adagrad's two: a pilot tries rates, and curves were measured with other accumulators."""
    kept = {key: value for key, value in settings["optimizer"].items() if key not in ADAGRAD}
    return settings | {"optimizer": kept}


def test_candidates_are_points_of_the_product():
    candidates = yaml.safe_load(CANDIDATES.read_text())
    methods = yaml.safe_load((FILE.parents[3] / "config" / "methods.yaml").read_text())
    for name, settings in candidates.items():
        assert build_method(name, settings)
        assert name not in methods or _without_steps(methods[name]) == _without_steps(settings)
        assert "initial_accumulator" not in settings["optimizer"]  # 1e-8, with which all were measured
    assert shipped().candidates == candidates
