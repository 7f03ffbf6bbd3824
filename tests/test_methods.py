import json
import re
from pathlib import Path

import pytest
import yaml

from xsoftmax import solvers
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import RENAMED, build_method, component_modules, known_methods, merged, read_methods
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.optimizers._schedules import Constant, Exponential, Power, schedule_type

SHIPPED = Path(__file__).parents[1] / "config" / "methods.yaml"


def settings(objective="one-vs-each", proposal="uniform", optimizer="sgd", **others):
    axes = {"objective": objective, "proposal": proposal, "optimizer": optimizer}
    return {axis: {"name": value} if isinstance(value, str) else value for axis, value in axes.items()} | others


def with_parameters(name, **parameters):
    return {"name": name, **parameters}


def refused(chosen, message):
    with pytest.raises(InputError, match=re.escape(message)):
        build_method("mine", chosen)


def test_all_shipped_methods_can_be_built():
    methods = read_methods(SHIPPED)
    assert len(methods) >= 7
    for name, chosen in methods.items():
        assert build_method(name, chosen).name == name


def test_defaults_are_filled_in():
    method = build_method("mine", settings("double-sum", "uniform", "u-max"))
    assert method.objective == DoubleSum()
    assert method.schedule == Constant()
    assert method.bias is True
    assert method.settings == {
        "objective": {"name": "double-sum", "start_at_log_classes": True},
        "proposal": {"name": "uniform", "n_sampled": 1},
        "optimizer": {"name": "u-max", "learning_rate": 0.1, "threshold": 1.0},
        "schedule": {"name": "constant"},
        "batch": {"size": 1, "shared": False},
        "l2": 0.0,
        "decay": 0.0,
        "average": "none",
        "weights": "dense",
        "frequency_power": 0.0,
        "prune": 0.0,
        "positives": "mean",
        "start": {"name": "zero"},
        "bias": True,
        "bias_start": "zero",
        "calibration": "none",
        "device": "numba",
        "solver": "any",
    }


def test_what_is_written_is_taken_in_the_type_of_the_default():
    chosen = settings(
        with_parameters("double-sum", start_at_log_classes=False),
        with_parameters("uniform", n_sampled=2.0),
        optimizer=with_parameters("u-max", learning_rate=3),
        schedule=with_parameters("exponential", decay=0.5),
        bias=False,
        source="somewhere",
    )
    method = build_method("mine", chosen)
    assert (method.proposal.n_sampled, type(method.proposal.n_sampled)) == (2, int)
    assert (method.optimizer.learning_rate, type(method.optimizer.learning_rate)) == (3.0, float)
    assert method.objective.start_at_log_classes is False
    assert method.schedule == Exponential(0.5)
    assert method.bias is False


