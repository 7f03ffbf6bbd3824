"""The benchmark beside other programs: its protocol, its order, its arithmetic. No peer's environment is needed."""

import importlib
import json
import re
import shutil
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from xsoftmax.data.store import Split, open_prepared, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark import peers
from xsoftmax.lab.benchmark.peers import environments, rounds, runs
from xsoftmax.lab.benchmark.peers.config import Benchmark, Entrant, read_benchmark
from xsoftmax.lab.benchmark.peers.exports import export
from xsoftmax.lab.benchmark.peers.rounds import Rounds, chosen, interleaved, pilots
from xsoftmax.lab.report.leaderboard import (
    Level,
    crossing,
    levels,
    reasons,
    seconds_to,
    standing,
    summarise,
    verdict,
)
from xsoftmax.lab.report.quality import counted, memory, quality
from xsoftmax.lab.report.suites import peers as report
from xsoftmax.lab.report.targets import limits, targets_table
from xsoftmax.methods import AUTO, build_method, merged, read_methods

ROOT = Path(__file__).parents[3]
sys.path.append(str(runs.WORKERS))
import protocol  # noqa: E402 - what workers import; it lies beside them


def shipped():
    config = ROOT / "config"
    return read_benchmark(config / "experiments/benchmark.yaml", config / "peers.yaml", config / "methods.yaml")


# The protocol


def test_log_likelihoods_are_those_of_the_full_softmax():
    rng = np.random.default_rng(0)
    scores, y = (30 * rng.standard_normal((50, 7))).astype(np.float32), rng.integers(7, size=50)
    measure = protocol.Measure()
    for rows in (slice(0, 20), slice(20, 50)):
        protocol.add(measure, scores[rows], y[rows])
    wide = scores.astype(np.float64)
    expected = (wide[np.arange(50), y] - logsumexp(wide, axis=1)).sum()
    assert measure.log_likelihood == pytest.approx(expected, rel=1e-6)
    assert (measure.hits, measure.rows) == ((scores.argmax(axis=1) == y).sum(), 50)


def test_log_probabilities_are_not_normalised_again():
    measure = protocol.Measure()
    protocol.add(measure, np.log([[0.2, 0.1]]), np.array([1]), "log_probabilities")
    assert measure.log_likelihood == pytest.approx(np.log(0.1), rel=1e-12)


def test_ties_and_numbers_that_are_none_are_misses():
    measure = protocol.Measure(None)
    protocol.add(measure, np.array([[1.0, 1.0], [np.nan, 0.0], [0.0, 2.0]]), np.array([0, 0, 1]), "ranks")
    assert (measure.hits, measure.rows, measure.log_likelihood) == (1, 3, None)


def job(tmp_path, worker="fake", **changes):
    common = {"worker": worker, "entrant": "e", "peer": "p", "packages": [], "dataset": "d", "split": "test"}
    common |= {"settings": {}, "seconds": 0.2, "seed": 0, "data": str(tmp_path / "data")}
    return common | changes


@pytest.fixture
def bounds():
    return runs.limits(1, wall_seconds=20.0, start_seconds=20.0, memory_share=0.9)


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """A folder of workers of our own; ``write(text)`` writes run_fake.py."""
    folder = tmp_path / "workers"
    folder.mkdir()
    for path in runs.WORKERS.glob("protocol*.py"):
        shutil.copy(path, folder)
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.json").write_text(json.dumps({"storage": "dense", "n_features": 1, "n_classes": 2}))
    for split, classes in (("test", [1, 0]), ("validation", [0, 0])):
        np.save(data / f"{split}_X.npy", np.array([[1.0], [-1.0]], np.float32))
        np.save(data / f"{split}_y.npy", np.array(classes, np.int32))
    monkeypatch.setattr(runs, "WORKERS", folder)
    head = "import os, time\nimport numpy as np\nfrom protocol import work\n\n\ndef train(record):\n"
    tail = '\n\nif __name__ == "__main__":\n    work(train)\n'

    def write(body):
        (folder / "run_fake.py").write_text(head + "".join(f"    {line}\n" for line in body.splitlines()) + tail)

    return write


STEPS = """open(record.data.folder / "ran", "a").write("x")
record.loaded()
with record.warm_up():
    time.sleep(0.3)
n, own = 0, 0.0
while record.goes_on():
    with record.training():
        start = time.perf_counter()
        while not record.due():
            time.sleep(0.01)
            n += 1
        own += time.perf_counter() - start
    time.sleep(0.05)
    record.evaluate(n, lambda X: np.hstack([-X, X]))
"""


