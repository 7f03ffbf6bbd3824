import csv
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from training.problems import K, curve, method, rows
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation import metrics
from xsoftmax.evaluation.likelihood import evaluate
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method, merged, read_methods
from xsoftmax.model import DivergedError, load_model
from xsoftmax.optimizers._schedules import ROUGHLY
from xsoftmax.solvers import sampled
from xsoftmax.training.evaluator import Evaluator
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import check_memory, estimate
from xsoftmax.training.plan import Plan
from xsoftmax.training.record import COLUMNS, summary


@pytest.fixture(scope="module")
def path(prepare):
    return prepare(*rows(), K, n_validation=50, n_test=50)


@pytest.fixture
def data(path):
    with open_prepared(path) as opened:
        yield opened


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 30)


def trained(data, *, seed=0, chosen=None, **plan):
    return fit(data, chosen or method(), seed, Plan(**plan))


def column(result, name):
    return [row[name] for row in result.state.history]


def test_an_epoch_visits_every_row_once(data, small_chunks, monkeypatch):
    visited = []
    advance = sampled.SampledSolver.advance

    def noted(self, samples, epoch, first, rate):
        if samples.size:
            visited.append((epoch, first, samples.copy()))
        return advance(self, samples, epoch, first, rate)

    monkeypatch.setattr(sampled.SampledSolver, "advance", noted)
    trained(data, epochs=3)
    orders = [np.concatenate([samples for at, _, samples in visited if at == epoch]) for epoch in range(3)]
    assert all(sorted(order) == list(range(300)) for order in orders)
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], np.arange(300))
    assert [first for at, first, _ in visited if at == 1] == list(range(0, 300, 30))


def test_epochs_and_steps(data):
    result = trained(data, epochs=5)
    assert result.state.status == "finished"
    assert (result.state.epoch, result.state.step) == (5, 1500)
    assert column(result, "epoch") == [0, 5]
    assert column(result, "step") == [0, 1500]


def test_evaluations_at_chosen_epochs(data, small_chunks):
    assert column(trained(data, epochs=2, at=(0.1, 0.5, 1.0)), "epoch") == pytest.approx([0, 0.1, 0.5, 1.0, 2.0])
    assert column(trained(data, epochs=1, at=(0.11, 0.12, 0.13)), "epoch") == pytest.approx([0, 0.2, 1.0])
    assert column(trained(data, epochs=1, at=(1.0, 5.0)), "epoch") == [0, 1]


def test_evaluations_do_not_change_the_weights(data, small_chunks):
    few, many = trained(data, epochs=2), trained(data, epochs=2, at=(0.2, 0.4, 1.1, 1.3))
    assert np.array_equal(few.model.rows, many.model.rows)


def test_looks_at_some_rows_are_those_of_a_smaller_set(data):
    result = trained(data, epochs=2, rows=20)
    drawn = np.sort(np.random.default_rng(0).permutation(50)[:20])
    split = data.split("test")
    expected = evaluate(result.model, split.X[drawn], split.y[drawn])
    assert result.state.history[-1]["test_log_likelihood"] == pytest.approx(expected["log_likelihood"], rel=1e-6)
    assert np.array_equal(result.model.rows, trained(data, epochs=2).model.rows)
    assert curve(trained(data, epochs=2, rows=300)) == curve(trained(data, epochs=2))


def test_no_epochs_give_the_untrained_model(data):
    result = trained(data, epochs=0)
    assert result.state.status == "finished"
    assert not result.model.rows.any()
    assert column(result, "epoch") == [0]
    assert column(result, "test_log_likelihood")[0] == pytest.approx(-np.log(K), rel=1e-6)


@pytest.mark.alone
def test_a_budget_of_seconds(data):
    trained(data, epochs=1)  # compiled
    before = time.perf_counter()
    result = trained(data, seconds=0.3, at=(0.1, 0.2))
    assert time.perf_counter() - before < 20
    assert result.state.status == "finished"
    seconds = column(result, "seconds")
    assert len(seconds) == 4
    assert 0.1 <= seconds[1] < 0.2 <= seconds[2] < 0.3 <= seconds[3] < 2
    assert column(trained(data, seconds=0.0), "epoch") == [0]


