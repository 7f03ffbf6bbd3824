import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from xsoftmax.cli import main
from xsoftmax.internal import registry
from xsoftmax.internal.text import text_table
from xsoftmax.lab.pages.catalogue import HEADINGS, catalogue, entry, markdown_table, members
from xsoftmax.methods import AXES, build_method, read_methods
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.sampled import solves_batches
from xsoftmax.starts import Start

METHODS = read_methods(Path(__file__).parents[3] / "config" / "methods.yaml")
N, K, D = 96, 64, 20


@pytest.fixture(scope="module")
def entries():
    return {found.name: found for found in catalogue(METHODS)}


def solver_of(name, as_sparse=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(np.float32)
    start = Start(rng.standard_normal((K, D)).astype(np.float32), float(K))
    data = TrainingSet(sparse.csr_array(X) if as_sparse else X, (np.arange(N) % K).astype(np.int32), K, start=start)
    method = build_method(name, METHODS[name])
    return method, make_solver(method, method.objective.fit(data), method.proposal.fit(data), data)


def test_what_is_known_of_the_first_methods(entries):
    """Worked out by hand: Adagrad has one accumulator per weight, a tree looks at 16 float32 of each row, an alias
    table and log-probabilities take 8 + 4 bytes per class."""
    found = {name: (entries[name].rows, entries[name].unbiased_for, str(entries[name].memory)) for name in METHODS}
    assert found["one-vs-each"] == (6, "one-vs-each bound", "1 x weights")
    assert found["negative-frequency"] == (6, "negative sampling loss", "1 x weights, 12 B per class")
    joint = "softmax, jointly with a variable per sample"
    assert found["sgd"] == (2, joint, "8 B per sample")
    assert found["u-max"] == (2, f"{joint}, where u is within threshold of its best", "8 B per sample")
    assert found["implicit-sgd"][1].endswith("as the rate falls to 0")
    assert found["softmax"][:2] == (None, "softmax")
    assert entries["adversarial"].memory[:2] == (1, 64)
    assert entries["adversarial"].draw == "log2(K) x 16 products"
    assert found["implicit-batch"] == (
        10 + 5,  # ten labels, each sample's own among them, and five drawn classes
        "softmax, jointly with a variable per sample, as the rate falls to 0",
        "1 x weights, 8 B per sample, 16 B per class",  # scaled rows looked at; u; two probabilities of a touch
    )
    # One loss, the double sum, whose average per sample moves by a share that falls, or stays what it is set to.
    falling = ("composition", "augment-reduce", "augment-reduce-tree", "augment-reduce-advi")
    assert {found[name][1] for name in falling} == {"softmax, as visits grow"}
    assert {found[name][1] for name in ("sox", "scent")} == {"softmax, as averaging falls to 0"}
    assert found["probit"][1] == "augment-and-reduce bound (probit), as visits grow"
    # Beside Adagrad's accumulators a matrix of D^2 / 2 float64 for each D classes.
    assert entries["sampled-softmax-kernel"].memory.weights == 1 + 1
    assert entries["one-vs-each-head"].rows == 20 + 5 + 1


COPIES_OF_PROPOSALS = {"quadratic-kernel": 1}  # a matrix of D^2 / 2 float64 for D classes


def rows_of_first_steps(name):
    """How many rows move in steps from zero: of one sample, or of a batch where its samples share an equation."""
    as_sparse = METHODS[name].get("weights") == "sparse"
    method, solver = solver_of(name, as_sparse)
    size = method.batch.size if solves_batches(method) else 1
    for position in range(0, 10 * size, size):
        _, solver = solver_of(name, as_sparse)
        before = dense(solver.weights()).copy()
        # L-BFGS takes all samples at once
        samples = (
            np.arange(N) if method.optimizer.needs == "full_gradient" else np.arange(position, position + size) % N
        )
        solver.advance(samples, 0, 0, 1e-3)
        yield int((dense(solver.weights()) != before).any(axis=1).sum())


def dense(W):
    W = getattr(W, "rows", W)  # of a table with weights, those
    return W.toarray() if sparse.issparse(W) else W


FEW = ["one-vs-each", "u-max", "implicit-batch", "softmax"]
EXACT = ["one-vs-each", "u-max", "implicit-sgd", "implicit-batch", "one-vs-each-sgd", "nce-fagan", "sampled-softmax"]


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_a_step_touches_no_more_rows_than_it_says(name, entries):
    moved = list(rows_of_first_steps(name))
    stated = entries[name].rows
    assert 1 < max(moved) <= (K if stated is None else stated)
    if name in EXACT or (stated is None and name != "max-margin"):
        assert max(moved) == (stated or K)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].get("weights") == "sparse"])