def python():
    return Path(sys.executable)


def test_a_run_counts_training_only_and_pins_itself(tmp_path, workers, bounds):
    workers(STEPS + 'record.notes |= {"cores": sorted(os.sched_getaffinity(0)), "own": own}')
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert (record["status"], record["message"], record["cores"]) == ("finished", "", bounds.cores)
    assert len(bounds.cores) == record["threads"] == 1
    seconds = [point["seconds"] for point in record["curve"]]
    assert seconds == sorted(seconds)
    assert seconds[-1] >= 0.2
    # neither the warm-up's 0.3 s nor the 0.05 s before each look
    assert record["own"] <= seconds[-1] <= record["own"] + 0.04 * len(seconds)
    assert record["warm_up_seconds"] >= 0.3
    # the rows are (1) with class 1 and (-1) with class 0
    assert record["curve"][0]["log_likelihood"] == pytest.approx(np.log(1 / (1 + np.exp(-2))), abs=1e-6)
    assert record["curve"][0]["accuracy"] == 1
    assert record["curve"][0]["validation_accuracy"] == 0.5  # class 0 both times
    assert record["curve"][0]["validation_log_likelihood"] == pytest.approx(-1 - np.log(1 + np.exp(-2)), abs=1e-6)
    assert all(point["seconds"] >= 0.009 * point["epochs"] for point in record["curve"])


def test_a_pilot_does_not_look_at_test_rows(tmp_path, workers, bounds):
    workers(STEPS)
    for path in (tmp_path / "data").glob("test_*"):
        path.unlink()
    record = runs.run_job(job(tmp_path, split="validation"), python(), tmp_path / "r.json", bounds)
    assert record["status"] == "finished"
    assert {point["accuracy"] for point in record["curve"]} == {0.5}
    assert set(record["curve"][0]) == {"epochs", "seconds", "cpu_seconds", "log_likelihood", "accuracy"}


def test_seconds_may_be_those_that_a_run_computes(tmp_path, workers, bounds):
    workers("""record.loaded()
with record.training():
    time.sleep(0.3)
record.evaluate(1, lambda X: np.hstack([-X, X]))
""")
    record = runs.run_job(job(tmp_path, clock="cpu"), python(), tmp_path / "r.json", bounds)
    assert (record["status"], record["clock"]) == ("finished", "cpu")
    assert record["curve"][0]["seconds"] < 0.1


def test_memory_of_looks_and_of_compiling_is_no_memory_of_training(tmp_path, workers, bounds):
    """8 MB trained with, 80 MB looked at apart, and 80 MB that compiling leaves."""
    workers("""record.loaded()
with record.warm_up():
    kept = np.ones(10**7)
with record.training():
    ours = np.ones(10**6)
    with record.apart():
        np.ones(10**7).sum()
    ours += 1
record.evaluate(1, lambda X: np.hstack([-X, X]))
""")
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert record["status"] == "finished", record["message"]
    assert record["warm_up_bytes"] == pytest.approx(80e6, abs=4e6)
    assert memory([record]) == pytest.approx(8, abs=4)


def test_a_run_that_is_kept_is_not_done_again_unless_something_changed(tmp_path, workers, bounds):
    workers(STEPS)
    path, ran = tmp_path / "r.json", tmp_path / "data" / "ran"
    first = runs.run_job(job(tmp_path), python(), path, bounds)
    assert runs.run_job(job(tmp_path), python(), path, bounds) == first
    assert ran.read_text() == "x"
    runs.run_job(job(tmp_path, settings={"C": 1}), python(), path, bounds)
    assert ran.read_text() == "xx"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"status": "running"}))  # as a benchmark that was killed leaves it
    runs.run_job(job(tmp_path, settings={"C": 1}), python(), path, bounds)
    assert ran.read_text() == "xxx"
    workers(STEPS + "# another worker")
    runs.run_job(job(tmp_path, settings={"C": 1}), python(), path, bounds)
    assert ran.read_text() == "xxxx"


def test_a_run_that_does_not_end_is_ended_and_keeps_its_curve(tmp_path, workers):
    workers(STEPS + "time.sleep(60)")
    bounds = runs.limits(1, wall_seconds=1.0, start_seconds=2.0, memory_share=0.9)
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert (record["status"], record["message"]) == ("stopped", "ended after 3 s")
    assert record["curve"]


