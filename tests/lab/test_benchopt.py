"""The benchmark of benchmark_softmax/, run by benchopt: docs/benchopt.md."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

from pages import Page

pytest.importorskip("benchopt", reason="benchopt is not installed: pip install benchopt")
pd = pytest.importorskip("pandas", reason="pip install 'xsoftmax[report]'")

ROOT = Path(__file__).parents[2]
GENERATED = shutil.ignore_patterns("__cache__", "__pycache__", "data", "outputs")

pytestmark = pytest.mark.slow


@pytest.fixture
def benchmark(tmp_path):
    """A copy, so that caches and results of others play no part."""
    return shutil.copytree(ROOT / "benchmark_softmax", tmp_path / "softmax", ignore=GENERATED)


@pytest.fixture
def results(benchmark, tmp_path):
    """A function that has benchopt run the benchmark; it gives what was printed, and the rows of results."""

    def of(*options):
        words = [sys.executable, "-m", "benchopt", "run", benchmark, "--no-display", "--seed", "0", *options]
        words, environment = [*words, "--output", "run"], os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout, pd.read_parquet(benchmark / "outputs" / "run.parquet")

    return of


def test_solvers_learn_two_data_sets(benchmark, results):
    chosen = ("-s", "xsoftmax", "-s", "scikit-learn[solver=lbfgs]", "-n", "5")
    _, rows = results("--config", benchmark / "quick.yml", *chosen)
    n_classes = {"simulated": 50, "prepared": 10}
    assert {name.partition("[")[0] for name in rows["dataset_name"]} == set(n_classes)
    for (dataset, _), curve in rows.groupby(["dataset_name", "solver_name"]):
        uniform = np.log(n_classes[dataset.partition("[")[0]])
        assert curve["stop_val"].is_monotonic_increasing
        np.testing.assert_allclose(curve["objective_value"].iloc[0], uniform, rtol=1e-6)
        assert curve["objective_value"].min() < 0.7 * uniform
        assert curve["objective_test_accuracy"].max() > 0.7
    assert rows.groupby("dataset_name")["solver_name"].nunique().tolist() == [4, 4]
    (page,) = (benchmark / "outputs").glob("*run.html")
    assert "Validation log-loss" in page.read_text()


def test_the_solver_of_the_page_meets_ours_and_refusals_have_a_reason(results, tmp_path):
    (tmp_path / "gradient_descent.py").write_text(Page("benchopt.md").block("python"))
    ours = "xsoftmax[method=[softmax,adversarial,sofmax]]"
    chosen = ("-d", "simulated[distance=9]", "-s", "gradient_descent.py", "-s", ours)
    said, rows = results(*chosen, "-n", "3", "--no-plot")
    assert "adversarial: its model adds the proposal's log-probabilities" in said
    assert "unknown method 'sofmax'" in said
    assert sorted(name.partition("[")[0] for name in rows["solver_name"].unique()) == ["gradient-descent", "xsoftmax"]


def test_data_that_do_not_fit_are_skipped_with_a_reason(results):
    several = "prepared[dataset=[bibtex-sets,digitz]]"
    said, rows = results("-d", several, "-d", "simulated", "-s", "xsoftmax[method=softmax]", "-n", "2", "--no-plot")
    assert "this benchmark takes no several labels" in said
    assert "did you mean 'digits'" in said
    assert {name.partition("[")[0] for name in rows["dataset_name"]} == {"simulated"}


def test_log_losses_are_those_of_scikit_learn(benchmark, rng):
    from benchopt.benchmark import Benchmark

    objective = Benchmark(benchmark).get_benchmark_objective().get_instance()
    rows = {
        f"X_{split}": rng.standard_normal((40, 3)).astype(np.float32) for split in ("train", "validation", "test")
    }
    rows |= {f"y_{split}": (np.arange(40) % 5).astype(np.int32) for split in ("train", "validation", "test")}
    objective.set_data(n_classes=5, **rows)
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(5)
    found = objective.evaluate_result(W, b)
    for split in ("train", "validation", "test"):
        scores = rows[f"X_{split}"] @ W.T + b
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[f"{split}_log_loss"], log_loss(rows[f"y_{split}"], p), rtol=1e-5)
        assert found[f"{split}_accuracy"] == np.mean(p.argmax(axis=1) == rows[f"y_{split}"])
    assert found["value"] == found["validation_log_loss"]
