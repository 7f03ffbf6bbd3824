"""`auto` on sparse rows: methods that begin at class means race with what is predicted."""

import json
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import yaml

from xsoftmax.advice.choice import choice_for
from xsoftmax.advice.chosen import Choice
from xsoftmax.advice.clock import Clock
from xsoftmax.advice.model import FILE
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.race import CONTENDERS, contender_names, contenders, in_turn, race, ranked, told, winner
from xsoftmax.advice.statistics import statistics_of
from xsoftmax.advice.trial import Trial, TrialContext
from xsoftmax.cli import main
from xsoftmax.commands import train
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method
from xsoftmax.proposals.search import Search
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

AMONG = ("text-margin", "softmax")
BARE = {"objective": {"name": "softmax"}, "proposal": {"name": "all"}, "optimizer": {"name": "adagrad"}}


@pytest.fixture(scope="module")
def rows():
    """Few rows of a class, of words that tell classes apart, among words that do not."""
    rng, n_classes = np.random.default_rng(0), 20
    y = np.arange(200) % n_classes
    X = rng.random((200, 60)) * (rng.random((200, 60)) < 0.1)
    X[np.arange(200), y] += 1.0
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y, n_classes


@pytest.fixture
def data(dataset, rows):
    X, y, n_classes = rows
    return dataset(X, y, n_classes, n_validation=60, sparse=True)


@pytest.mark.slow
def test_the_best_by_validation_rows_is_chosen_and_trained(data, monkeypatch):
    choices = [choice_for(data, 3, Plan(epochs=8), AutoOptions(AMONG)) for _ in range(2)]
    first = choices[0]
    assert first.method == choices[1].method
    assert [trial["name"] for trial in first.trials[:4]] == ["text-margin"] + 3 * ["softmax"]
    began, again = first.trials[:4], first.trials[4:]
    assert {trial["epochs"] for trial in began} == {1.0}
    assert [trial["epochs"] for trial in again] == [4.0, 4.0]
    leaders = sorted(began, key=lambda trial: -trial["log_likelihood"])[:2]
    assert [(trial["name"], trial["rate"]) for trial in again] == [(each["name"], each["rate"]) for each in leaders]
    best = max(first.trials, key=lambda trial: trial["log_likelihood"])
    assert (first.name, first.method.optimizer.learning_rate) == (best["name"], best["rate"])
    assert f"{best['name']}: ahead in a race on {statistics_of(data)}" in first.sentence
    assert first.method.source.startswith(f"{best['name']}, chosen for these data")
    plan = first.planned(Plan(epochs=8))
    made, find = [], Search.fit
    monkeypatch.setattr(Search, "fit", lambda self, rows: made.append(self) or find(self, rows))
    given = fit(data, first.method, 3, plan, first.proposal)
    assert not made  # its lists are not found twice
    alone = fit(data, first.method, 3, plan)
    assert len(made) == 1
    assert given.state.history[-1]["validation_log_likelihood"] > -np.log(data.n_classes)
    assert np.array_equal(given.model.to_dense().W, alone.model.to_dense().W)
    assert first.seconds <= given.setup_seconds


def outcome(name, value, gained=0.0):
    return {"name": name, "rate": 1.0, "log_likelihood": value, "gained": gained}


def test_those_that_are_ahead_and_those_that_gain_go_on_in_turn():
    slow, ahead, second, last = (
        outcome("slow", -4, 2.0),
        outcome("ahead", -1),
        outcome("second", -2),
        outcome("z", -5),
    )
    assert in_turn([ahead, second, slow, last]) == [ahead, slow, second, last]


def test_of_two_outcomes_of_a_method_the_better_one_counts_and_of_equals_the_later():
    first, later, unknown = outcome("a", -2.0), outcome("a", -1.0), outcome("b", None)
    assert ranked([first, later, unknown]) == [later]
    again = outcome("a", -1.0, gained=1.0)
    assert ranked([first, later, again])[0] is again


class Paced:
    """Trials that learn as they are told to: of each method, log-likelihoods by epochs, and seconds of an epoch."""

    def __init__(self, monkeypatch, curves, paces):
        self.entered = []
        self.clock = Clock(100.0)
        monkeypatch.setattr("xsoftmax.advice.race._run", self.run)
        self.curves, self.paces = curves, paces

    def run(self, context, epochs, seconds, clock):
        name = context.method.name
        self.entered.append((name, epochs))
        clock.excuse(-self.paces[name] * epochs)  # as if it had taken so long
        found = {"epochs": epochs, "seconds": 0.0, "pace": self.paces[name], "gaining": True}
        return outcome(name, self.curves[name](epochs)) | found

    def race(self, methods, most):
        @contextmanager
        def enter(method):
            yield TrialContext(None, None, None, method, 0, None)

        return race(methods, enter, 1.0, most, self.clock, {})