def test_a_run_that_fails_says_why(tmp_path, workers, bounds):
    workers('raise ValueError("no such loss")')
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert (record["status"], record["message"]) == ("failed", "ValueError: no such loss")
    workers("os._exit(3)")
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert record["status"] == "nothing"
    assert "status 3" in record["message"]


def test_a_run_may_not_take_more_memory_than_its_share(tmp_path, workers):
    workers("np.ones(2**30)")  # 8 GiB
    bounds = runs.Limits([0], 10.0, 10.0, 4 * 2**30)
    record = runs.run_job(job(tmp_path), python(), tmp_path / "r.json", bounds)
    assert record["status"] == "failed"
    assert "MemoryError" in record["message"]


def test_the_tree_of_fasttext_is_a_distribution(monkeypatch):
    monkeypatch.setitem(sys.modules, "fasttext", types.ModuleType("fasttext"))
    worker = importlib.import_module("run_fasttext")
    rng = np.random.default_rng(0)
    counts = np.sort(rng.integers(1, 50, size=9))[::-1]
    parent, is_right = worker.huffman(counts)
    assert parent[-1] == -1
    assert sorted(np.bincount(parent[:-1], minlength=17)) == [0] * 9 + [2] * 8
    assert all(is_right[np.flatnonzero(parent == node)].sum() == 1 for node in range(9, 17))
    evaluation = object.__new__(worker.Evaluation)
    evaluation.counts, evaluation.outputs = counts, rng.standard_normal((9, 4)).astype(np.float32)
    hidden = np.repeat(rng.standard_normal((1, 4)), 9, axis=0).astype(np.float32)
    assert np.exp(evaluation.hierarchical(hidden, np.arange(9))).sum() == pytest.approx(1, abs=1e-6)


# Environments


def test_a_peer_that_cannot_be_installed_is_listed_with_the_reason(tmp_path, monkeypatch):
    create = tmp_path / "create.sh"
    create.write_text(
        'mkdir -p "$1/bin"\n'
        'printf \'#!/bin/sh\\necho "looking"; echo "ERROR: no nosuch==1" >&2; exit 1\' > "$1/bin/python"\n'
        'chmod +x "$1/bin/python"\n'
    )
    (tmp_path / "nosuch.txt").write_text("nosuch==1\n")
    monkeypatch.setattr(environments, "CREATE", create)
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    with pytest.raises(environments.NotInstallableError, match=r"^ERROR: no nosuch==1$"):
        environments.python_of("nosuch", tmp_path / "venvs")
    benchmark = tiny(tmp_path, [entrant("peer-a", environment="nosuch")])
    monkeypatch.setattr(rounds, "prepared_file", lambda name: prepared(tmp_path))
    found = Rounds(benchmark, tmp_path / "out", tmp_path / "venvs", tmp_path / "scratch").run()
    assert found["tiny"]["entrants"]["peer-a"]["not_installable"] == "ERROR: no nosuch==1"
    assert "| peer-a | – |" in (table := peers.write({"datasets": found}, tmp_path / "out"))
    assert "not installable here: ERROR: no nosuch==1" in table


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    create = tmp_path / "create.sh"
    create.write_text(
        'mkdir -p "$1/bin"\necho made >> "$1/../made"\n'
        'printf "#!/bin/sh" > "$1/bin/python"\nchmod +x "$1/bin/python"\n'
    )
    (tmp_path / "venvs").mkdir()
    (tmp_path / "some.txt").write_text("some==1\n")
    monkeypatch.setattr(environments, "CREATE", create)
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    for _ in range(2):
        assert environments.python_of("some", tmp_path / "venvs").name == "python"
    assert (tmp_path / "venvs/made").read_text() == "made\n"
    (tmp_path / "some.txt").write_text("some==2\n")
    environments.python_of("some", tmp_path / "venvs")
    assert (tmp_path / "venvs/made").read_text() == "made\nmade\n"


# Config


def test_the_shipped_config_names_what_is_there():
    benchmark = shipped()
    asked = yaml.safe_load((ROOT / "config/experiments/benchmark.yaml").read_text())
    assert {f"xsoftmax-{name}" for name in asked["methods"]} == {e.name for e in benchmark.entrants if e.is_ours}
    methods = read_methods(benchmark.methods)
    for one in benchmark.entrants:
        assert (runs.WORKERS / f"run_{one.worker.replace('-', '_')}.py").exists()
        assert one.is_ours == (one.environment is None)
        for storage in ("dense", "csr"):
            tunes_itself = one.settings.get("method") == AUTO
            assert 3 <= len(one.choices(storage)) <= 5 or tunes_itself
            for choice in one.choices(storage) if one.is_ours and not tunes_itself else []:
                build_method("m", merged(methods[choice["method"]], choice["set"]))
        if one.environment:
            text = (ROOT / f"envs/peers/{one.environment}.txt").read_text()
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", line) for line in lines)
            assert {*one.packages, "numpy", "scipy"} <= {line.split("==")[0] for line in lines}


