"""HDF5 files made by someone else, sealed as ours are: refused with a line, whatever HDF5 would do with them.

`XSOFTMAX_FUZZ=5000 pytest tests/security/test_crafted_hdf5.py` changes as many of each kind.
"""

import os
import shutil
import signal
import sys
import time

import h5py
import numpy as np
import pytest

from edited import edited
from faults.programs import N_CLASSES, checkpoint_of, clustered, train
from forked import run, xsoftmax
from xsoftmax.internal.checksummed import CHECKSUM_BYTES

N_FILES = int(os.environ.get("XSOFTMAX_FUZZ", 500))
KINDS = ["prepared", "sparse", "tree", "model", "checkpoint"]


@pytest.fixture(scope="module")
def whole(prepare, tmp_path_factory):
    """A whole file of each kind, by its name."""
    folder = tmp_path_factory.mktemp("whole")
    X, y = clustered(400)
    X[np.abs(X) < 0.3] = 0
    paths = {
        "prepared": prepare(X, y, N_CLASSES, n_validation=50, n_test=50),
        "sparse": prepare(X, y, N_CLASSES, n_validation=50, n_test=50, sparse=True),
        "tree": folder / "tree.h5",
        "model": folder / "fit" / "model.h5",
        "checkpoint": folder / "kept.h5",
    }
    assert (
        run(
            xsoftmax(
                "proposal", paths["prepared"], "--kind", "tree", "--set", '{"dimension": 3}', "-o", paths["tree"]
            )
        ).returncode
        == 0
    )
    assert run(train(paths["prepared"], folder, "adversarial", "--epochs", 1)).returncode == 0
    kept = ("--epochs", 5, "--checkpoint", paths["checkpoint"], "--checkpoint-seconds", 0)
    checkpoint_of(train(paths["prepared"], folder, "negative", *kept), paths["checkpoint"])
    return paths


@pytest.fixture
def use(whole, tmp_path):
    """A function that gives the command in which a file of a kind is used."""

    def command(kind, path):
        if kind in ("prepared", "sparse"):
            return train(path, tmp_path, "negative", "--epochs", 1)
        if kind == "tree":
            return train(whole["prepared"], tmp_path, "adversarial", "--epochs", 1, "--proposal", path)
        if kind == "model":
            return xsoftmax("evaluate", path, whole["prepared"], "-o", tmp_path / "metrics.json")
        kept = ("--epochs", 5, "--checkpoint", path, "--checkpoint-seconds", 0)
        return train(whole["prepared"], tmp_path, "negative", *kept)

    return command


def refused(kind, done, path, *words):
    """Whether a program said in a line what is wrong with a file; of a checkpoint, that it goes on without."""
    assert "Traceback" not in done.stderr
    line = next((line for line in done.stderr.splitlines() if str(path) in line), "")
    if kind == "checkpoint":
        return done.returncode == 0 and line.startswith("warning: ") and "training from the start" in line
    return done.returncode == 1 and line.startswith("error: ") and all(word in line for word in words)


@pytest.mark.fault(
    "a prepared file, tree, model or checkpoint whose numbers point beyond what they point into",
    happens="labels, places of features, leaves and sizes are compared as the file is opened; it is refused",
    user="`error: …: not what xsoftmax writes (…)`; of a checkpoint a warning, and training from the start",
)
@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        *(("prepared", f"{split}/y", value) for split in ("train", "test") for value in (-1, N_CLASSES, 2**31 - 1)),
        *(("sparse", "train/X/indices", value) for value in (-1, -(2**31), 8, 2**31 - 1)),
        *(("sparse", "validation/X/indptr", value) for value in (-1, 2**62)),
        *(("tree", "fitted/class_of_leaf", value) for value in (-2, N_CLASSES, 2**31 - 1)),
        *(("model", "correction/class_of_leaf", value) for value in (-5, N_CLASSES)),
        *(("model", "W", value) for value in (float("nan"), float("-inf"))),
    ],
)
def test_a_number_out_of_range(kind, name, change, whole, use, tmp_path):
    """In the middle and at the end."""
    for place in (0.5, 1.0):
        crafted = shutil.copy(whole[kind], tmp_path / "crafted.h5")
        with edited(crafted) as file:
            values = file[name][:]
            values[round(place * (len(values) - 1))] = change
            file[name][:] = values
        done = run(use(kind, crafted))
        assert refused(kind, done, crafted, "not what xsoftmax writes"), done.stderr
        assert not (tmp_path / "metrics.json").exists()
        assert not (tmp_path / "fit").exists()