def test_the_settings_build_the_same_method_again():
    for name, chosen in read_methods(SHIPPED).items():
        method = build_method(name, chosen)
        again = build_method(name, method.settings)
        assert again.settings == method.settings
        assert (again.objective, again.proposal, again.optimizer, again.schedule, again.bias) == (
            *(method.objective, method.proposal, method.optimizer, method.schedule, method.bias),
        )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            settings(colour="red"),
            "method mine: unknown key 'colour'; known: average, batch, bias, bias_start, calibration",
        ),
        (settings(bias="yes"), "method mine: bias is 'yes'; set it to true or false"),
        (settings(bias=1), "method mine: bias is 1; set it to true or false"),
        (settings("sofmax"), "unknown objective 'sofmax'; known: "),
        (settings(proposal="unifrom"), "unknown proposal 'unifrom'; known: "),
        (settings(optimizer="adam"), "unknown optimizer 'adam'; known: "),
        (settings(schedule={"name": "stepped"}), "unknown schedule 'stepped'; known: constant, exponential, power"),
        (settings(schedule="constant"), "schedule is 'constant'; write it as schedule: {name: ...}"),
        (settings(proposal={"n_sampled": 3}), "proposal is {'n_sampled': 3}; write it as proposal: {name: ...}"),
        ({"proposal": {"name": "uniform"}, "optimizer": {"name": "sgd"}}, "objective is None; write it as"),
        (settings(optimizer=None), "optimizer is None; write it as optimizer: {name: ...}"),
        (
            settings(optimizer=with_parameters("sgd", learningrate=1)),
            "method mine: optimizer sgd: unknown parameter 'learningrate'; known: learning_rate",
        ),
        (settings(proposal=with_parameters("uniform", power=1)), "unknown parameter 'power'; known: n_sampled"),
        (
            settings("softmax", with_parameters("all", n_sampled=5)),
            "proposal all: unknown parameter 'n_sampled'; known",
        ),
        (
            settings(optimizer=with_parameters("sgd", learning_rate="fast")),
            "learning_rate is 'fast'; set it to a number",
        ),
        (settings(optimizer=with_parameters("sgd", learning_rate=True)), "learning_rate is True; set it to a number"),
        (settings(optimizer=with_parameters("sgd", learning_rate=None)), "learning_rate is None; set it to a number"),
        (settings(optimizer=with_parameters("sgd", learning_rate=-1)), "learning_rate is -1; set it to 0 or more"),
        (
            settings(optimizer=with_parameters("sgd", learning_rate=float("nan"))),
            "learning_rate is nan; set it to 0 or more",
        ),
        (settings(optimizer=with_parameters("sgd", learning_rate=float("inf"))), "learning_rate is inf; set it to"),
        (
            settings(optimizer=with_parameters("sgd", learning_rate=1e39)),
            "learning_rate is more than 3.4e+38; set it l",
        ),
        (settings(optimizer=with_parameters("sgd", learning_rate=10**400)), "learning_rate is more than 3.4e+38"),
        (settings(l2=10**5000), "l2 is more than 3.4e+38; set it lower"),
        (
            settings(proposal=with_parameters("uniform", n_sampled=10**400)),
            "n_sampled is more than 9.22e+18; set it lower",
        ),
        (settings(proposal=with_parameters("uniform", n_sampled=1.5)), "n_sampled is 1.5; set it to a whole number"),
        (settings(proposal=with_parameters("uniform", n_sampled=0)), "n_sampled is 0; set it to 1 or more"),
        (settings(proposal=with_parameters("uniform", n_sampled=[1])), "n_sampled is [1]; set it to a whole number"),
        (settings(proposal=with_parameters("uniform", n_sampled=float("inf"))), "n_sampled is inf; set it to"),
        (settings(proposal=with_parameters("uniform", n_sampled=float("nan"))), "n_sampled is nan; set it to"),
        (
            settings(with_parameters("double-sum", start_at_log_classes=1)),
            "start_at_log_classes is 1; set it to true or false",
        ),
    ],
)
def test_wrong_settings_say_what_is_wrong(chosen, message):
    refused(chosen, message)


@pytest.mark.parametrize(
    ("chosen", "parts"),
    [
        (settings("softmax"), ["objective softmax", "needs every class", "proposal uniform", "take proposal all"]),
        (
            settings("negative-sampling", "all"),
            ["objective negative-sampling", "over drawn classes", "proposal all", "take uniform, frequency or tree"],
        ),
        (
            settings("double-sum", "all", "u-max"),
            ["optimizer u-max", "single steps", "proposal all", "minibatches", "take sgd, adagrad or lbfgs"],
        ),
        (
            settings(optimizer="lbfgs"),
            ["optimizer lbfgs", "needs the full gradient", "proposal uniform", "take proposal all"],
        ),
        (
            settings("one-vs-each", "uniform", "implicit"),
            ["optimizer implicit", "needs a proximal step", "objective one-vs-each", "gradient"],
        ),
        (
            settings("negative-sampling", "uniform", "u-max"),
            [
                "optimizer u-max",
                "needs a variable per sample with a raise_bound",
                "objective negative-sampling",
                "gradient",
            ],
        ),
        (
            settings("double-sum", "all", "lbfgs"),
            ["objective double-sum", "variables per sample", "optimizer lbfgs", "take objective softmax"],
        ),
        (
            settings("double-sum-raman", with_parameters("uniform", n_sampled=2), "implicit"),
            ["objective double-sum-raman", "optimizer implicit", "set n_sampled: 1", "or take objective double-sum"],
        ),
        (
            settings("double-sum-raman", "uniform", "implicit", batch={"size": 2}),
            ["objective double-sum-raman", "optimizer implicit", "leave batch and l2 out"],
        ),
        (
            settings("double-sum-raman", "uniform", "implicit", l2=0.5),
            ["objective double-sum-raman", "optimizer implicit", "leave batch and l2 out"],
        ),
        (
            settings("double-sum", "tree", "implicit", batch={"size": 2}),
            ["optimizer implicit", "proposal tree", "draws differently for each sample", "take uniform or frequency"],
        ),
        (
            settings("double-sum", with_parameters("head", tail={"name": "tree"}), "implicit"),
            ["optimizer implicit", "proposal head", "draws differently for each sample", "take uniform or frequency"],
        ),
        (
            settings("nce", "tree", batch={"size": 5, "shared": True}),
            ["batch is shared", "proposal tree", "differently for each sample", "take uniform or frequency"],
        ),
        (
            settings("softmax", "all", with_parameters("lbfgs", learning_rate=0.5)),
            ["optimizer lbfgs", "by itself", "leave out learning_rate and schedule"],
        ),
        (
            settings("nce", l2=0.5),
            ["l2 is 0.5", "objective nce", "proposal uniform", "set l2: 0"],
        ),
        (
            settings("softmax", "all", "adagrad", l2=0.5),
            ["l2", "0.5", "optimizer adagrad", "take optimizer sgd or lbfgs, or l2: 0"],
        ),
    ],
)
def test_parts_that_do_not_combine_name_both_partners(chosen, parts):
    with pytest.raises(InputError, match=r"^method mine: ") as error:
        build_method("mine", chosen)
    assert [part for part in parts if part not in str(error.value)] == []


