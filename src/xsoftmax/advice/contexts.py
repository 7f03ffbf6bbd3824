"""What trials of a method need on a data set, and whether memory holds it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xsoftmax.advice.model import CostModel
from xsoftmax.advice.ranking import Prediction
from xsoftmax.advice.trial import TrialContext
from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method, build_method, merged
from xsoftmax.solvers._torch import check_weights_fit
from xsoftmax.training.fit import training_rows
from xsoftmax.training.memory import check_memory, must_stream
from xsoftmax.training.plan import Plan

# What makes most methods better on validation rows, and costs little.
IMPROVEMENTS = {"average": "half", "calibration": "temperature-and-frequency"}


def that_fit(ranking: Sequence[Prediction], model: CostModel, data: Dataset, plan: Plan) -> list[Prediction]:
    """Leave out what memory does not hold; if that is all, say what the last one needs."""
    found, reason = [], InputError("auto has no candidates; name some in among")
    for prediction in ranking:
        too_large = why_too_large(model.method(prediction.method), data, plan)
        if too_large:
            reason = too_large
        else:
            found.append(prediction)
    if not found:
        raise reason
    return found


def why_too_large(method: Method, data: Dataset, plan: Plan) -> InputError | None:
    """Say what a method needs that memory does not hold, if it does not."""
    try:
        streams = _streams(data, method, plan)
        check_memory(method, data, plan.keeps_best(data.n_samples("validation")), plan.memory, streams, plan.threads)
        check_weights_fit(method, data.n_classes, data.n_features)
    except InputError as error:
        return error
    return None


def improved(method: Method, data: Dataset, plan: Plan) -> Method:
    """Give a method with its weights averaged and calibrated, if rows can fit it and memory holds both."""
    if not data.n_samples("validation"):
        return method
    better = build_method(method.name, merged(method.settings, IMPROVEMENTS) | {"source": method.source})
    return method if why_too_large(better, data, plan) else better


def _streams(data: Dataset, method: Method, plan: Plan) -> bool:
    """Tell whether a fit leaves training rows in their file, as ``fit`` does."""
    if plan.stream is not None or plan.share < 1 or data.weighted:
        return bool(plan.stream)
    keeps_best = plan.keeps_best(data.n_samples("validation"))
    return must_stream(method, data, keeps_best, plan.memory, plan.threads)


@contextmanager
def context_of(data: Dataset, method: Method, seed: int, plan: Plan) -> Iterator[TrialContext]:
    """What trials of a method need, closed afterwards."""
    pool = ThreadPool(plan.threads)
    train, sampler = training_rows(data, method, seed, _streams(data, method, plan), plan)
    try:
        yield TrialContext(data, train, sampler, method, seed, pool)
    finally:
        sampler.close()
        pool.close()