def test_every_round_has_fewer_methods_and_more_epochs(monkeypatch):
    methods = [
        build_method(name, {**BARE, "optimizer": {"name": "adagrad", "learning_rate": 1.0}}) for name in "abcdefghi"
    ]
    curves = {method.name: lambda epochs, k=k: -10 + k / epochs for k, method in enumerate(methods)}
    paced = Paced(monkeypatch, curves, dict.fromkeys(curves, 2.0))
    paced.race(methods, 64.0)
    assert paced.entered[:9] == [(name, 1.0) for name in "abcdefghi"]
    assert paced.entered[9:12] == [("i", 4.0), ("h", 4.0), ("g", 4.0)]
    assert paced.entered[12:] == [("i", 16.0)]  # 58 s are left, of which another would need 32 s more
    assert max(epochs for _, epochs in paced.entered) == 16.0
    without = Paced(monkeypatch, curves, dict.fromkeys(curves, 0.001))
    without.race(methods, 1.0)
    assert without.entered == paced.entered[:9]


def test_time_is_kept_for_later_rounds_unless_only_one_would_be_known(monkeypatch):
    methods = [build_method(name, {**BARE, "optimizer": {"name": "adagrad", "learning_rate": 1.0}}) for name in "abc"]
    curves = {name: lambda epochs, k=k: -k / epochs for k, name in enumerate("bac", 1)}
    paced = Paced(monkeypatch, curves, {"a": 70.0, "b": 5.0, "c": 1.0})  # of 100 s, of which 40 s are kept
    paced.race(methods, 16.0)
    assert paced.entered == [("a", 1.0), ("b", 1.0)]  # not b alone for 20 s: that tells not who is ahead


@pytest.mark.slow
def test_a_method_that_is_too_slow_for_its_share_is_given_up(data, monkeypatch):
    advance = Trial.advance

    def slow(self, at_most):
        advance(self, at_most)
        self.seconds += at_most  # a second for each row

    monkeypatch.setattr(Trial, "advance", slow)
    choice = choice_for(data, 0, Plan(seconds=20.0), AutoOptions(("text-margin",)))
    (trial,) = choice.trials
    assert trial["log_likelihood"] is None
    assert trial["epochs"] < 1
    assert choice.sentence.startswith("text-margin: a guess for")


def test_shortlists_are_found_once_whatever_is_taken_of_them(data, monkeypatch):
    made, find = [], Search.fit
    monkeypatch.setattr(Search, "fit", lambda self, rows: made.append(self.n_sampled) or find(self, rows))
    choice_for(data, 0, Plan(epochs=1), AutoOptions(("text-softmax", "text-margin", "text-margin-wide")))
    assert len(made) == 1


def test_a_fit_is_looked_at_an_epoch_after_the_choice_then_rarely(data):
    choice = Choice(build_method("auto", BARE), "a", "", [], {}, budget=10.0, took=2.0, pace=0.5)
    evaluations = choice.evaluations(2.0)
    assert evaluations[:3] == pytest.approx((2.5, 2.65, 2.845))
    assert evaluations[-1] == 10.0
    assert all(later > earlier for earlier, later in pairwise(evaluations))
    assert replace(choice, pace=0.0).evaluations(2.0)[0] == pytest.approx(2 + 10 / 64)
    assert replace(choice, pace=99.0).evaluations(2.0) == (10.0,)
    assert choice.evaluations(11.0) == ()


def test_a_race_ends_by_the_clock(data):
    choice_for(data, 0, Plan(epochs=1), AutoOptions(AMONG))  # compiles
    choice = choice_for(data, 0, Plan(seconds=1.0), AutoOptions(AMONG))
    assert choice.allowed == 0.3
    assert 0 < choice.seconds < choice.took < 0.3 + 0.5  # what a busy machine may add
    assert "the choice took" in choice.account(Plan(seconds=1.0))


def test_where_rows_are_dense_or_none_are_for_validation_there_is_no_race(data, dataset, rows):
    X, y, n_classes = rows
    for other in (dataset(X, y, n_classes, sparse=True), dataset(X, y, n_classes, n_validation=60)):
        choice = choice_for(other, 0, Plan(epochs=1), AutoOptions(AMONG))
        assert choice.name == "softmax"
        assert all("name" not in trial for trial in choice.trials)
        with pytest.raises(InputError, match="among is text-margin; these rows are"):
            choice_for(other, 0, Plan(epochs=1), AutoOptions(("text-margin",)))


