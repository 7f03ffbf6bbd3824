"""DVC's stages are layers over the same rules, and what they record is never stale."""

import re
import sys

import pytest
import yaml

from workflow.checkout import REPOSITORY, TINY, Checkout
from xsoftmax.fingerprint import ROOT, _closure, modules_below

sys.path.insert(0, str(REPOSITORY / "workflow"))

STAGES = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
# What every command imports and what only says which class of error it was.
SHARED = {"__init__.py", "errors.py", "fingerprint.py", "registry.py"}
COMPONENTS = {
    "prepare": ["xsoftmax.data.readers"],
    "fit": ["xsoftmax.objectives", "xsoftmax.proposals", "xsoftmax.optimizers"],
}


def rules(stage):
    return re.search(r"\$\{make\} (.*?) --", STAGES[stage]["cmd"])[1].split()


def sources(stage):
    """Files below src/xsoftmax that the verbs of a stage are made of."""
    verbs = [
        f"xsoftmax.commands.{rule}"
        for rule in rules(stage)
        if rule not in ("plan", "trees", "track", "download")
    ]
    modules = verbs + [module for package in COMPONENTS.get(stage, []) for module in modules_below(package)]
    files = set()
    for module in set().union(*map(_closure, modules)):
        path = ROOT.joinpath(*module.split(".")[1:])
        files.add(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return {file.relative_to(ROOT).as_posix() for file in files}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_code_that_it_depends_on(stage):
    named = [
        dep.removeprefix("src/xsoftmax/") for dep in STAGES[stage].get("deps", []) if dep.startswith("src/")
    ]
    covered = tuple(name if name.endswith(".py") else f"{name}/" for name in named)
    missing = {file for file in sources(stage) if not file.startswith(covered)} - SHARED
    assert not {file for file in missing if not file.endswith("/__init__.py")}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_files_of_its_rules(stage):
    for file in (REPOSITORY / "workflow" / "rules").glob("*.smk"):
        written = set(re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE))
        if written & set(rules(stage)):
            assert f"workflow/rules/{file.name}" in STAGES[stage].get("deps", [])


def test_every_rule_that_makes_a_result_is_in_a_stage():
    files = (REPOSITORY / "workflow" / "rules").glob("*.smk")
    written = {rule for file in files for rule in re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE)}
    assert written == {rule for stage in STAGES for rule in rules(stage)}


@pytest.mark.slow
def test_repro_reruns_what_depends_on_a_change(tmp_path):
    first = tmp_path / "first"
    tree = Checkout(first)
    (first / "config/config.yaml").write_text(TINY + "seeds: [0]\n")
    committed(tree)
    assert {"download@digits", "fit@digits-adversarial-0", "report"} <= set(ran(tree))
    assert ran(tree) == []

    with tree.edited_yaml("config/methods.yaml", lambda methods: methods["softmax"].update(bias=False)):
        assert ran(tree) == ["plan", "fit@digits-softmax-0", "report"]
    assert "log_likelihood" in tree.run("dvc", "metrics", "show").stdout
    assert (first / "dvc_plots/index.html").exists() or tree.run("dvc", "plots", "show").returncode == 0


def committed(tree):
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t", "commit", "-qm", "t"],
    ):
        tree.run("git", *command)


def ran(tree):
    """Names of the stages that `dvc repro` runs."""
    done = tree.run("dvc", "repro")
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"Running stage '(.*?)'", done.stdout)