def test_a_solver_of_sparse_weights_holds_what_it_says(name, entries):
    arrays = dict(solver_of(name, as_sparse=True)[1].arrays())
    places = [array.nbytes for key, array in arrays.items() if key in ("members", "values", "accumulators", "totals")]
    assert sum(places) == entries[name].memory.per_entry * 4 * arrays["members"].size
    assert entries[name].memory.weights == 0


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].get("weights") != "sparse"])
def test_a_solver_holds_what_it_says(name, entries):
    """Weights, accumulators and stamps, variables per sample, and a copy where weights are converted to be looked at.

    A row may have one number more: the factor by which an L2 penalty has shrunk it.
    """
    method, solver = solver_of(name, as_sparse=True)
    arrays = dict(solver.arrays())
    assert arrays.pop("auxiliary").nbytes == 8 * method.objective.n_auxiliary * N
    one = 4 * (K * (D + 1) if method.encoder is None else method.encoder.size(K, D))
    held = sum(array.nbytes for key, array in arrays.items() if not key.startswith("index_"))  # a proposal's
    if method.optimizer.needs == "full_gradient":
        held += 6 * 2 * one  # float64 vectors of a line search
    elif not np.may_share_memory(getattr(solver.weights(), "rows", solver.weights()), arrays["W"]):
        held += one
    stated = 1 + entries[name].memory.weights - COPIES_OF_PROPOSALS.get(method.settings["proposal"]["name"], 0)
    assert stated * one <= held <= stated * one + 4 * K


def test_qualifiers_are_told():
    settings = {axis: {"name": name} for axis, name in zip(AXES, ("double-sum", "tree", "implicit"), strict=True)}
    assert entry(build_method("mine", settings)).unbiased_for == (
        "softmax, jointly with a variable per sample, as the rate falls to 0"
    )


def test_sampled_softmax_over_all_classes_is_the_softmax():
    settings = {axis: {"name": name} for axis, name in zip(AXES, ("sampled-softmax", "all", "sgd"), strict=True)}
    assert entry(build_method("mine", settings)).unbiased_for == "softmax"


def test_a_ridge_on_single_steps_keeps_how_often_they_touch_a_class(entries):
    """One float32 per class."""
    ridged = entry(build_method("mine", METHODS["u-max"] | {"l2": 1.0}))
    assert ridged.memory == (1, 8, entries["u-max"].memory.per_class + 4, 0)


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
    assert found["u-max"]["memory"] == {"weights": 0, "per_sample": 8, "per_class": 0, "per_entry": 0}
    assert main(["methods", "--members", "--json"]) == 0
    assert {"axis", "name", "summary"} == set(json.loads(capsys.readouterr().out)[0])


def test_a_file_with_an_unknown_member_is_an_error(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text("mine: {objective: {name: hingo}, proposal: {name: uniform}, optimizer: {name: sgd}}\n")
    assert main(["methods", "--methods", str(path)]) == 1
    assert "unknown objective 'hingo'; known: " in capsys.readouterr().err
    assert main(["methods", "--methods", str(tmp_path / "none.yaml")]) == 1
