"""A step of each scheme on a few classes, each node with arrays of its own, every byte between them counted.

Messages are float32 and int32, as they would be; sums within a node are float64. A step returns the gradients by each
node's weights, summed over the batch; nothing moves.
"""

from typing import NamedTuple

import numpy as np

Gradients = list[np.ndarray]


class Network:
    """Deliver arrays; count the bytes between different nodes, and the rounds."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self.n_rounds = 0

    def send(self, source: int, target: int, message: np.ndarray) -> np.ndarray:
        """Give the target a copy of its own."""
        if source != target:
            self.n_bytes += message.nbytes
        return message.copy()


class Cluster(NamedTuple):
    """Class k is row k // n of node k mod n; rows of features are with their classes.

    Attributes
    ----------
    W : list of ndarray of shape (n_classes / n_nodes, n_features), float32
    X : list of ndarray of shape (n_rows, n_features), float32
    y : list of ndarray of shape (n_rows,), int32
        As rows of the node's ``W``.
    """

    W: Gradients
    X: list[np.ndarray]
    y: list[np.ndarray]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.W)

    def scores(self, node: int, X: np.ndarray) -> np.ndarray:
        """Score rows with all classes of a node."""
        return X.astype(float) @ self.W[node].T.astype(float)

    def true_scores(self, home: int) -> np.ndarray:
        """Score a home's rows with their own classes, as it sends them."""
        return np.einsum("bd,bd->b", self.X[home], self.W[home][self.y[home]], dtype=float).astype(np.float32)

    def zeros(self) -> Gradients:
        """Make gradients to add to."""
        return [np.zeros(w.shape) for w in self.W]


def spread(W: np.ndarray, X: np.ndarray, y: np.ndarray, n_nodes: int) -> Cluster:
    """Spread classes over nodes, and rows with them."""
    at = [np.flatnonzero(y % n_nodes == node) for node in range(n_nodes)]
    shares = [np.ascontiguousarray(W[node::n_nodes]) for node in range(n_nodes)]
    return Cluster(shares, [X[rows] for rows in at], [(y[rows] // n_nodes).astype(np.int32) for rows in at])


def gathered(parts: Gradients) -> np.ndarray:
    """Undo ``spread`` for weights or their gradient."""
    whole = np.empty((sum(map(len, parts)), parts[0].shape[1]))
    for node, part in enumerate(parts):
        whole[node :: len(parts)] = part
    return whole


def exact_step(cluster: Cluster, network: Network) -> Gradients:
    """Softmax over all classes: rows out, maximum and sum back, log-partition out."""
    nodes, gradients = range(cluster.n_nodes), cluster.zeros()
    for home in nodes:
        X = [network.send(home, node, cluster.X[home]) for node in nodes]
        scores = [cluster.scores(node, X[node]) for node in nodes]
        pieces = [network.send(node, home, _maximum_and_sum(scores[node])) for node in nodes]
        log_partition = _log_partition(np.stack(pieces, axis=1).astype(float))
        for node in nodes:
            received = network.send(home, node, log_partition)
            slopes = np.exp(scores[node] - received[:, None])
            if node == home:
                slopes[np.arange(len(slopes)), cluster.y[home]] -= 1
            gradients[node] += slopes.T @ X[node]
    network.n_rounds += 3
    return gradients


def _maximum_and_sum(scores: np.ndarray) -> np.ndarray:
    """Two numbers for each row; the sum is relative to the maximum as it is sent."""
    highest = scores.max(axis=1).astype(np.float32)
    return np.column_stack([highest, np.exp(scores - highest[:, None]).sum(axis=1)]).astype(np.float32)


def _log_partition(pieces: np.ndarray) -> np.ndarray:
    highest = pieces[:, :, 0].max(axis=1)
    total = (pieces[:, :, 1] * np.exp(pieces[:, :, 0] - highest[:, None])).sum(axis=1)
    return (highest + np.log(total)).astype(np.float32)


def stratified_step(
    cluster: Cluster, network: Network, rng: np.random.Generator, n_sampled: int, shifts: np.ndarray
) -> Gradients:
    """One-vs-each: all rows of node a visit nodes a + shifts, which draw uniformly from their own classes.

    With shifts drawn alike from all n, and v of them, a class of node s is drawn n_sampled v / (n K_s) times for a
    row in expectation; its weight is the inverse.
    """
    n, gradients = cluster.n_nodes, cluster.zeros()
    for home in range(n):
        rows, y = np.arange(len(cluster.y[home])), cluster.y[home]
        for node in (home + shifts) % n:
            X = network.send(home, node, cluster.X[home])
            true = network.send(home, node, cluster.true_scores(home)).astype(float)
            drawn = rng.integers(0, len(cluster.W[node]), (rows.size, n_sampled))
            slopes = _sigmoid(cluster.scores(node, X)[rows[:, None], drawn] - true[:, None])
            slopes *= n / shifts.size * len(cluster.W[node]) / n_sampled
            if node == home:
                slopes[drawn == y[:, None]] = 0
            np.add.at(gradients[node], drawn, slopes[:, :, None] * X[:, None, :])
            back = network.send(node, home, slopes.sum(axis=1).astype(np.float32))
            np.add.at(gradients[home], y, -back[:, None] * cluster.X[home].astype(float))
    network.n_rounds += 2
    return gradients


def routed_step(cluster: Cluster, network: Network, rng: np.random.Generator, n_sampled: int) -> Gradients:
    """One-vs-each: the home draws uniformly from all classes and asks their owners for scores."""
    n, gradients = cluster.n_nodes, cluster.zeros()
    n_classes = sum(map(len, cluster.W))
    for home in range(n):
        y, true = cluster.y[home], cluster.true_scores(home).astype(float)
        drawn = rng.integers(0, n_classes, (y.size, n_sampled))
        slopes = np.zeros(drawn.shape)
        asked = {}
        for node in range(n):
            rows, places = np.nonzero(drawn % n == node)
            needed, position = np.unique(rows, return_inverse=True)
            X = network.send(home, node, cluster.X[home][needed])
            classes = network.send(home, node, (drawn[rows, places] // n).astype(np.int32))
            position = network.send(home, node, position.astype(np.int32))
            scores = np.einsum("bd,bd->b", X[position], cluster.W[node][classes], dtype=float)
            scores = network.send(node, home, scores.astype(np.float32))
            slopes[rows, places] = _sigmoid(scores - true[rows]) * n_classes / n_sampled
            asked[node] = X[position], classes, rows, places
        slopes[drawn == (y * n + home)[:, None]] = 0
        for node, (X, classes, rows, places) in asked.items():
            coefficients = network.send(home, node, slopes[rows, places].astype(np.float32))
            np.add.at(gradients[node], classes, coefficients[:, None].astype(float) * X)
        np.add.at(gradients[home], y, -slopes.sum(axis=1)[:, None] * cluster.X[home])
    network.n_rounds += 3
    return gradients


def softmax_gradient(W: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of the summed log-loss, all on one node."""
    scores = X.astype(float) @ W.T.astype(float)
    slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes /= slopes.sum(axis=1, keepdims=True)
    slopes[np.arange(y.size), y] -= 1
    return slopes.T @ X


def one_vs_each_gradient(W: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of the summed one-vs-each bound (Titsias 2016, eq. 4), all on one node."""
    scores = X.astype(float) @ W.T.astype(float)
    slopes = _sigmoid(scores - scores[np.arange(y.size), y][:, None])
    slopes[np.arange(y.size), y] = 0
    slopes[np.arange(y.size), y] = -slopes.sum(axis=1)
    return slopes.T @ X


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))