@pytest.mark.alone
def test_evaluation_is_not_training_time(data, monkeypatch):
    trained(data, epochs=1)  # compiled
    evaluation = Evaluator.evaluate

    def slow(self, *given):
        time.sleep(0.3)
        return evaluation(self, *given)

    monkeypatch.setattr(Evaluator, "evaluate", slow)
    result = trained(data, epochs=4, at=(1.0, 2.0, 3.0))
    assert len(result.state.history) == 5
    assert result.state.seconds < 0.3


def test_the_proposals_fit_is_training_time(data, monkeypatch):
    monkeypatch.setattr("xsoftmax.proposals.uniform.FittedUniform.seconds", 100.0)
    result = trained(data, epochs=1)
    assert column(result, "seconds")[0] == 100.0
    assert 100.0 < result.state.seconds < 110.0


def test_the_learning_rate_follows_its_schedule(data, small_chunks):
    chosen = method(optimizer={"name": "sgd", "learning_rate": 0.5}, objective="one-vs-each",
                    schedule={"name": "exponential", "decay": 0.5})  # fmt: skip
    rates = column(trained(data, chosen=chosen, epochs=3, at=(0.5, 1.0, 2.0)), "learning_rate")
    assert rates == pytest.approx([0.5, 0.5, 0.25, 0.125, 0.0625])
    power = {"name": "power", "scale": 300, "exponent": 1}
    rates = column(trained(data, chosen=method(schedule=power), epochs=2, at=(1.0,)), "learning_rate")
    assert rates == pytest.approx([0.1, 0.05, 0.1 / 3])


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_a_rate_by_progress_falls_to_zero_over_the_fit(data, monkeypatch, name):
    """In hundredths of the fit, whatever the solver's chunk; halfway it is half of what it was."""
    rates, advance = [], sampled.SampledSolver.advance

    def noted(self, samples, epoch, first, rate):
        if samples.size:
            rates.append(rate)
        return advance(self, samples, epoch, first, rate)

    monkeypatch.setattr(sampled.SampledSolver, "advance", noted)
    chosen = method(optimizer={"name": "adagrad", "learning_rate": 0.5}, schedule={"name": name})
    evaluation_seconds = column(trained(data, chosen=chosen, epochs=4, at=(2.0,)), "learning_rate")
    assert evaluation_seconds == pytest.approx([0.5, 0.25, 0], abs=1e-12)
    assert len(rates) == 100
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[50]) == pytest.approx((0.5, 0.25))
    assert 0 < rates[-1] <= 0.5 / 100 * (1 + 1e-9)


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("schedule", "size", "rtol"),
    [
        ({"name": "power", "scale": 1, "exponent": 1}, 1, ROUGHLY / (1 - ROUGHLY)),
        ({"name": "power", "scale": 1, "exponent": 1}, 7, ROUGHLY / (1 - ROUGHLY)),
        ({"name": "power", "scale": 40, "exponent": 0.5}, 7, ROUGHLY / (1 - ROUGHLY)),
        ({"name": "stairs", "decay": 0.5, "every": 70}, 1, 0),
    ],
)
def test_a_rate_by_steps_is_that_of_each_step(data, monkeypatch, schedule, size, rtol):
    """Nearly: steps of one call have one rate, which a minibatch cannot change within."""
    calls, advance = [], sampled.SampledSolver.advance

    def noted(self, samples, epoch, first, rate):
        if samples.size:
            calls.append((samples.size, rate))
        return advance(self, samples, epoch, first, rate)

    monkeypatch.setattr(sampled.SampledSolver, "advance", noted)
    chosen = method(optimizer={"name": "adagrad", "learning_rate": 0.5}, schedule=schedule, batch={"size": size})
    trained(data, chosen=chosen, epochs=2)
    given = np.concatenate([np.full(n, rate) for n, rate in calls])
    in_epoch = np.arange(given.size // 2) // size * size
    right = [0.5 * chosen.schedule.factor(0, int(step), 0.0) for step in [*in_epoch, *(given.size // 2 + in_epoch)]]
    np.testing.assert_allclose(given, right, rtol=rtol + 1e-9)
    assert len(calls) < given.size / size, "later calls have many steps"


@pytest.mark.alone
def test_a_rate_by_progress_falls_over_a_budget_of_seconds(data, small_chunks):
    trained(data, epochs=1)  # compiled
    chosen = method(optimizer={"name": "adagrad", "learning_rate": 0.5}, schedule={"name": "linear"})
    result = trained(data, chosen=chosen, seconds=0.3, at=(0.1, 0.2))
    rates, seconds = (np.array(column(result, name)) for name in ("learning_rate", "seconds"))
    assert rates == pytest.approx(0.5 * np.maximum(0, 1 - seconds / 0.3))


def test_the_schedule_is_what_moves_the_weights(data):
    """A rate that falls to 0 after the first epoch leaves it at one epoch."""
    scheduled = method("one-vs-each", optimizer={"name": "sgd", "learning_rate": 0.4},
                       schedule={"name": "exponential", "decay": 0.0})  # fmt: skip
    frozen = trained(data, chosen=scheduled, epochs=2)
    plain = trained(data, chosen=method("one-vs-each", optimizer={"name": "sgd", "learning_rate": 0.4}), epochs=1)
    assert np.array_equal(frozen.model.rows, plain.model.rows)


def test_early_stopping_keeps_the_best_weights(dataset):
    """Few rows, many epochs: the validation likelihood rises, then falls."""
    data = dataset(*rows(n_samples=150, noise=1.0), K, n_validation=80, n_test=30)
    chosen = method("softmax", "all", {"name": "adagrad", "learning_rate": 0.5})
    result = trained(data, chosen=chosen, epochs=200, at=tuple(range(1, 200)), patience=3)
    validation = column(result, "validation_log_likelihood")
    assert result.state.status == "stopped early"
    assert int(np.argmax(validation)) == len(validation) - 4
    assert column(result, "epoch")[-4] == result.state.best_epoch
    assert f"epoch {result.state.best_epoch:g}" in result.state.message
    split = data.split("validation")
    assert evaluate(result.model, split.X, split.y)["log_likelihood"] == max(validation) > validation[-1]
    shorter = trained(data, chosen=chosen, epochs=int(result.state.best_epoch))
    assert np.array_equal(shorter.model.rows, result.model.rows)


def test_patience_that_is_not_used_up_keeps_the_best_weights_too(dataset):
    data = dataset(*rows(n_samples=150, noise=1.0), K, n_validation=80, n_test=30)
    chosen = method("softmax", "all", {"name": "adagrad", "learning_rate": 0.5})
    result = trained(data, chosen=chosen, epochs=30, at=tuple(range(1, 30)), patience=1000)
    validation = column(result, "validation_log_likelihood")
    split = data.split("validation")
    assert result.state.status == "finished"
    assert evaluate(result.model, split.X, split.y)["log_likelihood"] == max(validation) > validation[-1]


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_best_weights_by_validation_rows_are_kept_unless_told_otherwise(keep, dataset):
    """Test rows have no say: with others, the same weights are kept."""
    X, y = rows(n_samples=150, noise=1.0)
    chosen, plan = method("softmax", "all", {"name": "adagrad", "learning_rate": 0.5}), {"epochs": 30, "keep": keep}
    data = dataset(X, y, K, n_validation=80, n_test=30)
    result = trained(data, chosen=chosen, at=tuple(range(1, 30)), **plan)
    validation, split = column(result, "validation_log_likelihood"), data.split("validation")
    found = evaluate(result.model, split.X, split.y)["log_likelihood"]
    assert max(validation) > validation[-1]
    assert found == (max(validation) if keep == "best" else validation[-1])
    if keep == "best":
        epoch = column(result, "epoch")[int(np.argmax(validation))]
        assert result.kept == {"epoch": epoch, "by": "validation_log_likelihood", "value": max(validation)}
        y = np.concatenate([y[:-30], y[-30:][::-1]])
        other = trained(dataset(X, y, K, n_validation=80, n_test=30), chosen=chosen, at=tuple(range(1, 30)), **plan)
        assert np.array_equal(other.model.rows, result.model.rows)
    else:
        assert result.kept == {"epoch": 30.0, "by": "last"}


def test_without_validation_rows_the_last_weights_are_kept(dataset):
    result = trained(dataset(*rows(), K), epochs=3, at=(1.0,))
    assert result.kept == {"epoch": 3.0, "by": "last"}


@pytest.mark.fault(
    "a budget in seconds that is spent before the first step, on a proposal or a pilot, with weights at zero",
    happens="nothing is written; compiling is no part of a budget",
    user="`error: … a budget of 15 s leaves no time for a step (…: what took how long); give more than …`",
)
def test_a_budget_that_setup_eats_is_refused(data, capfd):
    plan = Plan(seconds=1.0, spent=1.5)
    with pytest.raises(InputError, match=r"a budget of 1 s leaves no time for a step \(compiled in .*; a choice"):
        fit(data, method(), 0, plan)
    assert fit(data, method(), 0, Plan(seconds=0.3, spent=0.1)).state.step > 0
    assert "warning" not in capfd.readouterr().err
    assert fit(data, method(), 0, Plan(seconds=0.3, spent=0.2)).state.step > 0
    said = "0.2 of 0.3 s are spent before the first step (compiled in "
    assert f"warning: mine on data: {said}" in capfd.readouterr().err.replace(data.name, "data")
    tree = method("negative-sampling", {"name": "tree", "dimension": 2}, {"name": "adagrad"})
    with pytest.raises(InputError, match=r"proposal tree was fitted in .*, which the budget counts\); give more"):
        fit(data, tree, 0, Plan(seconds=1e-9))


def test_a_summary_says_what_a_budget_in_seconds_leaves_out(data):
    result = trained(data, epochs=1)
    state = replace(result.state, seconds=7.5, evaluation_seconds=2.0)
    spent = replace(result, setup_seconds=3.0, compile_seconds=9.0, state=state)
    said = summary(spent, "mine", 50, 8.0)
    assert "(of 8 s: 4.5 s training, 3 s setting it up; not counted: 9 s compiling, 2 s 2 evaluations)" in said
    assert "enough" not in said
    said = summary(spent, "mine", 50, 8.0, chosen_in=1.5)
    assert "2 s 2 evaluations, 1.5 s compiling and scoring for the choice)" in said
    assert "(4.5 s training, 3 s setting it up, 9 s compiling, 2 s 2 evaluations)" in summary(spent, "mine", 50)
    state.history[-1]["epoch"] = 0.4
    said = summary(replace(spent, kept={}), "mine", 50, 8.0)
    assert "\n8 s were not enough to visit each training row once; give more --seconds, or --epochs" in said


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"epochs": 1, "at": (float("nan"),)}, "evaluations are at"),
        ({"epochs": 1, "at": (0.5, float("inf"))}, "evaluations are at"),
        ({"epochs": 1, "checkpoint_seconds": float("nan")}, "checkpoint_seconds is nan; set it to 0 or more"),
        ({"seconds": float("nan")}, "budget is nan; set it to 0 or more"),
        ({"seconds": float("inf")}, "budget is inf"),
        ({"epochs": 1, "share": float("nan")}, "share of training rows is nan"),
        ({"epochs": 1, "memory": 0}, "memory is 0 bytes"),
        ({"epochs": 1, "keep": "first"}, "keep is 'first'; set it to best or last"),
    ],
)
def test_plans_that_are_none(plan, message):
    with pytest.raises(InputError, match=message):
        Plan(**plan)


