"""What happens to whole runs: two in one folder, edits meanwhile, a clock that jumps, too little memory."""

import contextlib
import json
import os
import shutil
import socket
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from faults.programs import N_CLASSES, clustered, train
from forked import run
from training.same_fit import fit_of
from workflow.checkout import TINY, Checkout, finished_tree

pytestmark = pytest.mark.slow

LONG = TINY.replace("epochs: 1", "epochs: 4000").replace("adversarial, one-vs-each", "u-max")
LONG = "\n".join(line for line in LONG.splitlines() if not line.startswith("set:")) + "\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A working tree where the data are prepared."""
    tree = Checkout(tmp_path_factory.mktemp("disturbed"))
    (tree.folder / "long.yaml").write_text(LONG)
    tree.snakemake("--until", "prepare", config="long.yaml")
    return tree


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A working tree with a whole run."""
    return finished_tree(tmp_path_factory)


def start(tree, *words):
    return tree.start("snakemake", "--configfile", "long.yaml", "--cores", "2", *words)


def wait_for(path, seconds=240):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.05)


def rate_of(status):
    return status["parameters"]["optimizer"]["learning_rate"]


@pytest.mark.fault(
    "two Snakemake processes in one folder",
    happens="the second one ends before it does anything; the first one goes on",
    user="`LockException`, and that `--unlock` is for a run that was killed",
)
def test_a_second_snakemake_is_refused_and_the_first_goes_on(tree):
    first = start(tree, "--until", "train")
    wait_for(tree.folder / ".snakemake/locks")
    wait_for(tree.folder / "logs/tiny/train/digits/softmax/seed-0.log")
    second = tree.run("snakemake", "--configfile", "long.yaml", "--cores", "2", "--until", "train")
    assert second.returncode != 0
    assert "LockException" in second.stderr
    assert first.wait(120) == 0, first.log.read_text()
    assert len(list((tree.folder / "results/tiny/fits").rglob("model.h5"))) == 2


@pytest.mark.fault(
    "the methods file edited while a run waits for its turn",
    happens="fits that begin later are refused: they are not what was planned; the next run trains by the new file",
    user="`error: config/methods.yaml: … changed since this run was planned`",
)
def test_a_method_edited_during_a_run(tree):
    fits = tree.folder / "results/tiny/fits/digits"
    log = tree.folder / "logs/tiny/train/digits"
    shutil.rmtree(log, ignore_errors=True)
    first = start(tree, "--until", "train", "--cores", "1", "--forcerun", "train")
    end = time.monotonic() + 60
    while not any("epoch" in path.read_text() for path in log.rglob("*.log")):
        assert time.monotonic() < end
        time.sleep(0.05)

    def halve_rates(methods):
        for name in ("softmax", "u-max"):
            methods[name]["optimizer"]["learning_rate"] *= 0.5

    with tree.edited_yaml("config/methods.yaml", halve_rates):
        assert first.wait(120) != 0
        assert (
            "changed since this run was planned; start the run again, nothing done is lost" in first.log.read_text()
        )
        trained = [json.loads(path.read_text()) for path in fits.rglob("status.json")]
        assert len(trained) == 1
        rates = yaml.safe_load((tree.folder / "config/methods.yaml").read_text())
        (fit,) = trained
        assert (
            fit["parameters"]["optimizer"]["learning_rate"] == 2 * rates[fit["method"]]["optimizer"]["learning_rate"]
        )
        tree.snakemake("--until", "train", config="long.yaml")
        for path in fits.rglob("status.json"):
            status = json.loads(path.read_text())
            now = rates[status["method"]]["optimizer"]["learning_rate"]
            assert status["parameters"]["optimizer"]["learning_rate"] == now


@pytest.mark.fault(
    "the config edited while a run on one machine goes on",
    happens="the run ends by what it read; the next one does what differs",
    user="nothing",
)
def test_a_config_edited_during_a_local_run(tree):
    first = start(tree, "--until", "train", "--forcerun", "train")
    wait_for(tree.folder / ".snakemake/locks")
    time.sleep(1)
    with tree.edited("long.yaml", "epochs: 4000", "epochs: 4001"):
        assert first.wait(120) == 0, first.log.read_text()
        statuses = [json.loads(path.read_text()) for path in (tree.folder / "results/tiny/fits").rglob("status.json")]
        assert {status["budget"]["epochs"] for status in statuses} == {4000}
        assert tree.jobs("--until", "train", config="long.yaml") == {"train": 2}


JUMPING = """
import random, sys, time
real, offset = time.time, 0.0
def jumping():
    global offset
    offset += random.choice([-86400.0, 3600.0, 0.0])
    return real() + offset
