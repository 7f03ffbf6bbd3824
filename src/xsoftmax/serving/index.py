"""Find the classes that score highest without scoring all: an index of the weights, for models of dense rows.

The classes with the largest s_k = x·w_k + b_k are those whose vectors (w_k, b_k) have the largest inner products with
(x, 1). faiss looks for them (Douze et al., The Faiss library, 2024): ``hnsw`` walks a graph (Malkov and Yashunin
2018), ``ivf`` looks into the nearest of many clusters. What is found is scored exactly. Inner products are searched
as they are. Made into distances by one more column, as in Bachrach et al., RecSys 2014, trained weights are all about
equally far from a row, and clusters found a third of the best classes.

The sum over all classes that probabilities are divided by is estimated. What is found counts as it is; all others are
counted by a sample of classes, drawn once, as Mussmann and Ermon, Learning and inference via maximum inner product
search, ICML 2016, do:

    Z = sum over found e^s + (K - n_found) / n_drawn · sum over drawn, not found e^s

Cost: a row of the weights for each class that is looked at; memory: two more copies of the weights.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import logsumexp

from xsoftmax.evaluation.prediction import Prediction
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.kernels.encoded import encode_rows
from xsoftmax.kernels.scores import Calibration, correct, dense
from xsoftmax.model import Model
from xsoftmax.serving.requests import empty_rows

KINDS = ("hnsw", "ivf")
# How far they look by themselves: candidates of ``hnsw``, clusters of ``ivf``.
PROBES = {"hnsw": 200, "ivf": 64}
# Classes that are found and scored for a row: so many for each that is asked for, and so many at least.
FOUND_FOR_EACH, FEWEST_FOUND = 4, 100
DRAWN = 2048
# Clusters for the root of the number of classes; rows to find the centre of each from; links of a class in the graph.
CLUSTERS, ROWS_OF_CLUSTER, LINKS = 4, 40, 32


@dataclass(frozen=True)
class ClassIndex:
    """An index of the classes of a model.

    Attributes
    ----------
    model : Model
        Of dense rows, or with an encoder.
    vectors : ndarray of shape (n_classes, n_columns + 1), float32
        What is indexed, in the order of the classes: weights, and the bias last.
    found : Any
        faiss's index of them.
    kind : str
    drawn : ndarray, int64
        The classes that all others are counted by, rising.
    """

    model: Model
    vectors: np.ndarray
    found: Any
    kind: str
    drawn: np.ndarray

    @classmethod
    def of(cls, model: Model, kind: str) -> "ClassIndex":
        """Make an index, on one thread.

        Raises
        ------
        InputError
            If weights or rows are sparse, scores depend on more than weights, or there is no memory.
        """
        if problem := _problem(model):
            raise InputError(f"an index is for weights of dense rows, and {problem}; leave --index out")
        n_bytes = 4 * model.n_classes * (model.n_columns + 1)
        links = 8 * LINKS * model.n_classes if kind == "hnsw" else 0
        check_free(2 * n_bytes + links, f"an index of {model.n_classes} classes", "leave --index out")
        vectors = _vectors(model)
        drawn = np.random.default_rng(0).choice(model.n_classes, min(DRAWN, model.n_classes), replace=False)
        return cls(model, vectors, _built(vectors, kind), kind, np.sort(drawn))

    def look(self, probes: int) -> None:
        """Set how far it looks: candidates of ``hnsw``, clusters of ``ivf``.

        Raises
        ------
        InputError
            If that is below 1.
        """
        if probes < 1:
            raise InputError(f"--probes is {probes}; set it to 1 or more")
        if self.kind == "hnsw":
            self.found.hnsw.efSearch = probes
        else:
            self.found.nprobe = min(probes, self.found.nlist)

    @property
    def normaliser(self) -> str:
        """Say what probabilities are divided by."""
        if self.model.link != "softmax":
            return "none: each class has a probability of its own"
        return f"estimated: the classes found, and {self.drawn.size} drawn ones for all others"

    def top_k(self, X: Any, k: int) -> Prediction:
        """Find the ``k`` likeliest classes of every row, nearly always; fewer where fewer are found: -1 behind these.

        Parameters
        ----------
        X : sparse array or ndarray of shape (n_rows, n_features), float32
        k : int
        """
        if X.shape[1] != self.model.n_features:
            raise InputError(
                f"rows have {X.shape[1]} features, the model {self.model.n_features}; prepare them alike"
            )
        hidden = dense(X) if self.model.encoder is None else encode_rows(X, self.model.encoder)
        n = min(self.model.n_classes, max(FEWEST_FOUND, FOUND_FOR_EACH * k))
        queries = np.ones((len(hidden), self.vectors.shape[1]), np.float32)
        queries[:, :-1] = hidden
        _, classes = self.found.search(queries, n)
        scores = self._scores(queries, classes)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(classes, order, axis=1)
        of_best = np.take_along_axis(scores, order, axis=1)
        if self.model.link == "softmax":
            logs = of_best - self._log_totals(queries, classes, scores)[:, None]
        else:
            logs = -np.logaddexp(0.0, -of_best)
        return Prediction(best, np.exp(logs))

    def _scores(self, queries: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Score some classes of each row, float64; minus infinity in the place of none."""
        found = np.matmul(self.vectors[classes], queries[:, :, None])[:, :, 0].astype(np.float64)
        found *= _inverse_temperature(self.model.calibration)
        found[classes < 0] = -np.inf
        return found

    def _log_totals(self, queries: np.ndarray, classes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Estimate log Z of each row; exact where all classes are drawn."""
        drawn = queries @ self.vectors[self.drawn].T
        drawn = drawn.astype(np.float64) * _inverse_temperature(self.model.calibration)
        place = np.searchsorted(self.drawn, classes).clip(max=self.drawn.size - 1)
        row, column = np.nonzero((self.drawn[place] == classes) & (classes >= 0))
        drawn[row, place[row, column]] = -np.inf
        left = self.drawn.size - np.bincount(row, minlength=len(classes))
        others = self.model.n_classes - (classes >= 0).sum(axis=1)
        with np.errstate(divide="ignore"):  # where no class is left, nothing is added
            weight = np.log(others) - np.log(np.maximum(left, 1))
        return np.logaddexp(logsumexp(scores, axis=1), logsumexp(drawn, axis=1) + weight)


def _problem(model: Model) -> str:
    """Say why the classes of a model cannot be indexed, or nothing."""
    if model.W is None or model.correction is not None:
        return "scores of this model have a part that depends on the row, its correction"
    if issparse(model.W):
        return "those of this model are sparse"
    transform = model.transform
    if model.encoder is None and transform is not None and issparse(transform.apply(empty_rows(transform)[0])):
        return "rows of this model are sparse"
    if model.link not in ("softmax", "sigmoid"):
        return f"probabilities of this model ({model.link}) take the scores of all classes"
    return ""


def _inverse_temperature(calibration: Calibration | None) -> float:
    return 1.0 if calibration is None else calibration.inverse_temperature


def _vectors(model: Model) -> np.ndarray:
    """Give the vectors of the classes; calibrated scores are their products with a row times the temperature."""
    vectors = np.empty((model.n_classes, model.n_columns + 1), np.float32)
    vectors[:, :-1] = model.W
    bias = np.zeros(model.n_classes, np.float32) if model.b is None else model.b.copy()
    correct(bias, None, model.calibration, slice(None))
    vectors[:, -1] = bias / np.float32(_inverse_temperature(model.calibration))
    return vectors


def _built(vectors: np.ndarray, kind: str) -> Any:
    import faiss  # of the extra [search]

    faiss.omp_set_num_threads(1)  # its threads would be missing in the workers, which are forked
    n, width = vectors.shape
    found: Any
    if kind == "hnsw":
        found = faiss.IndexHNSWFlat(width, LINKS, faiss.METRIC_INNER_PRODUCT)
        found.hnsw.efConstruction, found.hnsw.efSearch = 80, PROBES[kind]
    else:
        n_clusters = max(1, min(int(CLUSTERS * n**0.5), n // ROWS_OF_CLUSTER))
        found = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_clusters, faiss.METRIC_INNER_PRODUCT)
        found.cp.seed, found.cp.max_points_per_centroid = 0, ROWS_OF_CLUSTER
        found.nprobe = min(PROBES[kind], n_clusters)
        found.train(vectors)
    found.add(vectors)
    return found
