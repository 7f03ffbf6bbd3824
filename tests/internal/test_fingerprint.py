import ast
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
from xsoftmax.internal.fingerprint import fingerprint, kernel_modules, modules_below, source_of
from xsoftmax.methods import component_modules, members, read_methods

SOURCES = Path(xsoftmax.__file__).parent
METHODS = read_methods(Path(__file__).parents[2] / "config" / "methods.yaml")
COMMANDS = ["compare", "download", "evaluate", "predict", "prepare", "proposal", "report", "track", "train"]

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


def edit(path, written="\nEDITED = True\n"):
    with path.open("a") as file:
        file.write(written)


def changed_by_edit(copy, asked, module, **written):
    before = fingerprints(copy, asked)
    edit(copy / "xsoftmax" / module, **written)
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


@pytest.mark.long_cases
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


def test_an_edit_of_a_trees_fit_on_devices_changes_methods_with_both(copy):
    train = verbs()["train"]
    asked = {
        f"{name} {device}": [train, *component_modules(METHODS[name] | {"device": device})]
        for name in ("adversarial", "softmax")
        for device in ("numba", "cpu")
    }
    assert changed_by_edit(copy, asked, "gpu/tree_levels.py") == {"adversarial cpu"}


def test_an_edit_of_a_kernel_changes_all_methods_but_not_the_preparation(copy):
    changed = changed_by_edit(copy, of_methods() | of_commands(), "kernels/run_steps.py")
    assert set(METHODS) <= changed
    assert {"train"} <= changed
    assert not changed & {"download", "prepare", "compare", "report", "track"}


def test_a_plotting_edit_changes_no_fit(copy):
    changed = changed_by_edit(copy, of_methods() | of_commands(), "lab/report/figures.py")
    assert changed <= {"compare", "report"}
    assert changed


def test_a_comment_a_docstring_and_the_shape_of_lines_change_nothing(copy):
    before = fingerprints(copy, of_methods() | of_commands())
    for module in ("kernels/run_steps.py", "training/fit.py", "proposals/uniform.py"):
        path = copy / "xsoftmax" / module
        text = path.read_text()
        first = text.index('"""')
        edited = text[:first] + '"""Another sentence. ' + text[first + 3 :]
        path.write_text(edited.replace("\n\n\n", "\n\n\n# a comment\n\n\n"))
        assert path.read_text() != text
    assert fingerprints(copy, of_methods() | of_commands()) == before


@pytest.mark.slow
def test_what_only_docstrings_differ_in_is_told_from_what_strings_differ_in(copy):
    path = copy / "xsoftmax/objectives/softmax.py"
    before = fingerprints(copy, of_methods())
    path.write_text(path.read_text() + '\nNAME = "one"\n')
    one = fingerprints(copy, of_methods())
    path.write_text(path.read_text().replace('NAME = "one"', 'NAME = "two"'))
    two = fingerprints(copy, of_methods())
    assert before["softmax"] != one["softmax"] != two["softmax"]


@pytest.mark.slow
def test_what_a_source_means_is_kept_and_damage_of_that_changes_nothing(copy, tmp_path, monkeypatch):
    monkeypatch.setenv("XSOFTMAX_NUMBA_CACHE", str(tmp_path / "cache"))
    before = fingerprints(copy, of_commands())
    kept = [path for path in (tmp_path / "cache" / "meanings").iterdir() if path.is_file()]
    assert kept
    assert {path.read_text() for path in kept} >= set(before.values())
    for path, content in zip(kept, [b"", b"\xff" * 16, b"0" * 15] * len(kept), strict=False):
        path.write_bytes(content)
    assert fingerprints(copy, of_commands()) == before
    monkeypatch.setenv("XSOFTMAX_NUMBA_CACHE", "/proc/none")
    assert fingerprints(copy, of_commands()) == before


def test_a_source_that_is_no_python_is_named(copy, monkeypatch):
    edit(copy / "xsoftmax/kernels/run_steps.py", "\ndef (:\n")
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "xsoftmax", "methods"], capture_output=True, text=True, env=environment
    )
    assert ended.returncode != 0
    assert "kernels/run_steps.py: line" in ended.stderr


@pytest.mark.long_cases
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
    asked = {name: of_commands()[name] for name in ("train", "proposal")} | of_methods()
    assert not changed_by_edit(copy, asked, module)


@pytest.mark.long_cases
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


def test_numba_caches_follow_the_modules_that_hold_kernels(copy):
    def cache():
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        program = "import os, xsoftmax; print(os.environ['NUMBA_CACHE_DIR'])"
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stdout

    before = cache()
    assert cache() == before
    for elsewhere in ("lab/papers/yen2018.py", "training/fit.py", "cli.py", "data/store.py", "model.py"):
        edit(copy / "xsoftmax" / elsewhere)
        assert cache() == before, elsewhere
    edit(copy / "xsoftmax/kernels/rows.py", "\n# a comment\n")
    assert cache() == before
    for holder in ("kernels/rows.py", "objectives/softmax.py", "data/parsing.py"):
        edit(copy / "xsoftmax" / holder)
        assert cache() != before, holder
        before = cache()


def test_the_code_of_every_objective_is_kept():
    """What is compiled for a type from elsewhere would be compiled anew by each program."""
    assert set(modules_below("xsoftmax.objectives")) <= kernel_modules()


def test_compiled_code_is_made_of_modules_that_hold_kernels_alone():
    """A constant from anywhere else could change, and old machine code would go on with the old one."""
    holders = kernel_modules() | {"xsoftmax.internal.compiled"}
    found = [
        f"{module}.{function.name} reads {name} of {origin}"
        for module in sorted(kernel_modules())
        for function, name, origin in names_of_ours(ast.parse(source_of(module).read_text()))
        if origin not in holders
    ]
    assert not found
    assert {"xsoftmax.kernels.rows", "xsoftmax.objectives.softmax", "xsoftmax.data.parsing"} <= holders
    assert not holders & {"xsoftmax.training.fit", "xsoftmax.methods", "xsoftmax.data.store"}


# Decorators of functions that Python runs, not compiled code.
UNCOMPILED = {
    "property",
    "cached_property",
    "classmethod",
    "contextmanager",
    "abstractmethod",
    "staticmethod",
    "wraps",
}


def names_of_ours(tree):
    """Of functions with a decorator, the names that they read and that come from another module of ours."""
    origins = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xsoftmax"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                origins[alias.asname or alias.name] = whole if source_of(whole).exists() else node.module
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not function.decorator_list:
            continue
        called = [getattr(each, "func", each) for each in function.decorator_list]
        if {getattr(each, "id", getattr(each, "attr", "")) for each in called} & UNCOMPILED:
            continue
        local = {argument.arg for argument in function.args.args}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in origins and node.id not in local:
                yield function, node.id, origins[node.id]
