"""A wrong config is refused before there is a graph, and the message names the key."""

import re

import pytest
import yaml
from snakemake.utils import update_config

from workflow.checkout import REPOSITORY
from xsoftmax import solvers
from xsoftmax.commands.train import MOST_POINTS
from xsoftmax.data.training_set import LARGEST_SEED
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import MOST_THREADS
from xsoftmax.lab.workflow.experiment import Experiment, Fit, Trial
from xsoftmax.proposals import settings_of
from xsoftmax.proposals.tree import Tree

CONFIG = REPOSITORY / "config"


def quickstart(**changes):
    return yaml.safe_load((CONFIG / "config.yaml").read_text()) | changes


def searched(grid):
    return {"search": {"grid": grid}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seedz": [0]}, "seedz"),
        ({"seeds": [-1]}, "seeds.0: -1"),
        ({"seeds": [LARGEST_SEED + 1]}, f"seeds.0: {LARGEST_SEED + 1} is greater than the maximum of {LARGEST_SEED}"),
        ({"seeds": [int("9" * 23)]}, "seeds.0: 9+ is greater than the maximum"),
        ({"seeds": [1.0]}, "seeds.0: 1.0 is not of type 'integer'"),
        ({"budget": {"epochs": 2.0}}, "budget.epochs: 2.0 is not of type 'integer'"),
        ({"threads": MOST_THREADS + 1}, f"threads: {MOST_THREADS + 1} is greater than the maximum of {MOST_THREADS}"),
        ({"ranks": {"softmax": 1}}, "ranks.softmax: 1 is less than the minimum of 2"),
        ({"ranks": {"sgd": 2}}, "config: ranks: sgd is not among methods; add it there or leave it out here"),
        ({"ranks": {"softmax": 2}}, "config: ranks: softmax: 2 processes train on device cuda or cpu; write set: "),
        (
            {"ranks": {"softmax": 2}, "set": {"softmax": {"device": "cpu"}}} | searched({"softmax": {"decay": [1]}}),
            "config: ranks: softmax: trials of a search train in one process; leave softmax out",
        ),
        (
            {"resources": {"train": {"nodes": 2}}},
            "resources: train: nodes: only fits with ranks run on several nodes",
        ),
        (
            {"ranks": {"softmax": 4}, "set": {"softmax": {"device": "cpu"}}, "resources": {"train": {"nodes": 3}}},
            "nodes: 4 ranks of softmax do not divide among 3 nodes; take ranks: {softmax: 6}",
        ),
        ({"resources": {"prepair": {"mem_mb": 3}}}, "unknown key 'prepair'; known: .*did you mean 'prepare'"),
        ({"resources": {"report": {"mem": 3}}}, "resources.report: unknown key 'mem'; known: mem_mb"),
        ({"evaluate": {"points": MOST_POINTS + 1}}, f"evaluate.points: .*the maximum of {MOST_POINTS}"),
        ({"search": {"grid": {"softmax": {"l2": [1]}}, "seed": LARGEST_SEED + 1}}, "search.seed: .*maximum"),
        ({"experiment": "long" * 75}, "experiment: 'long.*has 300 bytes; 200 at most"),
        ({"define": {"a" * 201: {"like": "softmax"}}, "methods": ["a" * 201]}, "methods: 'a.*has 201 bytes"),
        ({"define": {"ab" * 20: {"like": "softmax"}}, "methods": ["ab" * 20]}, "methods: .*ends in 20 repeats"),
        ({"seeds": "0"}, "seeds: '0' is not of type 'array'"),
        ({"experiment": "../elsewhere"}, "experiment"),
        ({"budget": {"epochs": 0}}, "budget.epochs: 0"),
        ({"budget": {"epochs": 1, "seconds": 1}}, "budget"),
        ({"budget": {"epoch": 1}}, "budget: .*epoch"),
        ({"evaluate": {"point": 1}}, "evaluate: .*point"),
        ({"evaluate": {"rows": 0}}, "evaluate.rows: 0"),
        ({"evaluate": {"by": "acuracy"}}, "config: .*evaluate: unknown metric 'acuracy'; known: .*accuracy"),
        (
            {"evaluate": {"by": "expected_calibration_error"}},
            "is measured by `evaluate` alone; take one of log_likel",
        ),
        ({"search": {"grid": {"softmax": {"l2": [1]}}, "by": "test_accuracy"}}, "search: by: unknown .*'test_acc"),
        ({"datasets": []}, "datasets"),
        ({"datasets": ["icd11"]}, "datasets: no 'icd11'; known: .*icd10"),
        ({"datasets": ["nowhere/own.yaml"]}, "datasets: no file 'nowhere/own.yaml' in "),
        ({"methods": ["sofmax"]}, "methods: unknown method 'sofmax'; known: .*softmax"),
        ({"set": {"sofmax": {}}}, "set: unknown method 'sofmax'"),
        ({"set": {"softmax": {"optimiser": {}}}}, "set: softmax: .*optimiser"),
        ({"methods": ["auto"], "set": {"auto": {"l2": 1}}}, "set: auto: auto has no 'l2'; it takes among"),
        (
            {"methods": ["auto"], "set": {"auto": {"among": ["best"]}}},
            "nothing was measured of 'best'; known: softmax",
        ),
        ({"set": {"softmax-lbfgs": {}}}, "set: softmax-lbfgs is not among methods; add it there"),
        ({"evaluate": {"at": [1, 60, 70]}}, "evaluate.at: 60 is beyond budget.epochs, 50"),
        ({"budget": {"seconds": 2.5}, "evaluate": {"at": [1, 3]}}, "evaluate.at: 3 is beyond budget.seconds, 2.5"),
        ({"evaluate": {"at": [2, 1]}}, "evaluations are at .*rising"),
        ({"budgets": {"softmax": {}}}, "budgets.softmax"),
        ({"budgets": {"sgd": {"epochs": 1}}}, "config: budgets: sgd is not among methods; add it there"),
        ({"budgets": {"softmax": {"epochs": 40}}}, "evaluate.at: 50 is beyond budget.epochs, 40"),
        ({"for": {"mnist": {}}}, "for: unknown data set 'mnist'; known: icd10"),
        ({"for": {"icd10": {"seeds": []}}}, "for.icd10.seeds"),
        ({"for": {"icd10": {"sets": {}}}}, "for.icd10: .*sets"),
        ({"for": {"icd10": {"evaluate": {"at": [70]}}}}, "for: icd10: evaluate.at: 70 is beyond budget.epochs, 50"),
        ({"for": {"icd10": {"set": {"sox": {}}}}}, "for: icd10: set: sox is not among methods"),
        (searched({"softmax": {"optimizer.learning_rate": []}}), "search.grid.softmax.optimizer.learning_rate"),
        (searched({"sox": {"optimizer.learning_rate": [1]}}), "search: grid: sox is not among methods"),
        (searched({"softmax": {"optimizer.rate": [1]}}), "search: grid: softmax: .*unknown parameter 'rate'"),
        (searched({"softmax": {"optimizer.learning_rate": ["fast"]}}), "softmax: .*learning_rate is 'fast'"),
        (searched({"softmax": {"schedule.name": ["$(touch here)"]}}), "search.grid.softmax.schedule.name.0: .*touch"),
        (searched({"softmax": {"schedule.name": ["../constant"]}}), "search.grid.softmax.schedule.name.0"),
        (
            searched({"adversarial": {"proposal.dimension": [8, 16]}}),
            "parameters of a proposal that is fitted beforehand cannot be searched",
        ),
        (
            {"methods": ["auto"], "set": {}} | searched({"auto": {"among": ["softmax"]}}),
            "grid: auto: auto searches by itself",
        ),
    ],
)
def test_a_wrong_config_names_the_key(changes, message):
    with pytest.raises(InputError, match=message):
        Experiment.from_config(quickstart(**changes), CONFIG)


