"""One rank of fits by several processes, as a program: ``python -m gpu.rank RANK N_RANKS PORT FOLDER TASK``.

It writes what it has found. The folder has data, ``dense.h5`` and ``csr.h5``, and ``alone.h5``, a checkpoint of one
process. ``TASK`` is ``everything``, or ``resumed``: to go on from ``ranks.h5``, a checkpoint of other ranks.
"""

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import torch

from gpu.problems import after, fitted, make_solver, method_of, training_set
from training.interruptions import CountChunks, KillAfter, KilledError
from training.problems import curve
from xsoftmax.data.store import open_prepared
from xsoftmax.gpu.launch import joined
from xsoftmax.gpu.ranks import ALONE, World
from xsoftmax.internal.errors import InputError
from xsoftmax.model import save_model
from xsoftmax.solvers._torch import TorchSolver
from xsoftmax.training.checkpoint_parts import PartedCheckpoint
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.training.ranks import write_together

SOFTMAX = ("softmax", "all", "adagrad")
OWN, SHARED = {"size": 8}, {"size": 8, "shared": True}
# Of steps: parts of a method, storage of the rows, and its other settings.
STEPS = {
    "softmax": (SOFTMAX, "dense", {"average": "half", "decay": 0.5}),
    "softmax, sparse": (("softmax", "all", "sgd"), "csr", {"l2": 0.5}),
    "max-margin": (("max-margin", "all", "sgd"), "dense", {}),
    "one-vs-each": (("one-vs-each", "uniform", "adagrad"), "dense", {"average": "all", "batch": OWN}),
    "one-vs-each, sparse": (("one-vs-each", "uniform", "sgd"), "csr", {"l2": 0.3, "batch": OWN}),
    "nce, shared": (("nce", "frequency", "sgd"), "dense", {"bias_start": "minus-log-q", "batch": SHARED}),
    "u-max, sparse": (("double-sum", "uniform", "u-max"), "csr", {"batch": {"size": 1}}),
    "sampled softmax": (("sampled-softmax", "tree", "adagrad"), "dense", {"decay": 0.5, "batch": OWN}),
}
# Of whole fits.
FITS = {
    "softmax": (SOFTMAX, "dense", {"calibration": "temperature"}),
    "softmax, sparse": (("softmax", "all", "sgd"), "csr", {"l2": 0.1}),
    "nce": (("nce", "frequency", "sgd"), "dense", {"batch": SHARED}),
    "negative sampling": (("negative-sampling", "frequency", "sgd"), "csr", {"decay": 0.1, "batch": OWN}),
}
EPOCHS, KILLED_AFTER = 4, 3


def steps_of(name, ranks=ALONE):
    """Weights of this rank's classes after some steps in float64, and what it has sent for them."""
    names, storage, others = STEPS[name]
    method = method_of(names, **others)
    data = training_set(storage, method)
    proposal = fitted(method.proposal, training_set("dense", method))
    before = getattr(ranks, "n_sent", 0)
    found = after(make_solver(method, method.objective.fit(data), proposal, replace(data, ranks=ranks)), epochs=2)
    return (*found, getattr(ranks, "n_sent", 0) - before)


def trained(name, folder, ranks=ALONE, callbacks=(), **plan):
    names, kind, others = FITS[name]
    with open_prepared(folder / f"{kind}.h5") as data:
        chosen = Plan(**({"epochs": EPOCHS, "at": (1.0, 2.0), "patience": 9} | plan))
        return fit(data, method_of(names, **others), 3, chosen, callbacks=callbacks, ranks=ranks)


def interrupted(folder, ranks=ALONE, **plan):
    """Leave a checkpoint behind."""
    try:
        trained("softmax", folder, ranks, [KillAfter(KILLED_AFTER, save=True)], **plan)
    except KilledError:
        return


