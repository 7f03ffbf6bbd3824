"""What a search finds counts one, and so does, in expectation, every class that it does not find."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from kernels.layouts import laid_out
from proposals.weighing import assert_each_counts_one, mean_weights, share_of_steps
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.lists import empty_lists
from xsoftmax.kernels.protocol import View
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.clustered_search import ClusteredSearch
from xsoftmax.proposals.found_and_uniform import FoundAndUniform
from xsoftmax.proposals.search import Search

N, D, K = 30, 5, 12


def fitted(member, lists=False):
    rng = np.random.default_rng(4)
    X, W = rng.standard_normal((N, D)).astype(np.float32), rng.standard_normal((K, D + 1)).astype(np.float32)
    W[:, -1] = 0
    rows = csr_array(X) if lists else X
    weights = empty_lists(K, D, False, False, 0.0).load(csc_array(W[:, :-1])) if lists else laid_out(Sgd(), W)
    found = member.fit(TrainingSet(rows, rng.integers(K, size=N).astype(np.int32), K))
    found.refresh(weights)
    return found.kernel(rows), View(weights, features_of(rows, False)), X @ W[:, :-1].T


@pytest.mark.parametrize("n_sampled", [1, 3])
@pytest.mark.parametrize("excluded", [-1, 3])
def test_every_class_counts_one(n_sampled, excluded):
    kernel, view, s = fitted(FoundAndUniform(n_found=4))
    mean, error, _ = mean_weights(kernel, 7, excluded, K, n_sampled, view=view)
    assert_each_counts_one(mean, error, but=() if excluded < 0 else (excluded,))
    others = np.delete(np.arange(K), excluded) if excluded >= 0 else np.arange(K)
    highest = others[np.argsort(-s[7, others])[:4]]
    assert np.array_equal(mean[highest], np.ones(4))
    assert (error[highest] == 0).all()
    share = share_of_steps(kernel, 7, excluded, K, n_sampled, view=view)
    rest = np.setdiff1d(others, highest)
    assert np.array_equal(share[highest], np.ones(4))
    assert np.allclose(share[rest], n_sampled / rest.size, atol=0.03)


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("member", "lists"),
    [(FoundAndUniform(ClusteredSearch(n_clusters=3, budget=4), 3), False), (FoundAndUniform(Search(), 3), True)],
    ids=["clusters", "lists"],
)
def test_whatever_the_search_finds_every_class_counts_one(member, lists):
    kernel, view, _ = fitted(member, lists)
    mean, error, _ = mean_weights(kernel, 2, 5, K, 2, view=view)
    assert_each_counts_one(mean, error, but=(5,))


def test_where_all_are_found_or_drawn_there_is_no_variance():
    for member in (FoundAndUniform(n_found=K), FoundAndUniform(n_found=K - 3)):
        kernel, view, _ = fitted(member)
        mean, error, _ = mean_weights(kernel, 2, 5, K, 4, 50, view=view)
        assert np.array_equal(np.delete(mean, 5), np.ones(K - 1))
        assert not np.delete(error, 5).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": {"name": "tree"}}, "search is tree, which draws; take search, clustered-search"),
        (
            {"search": {"name": "clustered-search", "budget": 3}, "n_found": 4},
            "n_found is 4, and clustered-search has",
        ),
    ],
)
def test_what_cannot_be_is_refused(parameters, message):
    settings = {"objective": {"name": "sampled-softmax"}, "optimizer": {"name": "sgd"}}
    with pytest.raises(InputError, match=message):
        build_method("mine", settings | {"proposal": {"name": "found-and-uniform"} | parameters})