def test_the_largest_numbers_that_train_takes_are_taken():
    config = quickstart(seeds=[LARGEST_SEED], threads=MOST_THREADS, evaluate={"points": MOST_POINTS})
    assert Experiment.from_config(config, CONFIG).config["seeds"] == [LARGEST_SEED]


def test_the_name_of_a_trial_has_room_in_a_path():
    parts = (
        "optimizer.learning_rate",
        "optimizer.initial_accumulator",
        "objective.local_rate",
        "objective.local_power",
    )
    grid = {part: [0.12345678901234566] for part in parts} | {"proposal.n_sampled": [2**62]}
    with pytest.raises(InputError, match=r"augment-reduce: the trial '.* has \d+ bytes; 200 at most"):
        Experiment.from_config(
            quickstart(methods=["augment-reduce"], set={}, **searched({"augment-reduce": grid})), CONFIG
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": {"name": "sdg"}}, "unknown optimizer 'sdg'; known: .*sgd"),
        ({"optimizer": {"learning_rat": 1}}, "optimizer adagrad: unknown parameter 'learning_rat'; known: learning"),
        ({"optimizer": {"learning_rate": "fast"}}, "optimizer adagrad: learning_rate is 'fast'"),
        ({"optimizer": {"name": "implicit"}}, "optimizer implicit takes single steps, proposal all"),
        ({"schedule": {"name": "nosuch"}}, "unknown schedule 'nosuch'; known: constant"),
    ],
)
def test_a_method_that_cannot_be_trained_is_refused(changes, message):
    with pytest.raises(InputError, match=f"config: method softmax: {message}"):
        Experiment.from_config(quickstart(set={"softmax": changes}), CONFIG)