def test_a_wrong_name_is_refused():
    config = ROOT / "config"
    files = config / "experiments/benchmark.yaml", config / "peers.yaml", config / "methods.yaml"
    with pytest.raises(InputError, match="no data set 'mnit'; known: icd10,"):
        read_benchmark(*files, ["mnit"])
    with pytest.raises(InputError, match="no entrant 'torch'; known: scikit-learn-lbfgs"):
        read_benchmark(*files, None, ["torch"])
    only = read_benchmark(*files, ["mnist"], ["jax", "fasttext"])
    assert (only.datasets, len(only.entrants)) == (["mnist"], 4)


# The order of runs


def entrant(name, grid=({},), worker="scikit-learn", environment=None):
    choices = list(grid)
    return Entrant(name, worker, environment, (), {}, {"dense": choices, "sparse": choices})


def tiny(tmp_path, entrants):
    return Benchmark(
        datasets=["tiny"], seconds=0.4, less={}, pilot_share=0.5, rows={"validation": 60, "test": 90},
        patience={"factor": 4, "grace": 10, "start": 60}, memory_share=0.9, entrants=entrants,
        methods=ROOT / "config/methods.yaml",
    )  # fmt: skip


def prepared(tmp_path):
    """Digits, as a prepared file called tiny."""
    path = tmp_path / "tiny.h5"
    if not path.exists():
        X, y = load_digits(return_X_y=True)
        X, y = (X / 16).astype(np.float32), y.astype(np.int32)
        order = np.random.default_rng(0).permutation(len(y))
        parts = {"train": order[:1000], "validation": order[1000:1300], "test": order[1300:]}
        write_prepared(
            path, dataset="tiny", splits={name: Split(X[rows], y[rows]) for name, rows in parts.items()},
            class_names=[str(k) for k in range(10)], class_counts=np.bincount(y[parts["train"]]),
            transform=Transform("dense", n_columns=64), parameters={}, source_sha256={}, dropped={},
        )  # fmt: skip
    return path


def test_ours_stand_between_the_peers():
    peers_, ours = [entrant(f"p{i}") for i in range(6)], [entrant(f"o{i}", worker="xsoftmax") for i in range(2)]
    order = [one.name for one in interleaved(peers_ + ours)]
    assert order == ["p0", "p1", "o0", "p2", "p3", "p4", "o1", "p5"]
    assert sorted(one.name for one in interleaved(peers_ + ours, 1)) == sorted(order)
    assert interleaved(peers_ + ours, 1)[0].name != "p0"


def test_pilots_go_through_the_grids_in_step():
    a, b, c = entrant("a", [{"x": 1}, {"x": 2}]), entrant("b", [{"x": 1}, {"x": 2}, {"x": 3}]), entrant("c")
    turns = [(n, one.name) for n, one in pilots([a, b, c], "dense")]
    assert [n for n, _ in turns] == [0, 0, 1, 1, 2]
    assert sorted(turns) == [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "b")]


def test_the_best_pilot_is_chosen_by_likelihood_then_accuracy():
    def pilot(setting, *values):
        curve = [{"log_likelihood": ll, "accuracy": accuracy} for ll, accuracy in values]
        return {"settings": setting, "curve": curve}

    choices = ["a", "b", "c"]
    by_likelihood = [pilot("a", (-2, 0.9)), pilot("b", (-1, 0.1), (-3, 0.1)), pilot("c")]
    assert chosen(by_likelihood, choices) == "b"
    assert chosen([pilot("a", (None, 0.3)), pilot("b", (None, 0.4)), pilot("c", (None, 0.2))], choices) == "b"
    assert chosen([pilot("a"), pilot("b")], choices) is None
    assert chosen([], ["only"]) == "only"


def test_who_gives_nothing_or_takes_too_long_is_not_searched_further():
    slow, fast = {"curve": [{"seconds": 9.0}]}, {"curve": [{"seconds": 0.5}, {"seconds": 20.0}]}
    assert rounds.searched_enough([{"curve": []}], 8.0)
    assert rounds.searched_enough([fast, slow], 8.0)
    assert not rounds.searched_enough([fast], 8.0)
    assert not rounds.searched_enough([], 8.0)


