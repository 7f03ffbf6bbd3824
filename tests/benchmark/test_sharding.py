"""Classes spread over nodes: steps against those of one node, counted bytes against formulas, times by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import naive
from xsoftmax.benchmark.sharding import run, times
from xsoftmax.benchmark.sharding.checks import (
    N_NODES,
    N_SAMPLED,
    check_exact,
    check_routed,
    check_stratified,
    problem,
)
from xsoftmax.benchmark.sharding.hardware import Hardware
from xsoftmax.benchmark.sharding.rates import Rates, read_rates
from xsoftmax.benchmark.sharding.schemes import (
    SCHEMES,
    Problem,
    exact_bytes,
    fullest,
    routed_bytes,
    step_bytes,
    stratified_bytes,
)
from xsoftmax.benchmark.sharding.simulation import (
    Network,
    exact_step,
    gathered,
    one_vs_each_gradient,
    softmax_gradient,
    spread,
    stratified_step,
)
from xsoftmax.cli import main
from xsoftmax.errors import InputError
from xsoftmax.report.suites.sharding import blocks

PERFORMANCE = Path(__file__).parents[2] / "docs" / "performance"
RATES = Rates(step=4e-6, step_speedup=2.0, pair=1e-8, pair_speedup=1.0, tree_draw=1e-6)
NODE = Hardware("node", 10, 1e12, 1e11, 1e9, 1e-4, "made up")
N_STEPS = 400


def naive_gradient(loss):
    W, X, y = problem()
    slopes = np.array([loss(s, k)[1] for s, k in zip(X.astype(float) @ W.T.astype(float), y, strict=True)])
    return slopes.T @ X


@pytest.mark.parametrize("n_nodes", N_NODES)
def test_an_exact_step_is_that_of_one_node(n_nodes):
    W, X, y = problem()
    network, expected = Network(), naive_gradient(naive.softmax)
    found = gathered(exact_step(spread(W, X, y, n_nodes), network))
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)
    assert network.n_bytes == y.size * exact_bytes(X.shape[1], n_nodes)


def test_large_scores_do_not_overflow():
    W, X, y = problem()
    found = gathered(exact_step(spread(300 * W, X, y, 4), Network()))
    assert np.isfinite(found).all()
    assert np.abs(found - softmax_gradient(300 * W, X, y)).max() < 1e-3


@pytest.mark.parametrize(("n_nodes", "n_visited"), [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 1), (8, 8)])
def test_stratified_steps_are_unbiased_and_send_what_the_formula_says(n_nodes, n_visited):
    found = check_stratified(n_nodes, n_visited, N_STEPS)
    assert found["deviation"] < 5
    assert found["counted"] == pytest.approx(stratified_bytes(8, n_nodes, n_visited), rel=1e-12)
    assert found["steps"] == N_STEPS


@pytest.mark.parametrize("n_nodes", N_NODES)
def test_routed_steps_are_unbiased_and_send_what_the_formula_expects(n_nodes):
    found = check_routed(n_nodes, N_STEPS)
    assert found["deviation"] < 5
    assert found["counted"] == pytest.approx(routed_bytes(8, N_SAMPLED, n_nodes), rel=0.01)


def test_a_row_that_stays_at_home_is_not_unbiased():
    """The test above would notice: all other nodes' classes are never drawn."""
    W, X, y = problem()
    cluster, rng = spread(W, X, y, 4), np.random.default_rng(0)
    steps = [gathered(stratified_step(cluster, Network(), rng, 5, np.array([0]))) for _ in range(N_STEPS)]
    away = np.mean(steps, axis=0) - one_vs_each_gradient(W, X, y)
    assert (np.abs(away) / (np.std(steps, axis=0, ddof=1) / np.sqrt(N_STEPS) + 1e-12)).max() > 20


