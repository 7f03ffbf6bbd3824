"""Checkpoints, and fits that are killed: a resumed fit ends with the bits of one that was not."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from edited import edited
from training.interruptions import KillAfter, KilledError
from training.problems import D, K, curve, method, rows
from xsoftmax.cli import main
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.model import load_model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals._file import read_proposal
from xsoftmax.solvers import make_solver, sampled
from xsoftmax.training import snapshot
from xsoftmax.training.checkpoint import read_checkpoint, write_checkpoint
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan


def test_arrays_and_progress_come_back(tmp_path):
    arrays = {"W": np.random.default_rng(0).random((3, 4)).astype(np.float32), "none": np.empty((5, 0))}
    path = tmp_path / "a" / "kept.h5"
    write_checkpoint(path, "me", arrays, {"step": 3, "best": -np.inf, "history": [{"x": 0.1 + 0.2}]})
    found = {"W": np.zeros((3, 4), np.float32), "none": np.empty((5, 0))}
    progress = read_checkpoint(path, "me", partial(copy_arrays, found))
    assert progress == {"step": 3, "best": -np.inf, "history": [{"x": 0.1 + 0.2}]}
    assert np.array_equal(found["W"], arrays["W"])
    assert [each.name for each in path.parent.iterdir()] == ["kept.h5"]


def test_what_belongs_to_something_else_is_left_alone(tmp_path):
    path, W = tmp_path / "kept.h5", np.zeros(3)
    restore = partial(copy_arrays, {"W": W})
    assert read_checkpoint(path, "me", restore) is None
    write_checkpoint(path, "another", {"W": np.ones(3)}, {})
    assert read_checkpoint(path, "me", restore) is None
    path.write_text("no HDF5")
    assert read_checkpoint(path, "me", restore) is None
    path.unlink()
    with edited(path):
        pass
    assert read_checkpoint(path, "me", restore) is None
    assert not W.any()


def test_a_truncated_checkpoint_is_none(tmp_path):
    path, W = tmp_path / "kept.h5", np.zeros(30_000)
    write_checkpoint(path, "me", {"W": np.ones(30_000)}, {})
    path.write_bytes(path.read_bytes()[:-1000])
    assert read_checkpoint(path, "me", partial(copy_arrays, {"W": W})) is None
    assert not W.any()


def retyped(file, name, W):
    del file[name]
    file[name] = W.astype(W.dtype.newbyteorder())


def reshaped(file, name, W):
    del file[name]
    file[name] = W.reshape(-1, 1)


def huge(file, name, W):
    del file[name]
    file.create_dataset(name, (2**40, *W.shape[1:]), W.dtype)


def packed(file, name, W):
    del file[name]
    file.create_dataset(name, data=W, compression="gzip", chunks=W.shape)


def unwritten(file, name, W):
    del file[name]
    file.create_dataset(name, W.shape, W.dtype)


def one_more(file, name, W):
    file["arrays/more"] = W


def a_group(file, name, W):
    del file[name]
    file.create_group(name)


def no_progress(file, name, W):
    del file["progress"]


CRAFTED = [retyped, reshaped, huge, packed, unwritten, one_more, a_group, no_progress]
SOLVERS = {
    "sampled": ("sampled-softmax", "uniform", "adagrad"),
    "full": ("softmax", "all", "adagrad"),
    "lbfgs": ("softmax", "all", "lbfgs"),
}


def bytes_of(solver):
    return {name: array.tobytes() for name, array in solver.arrays().items()}


@pytest.mark.fault(
    "a checkpoint whose arrays are of another type or shape, missing, or more than a solver has",
    happens="all of them are looked at before one is taken: nothing is changed, and the fit begins anew",
    user="`warning: …: not what xsoftmax writes (…); training from the start`",
)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_takes_its_own_arrays_and_no_others(name, tmp_path, capsys):
    chosen = method(*SOLVERS[name])
    X, y = rows(60)
    data = TrainingSet(np.ascontiguousarray(X, np.float32), y.astype(np.int32), K)
    proposal = chosen.proposal.fit(data)
    begun, resumed = (make_solver(chosen, chosen.objective, proposal, data) for _ in range(2))
    for epoch in range(2):
        begun.advance(np.arange(60), epoch, 0, 0.1)
    path, fresh = tmp_path / "kept.h5", bytes_of(resumed)
    for crafted in CRAFTED:
        write_checkpoint(path, "me", begun.arrays(), {})
        with edited(path) as file:
            crafted(file, "arrays/W", begun.arrays()["W"])
        assert read_checkpoint(path, "me", resumed.restore) is None, crafted
        assert re.fullmatch(rf"warning: {path}: not what xsoftmax writes \(.*\); training from the start\n",
                            capsys.readouterr().err), crafted  # fmt: skip
        assert bytes_of(resumed) == fresh, crafted
    write_checkpoint(path, "me", begun.arrays(), {})
    assert read_checkpoint(path, "me", resumed.restore) == {}
    for solver in (begun, resumed):
        solver.advance(np.arange(60), 2, 0, 0.1)
    assert bytes_of(resumed) == bytes_of(begun)


def test_arrays_may_have_grown(tmp_path):
    """What takes them decides on shapes: they are told before anything is read."""
    path, taken = tmp_path / "kept.h5", {}
    write_checkpoint(path, "me", {"values": np.arange(1000.0)}, {"step": 1})

    def restore(arrays):
        assert arrays["values"].nbytes == 8000
        taken["values"] = arrays["values"][...]

    assert read_checkpoint(path, "me", restore) == {"step": 1}
    assert np.array_equal(taken["values"], np.arange(1000.0))


def test_a_checkpoint_that_asks_for_more_memory_than_there_is(dataset, tmp_path, monkeypatch, capsys):
    """Of a solver whose arrays grow: memory is asked before it reads them."""
    data, path, asked = dataset(*rows(), K), tmp_path / "kept.h5", []
    interrupted(data, method(), path, epochs=3)
    with edited(path) as file:
        W = file["arrays/W"][:]
        del file["arrays/W"]
        file["arrays/W"] = np.concatenate([W] * 3)

    def check_free(n_bytes, what):
        asked.append(n_bytes)
        raise InputError(f"{what}: too little memory")

    monkeypatch.setattr(snapshot, "check_free", check_free)
    found, expected = (fit(data, method(), 0, Plan(epochs=3, checkpoint=kept)) for kept in (path, None))
    assert asked == [2 * W.nbytes]
    assert "the arrays of the checkpoint: too little memory" in capsys.readouterr().err
    assert np.array_equal(found.model.rows, expected.model.rows)


def test_a_disk_that_fails_halfway_is_an_error(tmp_path):
    """Of arrays that are restored in part, no training from the start."""
    path = tmp_path / "kept.h5"
    write_checkpoint(path, "me", {"W": np.ones(3)}, {})

    def restore(arrays):
        raise OSError(5, "Input/output error")

    with pytest.raises(
        InputError, match=r"kept\.h5: cannot be read \(.*Input/output error\); run it again, or delete"
    ):
        read_checkpoint(path, "me", restore)


def test_a_proposal_that_follows_the_weights_does_so_from_a_checkpoint(dataset, tmp_path):
    """Whichever chunk it was written after, the last one too: the proposal derives from the weights."""
    proposal = {"name": "quadratic-kernel", "refresh": 30}
    data, chosen = dataset(*rows(100), K), method("sampled-softmax", proposal, "adagrad")
    expected = fit(data, chosen, 0, Plan(epochs=3, at=(1.0, 2.0)))
    for chunks in (1, 4, 5, 11, 12):
        path = tmp_path / f"{chunks}.h5"
        interrupted(data, chosen, path, n_chunks=chunks + 1, epochs=3, at=(1.0, 2.0))
        found = fit(data, chosen, 0, Plan(epochs=3, at=(1.0, 2.0), checkpoint=path))
        assert np.array_equal(found.model.rows, expected.model.rows), chunks
        assert curve(found) == curve(expected), chunks


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(sampled, "DEFAULT_CHUNK", 30)


def interrupted(data, chosen, path, seed=0, n_chunks=7, beforehand=None, **plan):
    """Kill a fit after some chunks (of 30 steps, if it draws), of which the checkpoint has all but the last."""
    kept = {"checkpoint": path, "checkpoint_seconds": 0.0}
    with pytest.raises(KilledError):
        fit(data, chosen, seed, Plan(**kept, **plan), callbacks=[KillAfter(n_chunks)], beforehand=beforehand)
    assert path.exists()


CHANGES = {
    "seed": {"seed": 1},
    "method": {"chosen": method(optimizer={"name": "u-max", "learning_rate": 0.2})},
    "epochs": {"epochs": 4},
    "evaluations": {"at": (1.0,)},
    "code": {"identity": "edited"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_fit_is_not_taken(change, dataset, tmp_path, capsys):
    data, path = dataset(*rows(), K), tmp_path / "kept.h5"
    interrupted(data, method(), path, epochs=3)
    plan = {"epochs": 3} | CHANGES[change]
    chosen, seed = plan.pop("chosen", method()), plan.pop("seed", 0)
    found = fit(data, chosen, seed, Plan(checkpoint=path, **plan))
    assert "kept.h5 is of a fit with other data, settings or code; training begins anew" in capsys.readouterr().err
    expected = fit(data, chosen, seed, Plan(**plan))
    assert np.array_equal(found.model.rows, expected.model.rows)
    assert curve(found) == curve(expected)


@pytest.mark.parametrize("epochs", [3, 6])
def test_a_rate_that_falls_by_progress_goes_on_falling(epochs, dataset, tmp_path):
    """Of as many epochs as were asked for; asked for more, the fit begins anew, as its rates were others."""
    data, path = dataset(*rows(), K), tmp_path / "kept.h5"
    chosen = method(schedule={"name": "linear"})
    interrupted(data, chosen, path, epochs=3)
    found, expected = (fit(data, chosen, 0, Plan(epochs=epochs, checkpoint=kept)) for kept in (path, None))
    assert np.array_equal(found.model.rows, expected.model.rows)
    assert curve(found) == curve(expected)


@pytest.mark.parametrize(
    "schedule",
    [{"name": "power", "scale": 20, "exponent": 1}, {"name": "stairs", "decay": 0.5, "every": 70}],
    ids=["power", "stairs"],
)
def test_a_rate_that_falls_by_steps_goes_on_falling(schedule, dataset, tmp_path):
    data, path = dataset(*rows(), K), tmp_path / "kept.h5"
    chosen = method(schedule=schedule)
    interrupted(data, chosen, path, epochs=3)
    found, expected = (fit(data, chosen, 0, Plan(epochs=3, checkpoint=kept)) for kept in (path, None))
    assert np.array_equal(found.model.rows, expected.model.rows)
    assert curve(found) == curve(expected)


def test_a_checkpoint_of_other_rows_is_not_taken(dataset, tmp_path):
    """The same labels and name."""
    (X, y), path = rows(), tmp_path / "kept.h5"
    interrupted(dataset(X, y, K), method(), path, epochs=3)
    other = dataset(-X, y, K)
    found, expected = (fit(other, method(), 0, Plan(epochs=3, checkpoint=kept)) for kept in (path, None))
    assert np.array_equal(found.model.rows, expected.model.rows)


def test_a_checkpoint_of_another_tree_is_not_taken(prepare, tmp_path):
    """A fit's draws come from its tree: half a fit with one and half with another is neither's."""
    data_path, kept = prepare(*rows(), K), tmp_path / "kept.h5"
    trees = [tmp_path / name for name in ("1.h5", "2.h5")]
    fit_tree = ["proposal", str(data_path), "--kind", "tree", "--set", '{"dimension": 3}']
    for tree, seed in zip(trees, ("0", "0"), strict=True):
        assert main([*fit_tree, "--seed", seed, "-o", str(tree)]) == 0
    with edited(trees[1]) as file:  # as a tree that was fitted by other code
        weights = next(
            node for node in file["fitted"].values() if getattr(node, "dtype", None) == np.float32 and node.ndim == 2
        )
        weights[:] = -weights[:]
    chosen = method("negative-sampling", {"name": "tree", "dimension": 3}, "adagrad")
    with open_prepared(data_path) as data:
        one, another = ({path: read_proposal(path)} for path in trees)
        interrupted(data, chosen, kept, epochs=3, beforehand=one)
        found = fit(data, chosen, 0, Plan(epochs=3, checkpoint=kept), beforehand=another)
        expected = fit(data, chosen, 0, Plan(epochs=3), beforehand=another)
        first = fit(data, chosen, 0, Plan(epochs=3), beforehand=one)
    assert not np.array_equal(first.model.rows, expected.model.rows)
    assert np.array_equal(found.model.rows, expected.model.rows)


def test_the_tree_may_move_between_kill_and_resume(prepare, tmp_path):
    data_path, kept, tree = prepare(*rows(), K), tmp_path / "kept.h5", tmp_path / "1.h5"
    assert main(["proposal", str(data_path), "--kind", "tree", "--set", '{"dimension": 3}', "-o", str(tree)]) == 0
    chosen = method("negative-sampling", {"name": "tree", "dimension": 3}, "adagrad")
    with open_prepared(data_path) as data:
        interrupted(data, chosen, kept, epochs=3, beforehand={tree: read_proposal(tree)})
        moved = tree.rename(tmp_path / "2.h5")
        steps = []
        advance = sampled.SampledSolver.advance

        def counted(self, samples, *arguments):
            steps.append(samples.size)
            return advance(self, samples, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampled.SampledSolver, "advance", counted)
            fit(data, chosen, 0, Plan(epochs=3, checkpoint=kept), beforehand={moved: read_proposal(moved)})
    assert sum(steps) < 1200


def test_a_resumed_fit_does_not_count_its_proposal_twice(dataset, tmp_path, monkeypatch):
    """The time of the first process's fit of the proposal stands; the second's does not shift the budget."""
    data, path = dataset(*rows(), K), tmp_path / "kept.h5"
    monkeypatch.setattr("xsoftmax.proposals.uniform.FittedUniform.seconds", 50.0)
    interrupted(data, method(), path, epochs=3)
    monkeypatch.setattr("xsoftmax.proposals.uniform.FittedUniform.seconds", 1000.0)
    result = fit(data, method(), 0, Plan(epochs=3, checkpoint=path))
    assert 50 < result.state.seconds < 60


def test_the_best_weights_survive_a_kill_after_their_epoch(dataset, tmp_path):
    """The resumed fit finds no better ones, and must have kept those of the killed one."""
    data, path = dataset(*rows(n_samples=150, noise=1.0), K, n_validation=80, n_test=30), tmp_path / "kept.h5"
    chosen = method("softmax", "all", {"name": "adagrad", "learning_rate": 0.5})
    plan = {"epochs": 200, "at": tuple(range(1, 200)), "patience": 4}
    whole = fit(data, chosen, 0, Plan(**plan))
    assert whole.state.status == "stopped early"
    interrupted(data, chosen, path, n_chunks=int(whole.state.best_epoch) + 3, **plan)
    resumed = fit(data, chosen, 0, Plan(checkpoint=path, **plan))
    assert np.array_equal(resumed.model.rows, whole.model.rows)
    assert curve(resumed) == curve(whole)


# The real program, killed by SIGKILL.

METHODS = {
    "implicit": {
        "objective": {"name": "double-sum"},
        "proposal": {"name": "uniform"},
        "optimizer": {"name": "implicit", "learning_rate": 0.1},
    },
    "negative": {
        "objective": {"name": "negative-sampling", "regularizer": 1e-3},
        "proposal": {"name": "frequency", "n_sampled": 3},
        "optimizer": {"name": "adagrad"},
    },
    "softmax": {
        "objective": {"name": "softmax"},
        "proposal": {"name": "all"},
        "optimizer": {"name": "adagrad", "learning_rate": 0.1},
    },
    # Each iteration goes along what the five before it have left.
    "lbfgs": {
        "objective": {"name": "bouchard"},
        "proposal": {"name": "all"},
        "optimizer": {"name": "lbfgs", "memory": 5},
        "l2": 1.0,
    },
    # Draws follow the weights of the last refresh.
    "quadratic-kernel": {
        "objective": {"name": "sampled-softmax"},
        "proposal": {"name": "quadratic-kernel", "refresh": 500, "n_sampled": 3},
        "optimizer": {"name": "adagrad", "learning_rate": 0.1},
    },
    # An average per sample follows its visits.
    "composition": {
        "objective": {"name": "composition"},
        "proposal": {"name": "uniform"},
        "optimizer": {"name": "sgd", "learning_rate": 0.01},
    },
}
EPOCHS = {"lbfgs": 60}
PROGRAM = """
import sys
from xsoftmax.solvers import sampled
sampled.DEFAULT_CHUNK = 500
from xsoftmax.cli import main
sys.exit(main())
"""


def command(data, folder, name, *others):
    words = ["train", data, "--methods", folder / "methods.yaml", "--method", name, "--points", "16"]
    words += ["--seed", "3", "--patience", "100", "--epochs", EPOCHS.get(name, 8), *others]
    return [sys.executable, "-c", PROGRAM, *map(str, words)]


def run(words):
    subprocess.run(words, check=True, capture_output=True, text=True)


def kill_after(words, seconds, kept, log):
    """Kill the program ``seconds`` after it wrote a checkpoint; False if it had finished by then."""
    before = kept.stat().st_mtime_ns if kept.exists() else None
    with log.open("a") as said:
        program = subprocess.Popen(words, stdout=said, stderr=said)
    deadline = time.monotonic() + 120
    while program.poll() is None and time.monotonic() < deadline:
        if kept.exists() and kept.stat().st_mtime_ns != before:
            break
        time.sleep(0.002)
    time.sleep(seconds)
    running = program.poll() is None
    if running:
        os.kill(program.pid, signal.SIGKILL)
    program.wait()
    return running


def weights_and_curve(folder):
    W = load_model(folder / "model.h5").rows  # biases last
    with (folder / "history.csv").open() as file:
        history = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return W, history


@pytest.mark.parametrize(
    "name", [name if name == "negative" else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_a_killed_program_resumed_ends_with_the_same_bits(name, prepare, tmp_path):
    data = prepare(*rows(20_000), K, n_validation=2000, n_test=2000, sparse=name in ("negative", "lbfgs"))
    (tmp_path / "methods.yaml").write_text(json.dumps(METHODS))
    kept = tmp_path / "scratch" / "kept.h5"
    run(command(data, tmp_path, name, "-o", tmp_path / "whole"))
    words = command(data, tmp_path, name, "--checkpoint", kept, "--checkpoint-seconds", "0", "-o", tmp_path / "fit")
    rng, log = np.random.default_rng(sum(map(ord, name))), tmp_path / "log"
    for last in (False, False, False, True):
        if last or not kill_after(words, rng.uniform(0, 0.08), kept, log):
            break
    if last:
        with log.open("a") as said:
            subprocess.run(words, check=True, stdout=said, stderr=said)
    assert "resumed" in log.read_text()
    (W, history), (expected_W, expected_history) = (weights_and_curve(tmp_path / each) for each in ("fit", "whole"))
    assert W.shape == (K, D + 1)
    assert np.array_equal(W, expected_W)
    assert history == expected_history
    assert not kept.exists()


@pytest.mark.slow
def test_no_killed_program_leaves_half_a_file(prepare, tmp_path):
    """Killed at any moment, from start to end: what bears its final name is whole."""
    data = prepare(*rows(3000), K, n_test=500)
    (tmp_path / "methods.yaml").write_text(json.dumps(METHODS))
    words = command(data, tmp_path, "implicit", "-o", tmp_path / "fit")
    begin = time.monotonic()
    run(words)
    length = time.monotonic() - begin
    rng = np.random.default_rng(0)
    for _ in range(3):
        for each in (tmp_path / "fit").iterdir():
            each.unlink()
        program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(length * rng.uniform(0.8, 1.0))
        program.kill()
        program.wait()
        for each in (tmp_path / "fit").glob("[!.]*"):
            if each.suffix == ".h5":
                assert weights_like(each)
            else:
                assert each.read_text().endswith("\n")


def weights_like(path: Path) -> bool:
    model = load_model(path)
    return model.W.shape == (K, D) and model.b.shape == (K,)