def test_budgets_shrink_to_the_minutes_given():
    benchmark = shipped()
    metas = [{"name": "mnist", "storage": "dense"}, {"name": "icd10", "storage": "csr"}]
    free, bound = (Rounds(benchmark, Path(), Path(), Path(), minutes=minutes) for minutes in (None, 40))
    assert free._scale(metas) == 1
    assert free.estimate(metas) > 40
    assert 30 < bound.estimate(metas, bound._scale(metas)) <= 40


def test_each_data_set_has_its_share_of_the_time():
    metas = [{"name": "mnist", "storage": "dense"}, {"name": "icd10", "storage": "csr"}]
    all_rounds = Rounds(shipped(), Path(), Path(), Path(), minutes=40)
    now, shares = time.monotonic(), [all_rounds.estimate([meta]) for meta in metas]
    assert all_rounds._share(metas, 1.0) == pytest.approx(now + 2400 * shares[0] / sum(shares), abs=5)
    assert all_rounds._share(metas[1:], 1.0) == pytest.approx(now + 2400, abs=5)


def test_all_see_the_same_rows(tmp_path):
    meta = export(prepared(tmp_path), tmp_path / "e", {"validation": 60, "test": 90})
    assert (meta["n_train"], meta["n_validation"], meta["n_test"]) == (1000, 60, 90)
    theirs = protocol.Data(tmp_path / "e")
    with open_prepared(tmp_path / "e/data.h5") as ours:
        for name in ("train", "validation", "test"):
            np.testing.assert_array_equal(ours.split(name).X, theirs.features(name))
            np.testing.assert_array_equal(ours.split(name).y, theirs.classes(name))
    date = (tmp_path / "e/test_y.npy").stat().st_mtime_ns
    export(prepared(tmp_path), tmp_path / "e", {"validation": 60, "test": 90})
    assert (tmp_path / "e/test_y.npy").stat().st_mtime_ns == date
    assert export(prepared(tmp_path), tmp_path / "e", {"test": 50})["n_test"] == 50


@pytest.mark.slow
def test_a_benchmark_from_data_to_table(tmp_path, monkeypatch):
    """With scikit-learn, which is in our own environment."""
    monkeypatch.setattr(rounds, "prepared_file", lambda name: prepared(tmp_path))
    grid = [{"solver": "lbfgs", "C": C} for C in (1e-6, 1.0)]
    benchmark = tiny(tmp_path, [entrant("peer-a", grid), entrant("peer-b", [{"solver": "saga", "C": 1.0}])])
    all_rounds = Rounds(benchmark, tmp_path / "out", tmp_path, tmp_path / "scratch")
    found = all_rounds.run()
    entries = found["tiny"]["entrants"]
    assert [len(entries[name]["pilots"]) for name in ("peer-a", "peer-b")] == [2, 0]
    final = entries["peer-a"]["runs"][0]
    assert (final["settings"]["C"], final["split"], final["budget_seconds"]) == (1.0, "test", 0.4)
    assert entries["peer-a"]["pilots"][0]["budget_seconds"] == 0.2
    assert final["curve"][-1]["log_likelihood"] > -0.4
    assert final["curve"][-1]["accuracy"] > 0.9
    assert final["peak_bytes"] > 0
    assert Rounds(benchmark, tmp_path / "out", tmp_path, tmp_path / "scratch", minutes=1e-9).run() != {}
    table = peers.write({"datasets": found}, tmp_path / "out")
    assert (tmp_path / "out/table.md").read_text() == table
    assert "1,000 rows, 64 features, 10 classes" in table
    assert len(list((tmp_path / "out/figures").iterdir())) == 4


@pytest.mark.slow
def test_searches_are_cut_where_final_runs_need_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "prepared_file", lambda name: prepared(tmp_path))
    monkeypatch.setattr(rounds, "FINAL_EXTRA", 1e6)
    grid = [{"solver": "lbfgs", "C": C} for C in (1e-6, 1.0)]
    found = Rounds(
        tiny(tmp_path, [entrant("peer-a", grid)]), tmp_path / "o", tmp_path, tmp_path / "s", minutes=9
    ).run()
    entry = found["tiny"]["entrants"]["peer-a"]
    assert [len(entry[kind]) for kind in ("pilots", "runs")] == [1, 1]
    assert entry["runs"][0]["settings"]["C"] == 1e-6
    assert "time allowed 1 of 2 settings" in peers.write({"datasets": found}, tmp_path / "o")
    benchmark = tiny(tmp_path, [entrant("peer-a", grid)])
    Rounds(benchmark, tmp_path / "o", tmp_path, tmp_path / "s").run()
    again = Rounds(benchmark, tmp_path / "o", tmp_path, tmp_path / "s", minutes=9).run()  # what was searched counts
    assert [run["settings"]["C"] for run in again["tiny"]["entrants"]["peer-a"]["runs"]] == [1.0]


