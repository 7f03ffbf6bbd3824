"""Nodes that hold the weights, and the time that a million rows take on them.

A batch takes as long as the slower of computing and sending, which overlap, and then the latency of every round.
"""

import math
from typing import Any, NamedTuple

from xsoftmax.benchmark.sharding.hardware import Hardware
from xsoftmax.benchmark.sharding.rates import N_FEATURES, Rates
from xsoftmax.benchmark.sharding.schemes import BYTES_OF_A_LEAF, FLOAT, SCHEMES, Problem, Work, n_levels

SHARE_OF_MEMORY = 0.8
SHARE_OF_BANDWIDTH = 0.5
ROWS = 1_000_000
MOST_NODES = 1024
STATES = {"SGD": 1, "Adagrad": 2, "Adagrad, tree": 2, "tree alone": 0}  # copies of the weights


class Seconds(NamedTuple):
    """Of a million rows: the busiest node's computing and sending, and waiting for messages."""

    computing: float
    sending: float
    waiting: float

    @property
    def total(self) -> float:
        """Computing and sending overlap; waiting does not."""
        return max(self.computing, self.sending) + self.waiting

    @property
    def limit(self) -> str:
        """Name the longest of the three."""
        return max(self._fields, key=lambda name: getattr(self, name))


def state_bytes(n_classes: int, n_features: int, state: str) -> float:
    """Bytes of weights, biases, the optimizer's state and, where it is named, the tree with its padding."""
    tree = BYTES_OF_A_LEAF * 2.0 ** n_levels(n_classes) if "tree" in state else 0
    return STATES[state] * FLOAT * (n_features + 1) * n_classes + tree


def n_nodes_for(n_bytes: float, hardware: Hardware) -> int:
    """Nodes whose memory holds so much, each filled to a share."""
    return math.ceil(n_bytes / (SHARE_OF_MEMORY * hardware.memory))


def computing(work: Work, hardware: Hardware) -> float:
    """Seconds of the arithmetic on all cores, or of the memory where that takes longer."""
    seconds = work.core_seconds / hardware.cores
    if hardware.bandwidth is None:
        return seconds
    return max(seconds, work.memory_bytes / (SHARE_OF_BANDWIDTH * hardware.bandwidth))


def seconds_of(scheme: str, problem: Problem, rates: Rates, hardware: Hardware, n_nodes: int) -> Seconds:
    """Compute the time of a million rows; a single node sends nothing and waits for none."""
    work, batches = SCHEMES[scheme](problem, rates, n_nodes), ROWS / problem.batch_size
    waiting = work.rounds * hardware.latency if n_nodes > 1 else 0.0
    parts = computing(work, hardware), work.sent_bytes / hardware.network, waiting
    return Seconds(*(batches * part for part in parts))


def link_of(scheme: str, problem: Problem, rates: Rates, hardware: Hardware, n_nodes: int) -> float:
    """Bytes per second from which on sending takes no longer than computing."""
    work = SCHEMES[scheme](problem, rates, n_nodes)
    return work.sent_bytes / computing(work, hardware)


def memory_rows(problem: Problem, hardware: tuple[Hardware, ...]) -> list[dict[str, Any]]:
    """What the weights take by optimizer, and on how many nodes of each kind."""
    return [
        {
            "classes": problem.n_classes,
            "state": state,
            "bytes": (n_bytes := state_bytes(problem.n_classes, N_FEATURES, state)),
            "nodes": {each.name: n_nodes_for(n_bytes, each) for each in hardware},
        }
        for state in STATES
    ]


def time_rows(problem: Problem, rates: Rates, hardware: Hardware) -> list[dict[str, Any]]:
    """Times of all schemes on as few nodes as hold the weights, and the link that would keep up."""
    rows = []
    for scheme in SCHEMES:
        n_nodes = fewest(scheme, problem, hardware)
        seconds = seconds_of(scheme, problem, rates, hardware, n_nodes)
        rows.append(
            {"hardware": hardware.name, "classes": problem.n_classes, "scheme": scheme, "nodes": n_nodes}
            | {"link": link_of(scheme, problem, rates, hardware, n_nodes), "limit": seconds.limit}
            | {"seconds": seconds.total, **seconds._asdict()}
        )
    return rows


def curve(scheme: str, problem: Problem, rates: Rates, hardware: Hardware) -> dict[str, Any]:
    """Time against nodes, from as few as hold the weights to many."""
    first = fewest(scheme, problem, hardware)
    numbers = [first, *(2**power for power in range(11) if first < 2**power <= MOST_NODES)]
    seconds = [seconds_of(scheme, problem, rates, hardware, n).total for n in numbers]
    known = {"hardware": hardware.name, "classes": problem.n_classes, "scheme": scheme}
    return known | {"nodes": numbers, "seconds": seconds}


def fewest(scheme: str, problem: Problem, hardware: Hardware) -> int:
    """As few nodes as hold weights and accumulators, and the tree of a scheme that has one."""
    state = "Adagrad, tree" if "tree" in scheme else "Adagrad"
    return n_nodes_for(state_bytes(problem.n_classes, N_FEATURES, state), hardware)
