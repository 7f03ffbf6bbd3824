import numpy as np
import pytest
from scipy.sparse import csr_array

from tree.clusters import clustered
from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals._file import read_proposal
from xsoftmax.proposals.tree import Tree
from xsoftmax.tree.cross_validation import REGULARIZERS, choose_regularizer
from xsoftmax.tree.fit import fit_tree


def naive_scores(X, y, n_classes, dimension, folds, seed):
    """Held-out log-likelihoods, one row at a time."""
    fold_of = np.random.default_rng(seed).permutation(len(y)) % folds
    scores = []
    for regularizer in (0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1, 3.16, 10):
        of_rows = []
        for fold in range(folds):
            kept = fold_of != fold
            tree = fit_tree(X[kept], y[kept], n_classes, dimension, regularizer, seed)
            for i in np.flatnonzero(~kept):
                if y[i] in y[kept]:
                    row = tree.log_probability(tree.project(X[i : i + 1]), dtype=np.float64)
                    of_rows.append(row[0, y[i]])
        scores.append(np.mean(of_rows))
    return scores


@pytest.fixture(scope="module")
def data():
    X, y = clustered(130, 9, 5, noise=1.0)
    y[0] = 9  # the only row of its class
    return X, y


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("folds", "seed"), [(2, 0), (5, 3)])
def test_the_best_on_held_out_rows_is_chosen(data, folds, seed, sparse):
    X, y = data
    X = csr_array(X) if sparse else X
    found = choose_regularizer(X, y, 10, 3, folds, seed)
    expected = naive_scores(X, y, 10, 3, folds, seed)
    assert np.allclose(found.log_likelihoods, expected, rtol=1e-4)
    assert found.regularizer == REGULARIZERS[int(np.argmax(expected))]
    assert min(expected) < max(expected) - 0.05


def test_the_same_seed_gives_the_same_choice_and_another_other_folds(data):
    one, same, other = (choose_regularizer(*data, 10, 3, 3, seed) for seed in (1, 1, 2))
    assert one == same
    assert one.log_likelihoods != other.log_likelihoods


def test_noise_asks_for_more_of_it_than_a_clear_structure():
    clear = clustered(600, 8, 6, noise=0.3)
    noise = clear[0], np.random.default_rng(0).permutation(clear[1])
    assert choose_regularizer(*clear, 8, 6, 4).regularizer < choose_regularizer(*noise, 8, 6, 4).regularizer


@pytest.mark.parametrize(
    ("y", "folds", "message"),
    [
        ([0, 0, 1, 1], 5, "folds of the tree are 5, of 4 training rows; give 2 or more"),
        ([0, 0, 1, 1], 1, "folds of the tree are 1, of 4 training rows"),
        ([0, 1, 2, 3], 2, "each class has its rows in one fold only; fit it with folds: 1"),
    ],
)
def test_what_cannot_be_validated_is_refused(y, folds, message):
    with pytest.raises(InputError, match=message):
        choose_regularizer(np.eye(4, 3, dtype=np.float32), np.array(y, np.int32), 4, 2, folds)


@pytest.fixture(scope="module")
def prepared_file(prepare, data):
    return prepare(*data, 10, n_test=20)


def test_command_prints_and_stores_what_it_chose(prepared_file, data, tmp_path, capsys):
    output = tmp_path / "tree.h5"
    settings = '{"dimension": 3, "folds": 3}'
    assert main(["proposal", str(prepared_file), "--kind", "tree", "--set", settings, "-o", str(output)]) == 0
    X, y = data[0][:-20], data[1][:-20]
    choice = choose_regularizer(X, y, 10, 3, 3)
    found = read_proposal(output)
    assert found.fit_summary["chosen_regularizer"] == choice.regularizer
    assert found.fit_summary["cross_validation_regularizers"] == list(REGULARIZERS)
    assert found.fit_summary["cross_validation_log_likelihoods"] == list(choice.log_likelihoods)
    expected = fit_tree(X, y, 10, 3, choice.regularizer)
    assert np.array_equal(found.proposal.tree.weights, expected.weights)
    printed = capsys.readouterr().out
    assert f"  chosen_regularizer: {choice.regularizer:.6g}\n" in printed
    likelihoods = " ".join(f"{value:.6g}" for value in choice.log_likelihoods)
    assert f"  cross_validation_log_likelihoods: {likelihoods}\n" in printed


@pytest.mark.parametrize("resplit", [True, False])
def test_a_proposal_chooses_for_itself(data, resplit):
    X, y = data
    chosen = choose_regularizer(X, y, 10, 3, 4, seed=7, resplit=resplit).regularizer
    assert chosen != 0.1
    found = Tree(dimension=3, folds=4, resplit=resplit).fit(TrainingSet(X, y, 10, seed=7))
    assert np.array_equal(found.tree.weights, fit_tree(X, y, 10, 3, chosen, seed=7, resplit=resplit).weights)


def test_folds_are_fitted_without_resplits_like_the_tree(data):
    with_resplits, without = (choose_regularizer(*data, 10, 3, 3, resplit=resplit) for resplit in (True, False))
    assert with_resplits.log_likelihoods != without.log_likelihoods