def test_what_there_is_no_time_for_is_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "prepared_file", lambda name: prepared(tmp_path))
    benchmark = tiny(tmp_path, [entrant("peer-a", [{"solver": "lbfgs", "C": 1.0}])])
    found = Rounds(benchmark, tmp_path / "out", tmp_path, tmp_path / "scratch", minutes=1e-9).run()
    assert found["tiny"]["entrants"]["peer-a"] == {"pilots": [], "runs": [], "not_run": "time was up"}
    assert "not run: time was up" in peers.write({"datasets": found}, tmp_path / "out")


def test_data_that_cannot_be_had_are_listed(tmp_path, monkeypatch):
    def refuse(name):
        raise InputError(f"{name}: no address answers")

    monkeypatch.setattr(rounds, "prepared_file", refuse)
    found = Rounds(tiny(tmp_path, [entrant("peer-a")]), tmp_path, tmp_path, tmp_path).run()
    assert found == {"tiny": {"unavailable": "tiny: no address answers"}}
    assert "Data not available here: tiny: no address answers" in peers.write({"datasets": found}, tmp_path)


# Summaries, on curves made by hand


def curve(*points):
    keys = ("seconds", "epochs", "log_likelihood", "accuracy")
    return [dict(zip(keys, point, strict=True)) for point in points]


def entry(*curves, **more):
    kept = [
        {
            "curve": one,
            "status": "finished",
            "message": "",
            "peak_bytes": 3e6,
            "loaded_bytes": 1e6,
            "budget_seconds": 5,
        }
        for one in curves
    ]
    return {"pilots": [], "runs": kept, **more}


def test_a_level_is_reached_at_the_first_look_at_or_above_it():
    points = curve((1, 1, -2.0, 0.1), (2, 2, -1.0, 0.5), (4, 3, -1.5, 0.6), (8, 4, -0.5, 0.7))
    assert crossing(points, Level("log_likelihood", 0, -1.2))["seconds"] == 2  # between 1 s and 2 s: not before 2 s
    assert crossing(points, Level("log_likelihood", 0, -1.0))["seconds"] == 2
    assert crossing(points, Level("log_likelihood", 0, -0.99))["seconds"] == 8
    assert crossing(points, Level("accuracy", 0, 0.55))["seconds"] == 4
    assert crossing(points, Level("accuracy", 0, 0.71)) is None
    assert crossing(curve((1, 1, None, 0.5)), Level("log_likelihood", 0, -9)) is None


def test_the_time_to_a_level_is_the_median_of_the_runs():
    level = Level("accuracy", 0, 0.5)
    fast, slow, never = (curve((t, 1, None, a)) for t, a in ((1, 0.5), (3, 0.6), (1, 0.4)))
    run = [{"curve": one} for one in (fast, slow, never)]
    assert seconds_to(run, level) == 3
    assert seconds_to(run[:2], level) == 2
    assert seconds_to([run[0], run[2], run[2]], level) is None
    assert seconds_to([], level) is None


def entrants():
    return {
        "pytorch-full-softmax": entry(curve((1, 1, -2.0, 0.5), (4, 4, -1.0, 0.79))),
        "jax-full-softmax": entry(curve((2, 2, -1.1, 0.7), (3, 3, -1.005, 0.8))),
        "pecos-xlinear": entry(curve((0.5, None, None, 0.8)), **{}),
        "vowpal-wabbit-oaa": entry(not_installable="ERROR: no wheel"),
        "xsoftmax-softmax": entry(curve((1, 1, -1.3, 0.6), (1.5, 1.5, -1.005, 0.7))),
    }


def test_levels_are_set_by_the_best_of_all():
    found = {(level.measure, level.share): level.value for level in levels(entrants())}
    assert found[("log_likelihood", 0.01)] == pytest.approx(-1.01)
    assert found[("log_likelihood", 0.2)] == pytest.approx(-1.2)
    assert found[("accuracy", 0.05)] == pytest.approx(0.76)