time.time = jumping
from xsoftmax.cli import main
sys.exit(main())
"""


@pytest.mark.fault(
    "a clock that jumps while a fit trains",
    happens="budgets and times are of a clock that cannot jump: the same bits, seconds of training as they were",
    user="nothing",
)
def test_a_clock_that_jumps_during_a_fit(prepare, tmp_path):
    data = prepare(*clustered(), N_CLASSES, n_validation=400, n_test=400)
    words = train(data, tmp_path, "implicit", "--epochs", 20, "--points", 4)
    assert run(words).returncode == 0
    expected = fit_of(tmp_path / "fit")
    assert run([words[0], "-c", JUMPING, *words[3:]]).returncode == 0
    assert fit_of(tmp_path / "fit") == expected
    status = json.loads((tmp_path / "fit" / "status.json").read_text())
    assert 0 < status["seconds"] < 60


@pytest.mark.fault(
    "a clock that was wrong while data were prepared: their date is in the future",
    happens="Snakemake compares the content of small files; above 1 MB it refuses what is older than its input",
    user="`Output … has older modification time … than input …`; `touch` the data and run again",
    lost="fits trained meanwhile, which are trained again, to the same bits",
)
def test_data_of_the_future(tree):
    tree.snakemake("--until", "train", config="long.yaml")
    prepared, fit = tree.folder / "data/prepared/digits.h5", tree.folder / "results/tiny/fits/digits/softmax/seed-0"
    before = fit_of(fit)
    future = time.time() + 7200
    os.utime(prepared, (future, future))
    assert tree.jobs("--until", "train", config="long.yaml") == {}
    by_date = ("--until", "train", "--max-checksum-file-size", "0")  # as of large files
    assert tree.jobs(*by_date, config="long.yaml") == {"train": 2}
    done = tree.run("snakemake", "--configfile", "long.yaml", "--cores", "2", *by_date)
    assert done.returncode != 0
    assert "has older modification time" in done.stderr
    assert not (fit / "model.h5").exists()
    os.utime(prepared)
    tree.snakemake(*by_date, config="long.yaml")
    assert fit_of(fit) == before
    assert tree.jobs(*by_date, config="long.yaml") == {}


@pytest.mark.fault(
    "a fit over its memory limit",
    happens="it is refused before it begins, by an estimate of what it takes",
    user="`error: … needs … MB: …`, for what, and what to change",
)
def test_a_fit_that_needs_more_memory_than_it_may_take(prepare, tmp_path):
    """Half a GB holds the program and a small model, but not one of 200,000 classes by 1,000 features."""
    X, y = clustered()
    wide = np.pad(X, ((0, 0), (0, 1000 - X.shape[1])))
    (tmp_path / "few").mkdir()
    words = "implicit", "--epochs", 1, "--memory", 512
    assert run(train(prepare(wide, y, N_CLASSES), tmp_path / "few", *words)).returncode == 0
    done = run(train(prepare(wide, y, 200_000), tmp_path, *words))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert " MB" in done.stderr
    assert not (tmp_path / "fit").exists()


PREPARED = "data/prepared/digits.h5"
INPUTS = ["results/tiny/proposals/digits/*.h5", "results/tiny/fits/digits/softmax/*/model.h5", PREPARED]


def files(folder):
    """All finished files below a folder, with their content."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.fault(
    "prepared data, a tree or a model with a bit flipped, in a run of Snakemake",
    happens="what jobs will read is checked before the first of them starts: no output of any is removed; once the "
    "named file is deleted, the same command makes what is missing, to the same bits",
    user="`error: …: damaged: …; delete it and start the same command again`, and that nothing was started",
)
@pytest.mark.parametrize("damaged", INPUTS)
def test_a_damaged_input_costs_no_finished_output(damaged, whole_run):
    tree, results = whole_run, whole_run.folder / "results/tiny"
    (path,) = tree.folder.glob(damaged)
    before = files(results)
    assert {"model.h5", "history.csv", "status.json", "metrics.json", "report.html"} <= {name.name for name in before}
    with in_place_of(path):
        shutil.copy(f"{path}.aside", path)
        flip_a_bit(path)
        done = tree.run("snakemake", "--configfile", "tiny.yaml", "--cores", "2")
        now = files(results)
    assert done.returncode == 1
    name = path.relative_to(tree.folder)
    assert f"error: {name}: damaged: its content does not have the SHA-256" in done.stderr
    assert "delete it and start the same command again" in done.stderr
    assert "Nothing was started, so that nothing is lost." in done.stderr
    assert "Traceback" not in done.stderr
    assert {each for each in now if each.suffix != ".aside"} == before.keys()
    assert all(now[each] == before[each] for each in before if results / each != path)


