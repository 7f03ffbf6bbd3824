"""DVC's stages are layers over the same rules, and what they record is never stale."""

import json
import re
import shutil
from itertools import product
from pathlib import Path

import pytest
import yaml

from workflow.checkout import REPOSITORY, TINY, Checkout, finished_tree
from workflow.sources import code
from xsoftmax.internal.fingerprint import ROOT, source_of
from xsoftmax.methods import AXES

AXES_OF_FITS = ("datasets", "methods", "seeds")
STAGES = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]


def rules(stage):
    return re.search(r"\$\{make\} (.*?) --", STAGES[stage]["cmd"])[1].split()


def written_in(file):
    """Rules of a file, those included that are another rule with other files."""
    return set(re.findall(r"^(?:rule|use rule \w+ as) (\w+)(?: with)?:", file.read_text(), re.MULTILINE))


def sources(stage):
    """Files below src/xsoftmax that the verbs of a stage are made of."""
    verbs = set(rules(stage)) - {"plan", "fits", "proposals", "trial", "train_by_ranks", "grid", "track", "download"}
    return {file.relative_to(ROOT).as_posix() for file in code(*verbs)}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_code_that_it_depends_on(stage):
    named = [dep.removeprefix("src/xsoftmax/") for dep in STAGES[stage].get("deps", []) if dep.startswith("src/")]
    covered = tuple(name if name.endswith(".py") else f"{name}/" for name in named)
    missing = {file for file in sources(stage) if not file.startswith(covered)}
    assert not {file for file in missing if Path(file).name != "__init__.py"}


def test_the_plan_names_what_the_experiment_is_read_with():
    named = STAGES["plan"]["deps"]
    read_with = ("config_schema", "consistency", "experiment", "task")
    text = "".join((ROOT / "lab" / "workflow" / f"{name}.py").read_text() for name in read_with)
    modules = re.findall(r"^ *from (xsoftmax\.\S+) import", text, re.MULTILINE)
    paths = (source_of(module).relative_to(REPOSITORY) for module in modules)
    files = {(path.parent if path.name == "__init__.py" else path).as_posix() for path in paths}
    folders = {f"src/{package.replace('.', '/')}" for package in [*AXES.values(), "xsoftmax.data.readers"]}
    missing = {file for file in files if not file.startswith(tuple(f"{name}/" for name in named))} - set(named)
    missing |= (
        folders | {f"src/xsoftmax/lab/workflow/{name}.py" for name in (*read_with, "plan")} | {"workflow/schemas"}
    ) - set(named)
    assert not {name for name in missing if not name.startswith("src/xsoftmax/internal/")}


def test_fits_depend_on_all_that_proposals_do():
    """They depend on a file that only says that the proposals are there."""
    assert set(STAGES["proposal"]["deps"]) <= set(STAGES["fit"]["deps"])


