import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import xsoftmax
from xsoftmax import solvers
from xsoftmax.commands import verbs
from xsoftmax.internal.fingerprint import fingerprint, modules_below
from xsoftmax.methods import component_modules, members, read_methods

SOURCES = Path(xsoftmax.__file__).parent
METHODS = read_methods(Path(__file__).parents[2] / "config" / "methods.yaml")
COMMANDS = ["compare", "download", "evaluate", "predict", "prepare", "report", "track", "train", "tree"]

PROGRAM = """
import json, sys
from xsoftmax import solvers
from xsoftmax.commands import verbs
from xsoftmax.internal.fingerprint import fingerprint
print(json.dumps({name: fingerprint(*modules) for name, modules in json.load(sys.stdin).items()}))
"""


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(SOURCES, tmp_path / "xsoftmax", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def fingerprints(folder, asked):
    """Fingerprints by name, as a program that imports the package from ``folder`` computes them."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(ended.stdout)


def of_methods():
    return {name: [verbs()["train"], *component_modules(chosen)] for name, chosen in METHODS.items()}


def of_commands():
    found = {name: [verbs()[name]] for name in COMMANDS}
    return found | {"train": [verbs()["train"], *solvers.MODULES]}


def edit(path):
    with path.open("a") as file:
        file.write("\n# an edit\n")


def changed_by_edit(copy, asked, module):
    before = fingerprints(copy, asked)
    edit(copy / "xsoftmax" / module)
    after = fingerprints(copy, asked)
    return {name for name in asked if before[name] != after[name]}


# Proposals that import others.
MADE_OF = {
    "head": {"uniform", "frequency"},
    "mixture": {"uniform", "frequency"},
    "found-and-uniform": {"uniform", "search"},
}


def methods_with(axis, member):
    """Methods of which it is a part, or a part's default."""
    of = {member} | {whole for whole, defaults in MADE_OF.items() if member in defaults}
    found = {name for name, chosen in METHODS.items() if any(members(chosen[axis], part) for part in of)}
    assert found
    return found


@pytest.mark.parametrize(
    ("axis", "member"),
    [
        ("proposal", "frequency"),
        ("proposal", "uniform"),
        ("proposal", "tree"),
        ("objective", "double-sum"),
        ("objective", "softmax"),
        ("optimizer", "adagrad"),
        ("optimizer", "implicit"),
    ],
)
def test_an_edit_of_a_member_changes_only_methods_that_use_it(copy, axis, member):
    module = f"{axis}s/{member.replace('-', '_')}.py"
    assert changed_by_edit(copy, of_methods(), module) == methods_with(axis, member)


def test_an_edit_of_the_tree_changes_only_methods_that_draw_from_it(copy):
    assert changed_by_edit(copy, of_methods(), "tree/fit.py") == methods_with("proposal", "tree")


def test_an_edit_of_a_kernel_changes_all_methods_but_not_the_preparation(copy):
    changed = changed_by_edit(copy, of_methods() | of_commands(), "kernels/sweep.py")
    assert set(METHODS) <= changed
    assert {"train"} <= changed
    assert not changed & {"download", "prepare", "compare", "report", "track"}


def test_a_plotting_edit_changes_no_fit(copy):
    changed = changed_by_edit(copy, of_methods() | of_commands(), "lab/report/figures.py")
    assert changed <= {"compare", "report"}
    assert changed


@pytest.mark.parametrize(
    "module",
    [
        "internal/progress.py",
        "training/callbacks/show_progress.py",
        "training/callbacks/live_history.py",
        "lab/tracking/live.py",
    ],
)
def test_an_edit_of_what_only_watches_a_fit_changes_no_fit(copy, module):
    asked = {name: of_commands()[name] for name in ("train", "tree")} | of_methods()
    assert not changed_by_edit(copy, asked, module)


@pytest.mark.parametrize("name", ["evaluate", "judge", "save", "guarded"])
def test_an_edit_of_what_decides_changes_all_fits(copy, name):
    assert changed_by_edit(copy, of_methods(), f"training/callbacks/{name}.py") == set(METHODS)


def test_an_edit_of_the_way_back_from_storage_reaches_evaluation(copy):
    """A command loads proposals by name: what it may load counts, or it must be in the rule's list."""
    changed = changed_by_edit(copy, of_commands(), "data/store.py")
    assert {"prepare", "train", "evaluate"} <= changed


def test_the_text_of_a_module_counts_not_its_place(copy, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(copy / "xsoftmax", elsewhere / "xsoftmax")
    assert fingerprints(copy, of_commands()) == fingerprints(elsewhere, of_commands())


def test_it_needs_nothing_heavy():
    """The Snakefile asks for it."""
    program = "import sys; import xsoftmax.internal.fingerprint; print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not any(f"'{name}'" in found for name in ("numpy", "numba", "h5py", "yaml", "pandas"))


def test_its_shape():
    assert len(fingerprint("xsoftmax.cli")) == 16
    assert fingerprint("xsoftmax.cli") == fingerprint("xsoftmax.cli")
    assert fingerprint("xsoftmax.cli") != fingerprint("xsoftmax.methods")
    assert "xsoftmax.proposals.uniform" in modules_below("xsoftmax.proposals")
    assert not any(name.endswith("__init__") for name in modules_below("xsoftmax.proposals"))


def test_numba_caches_follow_the_sources(copy):
    def cache():
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        program = "import os, xsoftmax; print(os.environ['NUMBA_CACHE_DIR'])"
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stdout

    before = cache()
    assert cache() == before
    edit(copy / "xsoftmax" / "kernels" / "rows.py")
    assert cache() != before
