"""What the simulated steps are held against: gradients of a single node, and the formulas of bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from xsoftmax.benchmark.sharding.schemes import exact_bytes, routed_bytes, stratified_bytes
from xsoftmax.benchmark.sharding.simulation import (
    Cluster,
    Gradients,
    Network,
    exact_step,
    gathered,
    one_vs_each_gradient,
    routed_step,
    softmax_gradient,
    spread,
    stratified_step,
)

N_NODES = (1, 2, 4, 8)
N_SAMPLED = 5


def simulate(n_steps: int) -> list[dict[str, Any]]:
    """Check all schemes on one node and on several; stratified ones with one node visited, and with all."""
    results = [check_exact(n) for n in N_NODES]
    results += [check_routed(n, n_steps) for n in N_NODES]
    return results + [check_stratified(n, v, n_steps) for n in N_NODES for v in sorted({1, n})]


def problem(n_classes: int = 64, n_features: int = 8, n_rows: int = 32, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Make weights, rows and labels, scores of a few units."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n_classes, n_features), np.float32)
    X = rng.standard_normal((n_rows, n_features), np.float32)
    return W, X, rng.integers(0, n_classes, n_rows).astype(np.int32)


def check_exact(n_nodes: int) -> dict[str, Any]:
    """One step of the softmax: bytes for a row, and the relative error of the gradient."""
    W, X, y = problem()
    network, expected = Network(), softmax_gradient(W, X, y)
    found = gathered(exact_step(spread(W, X, y, n_nodes), network))
    error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    known = {"scheme": "exact", "nodes": n_nodes, "visited": None, "steps": 1, "rounds": network.n_rounds}
    counted = {"counted": network.n_bytes / y.size, "formula": exact_bytes(X.shape[1], n_nodes)}
    return known | counted | {"error": error, "deviation": None}


def check_routed(n_nodes: int, n_steps: int) -> dict[str, Any]:
    """Many steps; the bytes are a mean of what chance asks for."""

    def step(cluster: Cluster, network: Network, rng: np.random.Generator) -> Gradients:
        return routed_step(cluster, network, rng, N_SAMPLED)

    found = _check_sampled(step, n_nodes, n_steps, 1)
    formula = routed_bytes(problem()[1].shape[1], N_SAMPLED, n_nodes)
    return {"scheme": "routed", "nodes": n_nodes, "visited": None, "formula": formula} | found


def check_stratified(n_nodes: int, n_visited: int, n_steps: int) -> dict[str, Any]:
    """Many steps; in n_nodes / n_visited of them a row visits each node once, in a new order each time."""
    order: list[int] = []

    def step(cluster: Cluster, network: Network, rng: np.random.Generator) -> Gradients:
        if not order:
            order.extend(rng.permutation(n_nodes).tolist())
        shifts = np.array([order.pop() for _ in range(n_visited)])
        return stratified_step(cluster, network, rng, N_SAMPLED, shifts)

    found = _check_sampled(step, n_nodes, n_steps, n_nodes // n_visited)
    formula = stratified_bytes(problem()[1].shape[1], n_nodes, n_visited)
    return {"scheme": "stratified", "nodes": n_nodes, "visited": n_visited, "formula": formula} | found


def _check_sampled(
    step: Callable[[Cluster, Network, np.random.Generator], Gradients], n_nodes: int, n_steps: int, round_trip: int
) -> dict[str, Any]:
    """Bytes for a row, and the farthest entry of the mean gradient in standard errors of independent round trips."""
    W, X, y = problem()
    cluster, network, rng = spread(W, X, y, n_nodes), Network(), np.random.default_rng(n_nodes)
    n_trips = n_steps // round_trip
    expected = one_vs_each_gradient(W, X, y)
    errors = np.stack([gathered(step(cluster, network, rng)) - expected for _ in range(n_trips * round_trip)])
    errors = errors.reshape(n_trips, round_trip, *expected.shape).mean(axis=1)
    deviation = np.abs(errors.mean(axis=0)) / (errors.std(axis=0, ddof=1) / np.sqrt(n_trips))
    steps = n_trips * round_trip
    counted = {"steps": steps, "rounds": network.n_rounds // steps, "counted": network.n_bytes / (steps * y.size)}
    return counted | {"error": None, "deviation": float(deviation.max())}