@pytest.mark.parametrize("stage", ["prepare", "proposal", "fit", "report"])
def test_a_stage_that_computes_names_the_versions_of_the_libraries(stage):
    assert "requirements-run.lock" in STAGES[stage]["deps"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_files_of_its_rules(stage):
    for file in (REPOSITORY / "workflow" / "rules").glob("*.smk"):
        written = written_in(file)
        if written & set(rules(stage)):
            assert f"workflow/rules/{file.name}" in STAGES[stage].get("deps", [])


def test_every_rule_that_makes_a_result_is_in_a_stage():
    files = (REPOSITORY / "workflow" / "rules").glob("*.smk")
    written = {rule for file in files for rule in written_in(file)}
    elsewhere = {"peers", "paper"}  # times are no result to repeat; a paper's page is documentation, which git keeps
    assert written - elsewhere == {rule for stage in STAGES for rule in rules(stage)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A working tree whose results DVC has recorded and pushed to a remote beside it."""
    folder = tmp_path_factory.mktemp("dvc")
    tree = Checkout(folder / "first")
    shutil.rmtree(tree.folder / "results", ignore_errors=True)
    (tree.folder / "dvc.lock").unlink(missing_ok=True)
    (tree.folder / "config/config.yaml").write_text(TINY.replace("tiny", "quickstart", 1) + "seeds: [0]\n")
    tree.run("git", "init", "-q")
    commit(tree)
    stages = ran(tree)
    assert stages[0] == "plan"
    assert stages[-1] == "report"
    assert sum(stage.startswith("fit@") for stage in stages) == 3
    tree.run("dvc", "remote", "add", "--default", "store", str(folder / "store"))
    assert tree.run("dvc", "push").returncode == 0
    commit(tree)
    return tree


@pytest.mark.slow
def test_a_second_repro_does_nothing(recorded):
    assert ran(recorded) == []
    assert "Nothing to be done" in recorded.snakemake(config="config/config.yaml")


@pytest.mark.slow
def test_metrics_and_plots_are_shown(recorded):
    metrics = json.loads(recorded.run("dvc", "metrics", "show", "--json").stdout)[""]["data"]
    shown = {Path(file).parts[-3]: entry["data"]["test"].get("log_likelihood") for file, entry in metrics.items()}
    assert shown["softmax"] < 0
    assert shown["adversarial"] < 0
    assert recorded.run("dvc", "plots", "show").returncode == 0
    assert "test_log_likelihood" in (recorded.folder / "dvc_plots/index.html").read_text()
    shown = recorded.run("dvc", "plots", "show", "--show-vega", "results/quickstart/curves.csv").stdout
    plot = json.loads(shown)
    assert plot["spec"]["encoding"]["color"]["field"] == "method"  # a line for each
    assert {"softmax", "adversarial"} <= {row["method"] for row in plot["data"]["values"]}


@pytest.mark.slow
def test_metrics_and_curves_are_in_git_and_models_are_not(recorded):
    names = {Path(name).name for name in recorded.run("git", "ls-files", "results").stdout.splitlines()}
    assert names == {"metrics.json", "history.csv", "curves.csv"}


@pytest.mark.slow
def test_a_repro_after_a_run_retrains_nothing(tmp_path_factory):
    tree = finished_tree(tmp_path_factory)
    shutil.rmtree(tree.folder / "results/quickstart", ignore_errors=True)
    (tree.folder / "dvc.lock").unlink(missing_ok=True)
    (tree.folder / "config/config.yaml").write_text(TINY + "seeds: [0]\n")
    tree.run("git", "init", "-q")
    commit(tree)
    done = tree.run("make", "run", "-o", "setup-run")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert ran(tree) == []
    assert "Nothing to be done" in tree.snakemake(config="config/config.yaml")


def test_the_lock_and_the_metrics_in_git_are_of_the_quick_start():
    config = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    fits = [
        f"{dataset}-{method}-{seed}" for dataset, method, seed in product(*(config[name] for name in AXES_OF_FITS))
    ]
    expected = {"plan", "report", *(f"fit@{fit}" for fit in fits)}
    expected |= {f"{stage}@{name}" for stage in ("download", "prepare", "proposal") for name in config["datasets"]}
    assert set(yaml.safe_load((REPOSITORY / "dvc.lock").read_text())["stages"]) == expected
    assert len(committed_likelihoods()) == len(fits)


def test_the_best_model_is_the_one_that_dvc_names():
    found = committed_likelihoods()
    artifact = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["artifacts"]["best-model"]
    best = max(found, key=lambda folder: found[folder])
    assert artifact["path"].replace("${experiment}", "quickstart") == f"{best.relative_to(REPOSITORY)}/model.h5"


def committed_likelihoods():
    """Validation log-likelihood by folder of a fit."""
    files = (REPOSITORY / "results/quickstart/fits").rglob("metrics.json")
    return {file.parent: json.loads(file.read_text())["validation"]["log_likelihood"] for file in files}


@pytest.mark.slow
def test_a_clone_reruns_what_depends_on_a_change_and_nothing_else(recorded, tmp_path):
    clone = cloned(recorded, tmp_path / "clone")
    assert clone.run("dvc", "pull").returncode == 0
    assert ran(clone) == []
    before = log_likelihoods(clone)

    with clone.edited_yaml("config/methods.yaml", lambda methods: methods["softmax"].update(bias=False)):
        assert ran(clone) == ["plan", "fit@digits-softmax-0", "report"]
    changed = log_likelihoods(clone)
    assert {name for name in before if before[name] != changed[name]} == {"softmax"}

    commit(clone)
    with clone.edited_yaml("config/methods.yaml", set_tree_dimension):
        assert ran(clone) == ["plan", "proposal@digits", "fit@digits-softmax-0", "fit@digits-adversarial-0", "report"]
    assert log_likelihoods(clone)["softmax"] == before["softmax"]


@pytest.mark.slow
def test_a_clone_gets_all_from_s3(recorded, s3, tmp_path):
    clone = cloned(recorded, tmp_path / "clone")
    s3.create_bucket(Bucket="bucket")
    options = {"endpointurl": s3.meta.endpoint_url, "access_key_id": "key", "secret_access_key": "secret"}
    for tree in (recorded, clone):
        tree.run("dvc", "remote", "add", "--local", "s3", "s3://bucket/xsoftmax")
        for name, value in options.items():
            assert tree.run("dvc", "remote", "modify", "--local", "s3", name, value).returncode == 0
    pushed = recorded.run("dvc", "push", "--remote", "s3")
    assert pushed.returncode == 0, pushed.stderr
    pulled = clone.run("dvc", "pull", "--remote", "s3")
    assert pulled.returncode == 0, pulled.stderr
    model = "results/quickstart/fits/digits/softmax/seed-0/model.h5"
    assert (clone.folder / model).read_bytes() == (recorded.folder / model).read_bytes()
    assert ran(clone) == []


def set_tree_dimension(methods):
    methods["adversarial"]["proposal"]["dimension"] = 4


def log_likelihoods(tree):
    files = (tree.folder / "results/quickstart/fits/digits").rglob("metrics.json")
    return {file.parts[-3]: json.loads(file.read_text())["test"].get("log_likelihood") for file in files}


def cloned(tree, folder):
    clone = Checkout(folder)
    shutil.rmtree(folder)
    tree.run("git", "clone", "-q", ".", str(folder))
    return clone


def commit(tree):
    tree.run("git", "add", "-A")
    tree.run("git", "-c", "user.name=test", "-c", "user.email=test", "commit", "-qm", "test")


def ran(tree):
    """Names of the stages that `dvc repro` runs."""
    done = tree.run("dvc", "repro")
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"Running stage '(.*?)'", done.stdout)