def test_the_summary_tells_who_is_first_and_why():
    found = {"data": {"n_classes": 10}, "entrants": entrants()}
    summary = summarise(found["entrants"])
    rows = summary["rows"]
    assert rows["jax-full-softmax"]["seconds"] == [3, 3, 2, 3, 3]
    assert rows["pecos-xlinear"]["seconds"] == [None, None, None, 0.5, 0.5]
    assert rows["jax-full-softmax"]["seconds_per_epoch"] == 1
    assert rows["pecos-xlinear"]["seconds_per_epoch"] is None
    assert rows["jax-full-softmax"]["memory_mb"] == 2
    assert rows["vowpal-wabbit-oaa"]["note"] == "not installable here: ERROR: no wheel"
    assert summary["first"][0] == {"peer": "jax-full-softmax", "ours": "xsoftmax-softmax", "ratio": 2}
    assert summary["first"][3] == {"peer": "pecos-xlinear", "ours": None, "ratio": None}
    assert verdict(found, summary).endswith("Met: xsoftmax-softmax is 2 times as fast as jax-full-softmax.")
    assert reasons(found, summary) == [
        "accuracy within 1 %: pecos-xlinear takes 0.5 s, in one training; none of ours gets there in its time.",
        "accuracy within 5 %: pecos-xlinear takes 0.5 s, in one training; none of ours gets there in its time.",
    ]


def judged(*points):
    """A curve with values on validation rows: seconds, accuracy there, and on test rows."""
    keys = ("seconds", "validation_accuracy", "accuracy")
    points = [dict(zip(keys, point, strict=True)) for point in points]
    return [
        {"epochs": 1, "log_likelihood": p["accuracy"] - 1, "validation_log_likelihood": p["validation_accuracy"] - 1}
        | p
        for p in points
    ]


def test_validation_rows_say_which_look_counts():
    one = judged((1, 0.5, 0.9), (2, 0.6, 0.7), (3, 0.6, 0.8), (4, 0.4, 0.95))
    assert [counted(one, measure)["seconds"] for measure in ("accuracy", "log_likelihood")] == [2, 2]
    assert quality([{"curve": one}], "accuracy") == (0.7, 2, 0.6)
    assert quality([{"curve": one}], "accuracy", within=1.5) == (0.9, 1, 0.5)
    assert quality([{"curve": one}], "accuracy", within=0.5) is None
    assert counted(curve((1, 1, -1.0, 0.9), (2, 2, -2.0, 0.8)), "accuracy")["seconds"] == 2  # an older record
    assert summarise({"xsoftmax-a": entry(one)})["rows"]["xsoftmax-a"]["accuracy"].value == 0.7


def test_a_loss_is_said():
    found = {"pecos-xlinear": entry(judged((3, 0.8, 0.9))), "xsoftmax-a": entry(judged((1, 0.7, 0.85)))}
    found["xsoftmax-b"] = entry(judged((1, 0.6, 0.95)))  # better by test rows, which choose nothing
    assert standing(summarise(found))[1] == (
        "Accuracy: ours behind the best peer, xsoftmax-a 0.8500 at 1 s, pecos-xlinear 0.9000 at 3 s."
    )


def test_ours_have_runs_of_their_own_within_limits_of_time():
    target = {"accuracy": 0.9, "log_likelihood": {"of": "all"}, "seconds": {"of": "pecos-xlinear", "times": 0.5}}
    asked = {"today": [], "memory": "pecos-xlinear", "datasets": {"tiny": target}}
    found = {"pecos-xlinear": entry(curve((3, None, None, 0.9))), "xsoftmax-auto": entry(judged((2, 0.9, 0.9)))}
    assert list(limits(asked, "tiny", found).values()) == [1.5]  # once, for both measures
    assert limits(asked, "other", found) == {}
    found["xsoftmax-auto"]["limited"] = entry(judged((1.45, 0.91, 0.92)))["runs"]
    lines = targets_table({"datasets": {"tiny": {"entrants": found}}, "targets": asked}).splitlines()
    assert "| tiny | accuracy | 0.9000 | 1.50 s | xsoftmax-auto | 0.9200 | 1.45 s | **met** |" in lines