@pytest.mark.parametrize("seed", [-1, 10**23])
def test_seeds_that_are_none(seed, data):
    with pytest.raises(InputError, match=f"seed is {seed}; set it to 0 or more, {2**63 - 1} at most"):
        fit(data, method(), seed, Plan(epochs=1))


def test_early_stopping_without_validation_rows_looks_at_training_rows(dataset):
    data = dataset(*rows(), K)
    result = trained(data, epochs=2, at=(1.0,), patience=5)
    assert "validation_log_likelihood" not in result.state.history[0]
    assert result.state.best == max(column(result, "train_log_likelihood"))
    worse = method("one-vs-each", optimizer={"name": "sgd", "learning_rate": 1e3})
    stopped = trained(data, chosen=worse, epochs=50, at=tuple(range(1, 50)), patience=1)
    assert stopped.state.message.startswith("best train log-likelihood at epoch ")


WILD = {"objective": {"name": "double-sum"}, "optimizer": {"name": "sgd", "learning_rate": 1e4}}


def test_a_diverged_fit_has_its_step_and_no_model(data):
    result = trained(data, chosen=method(**WILD), epochs=5)
    assert result.state.status == "diverged"
    assert result.model is None
    assert 0 < result.state.step < 1500
    assert f"diverged at step {result.state.step}" in result.state.message
    assert "lower learning_rate (now 10000)" in result.state.message