OLD = {"objective": {"n_sampled": 5}}
OLD_GRID = {"one-vs-each": {"objective.n_sampled": [1, 5]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"set": {"one-vs-each": OLD}}, "set: one-vs-each: {}; write proposal: {{n_sampled: 5}}"),
        (
            {"set": {"one-vs-each": {"objective": {"name": "nce", "n_sampled": 5}, "proposal": {"name": "tree"}}}},
            "set: one-vs-each: {}; write objective: {{name: nce}}, proposal: {{name: tree, n_sampled: 5}}",
        ),
        (
            {"define": {"mine": {"like": "one-vs-each", **OLD}}, "methods": ["mine"]},
            "define: mine: {}; write proposal: {{n_sampled: 5}}",
        ),
        (
            {"for": {"icd10": {"set": {"one-vs-each": OLD}}}},
            "for: icd10: set: one-vs-each: {}; write proposal: {{n_sampled: 5}}",
        ),
        (searched(OLD_GRID), "search: grid: one-vs-each: {}; write proposal.n_sampled: [1, 5]"),
        (
            {"for": {"icd10": searched(OLD_GRID)}},
            "for: icd10: search: grid: one-vs-each: {}; write proposal.n_sampled: [1, 5]",
        ),
    ],
)
def test_the_old_place_of_n_sampled_is_refused_with_what_to_write(changes, message):
    """Methods of the methods file are for tests/test_methods.py."""
    with pytest.raises(InputError) as error:
        Experiment.from_config(quickstart(methods=["one-vs-each"], set={}) | changes, CONFIG)
    assert str(error.value) == "config: " + message.format("objective.n_sampled is proposal.n_sampled now")


def test_a_methods_file_with_the_old_place_of_n_sampled_is_refused_with_what_to_write(tmp_path):
    methods = yaml.safe_load((CONFIG / "methods.yaml").read_text())
    methods["one-vs-each"] |= {"objective": {"name": "one-vs-each", "n_sampled": 5}, "proposal": {"name": "uniform"}}
    (tmp_path / "methods.yaml").write_text(yaml.safe_dump(methods))
    (tmp_path / "datasets").symlink_to(CONFIG / "datasets")
    with pytest.raises(InputError) as error:
        Experiment.from_config(quickstart(methods=["one-vs-each"], set={}), tmp_path)
    assert str(error.value) == (
        "config: method one-vs-each: n_sampled is a parameter of the proposal now; "
        "write objective: {name: one-vs-each}, proposal: {name: uniform, n_sampled: 5}"
    )


def test_a_job_is_told_by_the_config_that_it_was_planned_by():
    """The run puts what it planned into the environment of its jobs, which each read the config again."""
    environment = {}
    for seeds in ([0, 1], [0, 1]):
        Experiment.from_config(quickstart(seeds=seeds), CONFIG).check_unchanged(environment)
    for change in ({"seeds": [0, 2]}, {"set": {"softmax": {"optimizer": {"learning_rate": 0.5}}}}):
        with pytest.raises(InputError, match="changed since this run began"):
            Experiment.from_config(quickstart(**{"seeds": [0, 1]} | change), CONFIG).check_unchanged(environment)


@pytest.mark.parametrize("missing", ["experiment", "datasets", "methods", "budget"])
def test_a_missing_key_is_named(missing):
    config = {key: value for key, value in quickstart().items() if key != missing}
    with pytest.raises(InputError, match=missing):
        Experiment.from_config(config, CONFIG)


