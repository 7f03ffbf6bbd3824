"""Files and names from others: nothing in them is run, and nothing is written outside its place."""

import io
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml

from edited import edited
from faults.programs import N_CLASSES, checkpoint_of, clustered, train
from forked import run, xsoftmax
from workflow.checkout import REPOSITORY, Checkout
from workflow.test_config import CONFIG, Experiment
from xsoftmax.data.config import load_config
from xsoftmax.internal.errors import InputError

SOURCES = [path for folder in ("src", "notebooks") for path in (REPOSITORY / folder).rglob("*.py")]


class Trap:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def sprung(tmp_path):
    """The file that is there once something of a crafted file has run."""
    return tmp_path / "sprung"


@pytest.fixture(scope="module")
def data(prepare):
    return prepare(*clustered(400), N_CLASSES, n_validation=50, n_test=50)


def pickled(path):
    return np.void(pickle.dumps(Trap(path)))


@pytest.mark.fault(
    "a file of data that holds a pickle",
    happens="it is refused; nothing of it runs",
    user="`error: …: cannot read it as NumPy arrays (…)`",
)
@pytest.mark.parametrize(
    ("kind", "names"), [("npy", []), ("npz", ["X"]), ("npz", ["data", "indices", "shape", "format"])]
)
def test_arrays_with_pickles_are_refused(kind, names, tmp_path, sprung):
    traps = np.array([Trap(sprung)] * 3, dtype=object)
    if kind == "npy":
        np.save(tmp_path / "X.npy", traps, allow_pickle=True)
    else:
        np.savez(tmp_path / "X.npz", **dict.fromkeys(names, traps))
    np.save(tmp_path / "y.npy", np.arange(3))
    (tmp_path / "mine.yaml").write_text(
        f"name: mine\nformat: arrays\nfiles: [{{path: X.{kind}}}, {{path: y.npy}}]\n"
        f"parts: {{all: {{data: X.{kind}, labels: y.npy}}}}\n"
    )
    assert run(xsoftmax("download", tmp_path / "mine.yaml", "-o", tmp_path / "raw")).returncode == 0
    done = run(xsoftmax("prepare", tmp_path / "mine.yaml", "--raw", tmp_path / "raw", "-o", tmp_path / "mine.h5"))
    assert done.returncode == 1
    assert f"X.{kind}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not sprung.exists()


@pytest.mark.fault(
    "a model, tree, checkpoint or prepared file made to run code",
    happens="what the file names is looked up among this package's own members, and its bytes are numbers or text",
    user="`error:` or nothing; no code runs",
)
def test_no_file_of_ours_runs_code(ours, tmp_path, sprung):
    """Every text and array of each is replaced, one after the other, by a pickle or the name of a module."""
    kind, whole = ours
    with h5py.File(whole) as file:
        texts, arrays = list(file.attrs), []
        file.visititems(lambda name, found: arrays.append(name) if isinstance(found, h5py.Dataset) else None)
    assert texts
    assert arrays
    (tmp_path / "crafted").mkdir()
    for i, name in enumerate([*texts, *arrays]):
        for j, value in enumerate(
            (pickled(sprung), "os", "../../evil", "xsoftmax.cli", '{"__reduce__": ["os.system"]}')
        ):
            with edited(shutil.copy(whole, tmp_path / "crafted" / f"{i}-{j}.h5")) as file:
                if name in arrays:
                    del file[name]
                    file[name] = value
                else:
                    file.attrs[name] = value
    done = run([sys.executable, "-c", LOADS, kind, str(whole), str(tmp_path / "crafted")])
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5 * (len(texts) + len(arrays))
    assert not sprung.exists()