def test_divergence_seen_only_by_an_evaluation(data, monkeypatch):
    evaluation, known = Evaluator.evaluate, []

    def broken(self, *given):
        known.append(evaluation(self, *given))
        return known[-1] | {"test_log_likelihood": float("nan")} if len(known) > 1 else known[-1]

    monkeypatch.setattr(Evaluator, "evaluate", broken)
    result = trained(data, epochs=5, at=(2.0,))
    assert (result.state.status, result.state.step) == ("diverged", 600)
    assert result.model is None


def test_a_diverged_fit_is_a_result(path, tmp_path, capsys):
    """Exit status 0, status.json says so, the model file says why it holds none, metrics are null."""
    methods = tmp_path / "methods.yaml"
    methods.write_text(json.dumps({"wild": WILD | {"proposal": {"name": "uniform"}}}))
    arguments = ["train", str(path), "--methods", str(methods), "--method", "wild", "--epochs", "3"]
    assert main([*arguments, "-o", str(tmp_path / "fit")]) == 0
    assert "diverged at step" in capsys.readouterr().out
    status = json.loads((tmp_path / "fit" / "status.json").read_text())
    assert status["status"] == "diverged"
    assert f"diverged at step {status['step']}" in status["message"]
    with pytest.raises(DivergedError, match="diverged at step"):
        load_model(tmp_path / "fit" / "model.h5")
    assert (
        main(["evaluate", str(tmp_path / "fit" / "model.h5"), str(path), "-o", str(tmp_path / "metrics.json")]) == 0
    )
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["status"] == "diverged"
    assert metrics["dataset"] == "synthetic"
    for split in ("validation", "test"):
        assert metrics[split].get("log_likelihood") is None
        assert metrics[split].get("accuracy") is None
    assert "NaN" not in (tmp_path / "metrics.json").read_text()


