"""`auto` and `advise` as users call them, and what a fit keeps of a choice."""

import json

import numpy as np
import pytest
import yaml

from xsoftmax.advice import choice as choice_module
from xsoftmax.advice.choice import choice_for
from xsoftmax.advice.model import CANDIDATES, FILE, shipped
from xsoftmax.advice.pilot import FACTORS
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.errors import InputError
from xsoftmax.methods import AUTO, build_method
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

AMONG = ["softmax", "sampled-softmax-5"]
N, K, D = 600, 12, 8


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


def test_train_says_what_it_chose_and_why(file, tmp_path, capsys):
    status = trained(file, tmp_path / "fit", "--epochs", 60, "--set", json.dumps({"among": AMONG}))
    chosen = status["choice"]
    assert status["method"] == AUTO
    assert chosen["name"] in AMONG
    assert chosen["sentence"].startswith(f"{chosen['name']}: with 400 rows, 12 classes, 8 dense features")
    assert f"auto: {chosen['sentence']}" in capsys.readouterr().err
    rates = [trial["rate"] for trial in chosen["trials"]]
    assert np.allclose(np.divide(rates, rates[1]), np.array(FACTORS) / FACTORS[1])
    best = max(chosen["trials"], key=lambda trial: trial["log_likelihood"])
    assert status["parameters"]["optimizer"]["learning_rate"] == pytest.approx(best["rate"])
    expected = shipped().candidates[chosen["name"]]
    assert status["parameters"]["objective"]["name"] == expected["objective"]["name"]
    assert status["parameters"]["source"] == f"{chosen['name']}, chosen for these data: {expected['source']}"
    assert status["setup_seconds"] >= chosen["seconds"] > 0


def test_the_same_seed_chooses_and_trains_the_same(data):
    choices = [choice_for(data, 3, Plan(epochs=40), AMONG) for _ in range(2)]
    assert choices[0].method == choices[1].method
    models = [fit(data, choices[0].method, 3, Plan(epochs=5)).model for _ in range(2)]
    assert np.array_equal(models[0].W, models[1].W)


def test_the_pilot_counts_as_training(data):
    choice = choice_for(data, 0, Plan(seconds=0.5), AMONG)
    plan = Plan(seconds=0.5, spent=choice.seconds)
    history = fit(data, choice.method, 0, plan).state.history
    assert history[0]["seconds"] == pytest.approx(choice.seconds)
    assert 0.5 <= history[-1]["seconds"] < 2


def test_a_pilot_without_validation_rows_or_too_short_is_left_out(prepared):
    X, y = np.eye(4, dtype=np.float32)[np.arange(40) % 4], np.arange(40) % 4
    assert choice_for(prepared(X, y, 4), 0, Plan(epochs=50), AMONG).trials == []
    short = choice_for(prepared(X, y, 4, n_validation=8), 0, Plan(epochs=1), ["softmax"])
    assert short.trials == []
    assert "pilot" not in short.sentence


def test_a_rate_that_diverges_is_not_taken(data, monkeypatch):
    monkeypatch.setattr("xsoftmax.advice.pilot.FACTORS", (1e30, 1.0))
    choice = choice_for(data, 0, Plan(epochs=60), ["sampled-softmax-5"])
    assert choice.trials[0]["log_likelihood"] is None
    assert choice.method.optimizer.learning_rate == pytest.approx(choice.trials[1]["rate"])


def test_a_resumed_fit_goes_on_with_its_choice(data, tmp_path, monkeypatch):
    plan = Plan(epochs=40, checkpoint=tmp_path / "fit.h5")
    first = choice_for(data, 0, plan, AMONG)
    monkeypatch.setattr(choice_module, "tune_rate", lambda *_: pytest.fail("a second pilot"))
    again = choice_for(data, 0, plan, AMONG)
    assert again == first
    monkeypatch.undo()
    other = choice_for(data, 0, Plan(epochs=41, checkpoint=plan.checkpoint), AMONG)
    assert other.trials != first.trials  # another question


def test_nothing_is_left_beside_a_finished_fit(file, tmp_path):
    trained(file, tmp_path / "fit", "--epochs", 5, "--checkpoint", tmp_path / "kept.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


def test_what_memory_does_not_hold_is_not_chosen(data, monkeypatch):
    names = [choice_for(data, 0, Plan(epochs=40), AMONG).name]

    def check(method, *others):
        if method.name == names[0]:
            raise InputError("too large")

    monkeypatch.setattr(choice_module, "check_memory", check)
    assert choice_for(data, 0, Plan(epochs=40), AMONG).name not in names
    with pytest.raises(InputError, match="too large"):
        choice_for(data, 0, Plan(epochs=40), names)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"among": ["adversarial"]}, "nothing was measured of 'adversarial'; known: .*softmax"),
        ({"optimizer": {}}, "auto has no 'optimizer'; it takes among"),
    ],
)
def test_wrong_settings(file, tmp_path, capsys, changes, message):
    arguments = ["train", file, "--method", AUTO, "--epochs", 1, "-o", tmp_path, "--set", json.dumps(changes)]
    assert main([str(argument) for argument in arguments]) == 1
    assert message.split(";")[0] in capsys.readouterr().err


def advised(capsys, *arguments):
    assert main(["advise", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_advise_prints_a_ranking(file, capsys):
    found = json.loads(advised(capsys, "--data", file, "--budget", "1min", "--json"))
    assert found["facts"] == {
        "n_samples": 400,
        "n_classes": 12,
        "n_features": 8,
        "n_entries": 8.0,
        "sparse": False,
    }
    assert [each["method"] for each in found["ranking"]] != []
    assert sorted(each["method"] for each in found["ranking"]) == sorted(shipped().candidates)
    gaps = [each["gap"] for each in found["ranking"]]
    assert gaps == sorted(gaps)
    text = advised(capsys, "--data", file, "--gap", 0.1, "--threads", 2)
    assert found["ranking"][0]["method"] in text
    assert "Times are those of" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data is missing"),
        (["--data", "FILE", "--budget", "soon"], "--budget is 'soon'; write a time above 0, such as 60s"),
        (["--data", "FILE", "--budget", "0s"], "--budget is '0s'"),
        (["--data", "FILE", "--gap", "2"], "--gap is 2; set it between 0 and 1"),
        (["--data", "FILE", "--epochs", "0"], "--epochs is 0"),
        (["--data", "FILE", "--threads", "0"], "--threads is 0"),
        (["--data", "FILE", "--among", "best"], "nothing was measured of 'best'"),
        (["--learn", "nowhere.json"], "nowhere.json: no such file"),
    ],
)
def test_advise_refuses(file, capsys, arguments, message):
    assert main(["advise", *(str(file) if each == "FILE" else each for each in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_budgets_are_read():
    from xsoftmax.commands.advise import seconds_of

    assert [seconds_of(text) for text in ("60s", "60", "1.5h", "5 min", ".5m")] == [60, 60, 5400, 300, 30]


def test_candidates_are_points_of_the_product():
    candidates = yaml.safe_load(CANDIDATES.read_text())
    methods = yaml.safe_load((FILE.parents[3] / "config" / "methods.yaml").read_text())
    for name, settings in candidates.items():
        assert build_method(name, settings)
        assert name not in methods or methods[name] == settings
    assert shipped().candidates == candidates