@pytest.mark.parametrize("lost", INPUTS)
def test_what_was_deleted_for_its_damage_is_made_again_to_the_same_bits(lost, whole_run):
    tree, results = whole_run, whole_run.folder / "results/tiny"
    (path,) = tree.folder.glob(lost)
    before = files(results)
    path.unlink()
    tree.snakemake()
    assert files(results).keys() == before.keys()
    for fit in results.glob("fits/*/*/*"):
        assert (fit / "metrics.json").read_bytes() == before[(fit / "metrics.json").relative_to(results)]
    tree.snakemake(PREPARED)  # nothing needs the data now, but they may be asked for
    assert (tree.folder / PREPARED).exists()
    assert "Nothing to be done" in tree.snakemake()


@contextlib.contextmanager
def in_place_of(path):
    """Move a file away while the context lasts."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        aside.rename(path)


def refused(tree, *words):
    """Run the tiny experiment, which must end without anything done, and return what it said."""
    results = tree.folder / "results/tiny"
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()}
    done = tree.run("snakemake", "--configfile", "tiny.yaml", "--cores", "2", *words)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()} == before
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


@pytest.mark.fault(
    "another fit's whole model under the name of this one, in a run of Snakemake",
    happens="the model is compared with the `status.json` beside it before the first job starts; `evaluate`, "
    "`compare` and `track` refuse it, too",
    user="`error: …/model.h5: the model of another fit (method: …); delete it and start the same command again`",
)
def test_a_model_of_another_fit(whole_run):
    fits = whole_run.folder / "results/tiny/fits/digits"
    model = fits / "softmax/seed-0/model.h5"
    with in_place_of(model):
        shutil.copy(fits / "adversarial/seed-0/model.h5", model)
        assert refused(whole_run) == [
            "error: results/tiny/fits/digits/softmax/seed-0/model.h5: the model of another fit (method: it has "
            '"adversarial", status.json "softmax"); delete it and start the same command again'
        ]
        evaluated = whole_run.run("python", "-m", "xsoftmax", "evaluate", str(model), PREPARED)
        compared = whole_run.run("python", "-m", "xsoftmax", "compare", str(model.parent), "-o", "elsewhere")
        for done in (evaluated, compared):
            assert done.returncode == 1
            assert "the model of another fit" in done.stderr
    assert "Nothing to be done" in whole_run.snakemake()


@pytest.mark.fault(
    "other data prepared under the name of these, in a run of Snakemake",
    happens="what they were made from is compared with the description, and with the raw files, before the first job",
    user="`error: data/prepared/….h5: prepared from something else than … says (…); delete it and start the same "
    "command again`",
)
def test_other_data_under_the_same_name(whole_run):
    folder = whole_run.folder
    prepared, described = folder / PREPARED, (folder / "config/datasets/digits.yaml").read_text()
    other = yaml.safe_load(described) | {"max_samples": 500, "expect": {}}
    (folder / "other.yaml").write_text(yaml.safe_dump(other))
    words = ("python", "-m", "xsoftmax", "prepare", "other.yaml", "--raw", "data/raw/digits", "-o", PREPARED)
    with in_place_of(prepared):
        done = whole_run.run(*words)
        assert done.returncode == 0, done.stderr
        assert refused(whole_run) == [
            f"error: {PREPARED}: prepared from something else than config/datasets/digits.yaml says "
            "(parameters differs); delete it and start the same command again"
        ]
    receipt = folder / "data/raw/digits/receipt.json"
    with in_place_of(receipt):
        content = json.loads((receipt.parent / "receipt.json.aside").read_text())
        (entry,) = content["files"].values()
        entry["sha256"] = "0" * 64
        receipt.write_text(json.dumps(content))
        assert "(source_sha256 differs)" in " ".join(refused(whole_run, "--forcerun", "train"))
    assert whole_run.jobs() == {}  # its content is what it was


@pytest.mark.fault(
    "a FIFO, a socket or a device in place of an input, or a file in place of a folder",
    happens="Snakemake would wait for ever, or end in a traceback: the run is refused before it looks",
    user="`error: …: neither a regular file nor a folder; delete it …`, `error: …: not a folder …`",
)
def test_what_is_no_file_or_no_folder(whole_run):
    model = whole_run.folder / "results/tiny/fits/digits/softmax/seed-0/model.h5"
    made = [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), bind]
    for make in made:
        with in_place_of(model):
            make(model)
            (line,) = refused(whole_run)
            assert "model.h5: neither a regular file nor a folder; delete it and start the same command" in line
    with in_place_of(whole_run.folder / "logs"):
        (whole_run.folder / "logs").touch()
        assert refused(whole_run) == ["error: logs: not a folder, which has to be here; rename it, or delete it"]


def bind(path):
    """Make a socket, whose whole path may be too long for one."""
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


@pytest.mark.parametrize("damaged", ["fits/digits/softmax/*/status.json", "fits/digits/softmax/*/history.csv"])
def test_a_damaged_text_costs_no_table(damaged, whole_run):
    tree, results = whole_run, whole_run.folder / "results/tiny"
    (path,) = results.glob(damaged)
    before = files(results)
    path.write_bytes(before[path.relative_to(results)][:-20])
    done = tree.run("snakemake", "--configfile", "tiny.yaml", "--cores", "2")
    assert done.returncode == 1
    assert f"error: {path.relative_to(tree.folder)}: damaged (" in done.stderr
    assert files(results).keys() == before.keys()
    path.unlink()
    tree.snakemake()
    assert files(results).keys() == before.keys()


def test_files_that_someone_deletes_come_back(whole_run):
    """Whichever it is of a fit: all of them are asked for."""
    tree, fit = whole_run, whole_run.folder / "results/tiny/fits/digits/adversarial/seed-0"
    before = files(fit)
    assert len(before) == 4
    for name in ("model.h5", "history.csv", "status.json", "metrics.json"):
        (fit / name).unlink()
        tree.snakemake()
        assert files(fit).keys() == before.keys()
        assert (fit / "metrics.json").read_bytes() == before[Path("metrics.json")]


def test_a_damaged_download_costs_no_prepared_data(tree):
    """The raw files are held against their receipt before what was prepared from them is removed."""
    folder = tree.folder
    lines = [f"{k % 3} 1:{k % 5 + 1} 2:{k % 7 + 1}" for k in range(300)]
    (folder / "upstream.svm").write_text("\n".join(lines) + "\n")
    source = {"name": "own.svm", "urls": [(folder / "upstream.svm").as_uri()]}
    (folder / "own.yaml").write_text(yaml.safe_dump({"name": "own", "format": "svmlight", "files": [source]}))
    config = {"experiment": "raw", "datasets": ["own.yaml"], "methods": ["softmax"], "budget": {"epochs": 1}}
    (folder / "raw.yaml").write_text(yaml.safe_dump(config))
    tree.snakemake("--until", "train", config="raw.yaml")
    before = (folder / "data/prepared/own.h5").read_bytes()
    (folder / "data/raw/own/own.svm").write_text("0 1:1\n")
    words = ("snakemake", "--configfile", "raw.yaml", "--cores", "2", "--forcerun", "prepare")
    done = tree.run(*words)
    assert done.returncode == 1
    assert "own.svm: sha256 is" in done.stderr
    assert "download it again" in done.stderr
    assert (folder / "data/prepared/own.h5").read_bytes() == before
    assert len(list((folder / "results/raw").rglob("model.h5"))) == 1


def training_in(folder):
    """Give the process that trains in a working tree."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"train" in words and b"-m" in words and (process / "cwd").readlink() == folder:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("no fit is training")


