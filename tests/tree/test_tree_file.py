import subprocess
import sys

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array

from edited import edited
from tree.clusters import clustered
from xsoftmax.cli import main
from xsoftmax.data.store import Split, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import put
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.tree import Tree as Proposal
from xsoftmax.tree.file import StoredTree, read_tree, write_tree
from xsoftmax.tree.fit import fit_tree
from xsoftmax.tree.model import Tree


@pytest.fixture(scope="module")
def data():
    X, y = clustered(400, 9, 5)
    return csr_array(X), y


@pytest.fixture
def stored(data):
    X, y = data
    tree = fit_tree(X, y, 9, dimension=3)
    attributes = {"dataset": "toy", "n_classes": 9, "n_features": 5, "seconds": 0.5}
    return StoredTree(tree, attributes, [f"klass {i} é" for i in range(9)])


def test_round_trip_keeps_every_bit(stored, data, tmp_path):
    write_tree(tmp_path / "below" / "tree.h5", stored)
    found = read_tree(tmp_path / "below" / "tree.h5", {"dataset": "toy", "n_classes": 9})
    assert found.class_names == stored.class_names
    assert found.attributes.items() >= stored.attributes.items()
    assert found.attributes["kind"] == "tree"
    X, y = data
    Z = found.tree.project(X)
    np.testing.assert_array_equal(Z, stored.tree.project(X))
    np.testing.assert_array_equal(found.tree.log_probability(Z), stored.tree.log_probability(Z))
    np.testing.assert_array_equal(found.tree.log_probability_of(Z, y), stored.tree.log_probability_of(Z, y))
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["tree.h5"]


def test_equal_trees_give_equal_bytes(stored, tmp_path):
    write_tree(tmp_path / "a.h5", stored)
    write_tree(tmp_path / "b.h5", stored)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.parametrize("n_features", [0, 4])
def test_any_group_holds_a_tree(n_features, tmp_path):
    X, y = clustered(60, 3, n_features)
    tree = fit_tree(X, y, 3)
    with h5py.File(tmp_path / "model.h5", "w") as file:
        tree.to_group(file.create_group("proposal/tree"))
        found = Tree.from_group(file["proposal/tree"], 3, n_features)
    np.testing.assert_array_equal(found.log_probability(found.project(X)), tree.log_probability(tree.project(X)))


def test_foreign_files_are_refused(stored, tmp_path):
    with pytest.raises(InputError, match=r"none\.h5: no such file; fit one with"):
        read_tree(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("not a tree")
    with pytest.raises(InputError, match=r"text\.h5: not an HDF5 file"):
        read_tree(tmp_path / "text.h5")
    with edited(tmp_path / "model.h5") as file:
        put(file, kind="model")
    with pytest.raises(InputError, match=r"model\.h5: holds 'model', not a tree"):
        read_tree(tmp_path / "model.h5")
    write_tree(tmp_path / "tree.h5", stored)
    with pytest.raises(InputError, match=r"a tree of dataset 'toy', wanted 'icd10'"):
        read_tree(tmp_path / "tree.h5", {"dataset": "icd10"})
    with edited(tmp_path / "tree.h5") as file:
        put(file, schema_version=99)
    with pytest.raises(InputError, match="tree of version 99, this xsoftmax reads 2"):
        read_tree(tmp_path / "tree.h5")


def prepare(path, X, y):
    split = Split(X, y)
    write_prepared(
        path,
        dataset="toy",
        splits={"train": split, "validation": split, "test": split},
        class_names=[f"class {i}" for i in range(9)],
        class_counts=np.bincount(y, minlength=9),
        transform=Transform("sparse", X.shape[1]),
        parameters={},
        source_sha256={},
        dropped={},
    )


@pytest.mark.parametrize("n_features", [0, 5])
def test_command_fits_prepared_data(n_features, tmp_path, capsys):
    X, y = clustered(300, 9, n_features)
    prepare(tmp_path / "toy.h5", csr_array(X), y)
    output = tmp_path / "trees" / "tree.h5"
    assert main(["tree", str(tmp_path / "toy.h5"), "--dimension", "3", "-o", str(output)]) == 0
    found = read_tree(output, {"dataset": "toy", "n_classes": 9, "n_features": n_features, "dimension": 3})
    assert found.tree.dimension == min(n_features, 3)
    assert found.class_names[8] == "class 8"
    assert found.attributes["seconds"] > 0
    likelihood = found.tree.log_likelihood(found.tree.project(X), y)
    assert found.attributes["train_log_likelihood"] == pytest.approx(likelihood, abs=1e-5)
    assert f"9 classes, 4 levels, {found.tree.dimension} components" in capsys.readouterr().out


def test_a_tree_without_resplits_says_so_in_its_file(data, tmp_path):
    X, y = data
    prepare(tmp_path / "toy.h5", X, y)
    trees = {"--resplit": tmp_path / "with.h5", "--no-resplit": tmp_path / "without.h5"}
    for option, output in trees.items():
        assert main(["tree", str(tmp_path / "toy.h5"), "--dimension", "1", option, "-o", str(output)]) == 0
    found = read_tree(trees["--no-resplit"], {"resplit": False}).tree
    np.testing.assert_array_equal(found.weights, fit_tree(X, y, 9, 1, resplit=False).weights)
    assert np.any(found.weights != read_tree(trees["--resplit"], {"resplit": True}).tree.weights)
    Proposal(dimension=1, resplit=False).fit(TrainingSet(X, y, 9, tree=trees["--no-resplit"]))
    with pytest.raises(InputError, match="a tree of resplit False, wanted True; fit one on these data"):
        Proposal(dimension=1).fit(TrainingSet(X, y, 9, tree=trees["--no-resplit"]))


def test_command_names_missing_data(tmp_path):
    command = [
        sys.executable,
        "-m",
        "xsoftmax",
        "tree",
        str(tmp_path / "none.h5"),
        "-o",
        str(tmp_path / "tree.h5"),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "no such file; make it with" in found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mean", "components"])
def test_a_projection_that_is_not_finite_is_refused(name, stored, tmp_path):
    write_tree(tmp_path / "tree.h5", stored)
    with edited(tmp_path / "tree.h5") as file:
        file[name][0] = np.inf
    with pytest.raises(InputError, match=f"{name}: not all of them are finite"):
        read_tree(tmp_path / "tree.h5")
