"""Signal-to-noise ratio of the gradients of negative sampling, for any proposal q.

Bamler and Mandt 2020, eq. 12: with H the Hessian of the loss at its minimum and C the covariance of a stochastic
gradient there, eta = 1 / Tr(C H^-1). Where scores are free parameters for each distinct row x and class y, the
minimum is at s_xy = log p_xy - log q_xy, with p the frequencies of the labels among the rows x, and (eqs. 13-16)

    alpha_xy = q_xy sigma(s_xy) = p_xy q_xy / (p_xy + q_xy)
    1 / eta  = N sum_x (K - 2 sum_y alpha_xy)  >=  N |X| (K - 1),    equal if and only if q = p    (Theorem 2)

for N rows, |X| of them distinct, and K classes. As sum_y alpha_xy lies between 0 and 1/2, eta relative to its maximum
lies between (K - 1) / K and 1 for whatever q: proposals differ clearly only where K is small.

A class that never occurs with a row has its minimum at minus infinity, where alpha and the gradients are 0. Eq. 16 is
taken at the limit alpha -> 0, which counts K - 2 sum alpha as above; the same limit, N for each such score, is added
to what is measured, as no draw can show it.

Cost: log-probabilities of the pairs (x, y) that occur; a draw and two log-probabilities per simulated gradient.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import empty_draws, weigh_by_probability
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import below, next_u64, start, stream
from xsoftmax.proposals import TrainingSet

IDEAL = "ideal"
BLOCK_SCORES = 2**22
_DRAWS_AT_A_TIME = 2**20


@dataclass(frozen=True)
class SignalToNoise:
    """What was computed and measured for one proposal.

    Attributes
    ----------
    proposal : str
    n_samples, n_distinct, n_classes : int
    noise : float
        Tr(C H^-1) / N in closed form.
    variance : float
        Tr(C) / N^2 in closed form: the mean over rows of sum_y (alpha_xy - 2 alpha_xy^2).
    measured_noise, standard_error : float
        Mean over simulated gradients, and how far that is off.
    n_infinite : int
        Scores whose minimum is at infinity.
    n_draws : int
        Simulated gradients.
    """

    proposal: str
    n_samples: int
    n_distinct: int
    n_classes: int
    noise: float
    variance: float
    measured_noise: float
    standard_error: float
    n_infinite: int
    n_draws: int

    @property
    def lowest_noise(self) -> float:
        """That of the ideal proposal."""
        return float(self.n_distinct * (self.n_classes - 1))

    @property
    def eta(self) -> float:
        """Eq. 12."""
        return 1 / (self.n_samples * self.noise)

    @property
    def relative(self) -> float:
        """Share of the largest eta that any proposal can have."""
        return self.lowest_noise / self.noise

    @property
    def measured(self) -> float:
        """The same, as measured."""
        return self.lowest_noise / self.measured_noise

    @property
    def measured_error(self) -> float:
        """Standard error of ``measured``."""
        return self.measured * self.standard_error / self.measured_noise

    @property
    def overlap(self) -> float:
        """Mean over x of 2 sum_y alpha_xy, between 0 and 1: what Theorem 2 maximises."""
        return self.n_classes - self.noise / self.n_distinct

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        return {
            "proposal": self.proposal,
            "eta": self.eta,
            "eta_relative": self.relative,
            "eta_relative_measured": self.measured,
            "standard_error": self.measured_error,
            "overlap": self.overlap,
            "n_samples": self.n_samples,
            "n_distinct": self.n_distinct,
            "n_classes": self.n_classes,
            "n_infinite_scores": self.n_infinite,
            "n_draws": self.n_draws,
        }


class Pairs(NamedTuple):
    """Distinct rows, and which classes occur with them how often.

    Attributes
    ----------
    group : ndarray of shape (n_samples,), int64
        Number of each row among the distinct ones.
    first : ndarray of shape (n_distinct,), int64
        A row of each.
    starts : ndarray of shape (n_distinct + 1,), int64
    labels : ndarray of shape (n_samples,), int64
        Labels of the rows of group g, from starts[g] up to starts[g + 1].
    codes : ndarray of shape (n_pairs,), int64
        group * n_classes + class of the pairs that occur, rising.
    log_p : ndarray of shape (n_pairs,), float64
        Log-frequency of the class among the rows of the group.
    n_classes : int
    """

    group: np.ndarray
    first: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    codes: np.ndarray
    log_p: np.ndarray
    n_classes: int

    @property
    def share_of_rows(self) -> np.ndarray:
        """Share of rows that are in the group of each pair, float64 of shape (n_pairs,)."""
        return np.diff(self.starts)[self.codes // self.n_classes] / self.labels.size


def pairs_of(X: Any, y: np.ndarray, n_classes: int) -> Pairs:
    """Group equal rows; sparse rows are equal if they store the same entries in the same order.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    n_classes : int
    """
    seen: dict[bytes, int] = {}
    group = np.array([seen.setdefault(key, len(seen)) for key in _row_bytes(X)])
    _, first, sizes = np.unique(group, return_index=True, return_counts=True)
    codes, counts = np.unique(group * n_classes + y, return_counts=True)
    labels = y[np.argsort(group, kind="stable")].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return Pairs(group, first, starts, labels, codes, np.log(counts / sizes[codes // n_classes]), n_classes)


def _row_bytes(X: Any) -> list[bytes]:
    if isinstance(X, np.ndarray):
        return [row.tobytes() for row in np.ascontiguousarray(X) + np.float32(0)]  # -0 becomes 0
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]


def signal_to_noise(
    data: TrainingSet, members: Mapping[str, Any], n_draws: int, seed: int = 0
) -> list[SignalToNoise]:
    """Compute and measure the ratio of several proposals, and of the ideal one, q = p.

    Parameters
    ----------
    data : TrainingSet
    members : mapping of str to NamedTuple
        Proposals by name: distributions that do not follow the weights.
    n_draws : int
        Simulated gradients per proposal.
    seed : int
        Of these.
    """
    pairs = pairs_of(data.X, data.y, data.n_classes)
    found = [_of(IDEAL, Ideal(pairs), data, pairs, n_draws, seed)]
    return found + [_of(name, member.fit(data), data, pairs, n_draws, seed) for name, member in members.items()]


def _of(name: str, proposal: Any, data: TrainingSet, pairs: Pairs, n_draws: int, seed: int) -> SignalToNoise:
    n_scores = pairs.first.size * pairs.n_classes
    alpha = alpha_of(pairs.log_p, _log_q_of_pairs(proposal, data.X, pairs))
    n_infinite = n_scores - int(np.count_nonzero(alpha))
    draws = simulated_noise(proposal.kernel(data.X), data.y, pairs, n_draws, seed)
    return SignalToNoise(
        name, data.y.size, pairs.first.size, pairs.n_classes,
        noise=n_scores - 2 * float(alpha.sum()),
        variance=float(pairs.share_of_rows @ (alpha - 2 * alpha**2)),
        measured_noise=float(draws.mean()) + n_infinite,
        standard_error=float(draws.std(ddof=1)) / math.sqrt(n_draws),
        n_infinite=n_infinite, n_draws=n_draws,
    )  # fmt: skip


def alpha_of(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """Eq. 13 at the minimum: q sigma(s), s = log p - log q."""
    return np.exp(log_q) * expit(log_p - log_q)


def _log_q_of_pairs(proposal: Any, X: Any, pairs: Pairs) -> np.ndarray:
    """Log-probabilities of the pairs that occur, float64 of shape (n_pairs,)."""
    if isinstance(proposal, Ideal):
        return pairs.log_p
    K, groups = pairs.n_classes, pairs.codes // pairs.n_classes
    result = np.full(pairs.codes.size, -math.log(K))
    at_a_time = max(1, BLOCK_SCORES // K)
    for begin in range(0, pairs.first.size, at_a_time):
        log_q = proposal.log_q(X[pairs.first[begin : begin + at_a_time]], 0, K)
        if log_q is None:
            return result
        inside = slice(*np.searchsorted(groups, [begin, begin + at_a_time]))
        rows = (groups[inside] - begin) if len(log_q) > 1 else 0
        result[inside] = log_q[rows, pairs.codes[inside] % K]
    return result


def simulated_noise(kernel: Any, y: np.ndarray, pairs: Pairs, n_draws: int, seed: int) -> np.ndarray:
    """g^T H^-1 g / N of simulated gradients g at the minimum, whose mean is Tr(C H^-1) / N; shape (n_draws,).

    A training row (x, y) and a class y' drawn for it give g = N (-sigma(-s_xy) e_xy + sigma(s_xy') e_xy') (eq. A8).
    The Hessian is diagonal, N_x alpha_xy, for the N_x rows that equal x.
    """
    rows = np.random.default_rng(seed).integers(y.size, size=n_draws)
    blocks = range(0, n_draws, _DRAWS_AT_A_TIME)
    return np.concatenate([_noise_of(kernel, y, pairs, rows[t : t + _DRAWS_AT_A_TIME], seed, t) for t in blocks])


def _noise_of(kernel: Any, y: np.ndarray, pairs: Pairs, rows: np.ndarray, seed: int, first: int) -> np.ndarray:
    """See ``simulated_noise``: that of some training rows, of which ``first`` others came before."""
    n_draws = rows.size
    drawn, log_q_true, log_q_drawn = np.empty(n_draws, np.int64), np.empty(n_draws), np.empty(n_draws)
    draw_for_rows(kernel, rows, y, np.uint64(stream(seed, 0)), first, drawn, log_q_true, log_q_drawn)
    groups, true = pairs.group[rows], y[rows].astype(np.int64)
    slope_true, over_true = _slopes(pairs, groups, true, log_q_true)
    slope_drawn, over_drawn = _slopes(pairs, groups, drawn, log_q_drawn)
    slope_true -= 1  # sigma(s) - 1 = -sigma(-s)
    same = true == drawn
    squares = np.where(
        same,
        (slope_true + slope_drawn) ** 2 * over_true,
        slope_true**2 * over_true + slope_drawn**2 * over_drawn,
    )
    return squares * y.size / np.diff(pairs.starts)[groups]


def _slopes(
    pairs: Pairs, groups: np.ndarray, classes: np.ndarray, log_q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """sigma(s) and 1 / alpha of some pairs; both 0 where s is minus infinity."""
    codes = groups * pairs.n_classes + classes
    place = np.minimum(np.searchsorted(pairs.codes, codes), pairs.codes.size - 1)
    log_p = np.where(pairs.codes[place] == codes, pairs.log_p[place], -np.inf)
    alpha = alpha_of(log_p, log_q)
    return expit(log_p - log_q), np.divide(1, alpha, where=alpha > 0, out=np.zeros_like(alpha))


@njit(**OPTIONS)
def draw_for_rows(proposal, rows, y, key, first, drawn, log_q_true, log_q_drawn):
    """Draw one class for each row, ``first`` rows into a stream; take its and the label's log-probabilities."""
    draws = empty_draws(1)
    for t in range(rows.size):
        draw(proposal, None, rows[t], np.int64(-1), np.float32(-np.inf), start(key, first + t), draws)
        drawn[t] = draws.classes[0]
        log_q_drawn[t] = log_probability(proposal, None, rows[t], draws.classes[0])
        log_q_true[t] = log_probability(proposal, None, rows[t], np.int64(y[rows[t]]))