LOADS = """
import sys
from functools import partial
from pathlib import Path
import h5py
import numpy as np
from xsoftmax.data.store import open_prepared
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attribute
from xsoftmax.internal.hdf5_checks import copy_arrays
from xsoftmax.model import load_model
from xsoftmax.training.checkpoint import read_checkpoint
from xsoftmax.training.plan import FitState
from xsoftmax.proposals._file import read_proposal

kind, whole, folder = sys.argv[1:]

def checkpoint(path):
    with h5py.File(whole) as file:
        arrays = {name: np.empty(array.shape, array.dtype) for name, array in file["arrays"].items()}
        read_checkpoint(path, attribute(file, "identity"), partial(copy_arrays, arrays), FitState)

def prepared(path):
    with open_prepared(path) as data:
        for split in ("train", "validation", "test"):
            data.split(split)
        list(data.class_names)

read = {"model": load_model, "prepared": prepared, "checkpoint": checkpoint, "tree": read_proposal}[kind]
for path in sorted(Path(folder).iterdir()):
    try:
        read(path)
        print("read", path.name)
    except InputError if kind in ("model", "tree") else Exception:
        print("refused", path.name)
"""


@pytest.fixture(params=["model", "tree", "checkpoint", "prepared"])
def ours(request, data, tmp_path):
    """A kind of file and a whole one."""
    kept = tmp_path / "kept.h5"
    if request.param == "prepared":
        return request.param, data
    if request.param == "tree":
        assert run(xsoftmax("proposal", data, "--kind", "tree", "-o", kept)).returncode == 0
        return request.param, kept
    if request.param == "checkpoint":
        checkpoint_of(
            train(data, tmp_path, "negative", "--epochs", 5, "--checkpoint", kept, "--checkpoint-seconds", 0), kept
        )
        return request.param, kept
    assert run(train(data, tmp_path, "adversarial", "--epochs", 1)).returncode == 0
    return request.param, tmp_path / "fit" / "model.h5"


def test_nothing_here_unpickles_or_evaluates():
    """Neither directly nor through a library's door to it."""
    doors = r"\b(pickle\.loads?|joblib|cloudpickle|dill|marshal\.loads?|shelve)\b|(?<![.\w])(eval|exec)\("
    doors += r"|yaml\.(unsafe_)?load\("
    doors += r"|allow_pickle=True|torch\.load\(|read_pickle|shell=True|os\.system"
    for path in SOURCES:
        found = re.search(doors, path.read_text())
        assert not found, (path, found[0])


NAMES = [
    "$(touch sprung)",
    "`touch sprung`",
    "a;touch sprung",
    "a b",
    "a'b",
    'a"b',
    "a\nb",
    "a\n",
    "..",
    "../up",
    "-rf",
    "a/b",
]