def test_a_tree_whose_draws_could_end_where_no_class_is(whole, use, tmp_path):
    crafted = shutil.copy(whole["tree"], tmp_path / "crafted.h5")
    with edited(crafted) as file:
        assert (file["fitted/class_of_leaf"][:] < 0).any()
        file["fitted/weights"][:, -1] = 0
    assert refused("tree", run(use("tree", crafted)), crafted, "a draw could end where no class is")


RESHAPED = {
    "prepared": ["train/X", "train/y", "test/y", "classes/counts"],
    "sparse": ["train/X/indptr", "train/X/indices", "train/X/data"],
    "tree": [f"fitted/{name}" for name in ("mean", "components", "weights", "class_of_leaf")],
    "model": ["W", "class_names/ends", "correction/weights"],
    "checkpoint": ["arrays/W", "arrays/auxiliary"],
}
FORMS = {
    "shorter": lambda values: values[:-1],
    "empty": lambda values: values[:0],
    "flat": lambda values: values.ravel()[: len(values)].reshape(-1, 1) if values.ndim == 1 else values.ravel(),
    "of another type": lambda values: np.zeros(values.shape, np.float16),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_other_shapes(kind, form, whole, use, tmp_path):
    for name in RESHAPED[kind]:
        crafted = shutil.copy(whole[kind], tmp_path / "crafted.h5")
        with edited(crafted) as file:
            values = file[name][()]
            if values.size == 0:
                continue
            del file[name]
            file[name] = FORMS[form](values)
        assert refused(kind, run(use(kind, crafted)), crafted), (name, form)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """Where HDF5 looks for plug-ins, which it is told as it starts: one place for all tests."""
    return tmp_path_factory.mktemp("plugins")


@pytest.fixture
def secret(tmp_path):
    """A file of someone's own, which nobody is to see."""
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["secret"] = np.full((10_000, 8), 42, np.float32)
    return tmp_path / "secret.h5"


def external_storage(file, name, secret):
    values = file[name]
    shape, dtype = values.shape, values.dtype
    del file[name]
    file.create_dataset(name, shape, dtype, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def external_link(file, name, secret):
    del file[name]
    file[name] = h5py.ExternalLink(str(secret), "/secret")


def soft_link(file, name, secret):
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def virtual(file, name, secret):
    layout = h5py.VirtualLayout((10_000, 8), np.float32)
    layout[...] = h5py.VirtualSource(str(secret), "secret", (10_000, 8), np.float32)
    del file[name]
    file.create_virtual_dataset(name, layout)


def plugin(file, name, secret):
    """Packed by a filter that HDF5 would look for among plug-ins."""
    values = file[name]
    kind = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    kind.set_chunk((1,) * values.ndim)
    kind.set_filter(32000, h5py.h5z.FLAG_OPTIONAL)
    space, dtype = h5py.h5s.create_simple(values.shape), h5py.h5t.py_create(values.dtype)
    del file[name]
    h5py.h5d.create(file.id, b"plugged", dtype, space, kind)
    file.move("plugged", name)


def reference(file, name, secret):
    del file[name]
    file.create_dataset(name, data=np.array([file.ref] * 3, dtype=h5py.ref_dtype))


ESCAPES = [external_storage, external_link, soft_link, virtual, plugin, reference]


@pytest.mark.fault(
    "an HDF5 file with links, arrays in other files, or filters of a plug-in's",
    happens="none is followed, read or loaded; files of ours have none, so it is refused wherever one is opened",
    user="`error: …: not what xsoftmax writes (/train/X lies in other files …)`",
)
@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leads_out_of_a_file(kind, escape, whole, use, secret, plugins, tmp_path):
    name = {"prepared": "train/X", "sparse": "train/X/data", "tree": "fitted/components", "model": "W"}.get(
        kind, "arrays/W"
    )
    crafted = shutil.copy(whole[kind], tmp_path / "crafted.h5")
    with edited(crafted) as file:
        escape(file, name, secret)
    done = run(use(kind, crafted), env={**os.environ, "HDF5_PLUGIN_PATH": str(plugins)})
    assert refused(kind, done, crafted), done.stderr
    for path in tmp_path.rglob("*"):
        assert path == secret or path.is_dir() or b"\0\0\x28\x42" * 20 not in path.read_bytes()


@pytest.mark.fault(
    "an HDF5 file that says it holds 2^40 numbers",
    happens="what an array says is compared with the bytes that it has; memory is asked before it is taken",
    user="`error: …: not what xsoftmax writes (… is more than its … bytes can hold)`",
)
@pytest.mark.parametrize("how", ["unwritten", "packed", "piece"])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_nothing_holds(kind, how, whole, use, tmp_path):
    name = {"prepared": "train/y", "sparse": "train/X/data", "tree": "fitted/mean", "model": "W"}.get(
        kind, "arrays/W"
    )
    crafted = shutil.copy(whole[kind], tmp_path / "crafted.h5")
    with edited(crafted) as file:
        dtype, dimensions = file[name].dtype, file[name].ndim
        del file[name]
        shape = (2**40, *(9,) * (dimensions - 1))
        options = {
            "unwritten": {},
            "packed": {"chunks": (2**10, *(1,) * (dimensions - 1)), "compression": "gzip"},
            "piece": {"chunks": (2**28, *(1,) * (dimensions - 1)), "compression": "gzip"},
        }[how]
        file.create_dataset(name, shape, dtype, **options)
    began = time.monotonic()
    done = run(use(kind, crafted))
    assert refused(kind, done, crafted), done.stderr
    assert time.monotonic() - began < 20


def flipped(content, rng):
    """Some bytes of a file anywhere but in its signature; its seal is made anew by whoever calls."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = rng.integers(8, len(changed))
        changed[at] = rng.choice([0, 1, 127, 128, 255, changed[at] ^ (1 << rng.integers(8))])
    return bytes(changed)


READ = """
import hashlib, os, sys, traceback
from functools import partial
from pathlib import Path
import faulthandler
faulthandler.enable()
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
sys.path.insert(0, "tests/security")
import numpy as np
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attribute
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.model import load_model
from xsoftmax.training.checkpoint import read_checkpoint
from xsoftmax.training.plan import FitState
from xsoftmax.proposals._file import read_proposal
import h5py

kind, whole, folder = sys.argv[1:]

def prepared(path):
    with open_prepared(path) as data:
        for split in ("train", "validation", "test"):
            data.split(split)
        data.class_names, data.class_counts, data.transform

def checkpoint(path):
    with h5py.File(whole) as file:
        arrays = {name: np.empty(array.shape, array.dtype) for name, array in file["arrays"].items()}
        identity = attribute(file, "identity")
    read_checkpoint(path, identity, partial(copy_arrays, arrays), FitState)

readers = {"model": load_model, "tree": read_proposal, "checkpoint": checkpoint}
read = readers.get(kind, prepared)
for path in sorted(Path(folder).iterdir()):
    print("reads", path.name, flush=True)
    try:
        read(path)
        print("read", flush=True)
    except InputError as error:
        print("refused", flush=True)
"""


def survive(kind, whole, folder, n_files, seconds=300):
    """Read so many damaged files, sealed again, in programs of their own; count those that were read, and refused."""
    from hashlib import sha256

    rng, content, counts = (
        np.random.default_rng(0),
        whole[kind].read_bytes()[:-CHECKSUM_BYTES],
        {"read": 0, "refused": 0},
    )
    folder.mkdir()
    for number in range(n_files):
        changed = flipped(content, rng)
        (folder / f"{number:05}.h5").write_bytes(changed + b"xsoftmax sealed\n" + sha256(changed).digest())
    words = [sys.executable, "-c", READ, kind, str(whole[kind]), str(folder)]
    done = run(words, timeout=seconds)
    for line in done.stdout.splitlines():
        if line in counts:
            counts[line] += 1
    last = done.stdout.splitlines()[-2:]
    ended = signal.Signals(-done.returncode).name if done.returncode < 0 else done.returncode
    assert done.returncode == 0, (ended, last, done.stderr[-2000:])
    assert sum(counts.values()) == n_files
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_some_changed_files_that_are_sealed_again(kind, whole, tmp_path):
    counts = survive(kind, whole, tmp_path / "changed", 100)
    assert counts["refused"] or kind == "checkpoint"  # which is passed over with a warning


@pytest.mark.slow
@pytest.mark.fault(
    "a prepared file, tree, model or checkpoint with mutated bytes, sealed again, 500 of each; 5,000 by hand with "
    "`XSOFTMAX_FUZZ=5000`",
    happens="an error that names the file, or a read of numbers that are within bounds",
    user="`error: …: not what xsoftmax writes (…)`",
)
@pytest.mark.parametrize("kind", KINDS)
def test_many_changed_files_that_are_sealed_again(kind, whole, tmp_path):
    survive(kind, whole, tmp_path / "changed", N_FILES, 3000)
