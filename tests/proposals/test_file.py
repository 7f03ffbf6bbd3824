"""Proposals that are fitted beforehand: their file, the verb that writes it, and who takes it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from edited import edited
from tree.clusters import clustered
from xsoftmax.cli import main
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.store import open_prepared
from xsoftmax.internal import free_memory, registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put
from xsoftmax.proposals import TrainingSet, fitted, key_of, parts_beforehand, settings_of
from xsoftmax.proposals._file import fit_beforehand, known_beforehand, read_proposal, write_proposal
from xsoftmax.proposals.head import Head
from xsoftmax.proposals.mixture import Mixture
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import Uniform
from xsoftmax.tree.fit import fit_tree

PACKAGE = "xsoftmax.proposals"
BEFOREHAND = [
    name for name in registry.names(PACKAGE) if getattr(registry.load(PACKAGE, name).MEMBER, "beforehand", False)
]
NAMES = np.array([f"klass {i} é" for i in range(9)])
FIT = ["proposal", "DATA", "--kind", "tree"]


@pytest.fixture(scope="module")
def rows():
    X, y = clustered(400, 9, 5)
    return csr_array(X), y


@pytest.fixture(scope="module")
def data(rows):
    return Dataset.from_arrays(rows[0], NAMES[rows[1]], name="toy", classes=NAMES)


@pytest.fixture(scope="module")
def stored(data):
    return fit_beforehand(data, Tree(dimension=3))


@pytest.fixture(scope="module")
def prepared(prepare, rows):
    return prepare(rows[0].toarray(), rows[1], 9, sparse=True)


def words(prepared, *more):
    return [str(prepared) if word == "DATA" else str(word) for word in (*FIT, *more)]


@pytest.mark.parametrize("name", BEFOREHAND)
def test_a_file_keeps_every_bit_of_whatever_is_fitted_beforehand(name, data, rows, tmp_path):
    member = registry.load(PACKAGE, name).MEMBER()
    written = fit_beforehand(data, member, seed=3)
    write_proposal(tmp_path / "below" / "one.h5", written)
    found = read_proposal(tmp_path / "below" / "one.h5")
    assert found.class_names == data.class_names
    assert found.attributes.items() >= written.attributes.items()
    assert (found.settings, found.fit_summary) == (settings_of(member), written.fit_summary)
    assert (found.attributes["seed"], found.attributes["identity"]) == (3, data.identity)
    assert found.attributes["seconds"] > 0
    X = rows[0]
    np.testing.assert_array_equal(found.proposal.log_q(X, 0, 9), written.proposal.log_q(X, 0, 9))
    for one, other in zip(found.proposal.kernel(X), written.proposal.kernel(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["one.h5"]
    write_proposal(tmp_path / "again.h5", written)
    assert (tmp_path / "again.h5").read_bytes() == (tmp_path / "below" / "one.h5").read_bytes()
    assert read_proposal(tmp_path / "again.h5").digest == found.digest


def test_what_takes_no_time_to_fit_is_not_fitted_beforehand(data):
    with pytest.raises(InputError, match="proposal uniform takes no time to fit, and fits do so themselves"):
        fit_beforehand(data, Uniform())


@pytest.mark.fault(
    "a proposal whose fit needs more memory than there is",
    happens="what it and the training rows take is asked for first; nothing is read",
    user="`error: proposal … and the training rows of …: … MB of memory, … MB are free; …`",
)
def test_memory_is_asked_for_before_it_is_taken(prepared, monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 1000)
    with open_prepared(prepared) as data:
        monkeypatch.setattr(type(data), "split", lambda *_: pytest.fail("rows were read"))
        with pytest.raises(
            InputError, match=r"proposal tree and the training rows of .*: 0 MB of memory, 0 MB are free"
        ):
            fit_beforehand(data, Tree(dimension=3))


def test_foreign_files_are_refused(stored, tmp_path):
    with pytest.raises(InputError, match=r"none\.h5: no such file; fit one with `python -m xsoftmax proposal`"):
        read_proposal(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("not a proposal")
    with pytest.raises(InputError, match=r"text\.h5: not an HDF5 file"):
        read_proposal(tmp_path / "text.h5")
    with edited(tmp_path / "model.h5") as file:
        put(file, kind="model")
    with pytest.raises(InputError, match=r"model\.h5: holds 'model', not a proposal"):
        read_proposal(tmp_path / "model.h5")
    with edited(tmp_path / "old.h5") as file:
        put(file, kind="tree", schema_version=2)
    with pytest.raises(InputError, match="holds 'tree', not a proposal; fit one with"):
        read_proposal(tmp_path / "old.h5")
    write_proposal(tmp_path / "tree.h5", stored)
    with edited(tmp_path / "tree.h5") as file:
        put(file, schema_version=99)
    with pytest.raises(InputError, match="proposal of version 99, this xsoftmax reads 1"):
        read_proposal(tmp_path / "tree.h5")


@pytest.mark.fault(
    "a file of a proposal that says it is another, of other parameters, of no time or of no data",
    happens="what it says of itself is compared as it is opened; it is refused",
    user="`error: …: not what xsoftmax writes (…)`",
)
@pytest.mark.parametrize(
    "change",
    [{"proposal": "frequency"}, {"seconds": -1.0}, {"seconds": float("nan")}, {"identity": 3}, {"n_classes": 8}],
)
def test_a_file_that_contradicts_itself(change, stored, tmp_path):
    write_proposal(tmp_path / "tree.h5", stored)
    with edited(tmp_path / "tree.h5") as file:
        put(file, **change)
    with pytest.raises(InputError, match=r"tree\.h5: not what xsoftmax writes"):
        read_proposal(tmp_path / "tree.h5")


@pytest.mark.parametrize("name", ["mean", "components"])
def test_a_projection_that_is_not_finite_is_refused(name, stored, tmp_path):
    write_proposal(tmp_path / "tree.h5", stored)
    with edited(tmp_path / "tree.h5") as file:
        file[f"fitted/{name}"][0] = np.inf
    with pytest.raises(InputError, match=f"{name}: not all of them are finite"):
        read_proposal(tmp_path / "tree.h5")


@pytest.mark.parametrize(
    "member", [Tree(3), Head(2, Tree(3)), Mixture(Tree(3), Uniform()), Head(2, Mixture(Tree(3)))]
)
def test_parts_are_taken_wherever_they_stand(member, stored, data, rows):
    assert [key_of(part) for part in parts_beforehand(member)] == [key_of(Tree(3, n_sampled=9))]
    known = known_beforehand({"tree.h5": stored}, member, data)
    found = fitted(member, TrainingSet(*rows, 9, beforehand=known))
    while not hasattr(found, "tree"):
        found = getattr(found, "tail", None) or found.first
    assert found is stored.proposal


@pytest.mark.parametrize("member", [Tree(4), Tree(3, folds=3), Tree(3, resplit=False), Head(2, Tree(4)), Uniform()])
def test_a_part_of_other_parameters_is_refused(member, stored, data):
    with pytest.raises(InputError, match=r"tree\.h5: holds proposal tree \(dimension 3, .*, and the method has "):
        known_beforehand({"tree.h5": stored}, member, data)


def test_what_was_fitted_to_other_rows_is_refused(stored, rows, data):
    """Equal labels do not make equal rows."""
    X, y = rows
    other = Dataset.from_arrays(2 * X, NAMES[y], name="toy", classes=NAMES)
    with pytest.raises(InputError, match="a proposal that was fitted to other data, toy as it was prepared then"):
        known_beforehand({"tree.h5": stored}, Tree(3), other)
    with pytest.raises(InputError, match="was fitted to all training rows, and a share of them is trained on"):
        known_beforehand({"tree.h5": stored}, Tree(3), data, share=0.5)


def test_command_fits_prepared_data(prepared, tmp_path, capsys):
    output = tmp_path / "trees" / "tree.h5"
    assert main(words(prepared, "--set", '{"dimension": 3}', "-o", output)) == 0
    found = read_proposal(output)
    with open_prepared(prepared) as data:
        train, identity = data.split("train"), data.identity
    assert found.attributes["identity"] == identity
    tree = found.proposal.tree
    assert tree.dimension == 3
    likelihood = tree.log_likelihood(tree.project(train.X), train.y)
    assert found.fit_summary["train_log_likelihood"] == pytest.approx(likelihood, abs=1e-5)
    printed = capsys.readouterr().out
    assert "proposal tree for 9 classes" in printed
    assert "  levels: 4\n  components: 3\n  train_log_likelihood: -" in printed


def test_a_tree_without_resplits_says_so_in_its_file(prepared, tmp_path):
    for resplit in (True, False):
        settings = json.dumps({"dimension": 1, "resplit": resplit})
        assert main(words(prepared, "--set", settings, "-o", tmp_path / f"{resplit}.h5")) == 0
    found, other = (read_proposal(tmp_path / f"{resplit}.h5") for resplit in (False, True))
    assert (found.settings["resplit"], other.settings["resplit"]) == (False, True)
    with open_prepared(prepared) as data:
        train = data.split("train")
    expected = fit_tree(train.X, train.y, 9, 1, resplit=False).weights
    np.testing.assert_array_equal(found.proposal.tree.weights, expected)
    assert np.any(other.proposal.tree.weights != expected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "[3]"], "is not JSON of the form"),
        (["--set", '{"dimensions": 3}'], "unknown parameter 'dimensions'"),
        (["--set", '{"dimension": -1}'], "dimension is -1; set it to"),
        (["--kind", "trees"], "unknown proposal 'trees'"),
        (["--kind", "frequency"], "proposal frequency takes no time to fit"),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_what_the_command_refuses(more, message, prepared, tmp_path, capsys):
    assert main(words(prepared, *more, "-o", tmp_path / "tree.h5")) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_command_names_missing_data(tmp_path):
    command = [sys.executable, "-m", "xsoftmax", *words(tmp_path / "none.h5", "-o", tmp_path / "tree.h5")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "no such file; make it with" in found.stderr
    assert list(tmp_path.iterdir()) == []