def test_without_features_looks_tell_the_distance_from_the_shares_of_all_rows(prepare):
    y = np.repeat(np.arange(3, dtype=np.int32), [100, 200, 5700])  # more rows than looks take
    parts = {"objective": {"name": "softmax"}, "proposal": {"name": "all"}, "optimizer": {"name": "lbfgs"}}
    with open_prepared(prepare(np.empty((6000, 0), np.float32), y, 3)) as data:
        found = column(trained(data, chosen=build_method("m", parts), epochs=50), "frequency_error")
    assert found[0] == pytest.approx(abs(1 / 3 - 1 / 60) + abs(1 / 3 - 1 / 30) + abs(1 / 3 - 0.95))
    assert found[-1] == pytest.approx(0, abs=1e-4)


def test_what_is_written_of_a_fit(path, tmp_path):
    arguments = ["--method", "implicit-sgd", "--epochs", "4", "--points", "2", "--seed", "7"]
    arguments += ["--set", '{"optimizer": {"learning_rate": 1}, "schedule": {"name": "exponential", "decay": 0.9}}']
    assert main(["train", str(path), *arguments, "-o", str(tmp_path / "fit")]) == 0
    with (tmp_path / "fit" / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert list(history[0]) == COLUMNS
    assert [float(row["epoch"]) for row in history] == [0, 2, 4]
    assert [row["step"] for row in history] == ["0", "600", "1200"]
    assert [float(row["learning_rate"]) for row in history] == pytest.approx([1, 0.81, 0.6561])
    seconds = [float(row["seconds"]) for row in history]
    assert seconds == sorted(seconds)
    of_others = {"frequency_error", "search_recall", "gradient_found"}
    of_sets = [column for column, metric in metrics.known().items() if "label_ranks" in metric.needs]
    of_others |= {f"{split}_{column}" for split in metrics.SPLITS for column in of_sets}
    assert all((row[name] == "") == (name in of_others) for row in history for name in COLUMNS)
    status = json.loads((tmp_path / "fit" / "status.json").read_text())
    assert status["status"] == "finished"
    assert (status["dataset"], status["method"], status["seed"]) == ("synthetic", "implicit-sgd", 7)
    assert (status["step"], status["epoch"], status["budget"]) == (1200, 4, {"epochs": 4})
    assert status["n_parameters"] == K * 12
    assert status["data"] | {"n_train": 300, "n_validation": 50, "n_test": 50} == status["data"]
    assert status["parameters"]["optimizer"] == {"name": "implicit", "learning_rate": 1.0}
    assert status["objective_name"] == "double-sum bound"
    for key in ("seconds", "seconds_per_epoch", "peak_memory_bytes", "threads"):
        assert status[key] > 0
    model = load_model(tmp_path / "fit" / "model.h5")
    with open_prepared(path) as data:
        test = data.split("test")
    assert evaluate(model, test.X, test.y)["log_likelihood"] == float(history[-1]["test_log_likelihood"])


def test_the_tree_of_the_proposal_can_be_given(path, tmp_path):
    tree, shape = str(tmp_path / "tree.h5"), {"dimension": 3, "regularizer": 1.0}
    assert (
        main(["proposal", str(path), "--kind", "tree", "--set", '{"dimension": 3, "regularizer": 1}', "-o", tree])
        == 0
    )
    arguments = ["train", str(path), "--method", "adversarial", "--epochs", "2", "--proposal", tree]
    settings = json.dumps({"proposal": shape})
    assert main([*arguments, "--set", settings, "-o", str(tmp_path / "fit")]) == 0
    assert main(["evaluate", str(tmp_path / "fit" / "model.h5"), str(path), "-o", str(tmp_path / "m.json")]) == 0
    status = json.loads((tmp_path / "fit" / "status.json").read_text())
    assert status["setup_seconds"] > 0
    assert status["parameters"]["proposal"] == {"name": "tree"} | shape | {
        "folds": 1,
        "resplit": True,
        "n_sampled": 5,
    }
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert metrics["test"]["log_likelihood"] < 0


def test_a_tree_of_other_parameters_is_refused(path, tmp_path, capsys):
    """Otherwise status.json tells a dimension that was not used."""
    tree = str(tmp_path / "tree.h5")
    assert (
        main(["proposal", str(path), "--kind", "tree", "--set", '{"dimension": 3, "regularizer": 1}', "-o", tree])
        == 0
    )
    arguments = ["train", str(path), "--method", "adversarial", "--epochs", "1", "--proposal", tree]
    assert main([*arguments, "-o", str(tmp_path / "fit")]) == 1
    said = capsys.readouterr().err
    assert "holds proposal tree (dimension 3, folds 1, regularizer 1.0, resplit True)" in said
    assert "the method has tree (dimension 16" in said


def test_a_proposal_that_the_method_has_not_is_refused(path, tmp_path, capsys):
    tree = str(tmp_path / "tree.h5")
    assert main(["proposal", str(path), "--kind", "tree", "--set", '{"dimension": 3}', "-o", tree]) == 0
    assert (
        main(["train", str(path), "--method", "softmax", "--epochs", "1", "--proposal", tree, "-o", tree + "x"]) == 1
    )
    assert "the method has none that is fitted beforehand; give its own, or leave it out" in capsys.readouterr().err


def test_a_tree_of_other_rows_is_refused(path, prepare, tmp_path, capsys):
    """Such as another split of the same data set: its test rows may be among those that the tree has learnt from."""
    other, tree = prepare(*rows(seed=1), K, n_validation=50, n_test=50), str(tmp_path / "tree.h5")
    assert main(["proposal", str(other), "--kind", "tree", "--set", '{"dimension": 12}', "-o", tree]) == 0
    changes = json.dumps({"proposal": {"dimension": 12}})
    arguments = ["train", "--method", "adversarial", "--set", changes, "--epochs", "1", "--proposal", tree]
    assert main([*arguments, str(other), "-o", str(tmp_path / "fit")]) == 0
    assert main([*arguments, str(path), "-o", str(tmp_path / "fit")]) == 1
    assert "a proposal that was fitted to other data" in capsys.readouterr().err


def test_a_tree_that_is_none_is_an_input_error(path, tmp_path, capsys):
    (tmp_path / "text.h5").write_text("no tree")
    for name in ("none.h5", "text.h5"):
        arguments = [
            "train",
            str(path),
            "--method",
            "adversarial",
            "--epochs",
            "1",
            "--proposal",
            str(tmp_path / name),
        ]
        assert main([*arguments, "-o", str(tmp_path / "fit")]) == 1
        assert name in capsys.readouterr().err


def test_a_tree_can_be_evaluated_by_itself(path, tmp_path):
    tree = str(tmp_path / "tree.h5")
    assert main(["proposal", str(path), "--kind", "tree", "--set", '{"dimension": 3}', "-o", tree]) == 0
    assert main(["evaluate", tree, str(path), "-o", str(tmp_path / "metrics.json")]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert -np.log(K) < metrics["test"]["log_likelihood"] < 0
    assert metrics["status"] == "finished"


# What cannot be.


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({}, "budget: epochs is None, seconds is None; give one of the two"),
        ({"epochs": 1, "seconds": 1.0}, "give one of the two"),
        ({"epochs": -1}, "budget is -1; set it to 0 or more"),
        ({"seconds": -1.0}, "budget is -1; set it to 0 or more"),
        ({"seconds": float("nan")}, "nan"),
        ({"epochs": 3, "at": (2.0, 1.0)}, "give rising numbers above 0"),
        ({"epochs": 3, "at": (0.0, 1.0)}, "give rising numbers above 0"),
    ],
)
def test_plans_that_cannot_be(plan, message):
    with pytest.raises(InputError, match=message):
        Plan(**plan)