@pytest.mark.parametrize("file", sorted((CONFIG / "experiments").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_experiments_are_valid(file):
    experiment = Experiment.from_config(yaml.safe_load(file.read_text()), CONFIG)
    assert list(experiment.fits())


@pytest.mark.parametrize("file", sorted((CONFIG / "experiments/quick").glob("*.yaml")), ids=lambda path: path.stem)
def test_reduced_experiments_are_valid_over_those_that_they_reduce(file):
    config = yaml.safe_load((CONFIG / "experiments" / file.name).read_text())
    update_config(config, yaml.safe_load(file.read_text()))
    assert list(Experiment.from_config(config, CONFIG).fits())


@pytest.mark.parametrize("file", sorted((CONFIG / "datasets").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_data_sets_are_valid_and_named_like_their_files(file):
    experiment = Experiment.from_config(quickstart(datasets=[file.stem]), CONFIG)
    assert list(experiment.datasets) == [file.stem]


def test_defaults_are_filled_in():
    config = quickstart()
    for key in ("seeds", "evaluate", "set", "mirror"):
        config.pop(key)
    assert Experiment.from_config(config, CONFIG).config["seeds"] == [0]


def test_fits_are_the_product_of_data_sets_methods_and_seeds():
    config = quickstart(datasets=["digits"], methods=["softmax", "u-max"], seeds=[0, 3])
    fits = list(Experiment.from_config(config, CONFIG).fits())
    assert fits == [Fit("digits", method, seed) for method in ("softmax", "u-max") for seed in (0, 3)]


def test_methods_that_draw_nothing_may_train_once():
    config = quickstart(datasets=["digits"], methods=["softmax", "u-max"], seeds=[3, 0], once=["softmax"])
    experiment = Experiment.from_config(config, CONFIG)
    assert list(experiment.fits()) == [
        Fit("digits", "softmax", 3),
        Fit("digits", "u-max", 3),
        Fit("digits", "u-max", 0),
    ]
    with pytest.raises(InputError, match="config: once: 'sgd' is not among methods"):
        Experiment.from_config(config | {"once": ["sgd"]}, CONFIG)


def test_a_method_that_draws_from_a_tree_names_it_by_its_parameters():
    changes = {"adversarial": {"proposal": {"dimension": 8, "regularizer": 0.5}}}
    experiment = Experiment.from_config(quickstart(set=changes), CONFIG)
    task = experiment.tasks["icd10"]
    assert list(task.proposals("adversarial")) == ["tree_dimension-8_regularizer-0.5_folds-1_resplit-true"]
    assert task.proposals("softmax") == {}
    assert list(task.all_proposals) == ["tree_dimension-8_regularizer-0.5_folds-1_resplit-true"]


def test_a_tree_is_named_by_the_defaults_of_what_is_left_out(tmp_path):
    methods = yaml.safe_load((CONFIG / "methods.yaml").read_text())
    methods["adversarial"]["proposal"] = {"name": "tree"}
    (tmp_path / "methods.yaml").write_text(yaml.safe_dump(methods))
    (tmp_path / "datasets").symlink_to(CONFIG / "datasets")
    experiment, default = Experiment.from_config(quickstart(), tmp_path), Tree()
    assert experiment.tasks["icd10"].all_proposals == {
        f"tree_dimension-{default.dimension}_regularizer-{default.regularizer}_folds-1_resplit-true": settings_of(
            default
        )
    }


def test_own_data_is_a_path_to_its_description(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("{name: mine, format: svmlight, files: [{path: rows.svm}]}")
    (tmp_path / "rows.svm").write_text("0 1:1\n")
    dataset = Experiment.from_config(quickstart(datasets=[str(own)]), CONFIG).datasets["mine"]
    assert dataset.local_files == [str(tmp_path / "rows.svm")]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "options: {lable: kind}",
            "reader table: unknown file or option 'lable'; known: .*did you mean 'label'",
        ),
        ("options: {header: 3}", "mine: reader table: option header: expected "),
        ("parts: {train: {rows: rows.csv}}", "mine: reader table: unknown file or option 'rows'"),
    ],
)
def test_what_a_reader_does_not_take_is_refused_before_anything_is_fetched(tmp_path, said, message):
    own = tmp_path / "own.yaml"
    own.write_text(f"{{name: mine, format: table, files: [{{path: rows.csv}}], {said}}}")
    with pytest.raises(InputError, match=message):
        Experiment.from_config(quickstart(datasets=[str(own)]), CONFIG)


def test_snakemake_stops_with_the_message(checkout):
    done = checkout.run("snakemake", "-n", "--config", "budget={epochs: none}")
    assert done.returncode == 1
    printed = done.stdout + done.stderr
    assert "budget.epochs" in printed
    assert "Building DAG" not in printed


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_config_that_is_not_utf_8_is_refused_in_a_line(checkout, encoding):
    config = checkout.folder / "config/config.yaml"
    text = config.read_text()
    try:
        config.write_bytes(f"{text}# né\n".encode(encoding))
        done = [checkout.run("snakemake", "-n"), checkout.run("make", "run", "-o", "setup-run", "SHELL=/bin/bash")]
    finally:
        config.write_text(text)
    for each in done:
        assert each.returncode != 0
        assert re.search(
            r"^error: config/config.yaml, line \d+: not utf-8 \(.+\); save it as utf-8$", each.stderr, re.M
        )
        assert "Traceback" not in each.stderr


def test_auto_stands_for_its_candidates():
    """A fit of it depends on all that it may choose, and on the advice; no other fit does."""
    found = Experiment.from_config(quickstart(methods=["softmax", "auto"], set={}), CONFIG).tasks["icd10"]
    assert {"softmax", "sampled-softmax-5"} <= set(found.settings("auto")["among"])
    assert {"xsoftmax.advice.choice", "xsoftmax.objectives.sampled_softmax"} <= set(found.components("auto"))
    assert not any("advice" in module for module in found.components("softmax"))
    assert found.proposals("auto") == {}
    few = quickstart(methods=["auto"], set={"auto": {"among": ["softmax"]}})
    assert Experiment.from_config(few, CONFIG).tasks["icd10"].components("auto") == [
        "xsoftmax.advice.choice",
        "xsoftmax.objectives.softmax",
        "xsoftmax.optimizers.adagrad",
        "xsoftmax.proposals.all",
        *solvers.MODULES,
        "xsoftmax.starts.zero",
    ]


def test_single_data_sets_may_differ():
    rate = {"optimizer": {"learning_rate": 0.5}}
    own = {"budget": {"epochs": 3}, "evaluate": {"at": [1]}, "set": {"softmax": {"bias": False}}}
    config = quickstart(
        datasets=["digits", "icd10"], methods=["softmax"], set={"softmax": rate}, **{"for": {"digits": own}}
    )
    tasks = Experiment.from_config(config, CONFIG).tasks
    assert tasks["digits"].plan == {"epochs": 3, "at": [1]}
    assert tasks["icd10"].plan["epochs"] == config["budget"]["epochs"]
    assert tasks["digits"].changes == {"softmax": {"bias": False} | rate}
    assert tasks["digits"].settings("softmax")["optimizer"]["learning_rate"] == 0.5
    assert tasks["icd10"].changes == {"softmax": rate}


def test_single_methods_may_have_budgets_of_their_own():
    own = {"budgets": {"u-max": {"epochs": 9}}}
    config = quickstart(
        datasets=["digits", "icd10"], methods=["softmax", "u-max"], set={}, evaluate={"points": 3},
        budgets={"u-max": {"epochs": 7}}, **{"for": {"digits": own}},
    )  # fmt: skip
    tasks = Experiment.from_config(config, CONFIG).tasks
    assert tasks["icd10"].plan_of("u-max") == {"epochs": 7, "points": 3}
    assert tasks["digits"].plan_of("u-max") == {"epochs": 9, "points": 3}
    assert tasks["icd10"].plan_of("softmax") == config["budget"] | {"points": 3}
    assert tasks["digits"].plan["budgets"] == own["budgets"]  # what DVC looks at
    assert tasks["digits"].trial_budget_of("u-max") == {"epochs": 9}
    searching = config | searched({"u-max": {"optimizer.learning_rate": [1]}})
    searching["search"] |= {"budget": {"epochs": 2}}
    assert Experiment.from_config(searching, CONFIG).tasks["digits"].trial_budget_of("u-max") == {"epochs": 2}


def test_trials_are_all_points_of_a_grid():
    grid = {"u-max": {"optimizer.learning_rate": [0.1, 1], "optimizer.threshold": [1.0]}}
    config = quickstart(datasets=["digits"], methods=["softmax", "u-max"], set={}, **searched(grid))
    found = Experiment.from_config(config, CONFIG)
    names = [f"optimizer.learning_rate-{rate}_optimizer.threshold-1.0" for rate in (0.1, 1)]
    assert list(found.trials()) == [Trial("digits", "u-max", name) for name in names]
    points = found.tasks["digits"].grid["u-max"]
    assert points[names[0]] == {"optimizer": {"learning_rate": 0.1, "threshold": 1.0}}
    assert points[names[1]] == {"optimizer": {"learning_rate": 1, "threshold": 1.0}}


DEFINED = {"define": {"small": {"like": "softmax", "proposal": {"batch_size": 2}}}}


def test_an_experiment_may_define_methods_and_data_sets_choose_among_them():
    own = {"methods": ["small"], "set": {"small": {"bias": False}}}
    config = quickstart(
        datasets=["digits", "icd10"], methods=["softmax", "small"], set={}, **DEFINED, **{"for": {"digits": own}}
    )
    found = Experiment.from_config(config, CONFIG)
    fits = [(fit.dataset, fit.method) for fit in found.fits()]
    assert fits == [("digits", "small"), ("icd10", "softmax"), ("icd10", "small")]
    small = found.tasks["digits"]
    assert small.likes == {"small": "softmax"}
    assert small.changes == {"small": {"proposal": {"batch_size": 2}, "bias": False}}
    assert small.settings("small")["optimizer"] == found.tasks["icd10"].settings("softmax")["optimizer"]
    assert found.tasks["icd10"].settings("softmax")["proposal"]["batch_size"] != 2


def test_a_later_config_file_takes_back_by_null_what_an_earlier_one_defines():
    config = quickstart(methods=["softmax"], set={}, define={"small": None})
    assert Experiment.from_config(config, CONFIG).config["define"] == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"define": {"softmax": {"like": "u-max"}}}, "define: there is a method 'softmax'"),
        ({"define": {"new": {"like": "sofmax"}}}, "define: new: like: unknown method 'sofmax'"),
        ({"define": {"new": {"bias": False}}}, "'like' is a required property"),
        ({"define": {"new": {"like": "softmax"}}}, "define: new is not among methods"),
        ({"for": {"icd10": {"methods": ["sofmax"]}}}, "for: icd10: methods: unknown method 'sofmax'"),
        ({"paper": "nobody1999"}, "paper: unknown paper 'nobody1999'; known: .*ruiz2018"),
        (
            {"for": {"icd10": {"search": {"grid": {"sox": {"optimizer.learning_rate": [1]}}}}}},
            "for: icd10: search: grid: sox is not among methods",
        ),
    ],
)
def test_errors_in_what_is_defined(changes, message):
    with pytest.raises(InputError, match=message):
        Experiment.from_config(quickstart(methods=["softmax"], set={}) | changes, CONFIG)