@pytest.mark.fault(
    "a fit that the kernel kills for want of memory, in the middle of a run",
    happens="its job fails, the others go on; the next run resumes from the checkpoint, and ends with the same bits",
    user="`Killed` with the fit's command; `resumed` in its log",
)
def test_a_fit_that_the_kernel_kills_for_memory(tree, little_memory):
    config = (
        LONG.replace("tiny", "starved")
        .replace("[softmax, u-max]", "[softmax]")
        .replace("epochs: 4000", "epochs: 20000")
    )
    (tree.folder / "starved.yaml").write_text(config)
    words = ("snakemake", "--configfile", "starved.yaml", "--cores", "2", "--until", "train")
    program = tree.start(*words, XSOFTMAX_CHECKPOINT_SECONDS="0.3")
    wait_for(tree.folder / "scratch/starved/digits/softmax/seed-0.h5")
    little_memory(training_in(tree.folder), 65536)
    assert program.wait() == 1
    assert "Killed" in program.log.read_text()
    fit = tree.folder / "results/starved/fits/digits/softmax/seed-0"
    assert not (fit / "model.h5").exists()
    tree.snakemake("--until", "train", config="starved.yaml")
    assert "resumed" in next((tree.folder / "logs/starved/train").rglob("*.log")).read_text()
    resumed = fit_of(fit)
    shutil.rmtree(fit)
    tree.snakemake("--until", "train", config="starved.yaml")
    assert fit_of(fit) == resumed