@pytest.mark.parametrize("n_sampled", [K - 1, K, 3 * K])
def test_more_draws_than_other_classes_repeat_some(data, n_sampled):
    chosen = method("one-vs-each", {"name": "uniform", "n_sampled": n_sampled}, "sgd")
    result = trained(data, chosen=chosen, epochs=2)
    assert result.state.status == "finished"
    first, *_, last = curve(result)
    assert last["train_log_likelihood"] > first["train_log_likelihood"]


def test_one_class_is_none_to_choose_from(dataset):
    with pytest.raises(InputError, match="has 1 class; a softmax needs at least 2"):
        trained(dataset(np.eye(3), np.zeros(3), 1), epochs=1)


def test_no_training_rows(dataset):
    with pytest.raises(InputError, match="has no training rows"):
        trained(dataset(np.eye(4), np.arange(4), 4, n_validation=2, n_test=2), epochs=1)


def test_memory_that_does_not_suffice_is_refused_by_purpose(data):
    with pytest.raises(InputError) as error:
        trained(data, epochs=1, memory=1000)
    message = str(error.value)
    for part in ("method mine on synthetic", f"{K} classes x 12 features", "needs", "MB for the data",
                 "MB for weights and what the optimizer keeps", "it may take 0 MB"):  # fmt: skip
        assert part in message
    enough = psutil.Process().memory_info().rss + 2**28
    assert trained(data, epochs=0, memory=enough).model is not None