def test_gradients_of_one_node_are_those_of_the_papers():
    arrays = problem()
    np.testing.assert_allclose(softmax_gradient(*arrays), naive_gradient(naive.softmax), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one_vs_each_gradient(*arrays), naive_gradient(naive.one_vs_each), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_nodes", N_NODES)
def test_every_class_has_one_node_and_every_row_that_of_its_class(n_nodes):
    W, X, y = problem()
    cluster = spread(W, X, y, n_nodes)
    np.testing.assert_array_equal(gathered(cluster.W), W)
    assert sum(map(len, cluster.y)) == y.size
    for node in range(n_nodes):
        rows = y % n_nodes == node
        np.testing.assert_array_equal(cluster.X[node], X[rows])
        np.testing.assert_array_equal(cluster.W[node][cluster.y[node]], W[y[rows]])


def test_the_network_counts_what_leaves_a_node_and_gives_copies():
    network, message = Network(), np.zeros((3, 2), np.float32)
    assert network.send(1, 1, message) is not message
    assert network.n_bytes == 0
    received = network.send(0, 1, message)
    received += 1
    assert network.n_bytes == 24
    assert message.sum() == 0


def test_rounds_of_times_are_those_of_the_simulation():
    assert check_exact(2)["rounds"] == SCHEMES["exact"](Problem(64), RATES, 2).rounds
    assert check_routed(2, 4)["rounds"] == SCHEMES["routed"](Problem(64), RATES, 2).rounds
    assert check_stratified(2, 1, 4)["rounds"] == SCHEMES["stratified"](Problem(64), RATES, 2).rounds


def test_bytes_by_hand():
    """512 features on 3 nodes: two rows of 2,048 bytes and 3 numbers each; two thirds of draws are away."""
    assert exact_bytes(512, 3) == 2 * (2048 + 12)
    assert stratified_bytes(512, 3) == pytest.approx(2 / 3 * (2048 + 8))
    assert routed_bytes(512, 1, 3) == pytest.approx(2 / 3 * (2048 + 16))
    assert routed_bytes(512, 10_000, 3) == pytest.approx(2 * 2048 + 10_000 * 2 / 3 * 16)
    assert [exact_bytes(8, 1), routed_bytes(8, 5, 1), stratified_bytes(8, 1)] == [0, 0, 0]
    assert step_bytes(n_features=9, n_sampled=1) == 2 * 10 * 4 * 4 + 9 * 4


def test_sampled_methods_send_the_same_for_any_number_of_classes():
    for name in ("routed", "stratified"):
        small, large = (SCHEMES[name](Problem(n_classes), RATES, 16) for n_classes in (10**5, 10**9))
        assert small == large


@pytest.mark.parametrize("n_nodes", [1, 4, 200])
def test_the_fullest_node_is_that_of_random_rows(n_nodes):
    drawn = np.random.default_rng(0).multinomial(1024, np.full(n_nodes, 1 / n_nodes), 2000).max(axis=1).mean()
    assert fullest(1024, n_nodes) == pytest.approx(drawn * n_nodes / 1024, rel=0.02)


def test_times_by_hand():
    """One node, batches of 1,000 rows; a step takes 4 µs of a core, or half the bandwidth if that is longer."""
    sizes = Problem(10**6, batch_size=1000)
    exact = times.seconds_of("exact", sizes, RATES, NODE, 1)
    assert exact == pytest.approx((10**6 * 10**6 * 2e-8 / 10, 0, 0))
    one_row = times.seconds_of("exact", sizes._replace(batch_size=1), RATES, NODE, 1)
    assert one_row.computing == pytest.approx(10**6 * 10**6 * 5 * 4 * 513 / 5e10)
    sampled = times.seconds_of("stratified", sizes, RATES, NODE, 1)
    assert sampled.computing == pytest.approx(10**6 * (6 * 16 * 513 + 4 * 512) / 5e10)
    fast = NODE._replace(bandwidth=None)
    assert times.seconds_of("stratified", sizes, RATES, fast, 1).computing == pytest.approx(10**6 * 4e-6 / 10)
    tree = times.seconds_of("routed, tree", sizes, RATES, fast, 1)
    assert tree.computing == pytest.approx(10**6 * (4e-6 + 5 * 1e-6 * 20 / 18) / 10)


def test_computing_and_sending_overlap_and_rounds_are_waited_for():
    seconds = times.seconds_of("stratified", Problem(10**6), RATES, NODE, 8)
    assert seconds.waiting == pytest.approx(10**6 / 1024 * 2 * 1e-4)
    assert seconds.total == max(seconds.computing, seconds.sending) + seconds.waiting
    assert seconds.limit == "sending"
    link = times.link_of("stratified", Problem(10**6), RATES, NODE, 8)
    as_fast = times.seconds_of("stratified", Problem(10**6), RATES, NODE._replace(network=link), 8)
    assert as_fast.sending == pytest.approx(as_fast.computing)


def test_memory_is_weights_and_accumulators_and_a_padded_tree():
    assert times.state_bytes(1000, 512, "SGD") == 4 * 513 * 1000
    assert times.state_bytes(1000, 512, "Adagrad") == 8 * 513 * 1000
    assert times.state_bytes(1000, 512, "Adagrad, tree") == 8 * 513 * 1000 + 76 * 1024
    assert times.n_nodes_for(8.1e11, NODE) == 2
    assert times.n_nodes_for(7.9e11, NODE) == 1


def test_the_raw_file_is_as_the_kernels_file_has_it():
    """If this fails, run the commands of docs/sharding.md."""
    stored = json.loads((PERFORMANCE / "sharding.json").read_text())
    found = json.loads(json.dumps(run(SimpleNamespace(kernels=PERFORMANCE / "kernels.json", steps=16))))
    assert found["machine"] == stored["machine"]
    assert found["hardware"] == stored["hardware"]
    assert found["memory"] == stored["memory"]
    assert found["rates"] == pytest.approx(stored["rates"])
    for part in ("sent", "times", "curves"):
        assert all(same(ours, theirs) for ours, theirs in zip(found[part], stored[part], strict=True)), part
    assert all(row["deviation"] is None or row["deviation"] < 5 for row in stored["simulation"])
    assert all(row["error"] is None or row["error"] < 1e-6 for row in stored["simulation"])
    assert all(row["counted"] == pytest.approx(row["formula"], rel=0.005) for row in stored["simulation"])


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(
        value == (theirs[name] if isinstance(value, str) else pytest.approx(theirs[name], rel=1e-6))
        for name, value in ours.items()
    )


def test_the_tables_have_numbers_of_the_file():
    content = json.loads((PERFORMANCE / "sharding.json").read_text())
    row = content["times"][0] | {"computing": 12345.6, "sending": 1.2345, "waiting": 0, "seconds": 12345.6}
    found = blocks(content | {"times": [row, *content["times"][1:]], "simulation": [check_exact(2)]})
    assert "| exact | 100,000,000 | 21 | 12,300 | 1.23 | 0 | **12,300** |" in found["sharding"]
    assert "| exact | 2 | – | 1 | 44.0 | 44.0 |" in found["simulated"]
    assert "| Adagrad | 1,000,000,000 | 4,104 | 4,104 GB |" in found["nodes"]


def test_rates_are_medians_of_the_kernels_file():
    rates, machine = read_rates(PERFORMANCE / "kernels.json")
    runs = {
        each["name"]: each.get("runs") for each in json.loads((PERFORMANCE / "kernels.json").read_text())["results"]
    }
    step = runs["profile of a step, dense, 512 features, 200,000 classes, 5 drawn"]
    assert rates.step == np.median(step["draw, score, coefficients, move"]["seconds"]["wall"])
    assert rates.busy_step == pytest.approx(rates.step * 2 / rates.step_speedup)
    assert 1 < rates.step_speedup <= 2.1
    assert machine["cores"] == 2


HEAD = '{"kind": "benchmark", "schema_version": 1, '


def test_wrong_calls_say_so(tmp_path, capsys):
    for name, text, message in [
        ("none.json", None, "no such file"),
        ("broken.json", "{", "is not JSON"),
        ("picture.json", "{}", "holds no benchmark"),
        ("other.json", HEAD + '"suite": "scaling"}', "is not of suite kernels"),
        (
            "small.json",
            HEAD + '"suite": "kernels", "results": []}',
            "has no case 'profile of a step, dense, 512 features",
        ),
    ]:
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=message):
            read_rates(tmp_path / name)
    arguments = ["benchmark", "sharding", "--kernels", str(PERFORMANCE / "kernels.json"), "--steps", "3"]
    assert main(arguments) == 1
    assert "--steps is 3; give 16 or more" in capsys.readouterr().err