def refusals(folder, ranks):
    """What is said on this rank where ranks differ, or the method is none for ranks."""

    def other_seed():
        with open_prepared(folder / "dense.h5") as data:
            fit(data, method_of(SOFTMAX), ranks.rank, Plan(epochs=1), ranks=ranks)

    def with_start():
        with open_prepared(folder / "dense.h5") as data:
            fit(data, method_of(SOFTMAX, start="class-means"), 0, Plan(epochs=1), ranks=ranks)

    def cannot_write():
        def fails(whole):
            raise OSError("no room")

        write_together(trained("softmax", folder, ranks, epochs=0, at=()), ranks, fails)

    said = []
    for fault in (other_seed, with_start, cannot_write):
        try:
            fault()
        except (InputError, OSError) as error:
            said.append(str(error))
    return said


def fits(folder, ranks):
    """Curves of whole fits, whose models rank 0 writes."""
    found = {}
    for number, name in enumerate(FITS):
        result = trained(name, folder, ranks)
        write_together(result, ranks, lambda whole, n=number: save_model(_named(whole.model), folder / f"{n}.h5"))
        found[name] = curve(result)
    return found


def resumed(folder, ranks):
    """Curves, and weights here, of a fit that goes on: from its own checkpoint, and from that of one process."""
    own = folder / "ranks.h5"
    interrupted(folder, ranks, checkpoint=own)
    results = [trained("softmax", folder, ranks, checkpoint=path) for path in (own, folder / "alone.h5")]
    return [(curve(each), each.model.W.copy(), each.state.step) for each in results]


def damaged(folder, ranks):
    """Curve and weights of a fit whose checkpoint has a part that rank 1 cannot read."""
    checkpoint = folder / "damaged.h5"
    interrupted(folder, ranks, checkpoint=checkpoint)
    if not ranks.rank:
        part = next(folder.glob("damaged.h5.part-1-*"))
        part.write_bytes(part.read_bytes()[:-1])
    ranks.latest(0.0)
    return trained("softmax", folder, ranks, checkpoint=checkpoint).model.W.copy()


def full(folder, ranks):
    """Files of a checkpoint before and after one that rank 1 has no room for; what the fit comes to meanwhile."""
    checkpoint = folder / "full.h5"
    interrupted(folder, ranks, checkpoint=checkpoint)
    before, write = sorted(each.name for each in folder.glob("full.h5*")), PartedCheckpoint._write_part
    if ranks.rank == 1:
        PartedCheckpoint._write_part = no_room
    result = trained("softmax", folder, ranks, checkpoint=checkpoint, checkpoint_seconds=0)
    PartedCheckpoint._write_part = write
    return before, sorted(each.name for each in folder.glob("full.h5*")), result.model.W.copy()


def no_room(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _named(model):
    return replace(model, attributes=model.attributes | {"status": "finished"})


def everything(folder, ranks):
    """What the tests look at, but for checkpoints of other ranks."""
    found = {"fits": fits(folder, ranks), "resumed": resumed(folder, ranks)}
    found["whole"] = trained("softmax", folder, ranks).model.W.copy()
    found |= {"damaged": damaged(folder, ranks), "full": full(folder, ranks)}
    found["refusals"] = refusals(folder, ranks)
    TorchSolver.dtype = "float64"
    return found | {"steps": {name: steps_of(name, ranks) for name in STEPS}}


def resumed_from_others(folder, ranks):
    """Weights here of a fit that goes on from a checkpoint of other ranks, and the chunks that it takes."""
    count = CountChunks()
    result = trained("softmax", folder, ranks, [count], checkpoint=folder / "ranks.h5")
    return {"W": result.model.W.copy(), "n_chunks": count.n_chunks}


TASKS = {"everything": everything, "resumed": resumed_from_others}


def main(rank: int, n_ranks: int, port: int, folder: Path, task: str) -> None:
    torch.set_num_threads(1)
    with joined(World(rank, n_ranks, rank, "127.0.0.1", port), "cpu", "softmax") as ranks:
        found = TASKS[task](folder, ranks)
    torch.save(found, folder / f"{rank}.pt")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]), sys.argv[5])