def test_searches_may_differ_by_data_set():
    grid = {"softmax": {"optimizer.learning_rate": [0.1, 1]}}
    own = {
        "digits": {"search": {"share": 0.5, "grid": {"softmax": {"optimizer.learning_rate": [3]}}}},
        "icd10": {"search": None},
    }
    config = quickstart(datasets=["digits", "icd10", "bibtex"], methods=["softmax"], set={}, **{"for": own})
    tasks = Experiment.from_config(config | {"search": {"grid": grid, "share": 0.1, "points": 4}}, CONFIG).tasks
    assert tasks["digits"].search["share"] == 0.5
    assert list(tasks["digits"].grid["softmax"]) == ["optimizer.learning_rate-3"]
    assert tasks["icd10"].search == tasks["icd10"].grid == {}
    assert list(tasks["bibtex"].grid["softmax"]) == ["optimizer.learning_rate-0.1", "optimizer.learning_rate-1"]
    assert (tasks["bibtex"].search["share"], tasks["bibtex"].search["points"]) == (0.1, 4)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"set": {"softmax": {"ridge": 1.0}}}, "config: set: softmax"),
        ({"define": {"mine": {"like": "softmax", "ridge": 1.0}}, "methods": ["mine"]}, "config: define: mine"),
        ({"for": {"icd10": {"set": {"softmax": {"ridge": 1.0}}}}}, "config: for: icd10: set: softmax"),
    ],
)
def test_a_key_of_an_earlier_version_is_told_its_new_name(changes, where):
    with pytest.raises(InputError, match=f"{where}: ridge is l2 now; write l2: 1.0"):
        Experiment.from_config(quickstart(**changes), CONFIG)
