"""PECOS, XLinear: a tree of clusters of classes, linear rankers in it. One training is one point.

Its tree's leaves hold 100 classes unless ``max_leaf_size`` says otherwise.
"""

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from protocol import Record, work
from scipy.sparse import csc_matrix, csr_matrix

LEAF = 100


def train(record: Record) -> None:
    """Settings: ``Cp``, ``Cn``, ``negative_sampling_scheme`` (tfn, tfn+man); ``max_leaf_size`` of the tree."""
    settings = dict(record.settings)
    leaf = {"max_leaf_size": settings.pop("max_leaf_size", LEAF)}
    X, y = record.data.features("train"), record.data.classes("train")
    record.loaded()
    rows = csr_matrix(X) if record.data.is_dense else X
    n, n_classes, threads = len(y), record.data.n_classes, record.job["threads"]
    labels = csc_matrix((np.ones(n, np.float32), (np.arange(n), y)), shape=(n, n_classes))
    record.notes["no_log_likelihood"] = "it ranks classes, no distribution"
    with record.training():
        chain = None
        if n_classes > leaf["max_leaf_size"]:
            embedding = LabelEmbeddingFactory.create(labels, rows, method="pifa", threads=threads)
            chain = Indexer.gen(
                embedding, indexer_type="hierarchicalkmeans", threads=threads, seed=record.job["seed"], **leaf
            )
        model = XLinearModel.train(rows, labels, C=chain, threads=threads, **settings)

    def top(test: object, y: np.ndarray) -> tuple[None, np.ndarray]:
        found = model.predict(csr_matrix(test), only_topk=1, threads=threads)
        best = np.full(len(y), -1)
        has = np.diff(found.indptr) > 0
        best[has] = found.indices[found.indptr[:-1][has]]
        return None, best

    record.look_at_rows(None, top)


if __name__ == "__main__":
    work(train)