@dataclass(frozen=True)
class Ideal:
    """The proposal q = p: the label of another row with the same features."""

    pairs: Pairs

    def kernel(self, X: Any) -> "IdealDraws":
        """What ``draw_for_rows`` draws from."""
        pairs = self.pairs
        return IdealDraws(pairs.group, pairs.starts, pairs.labels, pairs.codes, pairs.log_p, pairs.n_classes)


class IdealDraws(NamedTuple):
    """What the kernels see: the arrays of ``Pairs``."""

    group: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    codes: np.ndarray
    log_p: np.ndarray
    n_classes: int


@implements(draw, IdealDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    begin, end = proposal.starts[proposal.group[i]], proposal.starts[proposal.group[i] + 1]
    for j in range(draws.classes.size):
        rng, bits = next_u64(rng)
        draws.classes[j] = proposal.labels[begin + below(bits, end - begin)]
        draws.log_q[j] = log_probability(proposal, view, i, draws.classes[j])
    weigh_by_probability(draws)


@implements(log_probability, IdealDraws)
def _log_probability(proposal, view, i, k):
    code = proposal.group[i] * proposal.n_classes + k
    place = np.searchsorted(proposal.codes, code)
    if place < proposal.codes.size and proposal.codes[place] == code:
        return np.float32(proposal.log_p[place])
    return np.float32(-np.inf)
