"""Models of a fit's weights, along its way and at its end."""

from dataclasses import dataclass
from typing import Any

from xsoftmax.data.dataset import Dataset
from xsoftmax.evaluation.part_of_model import PartOfModel
from xsoftmax.evaluation.pruning import cost_of_pruning, pruned
from xsoftmax.gpu.ranks import ALONE, Group
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.proposals import Proposal
from xsoftmax.training.evaluator import Evaluator


@dataclass(frozen=True)
class TrainedModels:
    """What models of one fit have in common.

    Attributes
    ----------
    data : Dataset
    method : Method
    proposal : Proposal
        Fitted.
    evaluator : Evaluator
        Which knows the rows that calibrate.
    pool : ThreadPool
    ranks : Group
        Whose weights are those of some classes each.
    """

    data: Dataset
    method: Method
    proposal: Proposal
    evaluator: Evaluator
    pool: ThreadPool
    ranks: Group = ALONE

    def of(self, W: Any) -> Model:
        """Give the model of weights, not calibrated yet."""
        data, method = self.data, self.method
        correction = self.proposal if method.objective.adds_log_q else None
        attributes = {"dataset": data.name, "method": method.name}
        others: dict[str, Any] = {"bias": method.bias, "correction": correction, "transform": data.transform}
        link = method.objective.link
        kind: type[Model] = Model
        if self.ranks.n_ranks > 1:
            kind, others = PartOfModel, others | {"ranks": self.ranks, "shard": self.ranks.shard(data.n_classes)}
        return kind.of_rows(W, data.class_names, data.n_features, attributes=attributes, link=link, **others)

    def last(self, W: Any) -> tuple[Model, dict[str, Any]]:
        """Give the model that a fit leaves, pruned and calibrated, and what pruning cost."""
        model, cost = self.of(W), {}
        if self.method.prune:
            whole, rows, calibrated = model, self.evaluator.validation, self.evaluator.calibrated
            model = pruned(whole, self.method.prune)
            cost = cost_of_pruning(whole, model, rows.X, rows.y, calibrated, self.pool)
        return self.evaluator.calibrated(model), cost
