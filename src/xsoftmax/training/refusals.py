"""What is refused before a fit begins, and whether its rows stay in their file."""

from xsoftmax.data.dataset import Dataset
from xsoftmax.data.training_set import check_seed
from xsoftmax.gpu.ranks import Group
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import Method
from xsoftmax.solvers import check_label_sets, check_precision, check_weights, solver_of
from xsoftmax.training.memory import check_memory, must_stream, size_of
from xsoftmax.training.plan import Plan


def check_question(data: Dataset, seed: int) -> None:
    """Make sure that there is something to train, and a seed.

    Raises
    ------
    InputError
        If not.
    """
    if data.n_classes < 2:
        raise InputError(f"{data.name} has {data.n_classes} class; a softmax needs at least 2")
    if data.n_samples("train") == 0:
        raise InputError(f"{data.name} has no training rows; look at its preparation")
    check_seed(seed)


def check_fit(data: Dataset, method: Method, seed: int, starts: bool) -> None:
    """Make sure that a method suits the data.

    Parameters
    ----------
    data : Dataset
    method : Method
    seed : int
    starts : bool
        Whether weights begin at given ones.

    Raises
    ------
    InputError
        If it does not.
    """
    check_question(data, seed)
    check_precision(method, data)
    if data.multilabel:
        check_label_sets(method)
    if data.weighted:
        check_weights(method, data)
    if starts and method.encoder is not None:
        raise InputError(f"method {method.name}: weights to begin with are of rows themselves; leave encoder out")
    if method.calibration != "none" and not data.n_samples("validation"):
        raise InputError(
            f"method {method.name}: calibration is {method.calibration}, which validation rows decide, and "
            f"{data.name} has none; keep some rows for validation, or leave calibration out"
        )


def streams(data: Dataset, method: Method, plan: Plan, ranks: Group) -> bool:
    """Decide whether training rows stay in their file, and make sure that the fit then has the memory it needs.

    Raises
    ------
    InputError
        If memory does not suffice, or rows are to stay in their file that cannot.
    """
    keeps_best = plan.keeps_best(data.n_samples("validation"))
    stream = plan.stream if plan.share == 1 else False
    if data.weighted:
        if stream:
            raise InputError(f"{data.name}: its rows have weights, which take them into memory; leave --stream out")
        stream = False
    if stream is None:
        stream = must_stream(method, data, keeps_best, plan.memory, plan.threads, ranks)
    elif stream and not solver_of(method, size_of(data)).streams:
        name = method.settings["optimizer"]["name"]
        raise InputError(f"method {method.name}: {name} needs all training rows in memory; leave --stream out")
    check_memory(method, data, keeps_best, plan.memory, stream, plan.threads, ranks)
    return stream