@pytest.mark.parametrize("parameters", [{"name": ["power"]}, {"name": "power", "scale": 0}])
def test_schedules_that_cannot_be_are_input_errors(parameters):
    """A schedule of scale 0 would divide by zero at its first step."""
    with pytest.raises(InputError):
        build_method("mine", settings(schedule=parameters)).schedule.factor(0, 0, 0.0)


def test_an_accumulator_of_zero_is_refused():
    """Adagrad would divide zero by zero wherever a feature is zero, and diverge at its first step."""
    with pytest.raises(InputError, match="initial_accumulator"):
        build_method("mine", settings(optimizer=with_parameters("adagrad", initial_accumulator=0)))


def test_schedules():
    assert [Constant().factor(3, 1000, 0.0)] == [1.0]
    assert [Exponential().factor(epoch, 99, 0.0) for epoch in (0, 1, 2)] == pytest.approx([1, 0.9, 0.81])
    assert Power().factor(7, 0, 0.0) == 1.0
    assert Power(scale=100, exponent=0.5).factor(0, 300, 0.0) == pytest.approx(0.5)
    assert Power(scale=100, exponent=0).factor(0, 300, 0.0) == 1.0
    assert [schedule_type(name) for name in ("constant", "exponential", "power")] == [Constant, Exponential, Power]


