import json
from pathlib import Path

import numpy as np
import pytest

from xsoftmax import registry
from xsoftmax.catalogue import HEADINGS, catalogue, entry, markdown_table, members, text_table
from xsoftmax.cli import main
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import AXES, build_method, read_methods
from xsoftmax.proposals import TrainingSet
from xsoftmax.training.solvers import make_solver

METHODS = read_methods(Path(__file__).parents[1] / "config" / "methods.yaml")
N, K, D = 96, 64, 20


@pytest.fixture(scope="module")
def entries():
    return {found.name: found for found in catalogue(METHODS)}


def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(np.float32)
    return TrainingSet(X, (np.arange(N) % K).astype(np.int32), K)


def solver_of(name):
    method, data = build_method(name, METHODS[name]), problem()
    return method, make_solver(method, method.objective.fit(data), method.proposal.fit(data), data)


def test_what_is_known_of_the_first_methods(entries):
    """Worked out by hand: Adagrad has one accumulator per weight, a tree looks at 16 float32 of each row, an alias
    table and log-probabilities take 8 + 4 bytes per class."""
    found = {name: (entries[name].rows, entries[name].unbiased_for, str(entries[name].memory)) for name in METHODS}
    assert found["one-vs-each"] == (6, "one-vs-each bound", "1 x weights")
    assert found["negative-frequency"] == (6, "negative sampling loss", "1 x weights, 12 B per class")
    assert found["u-max"] == (2, "softmax, jointly with a variable per sample", "8 B per sample")
    assert found["implicit-sgd"][1].endswith("as the rate falls to 0")
    assert found["softmax"][:2] == (None, "softmax")
    assert entries["adversarial"].memory[:2] == (1, 64)
    assert entries["adversarial"].draw == "log2(K) x 16 products"
    # Beside Adagrad's accumulators a copy of the weights, and a matrix of D^2 / 2 float64 for each D classes.
    assert entries["sampled-softmax-kernel"].memory.weights == 1 + 1 + 1
    assert entries["one-vs-each-head"].rows == 20 + 5 + 1


SINGLE = [
    name
    for name, settings in METHODS.items()
    if settings["proposal"]["name"] != "all" and settings.get("batch", {}).get("size", 1) == 1
]


@pytest.mark.parametrize(
    "name", ["one-vs-each", "u-max", "implicit-sgd", "adversarial", "one-vs-each-joint-sampled", "scent"]
)
def test_a_step_touches_no_more_rows_than_it_says(name, entries):
    _, solver = solver_of(name)
    n_moved = []
    before = solver.weights().copy()
    for position in range(60):
        solver.advance(np.array([position]), 0, position, 1e-3)
        after = solver.weights().copy()
        n_moved.append(int((after != before).any(axis=1).sum()))
        before = after
    assert 1 < max(n_moved) <= entries[name].rows
    if name in ("one-vs-each", "u-max", "implicit-sgd"):
        assert max(n_moved) == entries[name].rows


@pytest.mark.parametrize("name", [name for name in SINGLE if "ridge" not in METHODS[name] and "kernel" not in name])
def test_a_solver_holds_what_it_says(name, entries):
    """Weights, accumulators and variables per sample."""
    method, solver = solver_of(name)
    n_bytes = sum(array.nbytes for array in solver.arrays().values())
    weights = 4 * K * (features_of(problem().X, True).X.shape[1] + 1)
    expected = (1 + entries[name].memory.weights) * weights + 8 * method.objective.n_states * N
    assert n_bytes == expected


def test_qualifiers_are_told():
    settings = {axis: {"name": name} for axis, name in zip(AXES, ("double-sum", "tree", "implicit"), strict=True)}
    assert entry(build_method("mine", settings)).unbiased_for == (
        "softmax, jointly with a variable per sample, as the rate falls to 0"
    )


def test_all_members_are_listed_with_what_they_are():
    found = members()
    for axis, package in AXES.items():
        assert [member.name for member in found if member.axis == axis] == registry.names(package)
    assert all(len(member.summary) > 10 for member in found)


def test_columns_are_aligned_and_wrapped():
    rows = [{"a": "one two three", "b": "x"}, {"a": "y", "b": "z"}]
    assert text_table(rows, {"a": "A", "b": "B"}, {"a": 8}) == "A        B\none two  x\nthree\ny        z\n"


def test_the_verb_prints_every_method(capsys, entries):
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "method"
    assert [line.split()[0] for line in lines if line[:1].strip()] == ["method", *METHODS]
    assert max(map(len, lines)) < 180
    assert main(["methods", "--markdown"]) == 0
    table = capsys.readouterr().out
    assert table == markdown_table(entries.values())
    assert {line.count("|") for line in table.splitlines()} == {len(HEADINGS) + 1}


def test_json_holds_settings_with_their_defaults(capsys):
    assert main(["methods", "--json"]) == 0
    found = {values["name"]: values for values in json.loads(capsys.readouterr().out)}
    assert list(found) == list(METHODS)
    assert found["u-max"]["settings"]["optimizer"]["threshold"] == 1.0
    assert found["u-max"]["memory"] == {"weights": 0, "per_sample": 8, "per_class": 0}
    assert main(["methods", "--members", "--json"]) == 0
    assert {"axis", "name", "summary"} == set(json.loads(capsys.readouterr().out)[0])


def test_a_file_with_an_unknown_member_is_an_error(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text("mine: {objective: {name: hinge}, proposal: {name: uniform}, optimizer: {name: sgd}}\n")
    assert main(["methods", "--methods", str(path)]) == 1
    assert "unknown objective 'hinge'; known: " in capsys.readouterr().err
    assert main(["methods", "--methods", str(tmp_path / "none.yaml")]) == 1
