"""The benchmark beside other programs where rows have several labels. No peer's environment is needed."""

import importlib
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.sparse import csr_array, csr_matrix

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.store import Split, write_prepared
from xsoftmax.data.transform import Transform
from xsoftmax.evaluation.metrics.propensity_scored import inverse_propensity
from xsoftmax.lab.benchmark import peers
from xsoftmax.lab.benchmark.peers import rounds, runs
from xsoftmax.lab.benchmark.peers.config import Benchmark, Entrant, read_benchmark
from xsoftmax.lab.benchmark.peers.exports import export
from xsoftmax.lab.benchmark.peers.rounds import Rounds, chosen
from xsoftmax.lab.report.quality import RANKING
from xsoftmax.lab.report.suites import peers as report
from xsoftmax.lab.report.targets import limits, targets_table
from xsoftmax.methods import build_method, merged, read_methods

ROOT = Path(__file__).parents[3]
sys.path.append(str(runs.WORKERS))
import protocol_ranking as ranking  # noqa: E402 - what workers import; it lies beside them
from protocol_data import Data  # noqa: E402

ROWS = {"train": 120, "validation": 30, "test": 40}
N_FEATURES, N_CLASSES = 12, 9


def label_lists(rng, n):
    return [sorted(rng.choice(N_CLASSES, size=rng.integers(1, 5), replace=False).tolist()) for _ in range(n)]


def split_of(rng, n):
    """Each label of a row is a feature of it, nearly: linear models learn it."""
    labels = label_lists(rng, n)
    X = 0.1 * rng.random((n, N_FEATURES))
    for row, each in enumerate(labels):
        X[row, each] += 1
    sets = LabelSets(
        np.cumsum([0, *map(len, labels)]).astype(np.int64), np.array([k for each in labels for k in each], np.int32)
    )
    return Split(csr_array(X.astype(np.float32)), sets.classes[sets.starts[:-1]], None, sets)