@pytest.mark.slow
def test_on_dense_rows_those_for_dense_rows_race(dataset, rows):
    X, y, n_classes = rows
    choice = choice_for(dataset(X, y, n_classes, n_validation=60), 0, Plan(epochs=2))
    dense = list(yaml.safe_load(CONTENDERS.read_text())["dense"])
    assert [trial["name"] for trial in choice.trials[: len(dense)]] == dense
    assert choice.method.calibration == "temperature-and-frequency"


def test_few_weights_are_held_whole(data):
    statistics = statistics_of(data)
    assert {each["weights"] for each in contenders(statistics, ["text-margin"]).values()} == {"dense"}
    many = statistics._replace(n_classes=10**6, n_features=10**6)
    assert {each["weights"] for each in contenders(many, ["text-margin"]).values()} == {"sparse"}
    sums = [each["proposal"]["name"] == "all" for each in contenders(statistics, None).values()]
    assert sums == sorted(sums, reverse=True)  # where classes are few, those that sum over all begin
    assert (len(set(sums)), next(iter(contenders(many, None)))) == (2, "text-softmax")


def test_the_winner_is_known_unless_all_diverged():
    common = {"rate": 1.0, "seconds": 1.0, "epochs": 1.0, "pace": 1.0, "gained": 0.0}
    outcomes = [common | {"name": "a", "log_likelihood": None}]
    assert winner(outcomes) is None
    outcomes += [common | {"name": "b", "log_likelihood": -2.0, "seconds": 2.0}]
    outcomes += [common | {"name": "c", "log_likelihood": -1.0, "rate": 0.5}]
    assert winner(outcomes) == outcomes[2]
    assert told(outcomes, "rows").endswith("with -1.0000 nats on validation rows; behind it were b at rate 1 -2.0000")


def test_who_gains_most_wins_where_one_round_must_tell_and_the_fit_is_longer():
    common = {"rate": 1.0, "epochs": 1.0, "pace": 2.0}
    ahead = common | {"name": "a", "log_likelihood": -2.0, "gained": 0.25}
    gaining = common | {"name": "b", "log_likelihood": -3.0, "gained": 1.0}
    for outcomes in ([ahead, gaining], [gaining, ahead]):
        assert winner(outcomes) == winner(outcomes, seconds=7.9) == ahead
        assert winner(outcomes, seconds=8.0) == gaining
        assert winner([each | {"epochs": 0.5} for each in outcomes], seconds=8.0)["name"] == "b"
        assert winner([*outcomes, ahead | {"epochs": 4.0}], seconds=100.0) == ahead | {"epochs": 4.0}
    assert winner([gaining | {"log_likelihood": None}, ahead], seconds=100.0) == ahead
    outcomes = [ahead | {"seconds": 1.0}, gaining | {"seconds": 1.0}]
    assert "b: would be ahead if it went on gaining" in told(outcomes, "rows", winner(outcomes, seconds=8.0))
    assert "others had a at rate 1 -2.0000" in told(outcomes, "rows", winner(outcomes, seconds=8.0))


def test_contenders_are_points_of_the_product_and_those_of_the_methods_file():
    known = yaml.safe_load((FILE.parents[3] / "config" / "methods.yaml").read_text())
    found = yaml.safe_load(CONTENDERS.read_text())
    assert list(found) == ["sparse", "dense"]
    assert [name for methods in found.values() for name in methods] == contender_names()
    for name, settings in (pair for methods in found.values() for pair in methods.items()):
        assert build_method(name, settings)
        assert name not in known or known[name] == settings


def test_without_a_budget_it_ends_when_validation_rows_gain_no_more(prepare, tmp_path):
    """Of classes that have nothing to do with the rows, nothing is to be learned for long."""
    rng = np.random.default_rng(0)
    file = prepare(rng.standard_normal((300, 10)), rng.integers(0, 5, 300), 5, n_validation=100)
    among = json.dumps({"among": ["softmax"]})
    assert main(["train", str(file), "--method", "auto", "--set", among, "-o", str(tmp_path / "fit")]) == 0
    assert json.loads((tmp_path / "fit" / "status.json").read_text())["status"] == "stopped early"
    values = pd.read_csv(tmp_path / "fit" / "history.csv")["validation_log_likelihood"]
    assert values.idxmax() == len(values) - 1 - train.AUTO_PATIENCE


def test_others_need_a_budget(tmp_path, capsys):
    assert main(["train", "none.h5", "--method", "softmax", "-o", str(tmp_path)]) == 1
    assert "no budget; give --epochs or --seconds, which only auto does without" in capsys.readouterr().err
