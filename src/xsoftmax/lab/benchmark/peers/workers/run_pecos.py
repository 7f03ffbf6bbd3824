"""PECOS, XLinear: a tree of clusters of classes, linear rankers in it. One training is one point.

Its tree's leaves hold 100 classes unless ``max_leaf_size`` says otherwise.
"""

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from protocol import Record, work
from protocol_ranking import DEPTHS, top_of
from scipy.sparse import csc_matrix, csr_matrix

LEAF = 100


def train(record: Record) -> None:
    """Settings: ``Cp``, ``Cn``, ``negative_sampling_scheme`` (tfn, tfn+man); ``max_leaf_size`` of the tree."""
    settings = dict(record.settings)
    leaf = {"max_leaf_size": settings.pop("max_leaf_size", LEAF)}
    X, labels = record.data.features("train"), csc_matrix(record.data.labels("train"))
    record.loaded()
    rows = csr_matrix(X) if record.data.is_dense else X
    n_classes, threads = record.data.n_classes, record.job["threads"]
    record.notes["no_log_likelihood"] = "it ranks classes, no distribution"
    with record.training():
        chain = None
        if n_classes > leaf["max_leaf_size"]:
            embedding = LabelEmbeddingFactory.create(labels, rows, method="pifa", threads=threads)
            chain = Indexer.gen(
                embedding, indexer_type="hierarchicalkmeans", threads=threads, seed=record.job["seed"], **leaf
            )
        model = XLinearModel.train(rows, labels, C=chain, threads=threads, **settings)

    record.look_at_top(None, lambda X: top_of(model.predict(csr_matrix(X), only_topk=DEPTHS[-1], threads=threads)))


if __name__ == "__main__":
    work(train)