KEYS = ["datasets", "methods", "experiment", "define", "reference"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Checkout(tmp_path_factory.mktemp("names"))


@pytest.mark.long_cases
@pytest.mark.fault(
    "names of data sets, methods or experiments with quotes, `$()`, spaces or newlines",
    happens="refused before anything runs",
    user="`error: config: …`, with the name",
)
@pytest.mark.parametrize("key", KEYS)
def test_names_are_names(key, tree):
    """Every name by who reads the config, and each in some place by a dry run of the workflow.

    A plain one in the same place is taken, so that it is the name that is refused.
    """
    plain = "softmax" if key in ("methods", "reference") else "plain"
    Experiment.from_config(named(tree, key, plain), CONFIG)
    assert planned(tree, key, plain) == 0
    for name in NAMES:
        with pytest.raises(InputError):
            Experiment.from_config(named(tree, key, name), CONFIG)
    for name in NAMES[KEYS.index(key) :: len(KEYS)]:
        assert planned(tree, key, name) != 0, (key, name)
        assert not list(tree.folder.rglob("sprung"))


def named(tree, key, name):
    """A config with a name in one place, of a data set beside it if that is the place."""
    config = yaml.safe_load((tree.folder / "tiny.yaml").read_text()) | {"set": {}}
    if key == "datasets":
        source = {"name": "x.svm", "path": "x.svm"}
        (tree.folder / "x.svm").write_text("0 1:1\n1 1:2\n")
        (tree.folder / "own.yaml").write_text(yaml.safe_dump({"name": name, "format": "svmlight", "files": [source]}))
        config["datasets"] = [str(tree.folder / "own.yaml")]
    elif key == "define":
        config |= {"define": {name: {"like": "softmax"}}, "methods": [name]}
    else:
        config[key] = [name] if key == "methods" else name
    return config


def planned(tree, key, name):
    """The status of a dry run with a name in one place of the config."""
    (tree.folder / "named.yaml").write_text(yaml.safe_dump(named(tree, key, name)))
    return tree.run("snakemake", "--configfile", "named.yaml", "--cores", "1", "--dry-run").returncode


@pytest.mark.slow
@pytest.mark.fault(
    "paths and settings with quotes, `$()` or spaces",
    happens="they are one word to the shell, whatever they contain",
    user="nothing",
)
def test_what_may_hold_any_text_is_quoted(tree):
    """A description's path, a mirror, and a setting; all in one run."""
    folder = tree.folder / "a $(touch sprung) 'b"
    folder.mkdir()
    lines = [f"{k % 3} 1:{k % 5 + 1} 2:{k % 7 + 1}" for k in range(300)]
    (folder / 'it"s; touch sprung.svm').write_text("\n".join(lines) + "\n")
    own = {"name": "own", "format": "svmlight", "files": [{"name": "own.svm", "path": 'it"s; touch sprung.svm'}]}
    (folder / "own.yaml").write_text(yaml.safe_dump(own))
    config = {
        "experiment": "quoted",
        "datasets": [f"{folder.name}/own.yaml"],
        "methods": ["softmax"],
        "budget": {"epochs": 1},
        "mirror": "$(touch sprung)'`touch sprung`",
        "set": {"softmax": {"source": "'; touch sprung; ' $(touch sprung) \"; touch sprung; \""}},
    }
    (tree.folder / "quoted.yaml").write_text(yaml.safe_dump(config))
    tree.snakemake("--until", "train", config="quoted.yaml")
    assert (tree.folder / "results/quoted/fits/own/softmax/seed-0/model.h5").exists()
    assert not list(tree.folder.rglob("sprung"))


@pytest.mark.slow
@pytest.mark.fault(
    "passwords and tokens in addresses: of a mirror, or of a data set's files",
    happens="they are used, and neither printed nor stored; that one of a file changes is seen by a slow hash of it",
    user="addresses with `…` in place of what may be secret",
)
def test_no_password_of_the_config_is_printed_or_stored(tree):
    secret = "s3cr3t" * 2  # not what is in any of the sources
    lines = [f"{k % 3} 1:{k % 5 + 1} 2:{k % 7 + 1}" for k in range(300)]
    (tree.folder / "own.svm").write_text("\n".join(lines) + "\n")
    own = {
        "name": "own",
        "format": "svmlight",
        "files": [{"urls": [f"{tree.folder.as_uri()}/own.svm?token={secret}"]}],
    }
    (tree.folder / "own.yaml").write_text(yaml.safe_dump(own))
    config = {"experiment": "secret", "datasets": ["own.yaml"], "methods": ["softmax"], "budget": {"epochs": 1}}
    (tree.folder / "secret.yaml").write_text(
        yaml.safe_dump(config | {"mirror": f"file://ann:{secret}@localhost/nowhere"})
    )
    words = ("--printshellcmds", "--until", "prepare", "plan")
    said = tree.snakemake(*words, config="secret.yaml")
    assert "…" in (tree.folder / "results/secret/config.yaml").read_text()
    with tree.edited("own.yaml", secret, f"{secret}s"):
        assert tree.jobs(*words, config="secret.yaml")["download"] == 1
        said += tree.snakemake("--dry-run", *words, config="secret.yaml")
    assert secret not in said
    others = {"own.yaml", "secret.yaml"}
    files = [path for path in tree.folder.rglob("*") if path.is_file() and path.name not in others]
    stored = [path for path in files if secret.encode() in path.read_bytes()]
    assert not stored


@pytest.mark.parametrize("name", NAMES)
def test_a_data_sets_name_is_no_path(name, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"name": name, "format": "svmlight", "files": [{"path": "x.svm"}]}))
    with pytest.raises(InputError, match="is part of paths: use lower case, digits and hyphens"):
        load_config(path)


