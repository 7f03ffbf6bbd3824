"""Load all parts of methods and evaluate all array forms, in a program where numba cannot be imported."""

import json
import sys

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import AXES, build_method
from xsoftmax.objectives import ScoredClasses

K = 5


class Refusing:
    """Finder of modules under which numba and what it stands on are not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def values():
    """Of every objective, the mean value after a step from the first state, and the sum of the states after it."""
    data, n = TrainingSet(np.eye(K, dtype=np.float32), np.arange(K, dtype=np.int32), K), 3
    scores = np.sin(np.arange(n * K)).reshape(n, K)
    classes = np.tile(np.arange(1, K), (n, 1))
    log_q = np.full((n, K), -np.log(K))
    draws = ScoredClasses(scores[:, 0], log_q[:, 0], classes, scores[:, 1:], np.ones((n, K - 1)), log_q[:, 1:])
    found = {}
    for name in registry.names(AXES["objective"]):
        objective = registry.load(AXES["objective"], name).MEMBER().fit(data)
        state = objective.initial_auxiliary(n, K) if objective.n_auxiliary else np.empty((n, 0))
        noise = np.full((n, objective.n_numbers), 0.3) if objective.n_numbers else None
        at, after = objective.prepare(np, 0.1, state, draws, noise)
        found[name] = [objective.value(np, at, draws).mean(), after.sum()]
    return found


def refusal():
    """What a kernel says that is called all the same."""
    from xsoftmax.kernels.mathematics import wright_omega

    try:
        wright_omega(1.0)
    except InputError as error:
        return str(error)


if __name__ == "__main__":
    assert not {"numba", "llvmlite"} & sys.modules.keys()
    sys.meta_path.insert(0, Refusing())
    for package in AXES.values():
        for name in registry.names(package):
            registry.load(package, name)
    settings = {axis: {"name": name} for axis, name in zip(AXES, ("sox", "uniform", "sgd"), strict=True)}
    print(json.dumps({"values": values(), "method": build_method("sox", settings).name, "refusal": refusal()}))