@pytest.fixture
def prepared(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "several.h5"
    splits = {name: split_of(rng, n) for name, n in ROWS.items()}
    write_prepared(
        path, dataset="several", splits=splits, class_names=[str(k) for k in range(N_CLASSES)],
        class_counts=splits["train"].class_counts(N_CLASSES), transform=Transform("sparse", n_columns=N_FEATURES),
        parameters={}, source_sha256={}, dropped={},
    )  # fmt: skip
    return path, splits


# The measures


def naive(ranked, labels, weights, k):
    """P@k and PSP@k of lists, in loops."""
    hits = sum(sum(c in true for c in row[:k]) for row, true in zip(ranked, labels, strict=True))
    got = sum(sum(weights[c] for c in row[:k] if c in true) for row, true in zip(ranked, labels, strict=True))
    most = sum(sum(sorted((weights[c] for c in true), reverse=True)[:k]) for true in labels)
    return hits / (k * len(labels)), got / most


def test_precisions_are_those_of_slow_loops():
    rng = np.random.default_rng(1)
    labels = label_lists(rng, 50)
    ranked = [rng.permutation(N_CLASSES)[: rng.integers(0, 6)].tolist() for _ in labels]
    weights = 1 + rng.random(N_CLASSES)
    classes, _ = ranking.top_of_pairs([[(c, -i) for i, c in enumerate(row)] for row in ranked])
    indicator = csr_matrix(np.array([[float(c in row) for c in range(N_CLASSES)] for row in labels]))
    found = ranking.ranking_values(classes, indicator, weights)
    assert list(found) == list(RANKING) == list(ranking.MEASURES)
    for k in (1, 3, 5):
        both = found[f"p_at_{k}"], found[f"psp_at_{k}"]
        assert both == pytest.approx(naive(ranked, labels, weights, k), rel=1e-12)


def test_propensities_are_those_of_the_metrics():
    counts = np.array([0, 1, 7, 1000])
    np.testing.assert_allclose(
        ranking.inverse_propensities(counts, 5000), inverse_propensity(counts, 5000), rtol=1e-12
    )
    expected = 1 + (np.log(5000) - 1) * 2.5**0.55 / 8.5**0.55
    assert ranking.inverse_propensities(counts, 5000)[2] == pytest.approx(expected, rel=1e-12)


def test_the_best_come_first_and_ties_in_order():
    rows = csr_matrix(np.array([[0, 2.0, 3.0, 2.0], [0, 0, 0, 0], [0.5, 0, 0, -1.0]]))
    classes, scores = ranking.top_of(rows, 3)
    assert classes.tolist() == [[2, 1, 3], [-1, -1, -1], [0, 3, -1]]
    assert scores.tolist() == [[3, 2, 2], [0, 0, 0], [0.5, -1, 0]]
    classes, scores = ranking.top_of_scores(np.array([[1.0, 3.0, 3.0]]), 5)
    assert (classes.tolist(), scores.tolist()) == ([[1, 2, 0, -1, -1]], [[3, 3, 1, 0, 0]])
    classes, scores = ranking.top_of_pairs([[(4, 0.5), (1, 0.25)], []], 2)
    assert (classes.tolist(), scores.tolist()) == ([[4, 1], [-1, -1]], [[0.5, 0.25], [0, 0]])


# What workers read and leave


def test_all_labels_are_exported(tmp_path, prepared):
    path, splits = prepared
    meta = export(path, tmp_path / "e", {"validation": 20})
    assert (meta["multilabel"], meta["n_validation"]) == (True, 20)
    data = Data(tmp_path / "e")
    for name in ("train", "test"):
        sets, indicator = splits[name].label_sets, data.labels(name)
        assert indicator.shape == (ROWS[name], N_CLASSES)
        np.testing.assert_array_equal(indicator.indptr, sets.starts)
        np.testing.assert_array_equal(indicator.indices, sets.classes)
        assert (indicator.data == 1).all()
    with pytest.raises(ValueError, match="several labels"):
        data.classes("train")


def test_omikuji_reads_all_labels_of_a_row(monkeypatch):
    module = types.ModuleType("omikuji")
    module.ffi = module.lib = None
    monkeypatch.setitem(sys.modules, "omikuji", module)
    worker = importlib.import_module("run_omikuji")
    X = csr_matrix(np.array([[0, 0.5], [1.25, 2]], np.float32))
    sets = csr_matrix(np.array([[1.0, 0, 1], [0, 1, 0]]))
    assert list(worker.lines(X, sets)) == ["2 2 3", "0,2 1:0.5", "1 0:1.25 1:2"]
    assert list(worker.lines(X, np.array([1, 0]))) == ["2 2 2", "1 1:0.5", "0 0:1.25 1:2"]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A worker of our own, whose scores are the features; ``run(split)`` gives its record."""
    folder = tmp_path / "workers"
    folder.mkdir()
    for path in runs.WORKERS.glob("protocol*.py"):
        (folder / path.name).write_text(path.read_text())
    (folder / "run_fake.py").write_text(
        "from protocol import work\n"
        "from protocol_ranking import top_of_scores\n\n\n"
        "def train(record):\n"
        "    record.loaded()\n"
        "    with record.training():\n"
        "        pass\n"
        "    record.look_at_top(None, lambda X: top_of_scores(X[:, : record.data.n_classes].toarray()))\n\n\n"
        "work(train)\n"
    )
    monkeypatch.setattr(runs, "WORKERS", folder)

    def run(data, split):
        job = {"worker": "fake", "entrant": "e", "peer": "p", "packages": [], "dataset": "d", "split": split}
        job |= {"settings": {}, "seconds": 0.2, "seed": 0, "data": str(data)}
        bounds = runs.limits(1, wall_seconds=20.0, start_seconds=20.0, memory_share=0.9)
        return runs.run_job(job, Path(sys.executable), tmp_path / f"{split}.json", bounds)

    return run


def test_a_look_measures_rankings_and_keeps_them(tmp_path, prepared, fake):
    path, splits = prepared
    export(path, tmp_path / "e", {})
    record = fake(tmp_path / "e", "test")
    assert record["status"] == "finished", record["message"]
    (point,), test = record["curve"], splits["test"]
    ranked = np.argsort(-test.X.toarray()[:, :N_CLASSES], axis=1)[:, :5].tolist()
    labels = [row.tolist() for row in np.split(test.label_sets.classes, test.label_sets.starts[1:-1])]
    weights = inverse_propensity(splits["train"].class_counts(N_CLASSES), ROWS["train"])
    for k in (1, 3, 5):
        both = point[f"p_at_{k}"], point[f"psp_at_{k}"]
        assert both == pytest.approx(naive(ranked, labels, weights, k), rel=1e-9)
        assert f"validation_psp_at_{k}" in point
    assert (point["log_likelihood"], point["accuracy"]) == (None, point["p_at_1"])
    with np.load(tmp_path / "test.npz") as kept:
        assert kept["test_classes"].tolist() == ranked
        assert kept["validation_scores"].shape == (30, 5)


def test_a_pilot_ranks_no_test_rows(tmp_path, prepared, fake):
    export(prepared[0], tmp_path / "e", {})
    for path in (tmp_path / "e").glob("test_*"):
        path.unlink()
    record = fake(tmp_path / "e", "validation")
    assert record["status"] == "finished", record["message"]
    assert set(RANKING) <= set(record["curve"][0])
    with np.load(tmp_path / "validation.npz") as kept:
        assert set(kept) == {"validation_classes", "validation_scores"}


# Settings, targets, tables


def look(seconds, *values, validation=None):
    """A point of a curve with its P@1, P@3, P@5, PSP@1, PSP@3, PSP@5, on validation rows alike."""
    measured = dict(zip(RANKING, values, strict=True))
    judged = dict(zip(RANKING, validation or values, strict=True))
    point = {"epochs": None, "seconds": seconds, "log_likelihood": None, "accuracy": values[0]}
    return point | measured | {f"validation_{name}": value for name, value in judged.items()}


def entry(*points):
    run = {"curve": list(points), "status": "finished", "message": "", "peak_bytes": 3e6, "loaded_bytes": 1e6}
    return {"pilots": [], "runs": [run | {"budget_seconds": 5, "no_log_likelihood": "it ranks classes"}]}


def test_settings_are_chosen_by_the_mean_of_all_precisions():
    by_first, by_mean = look(1, 0.9, 0.2, 0.2, 0.2, 0.2, 0.2), look(1, *[0.4] * 6)
    records = [{"settings": name, "curve": [point]} for name, point in (("a", by_first), ("b", by_mean))]
    assert chosen(records, ["a", "b"]) == "b"


def test_the_best_peer_by_each_measure_is_the_target_in_its_time():
    found = {
        "pecos-xlinear": entry(look(3, 0.6, 0.5, 0.4, 0.3, 0.3, 0.3)),
        "omikuji-bonsai": entry(look(2, 0.5, 0.4, 0.3, 0.35, 0.2, 0.2)),
        "xsoftmax-softmax": entry(
            look(1, 0.6, 0.4, 0.4, 0.34, 0.3, 0.2),
            look(2.5, *[0.9] * 6, validation=[0.95] * 6),
        ),
    }
    asked = yaml.safe_load((ROOT / "config/peers-sets.yaml").read_text())["targets"]
    asked["datasets"]["tiny"] = asked["datasets"]["debtags"]
    assert sorted(limits(asked, "tiny", found).values()) == [2, 3]
    content = {"datasets": {"tiny": {"entrants": found, "data": {"n_classes": 5}}}, "targets": asked}
    lines = targets_table(content).splitlines()[2:]
    assert [line.split(" | ")[0:2] for line in lines[:6]] == [["| tiny", name] for name in RANKING.values()]
    assert lines[0] == "| tiny | P@1 | 0.6000 | 3.00 s | xsoftmax-softmax | 0.9000 | 2.50 s | **met** |"
    assert (
        lines[3] == "| tiny | PSP@1 | 0.3500 | 2.00 s | xsoftmax-softmax | 0.3400 | 1.00 s | **missed** by 0.0100 |"
    )
    data = {"n_train": 100, "n_features": 3, "n_classes": 5, "multilabel": True}
    content["datasets"]["tiny"]["data"] = data
    blocks = report.blocks(content)
    assert "100 rows, 3 features, 5 classes, several labels per row" in blocks["peers"]
    row = "| pecos-xlinear | 0.6000 | 0.5000 | 0.4000 | 0.3000 | 0.3000 | 0.3000 | 3.00 | 2 |  |"
    assert row in blocks["peers"].splitlines()
    assert "PSP@3: ours ahead of the best peer" in blocks["targets"]


def test_the_shipped_config_for_label_sets_is_whole():
    config = ROOT / "config"
    benchmark = read_benchmark(
        config / "experiments/benchmark-sets.yaml", config / "peers-sets.yaml", config / "methods.yaml"
    )
    assert set(benchmark.targets["datasets"]) == set(benchmark.datasets)
    methods = read_methods(benchmark.methods)
    for one in benchmark.entrants:
        assert (runs.WORKERS / f"run_{one.worker.replace('-', '_')}.py").exists()
        assert 3 <= len(one.choices("csr")) <= 5
        for choice in one.choices("csr") if one.is_ours else []:
            build_method("m", merged(methods[choice["method"]], choice["set"]))


@pytest.mark.slow
def test_ours_are_run_on_label_sets_and_others_say_why_not(tmp_path, prepared, monkeypatch):
    """With softmax, and with scikit-learn's, which takes one label."""
    monkeypatch.setattr(rounds, "prepared_file", lambda name: prepared[0])
    ours = Entrant("xsoftmax-softmax", "xsoftmax", None, (), {"method": "softmax"}, {"sparse": [{"set": {}}]})
    other = Entrant("other", "scikit-learn", None, (), {"solver": "lbfgs"}, {"sparse": [{}]})
    benchmark = Benchmark(
        datasets=["several"], seconds=0.4, less={}, pilot_share=0.5, rows={}, memory_share=0.9,
        entrants=[ours, other],
        patience={"factor": 4, "grace": 60, "start": 200}, methods=ROOT / "config/methods.yaml",
    )  # fmt: skip
    found = Rounds(benchmark, tmp_path / "out", tmp_path, tmp_path / "scratch").run()
    entries = found["several"]["entrants"]
    (run,) = entries["xsoftmax-softmax"]["runs"]
    assert run["status"] == "finished", run["message"]
    assert run["curve"][-1]["p_at_1"] > 0.9
    assert set(run["checked"]) == set(RANKING)
    assert entries["other"]["runs"][0]["message"] == (
        "ValueError: rows have several labels each, of which this program takes one"
    )
    assert json.loads(json.dumps(found)) == found
    assert "| **xsoftmax-softmax** | " in peers.write({"datasets": found}, tmp_path / "out")