def test_targets_are_compared_with_looks_in_time():
    """PECOS takes 3 s: ours of 1 s counts, which is not the best of ours, and new ones only."""
    found = {
        "pecos-xlinear": entry(curve((3, None, None, 0.9))),
        "xsoftmax-auto": entry(judged((1, 0.8, 0.91), (4, 0.9, 0.99))),
        "xsoftmax-softmax": entry(judged((1, 0.95, 0.93), (2, 0.5, 0.5))),
    }
    dense = {"accuracy": {"of": "all", "plus": 0.005}, "log_likelihood": -0.08}
    asked = {"today": ["softmax"], "memory": "pecos-xlinear", "datasets": {"tiny": dense, "other": dense}}
    for who, times, expected in (
        ("pecos-xlinear", 1, ["**missed** by 0.0250", "**missed** by 0.0100"]),
        ("today", 0.5, ["**missed**", "**missed**"]),
        ("pecos-xlinear", 2, ["**met**", "**met**"]),
        ("vowpal-wabbit", 1, ["**unknown**: who sets it has no result"] * 2),
    ):
        dense["seconds"] = {"of": who, "times": times}
        lines = targets_table({"datasets": {"tiny": {"entrants": found}}, "targets": asked}).splitlines()
        assert [line.split(" | ")[-1].rstrip(" |") for line in lines[2:4]] == expected[::-1]
        assert len(lines) == 5
        assert lines[4].endswith("| **met** |") or who == "today"
    assert targets_table({"datasets": {"tiny": {"entrants": found}}}) == ""


def test_a_training_that_is_longer_than_all_others_get_is_marked():
    rows = summarise({"peer-a": entry(curve((5.1, None, -1.0, 0.8))), "peer-b": entry(curve((5, 1, -1.0, 0.8)))})[
        "rows"
    ]
    assert rows["peer-a"]["note"] == "its shortest training is longer than the 5 s of the others"
    assert rows["peer-b"]["note"] == ""


@pytest.mark.parametrize(("n_classes", "who"), [(1000, "no peer"), (10, "neither")])
def test_a_level_that_no_peer_reaches_is_neither_met_nor_missed(n_classes, who):
    found = {"data": {"n_classes": n_classes}, "entrants": entrants()}
    found["entrants"] = {name: each for name, each in found["entrants"].items() if "full-softmax" not in name}
    said = verdict(found, summarise(found["entrants"]))
    assert f"Open, neither met nor missed: {who} reached it in the" in said
    assert said.endswith("; xsoftmax-softmax takes 1.5 s.")
    assert "Met" not in said


def test_the_target_is_not_met_by_a_tie_where_there_are_many_classes():
    found = {"data": {"n_classes": 1000}, "entrants": entrants()}
    found["entrants"]["pecos-xlinear"] = entry(curve((2.9, None, -1.0, 0.8)))
    summary = summarise(found["entrants"])
    assert verdict(found, summary).endswith("Not met: xsoftmax-softmax is 1.9 times as fast as pecos-xlinear.")
    found["data"]["n_classes"] = 10  # there only full softmax is a rival
    assert verdict(found, summary).endswith("Met: xsoftmax-softmax is 2 times as fast as jax-full-softmax.")


def test_where_ours_lose_the_reason_counts_epochs_and_their_length():
    found = {"data": {"n_classes": 5000}, "entrants": entrants()}
    found["entrants"]["xsoftmax-softmax"] = entry(curve((6, 2, -1.0, 0.8)))
    summary = summarise(found["entrants"])
    assert verdict(found, summary).endswith("Not met: xsoftmax-softmax is 0.5 times as fast as jax-full-softmax.")
    assert reasons(found, summary)[0] == (
        "log-likelihood within 1 %: jax-full-softmax takes 3 s, 3 epochs of 1 s; "
        "xsoftmax-softmax takes 6 s, 2 epochs of 3 s."
    )


def test_where_none_of_ours_gets_there_it_is_said():
    found = {"data": {"n_classes": 5000}, "entrants": entrants()}
    found["entrants"]["xsoftmax-softmax"] = entry(curve((6, 2, -1.4, 0.1)))
    summary = summarise(found["entrants"])
    expected = "Not met: none of ours gets there; xsoftmax-softmax comes closest, -1.4 nats."
    assert verdict(found, summary).endswith(expected)


def test_the_page_shows_targets_tables_and_curves():
    small = {"n_train": 100, "n_features": 3, "n_classes": 10}
    content = {
        "datasets": {"small": {"data": small, "entrants": entrants()}, "other": {"unavailable": "no address answers"}}
    }
    blocks = report.blocks(content)
    assert blocks["targets"].startswith("- **small**: Target: ours within 1 %")
    assert "### small" in blocks["peers"]
    assert "Data not available here: no address answers" in blocks["peers"]
    panels = report.figures(content)["peers"].axes
    assert [len(axes.get_lines()) for axes in panels] == [
        3,
        4,
    ]  # pecos has no likelihood, one program no result
    assert report.figures({"datasets": {"other": {"unavailable": "no address answers"}}}) == {}