def test_estimates_count_copies(data):
    one = 4 * K * 13
    weights = "weights and what the optimizer keeps"
    assert estimate(method(optimizer="sgd"), data, False)[weights] == one
    assert estimate(method(optimizer="adagrad"), data, False)[weights] == 2 * one
    assert estimate(method(optimizer="sgd"), data, True)["the best weights so far"] == one
    assert estimate(method("softmax", "all", "lbfgs"), data, False)[weights] >= 2 * 21 * one
    held, n_scores = "scores of validation rows that are seen again", data.n_samples("validation") * data.n_classes
    assert held not in estimate(method(), data, False)
    assert estimate(method(calibration="temperature"), data, False)[held] == 4 * n_scores > 0
    assert sum(estimate(method(), data, False).values()) < 2**20
    assert check_memory(method(), data, False)["the program itself"] > 2**25


def test_weights_that_are_not_finite_diverge_even_where_no_row_sees_them(data, monkeypatch):
    weights = sampled.SampledSolver.weights

    def spoilt(self):
        W = weights(self).copy()
        W[0, 0] = np.inf
        return W

    def blind(self, model, auxiliary):
        finite = {name: np.nan_to_num(getattr(model, name), posinf=0, neginf=0) for name in ("W", "b")}
        return evaluation(self, replace(model, **finite), auxiliary)

    evaluation = Evaluator.evaluate
    monkeypatch.setattr(Evaluator, "evaluate", blind)
    monkeypatch.setattr(sampled.SampledSolver, "weights", spoilt)
    result = trained(data, epochs=1)
    assert result.state.status == "diverged"
    assert "weights are not finite" in result.state.message


# Those shipped are for the 1,887 classes of icd10.
RATES = {"nce-fagan": 3.0, "importance-sampling": 3.0}


SHIPPED = read_methods(Path(__file__).parents[2] / "config" / "methods.yaml")
SOONER = ("softmax", "one-vs-each", "u-max", "softmax-lbfgs")


@pytest.mark.parametrize(
    "name", [name if name in SOONER else pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED]
)
def test_shipped_methods_learn(name, data):
    settings = merged(SHIPPED[name], {"optimizer": {"learning_rate": RATES[name]}} if name in RATES else {})
    settings = merged(settings, {"weights": "dense"})  # as the rows are
    result = trained(data, chosen=build_method(name, settings), epochs=5)
    assert result.state.status == "finished"
    first, *_, last = curve(result)
    assert last["train_log_likelihood"] > first["train_log_likelihood"]
