"""Where biases begin: at 0, or at minus the mean log-probability that the proposal gives to the class."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from training.problems import K, method, rows
from xsoftmax.internal.errors import InputError
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver


def biases(proposal, optimizer, dense=True, start="minus-log-q", missing=None, **others):
    """Weights before the first step, and what the proposal says of all rows and classes."""
    X, y = rows()
    X = X.astype(np.float32)
    if missing is not None:
        y = np.where(y == missing, missing + 1, y)
    chosen = method({"name": "one-vs-each"}, proposal, optimizer, bias_start=start, **others)
    data = TrainingSet(X if dense else csr_array(X), y.astype(np.int32), K)
    fitted = chosen.proposal.fit(data)
    log_q = fitted.log_q(data.X, 0, K)
    log_q = np.full((1, K), -np.log(K)) if log_q is None else log_q
    W = make_solver(chosen, chosen.objective, fitted, data).weights()
    return W, np.broadcast_to(log_q, (len(y), K)).astype(float), y


TREE = {"name": "tree", "dimension": 4, "regularizer": 10.0}
LAYOUTS = [("sgd", {}), ("adagrad", {}), ("sgd", {"l2": 1.0})]


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
@pytest.mark.parametrize(("optimizer", "others"), LAYOUTS, ids=["plain", "interleaved", "scaled"])
@pytest.mark.parametrize("proposal", ["uniform", "frequency", TREE], ids=["uniform", "frequency", "tree"])
def test_it_is_minus_the_mean_log_q_of_the_classs_own_rows(proposal, optimizer, others, dense):
    W, log_q, y = biases(proposal, optimizer, dense, **others)
    expected = [-np.mean([log_q[i, k] for i in range(len(y)) if y[i] == k]) for k in range(K)]
    assert np.allclose(W[:, -1], expected, rtol=1e-5, atol=1e-5)
    assert not W[:, :-1].any()
    assert np.ptp(W[:, -1]) > 0.1 or proposal == "uniform"


def test_a_class_without_rows_begins_at_0():
    W, _, y = biases("frequency", "sgd", missing=2)
    assert (y != 2).all()
    assert W[2, -1] == 0
    assert (W[[0, 1, 3], -1] > 0).all()


def test_the_default_is_0():
    assert not biases("frequency", "adagrad", start="zero")[0].any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bias": False}, "needs biases"),
        ({"objective": "softmax", "proposal": "all", "optimizer": "sgd"}, "a proposal with probabilities"),
        ({"bias_start": "log-q"}, "set it to zero or minus-log-q"),
    ],
)
def test_what_has_no_such_start_is_refused(changes, words):
    settings = {"objective": "one-vs-each", "proposal": "frequency", "optimizer": "sgd", "bias_start": "minus-log-q"}
    with pytest.raises(InputError, match=words):
        method(**(settings | changes))