@pytest.mark.fault(
    "archives with absolute paths, `..`, links, devices, or far more in them than they are large",
    happens="refused; nothing is kept",
    user="`error: …: entry … would lie outside the target`, or which limit to raise",
)
@pytest.mark.parametrize("kind", ["path", "absolute", "link", "hard link", "device", "bomb"])
def test_archives_keep_to_their_place(kind, tmp_path):
    """Through the real program; each kind of archive by itself is in tests/data/test_archive.py."""
    entry, content = tarfile.TarInfo("inside.txt"), b"x"
    changes = {
        "path": {"name": "../../outside.txt"},
        "absolute": {"name": str(tmp_path / "outside.txt")},
        "link": {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        "hard link": {"type": tarfile.LNKTYPE, "linkname": "../../outside.txt"},
        "device": {"type": tarfile.CHRTYPE},
        "bomb": {},
    }[kind]
    limit = "more than the allowed bytes come out of it; raise archive.max_bytes"
    place, kinds = "would lie outside the target", "only files and folders are unpacked"
    reason = {"path": place, "absolute": place, "bomb": limit}.get(kind, kinds)
    for key, value in changes.items():
        setattr(entry, key, value)
    content = bytes(2**22) if kind == "bomb" else content
    entry.size = len(content) if entry.isreg() else 0
    other = tarfile.TarInfo("other.txt")
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.addfile(other)
        archive.addfile(entry, io.BytesIO(content))
    source = {"name": "packed", "urls": [(tmp_path / "packed.tar.gz").as_uri()], "archive": {"max_bytes": 2**20}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"name": "own", "format": "folders", "files": [source]}))
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run(xsoftmax("download", tmp_path / "own.yaml", "-o", tmp_path / "raw" / "own"))
    assert done.returncode == 1
    assert done.stderr.count("error: ") == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "raw") == before
    assert not [path for path in (tmp_path / "raw").rglob("*") if path.is_file() and "side" in path.name]


def test_nothing_listens_to_the_network():
    """MLflow's server binds to loopback unless told otherwise, and nothing here tells it."""
    from mlflow.cli import server

    (host,) = [option for option in server.params if option.name == "host"]
    assert host.default in (None, "127.0.0.1")
    rules = [*REPOSITORY.glob("**/Snakefile"), *REPOSITORY.glob("workflow/**/*.smk")]
    for path in [*SOURCES, REPOSITORY / "Makefile", *rules]:
        assert "0.0.0.0" not in path.read_text(), path


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-run.lock"])
def test_dependencies_are_locked_with_hashes(lock):
    lines = (REPOSITORY / lock).read_text().replace("\\\n", " ").splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted
    assert all("==" in line and "--hash=sha256:" in line for line in wanted)
    assert f"envs/install.py {lock}" in (REPOSITORY / "Makefile").read_text()
    assert '"--require-hashes", "-r", lock' in (REPOSITORY / "envs/install.py").read_text()


def test_downloads_are_checked():
    """Every file of the web is encrypted on its way, or has a checksum, or is recorded with a warning."""
    unprotected = {
        path.stem
        for path in (REPOSITORY / "config" / "datasets").glob("*.yaml")
        for source in load_config(path).files
        if source.sha256 is None and any(url.startswith("http://") for url in source.urls)
    }
    assert unprotected <= {"wiki-small", "wiki-small-unit", "billion-words"}  # whose hosts know no https


@pytest.mark.slow
def test_the_audit_says_what_it_looked_at():
    done = subprocess.run(
        ["bash", "envs/audit.sh", sys.executable], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or "vulnerabilit" in done.stdout + done.stderr
    assert re.search(r"^(audited|NOT AUDITED)", done.stdout, re.MULTILINE), done.stdout + done.stderr