def test_merged_replaces_at_any_depth():
    base = settings(proposal=with_parameters("uniform", n_sampled=5), bias=True)
    changed = merged(base, {"proposal": {"n_sampled": 2}, "bias": False, "schedule": {"name": "power"}})
    assert changed["objective"] == {"name": "one-vs-each"}
    assert changed["proposal"] == {"name": "uniform", "n_sampled": 2}
    assert changed["bias"] is False
    assert changed["schedule"] == {"name": "power"}
    assert base == settings(proposal=with_parameters("uniform", n_sampled=5), bias=True)
    assert merged(base, {}) == base
    assert merged({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
    assert merged({"a": 2}, {"a": {"b": 1}}) == {"a": {"b": 1}}


# Before, the objective said how many classes are drawn.


@pytest.mark.parametrize(
    ("objective", "proposal", "written"),
    [
        (
            {"name": "one-vs-each", "n_sampled": 5},
            {"name": "uniform"},
            "objective: {name: one-vs-each}, proposal: {name: uniform, n_sampled: 5}",
        ),
        (
            {"name": "negative-sampling", "n_sampled": 3, "regularizer": 1e-5},
            {"name": "tree", "dimension": 8},
            "objective: {name: negative-sampling, regularizer: 1.0e-05}, "
            "proposal: {name: tree, dimension: 8, n_sampled: 3}",
        ),
        (
            {"name": "sampled-softmax", "n_sampled": 7},
            {"name": "head", "tail": {"name": "frequency", "power": 0.5}, "n_sampled": 2},
            "objective: {name: sampled-softmax}, "
            "proposal: {name: head, tail: {name: frequency, power: 0.5}, n_sampled: 7}",
        ),
    ],
)
def test_the_objectives_old_n_sampled_is_refused_with_the_lines_to_write(objective, proposal, written):
    chosen = settings(objective, proposal)
    with pytest.raises(InputError) as error:
        build_method("mine", chosen)
    assert str(error.value) == f"method mine: n_sampled is a parameter of the proposal now; write {written}"
    read = yaml.safe_load("{" + written + "}")
    built = build_method("mine", chosen | read)
    assert built.n_sampled == objective["n_sampled"]
    given = merged({"objective": objective, "proposal": proposal}, read)
    assert {**given["objective"], "n_sampled": None} == {**objective, "n_sampled": None}
    assert {**given["proposal"], "n_sampled": None} == {**proposal, "n_sampled": None}


def test_the_objectives_old_n_sampled_beside_a_proposal_that_draws_none():
    refused(
        settings(with_parameters("one-vs-each", n_sampled=5), "all"),
        "method mine: n_sampled is a parameter of proposals that draw, and proposal all draws none; "
        "write objective: {name: one-vs-each}",
    )


@pytest.mark.parametrize(
    ("objective", "proposal", "message"),
    [
        ({"name": "one-vs-each", "n_sampled": 0}, "uniform", "proposal uniform: n_sampled is 0; set it to 1 or more"),
        ({"name": "one-vs-each", "n_sampled": 10**5000}, "uniform", "n_sampled is more than 9.22e+18; set it lower"),
        ({"name": "one-vs-each", "n_sampled": 5, "colour": 1}, "uniform", "unknown parameter 'colour'"),
        ({"name": "one-vs-each", "n_sampled": 5}, "unifrom", "unknown proposal 'unifrom'"),
        ({"name": "one-vs-each", "n_sampled": 5}, None, "proposal is None; write it as proposal: {name: ...}"),
        ({"n_sampled": 5}, "uniform", "objective is {'n_sampled': 5}; write it as objective: {name: ...}"),
    ],
)
def test_what_else_is_wrong_beside_the_objectives_old_n_sampled_is_said_first(objective, proposal, message):
    refused(settings(objective, proposal), message)


@pytest.mark.parametrize(
    ("proposal", "key"),
    [
        (with_parameters("head", tail=with_parameters("uniform", n_sampled=5)), "tail"),
        (with_parameters("mixture", first=with_parameters("tree", n_sampled=5)), "first"),
        (with_parameters("mixture", second=with_parameters("uniform", n_sampled=5), n_sampled=5), "second"),
        (
            with_parameters("head", tail=with_parameters("mixture", first=with_parameters("uniform", n_sampled=5))),
            "first",
        ),
    ],
)
def test_parts_of_a_proposal_do_not_say_how_many_classes_are_drawn(proposal, key):
    refused(settings(proposal=proposal), f"its {key} has n_sampled 5; leave it out there, and set n_sampled of the")


def test_parts_of_a_proposal_are_filled_in_without_the_number_of_draws():
    chosen = settings(proposal=with_parameters("head", tail={"name": "mixture"}, n_sampled=4))
    filled = build_method("mine", chosen).settings["proposal"]
    parts = {"first": {"name": "uniform"}, "second": {"name": "frequency", "power": 1.0}, "share": 0.5}
    assert filled == {"name": "head", "n_head": 100, "tail": {"name": "mixture", **parts}, "n_sampled": 4}


def test_component_modules():
    assert component_modules(settings("double-sum", "frequency", "u-max")) == [
        "xsoftmax.objectives.double_sum",
        "xsoftmax.proposals.frequency",
        "xsoftmax.optimizers.u_max",
        "xsoftmax.starts.zero",
        *solvers.MODULES,
    ]
    method = build_method("mine", settings("double-sum", "frequency", "u-max"))
    assert method.modules == component_modules(settings("double-sum", "frequency", "u-max"))


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: 1\n", "", "a: {b: 1\n"])
def test_files_of_methods_that_are_none(tmp_path, text):
    (tmp_path / "methods.yaml").write_text(text)
    with pytest.raises(InputError, match=r"methods\.yaml"):
        read_methods(tmp_path / "methods.yaml")


def test_methods_of_ones_own_are_laid_over_those_that_are_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from a config/methods.yaml
    shipped = known_methods()
    assert shipped == read_methods(SHIPPED)
    softmax, scent = {"objective": {"name": "softmax"}}, dict(shipped["scent"])
    (tmp_path / "mine.yaml").write_text(json.dumps({"mine": scent, "softmax": softmax}))
    found = known_methods(tmp_path / "mine.yaml")
    assert found == shipped | {"softmax": softmax, "mine": scent}
    assert list(found)[-2:] == ["mine", "softmax"]


def test_a_missing_file_of_methods(tmp_path):
    with pytest.raises(InputError, match="no such file; --methods names a YAML file of methods"):
        read_methods(tmp_path / "none.yaml")


def test_a_part_with_another_name_is_replaced_whole():
    old = {"proposal": {"name": "all", "batch_size": 8}, "optimizer": {"name": "adagrad", "learning_rate": 1.0}}
    new = merged(old, {"proposal": {"name": "uniform"}, "optimizer": {"name": "adagrad", "initial_accumulator": 0.1}})
    assert new["proposal"] == {"name": "uniform"}
    assert new["optimizer"] == {"name": "adagrad", "learning_rate": 1.0, "initial_accumulator": 0.1}
    assert old["proposal"] == {"name": "all", "batch_size": 8}


@pytest.mark.parametrize(("old", "new"), list(RENAMED.items()))
def test_a_key_of_an_earlier_version_is_told_its_new_name(old, new):
    with pytest.raises(InputError, match=f"method mine: {old} is {new} now; write {new}: 0.5"):
        build_method("mine", {"objective": {"name": "softmax"}, old: 0.5})
