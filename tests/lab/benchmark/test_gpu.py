"""The suite of cards on PyTorch's CPU device, at small sizes: it checks first, then measures, and needs little."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from xsoftmax.cli import main  # noqa: E402
from xsoftmax.gpu import sampled_steps  # noqa: E402
from xsoftmax.gpu.elementwise import ONE_BY_ONE  # noqa: E402
from xsoftmax.gpu.fused_softmax import BYTES_OF_A_BLOCK  # noqa: E402
from xsoftmax.internal.fingerprint import ROOT  # noqa: E402
from xsoftmax.lab.benchmark import gpu  # noqa: E402
from xsoftmax.lab.benchmark.gpu import clock, exact, losses, rates, sampled, sizes, ways  # noqa: E402
from xsoftmax.lab.benchmark.gpu.clock import peak_bytes, seconds_of  # noqa: E402
from xsoftmax.lab.benchmark.gpu.correctness import checks  # noqa: E402
from xsoftmax.lab.benchmark.gpu.table import lines  # noqa: E402

CPU = torch.device("cpu")
WAYS = {"one by one": ONE_BY_ONE}
SMALL = sizes.Sizes((100, 300, 8), 20, (300, 8, 20, 5), (20, 300, 8), (300, 8, 20), 32, 8000, (800, 8000))
MISSING = (
    *("h5py", "jinja2", "llvmlite", "matplotlib", "mlflow", "numba", "pandas"),
    *("psutil", "seaborn", "sklearn", "threadpoolctl", "tqdm", "yaml"),
)
WITHOUT = f"""
import sys


class Without:
    names = {MISSING}

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.names else self.finder.find_spec(name, path, target)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from xsoftmax.cli import main
from xsoftmax.lab.benchmark.gpu import clock, sizes
clock.SECONDS, sizes.OF_A_PROCESSOR = 0.01, sizes.Sizes{tuple(SMALL)}
status = main(sys.argv[1:])
assert not set(sys.modules) & set(Without.names)
sys.exit(status)
"""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sizes, "OF_A_PROCESSOR", SMALL)
    monkeypatch.setattr(clock, "SECONDS", 0.001)


def test_it_runs_where_there_is_only_torch_numpy_and_scipy(tmp_path):
    """As a program of its own, which finds no other library."""
    path = tmp_path / "gpu.json"
    command = [sys.executable, "-c", WITHOUT, "benchmark", "gpu", "--device", "cpu", "--json", str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT.parent)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)
    said = ended.stdout.splitlines()
    assert "reduced sizes" in said[1]
    assert said.index(next(each for each in said if "holds" in each)) < said.index(
        next(each for each in said if "measured" in each)
    ), "correctness comes first"
    found = json.loads(path.read_text())
    assert found["suite"] == "gpu"
    assert found["device"]["torch"] == torch.__version__
    assert all(each["holds"] for each in found["correctness"])
    assert len(found["correctness"]) == 29
    assert min(found["ceilings"].values()) > 0
    measured = [each for each in found["results"] if "left_out" not in each]
    assert len(measured) >= 14
    assert all(min(each["seconds"]) > 0 and each["peak_bytes_beyond"] > 0 for each in measured)
    assert not any("met" in each for each in measured), "targets are a card's"


def test_an_epoch_is_so_many_steps(small, tmp_path):
    path = tmp_path / "gpu.json"
    assert main(["benchmark", "gpu", "--device", "cpu", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    exact = next(each for each in found["results"] if each["part"].startswith("exact softmax, N=100"))
    steps = 100 / 20
    assert steps * min(exact["seconds"]) <= exact["value"] <= steps * max(exact["seconds"])
    products = 3 * 2 * 100 * 300 * 8 / found["ceilings"]["bfloat16"]
    assert exact["seconds_of_three_products"] == pytest.approx(products)
    weights = 300 * 8 * 4 * 2 + 300 * 4 * 2
    assert exact["bytes_of_weights"] == weights
    drawn = [each for each in found["results"] if each["part"].startswith("negative")]
    assert [each["deterministic"] for each in drawn] == [True, False] * 2
    most = [20 * 6 * 9 * n_bytes for n_bytes in (16, 16, 8, 8)]
    assert all(0.6 < each["bytes_touched"] / n <= 1 for each, n in zip(drawn, most, strict=True))


def test_what_was_measured_becomes_a_table_of_the_page_and_rates_of_auto(small, tmp_path):
    pytest.importorskip("seaborn", reason="the libraries of reports are not installed")
    from xsoftmax.advice.on_device import rates_of

    path, page = tmp_path / "gpu.json", tmp_path / "gpu.md"
    assert main(["benchmark", "gpu", "--device", "cpu", "--json", str(path)]) == 0
    page.write_text("# On a GPU\n\n<!-- card -->\nnone yet\n<!-- /card -->\n")
    assert main(["benchmark", "report", str(path), "-o", str(tmp_path), "--update", str(page)]) == 0
    text, found = page.read_text(), json.loads(path.read_text())
    assert "This is no card" in text
    assert "none yet" not in text
    assert all(f"| {each['name']} |" in text for each in found["results"])
    assert all(f"{each['part']}:" in text for each in found["results"])
    rates = rates_of(path)
    assert rates.products == found["rates"]["products"] > 0
    assert rates.origin == "by rates measured on PyTorch's CPU device"


def test_a_wrong_result_is_an_error_and_nothing_is_timed(small, monkeypatch, tmp_path, capsys):
    """A running maximum whose sums are not rescaled: right in one block, wrong in several."""

    def added(scores, bias, places, running):
        found = ONE_BY_ONE.added(scores.clone(), bias, places, running)
        return found._replace(total=running.total + (scores + bias).exp().sum(1))

    monkeypatch.setattr(ways, "ONE_BY_ONE", ONE_BY_ONE._replace(added=added))
    path = tmp_path / "gpu.json"
    assert main(["benchmark", "gpu", "--device", "cpu", "--seed", "3", "--json", str(path)]) == 1
    said = capsys.readouterr()
    assert "error: wrong on this device, with --seed 3: float64, one by one: log-likelihood; " in said.err
    assert "measured" not in said.out
    assert not path.exists()


def test_a_wrong_sampled_step_is_found(monkeypatch):
    """The steps of a fit are checked: a move of theirs that takes slopes of other classes."""
    move = sampled_steps.move
    wrong = lambda weights, rows, classes, slopes, *at: move(weights, rows, classes.flip(1), slopes, *at)  # noqa: E731
    monkeypatch.setattr(sampled_steps, "move", wrong)
    found = [each["name"] for each in checks(1, CPU, WAYS) if not each["holds"]]
    assert found == [
        f"negative sampling, {optimizer}, {mode}: one step"
        for optimizer in ("Adagrad", "SGD")
        for mode in ("deterministic", "not deterministic")
    ]


@pytest.mark.parametrize(("name", "said"), [("cuda:99", "finds 0 cards"), ("abc", "name cuda"), ("mps", "name cuda")])
def test_a_device_that_is_not_there_is_said(name, said, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert main(["benchmark", "gpu", "--device", name]) == 1
    assert f"--device is {name!r}" in (line := capsys.readouterr().err)
    assert said in line


def test_what_time_is_too_short_for_is_left_out(small, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "SECONDS", -1.0)
    assert main(["benchmark", "gpu", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.count("-1 seconds have passed") == 4


def test_what_memory_is_too_small_for_is_left_out(small, monkeypatch, capsys):
    def allocate(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB")

    monkeypatch.setattr(sampled, "measured", allocate)
    assert main(["benchmark", "gpu", "--device", "cpu"]) == 0
    table = capsys.readouterr().out
    said = table.splitlines()
    assert "left out" in said[said.index("negative sampling") + 1]
    assert "CUDA out of memory" in table
    assert "loss and gradients" in table, "what comes after it is measured"


def test_losses_of_other_programs_are_ours(small):
    found = {each["name"]: each for each in losses.measured(SMALL._replace(loss=(40, 500, 16)), CPU, WAYS)}
    for name in (
        "torch cross_entropy",
        "torch linear_cross_entropy",
        "xsoftmax, one by one, 32 MiB",
    ):
        assert found[name]["difference_of_loss"] < 0.15, "of 7 nats: sums of bfloat16 are as coarse"
        assert found[name]["difference_of_dX"] < 0.02


def test_a_program_that_fails_does_not_end_the_others(monkeypatch):
    def fails():
        raise RuntimeError("no kernel\nfor this card")

    monkeypatch.setattr(losses, "OTHERS", {"broken": fails, **losses.OTHERS})
    found = {each["name"]: each for each in losses.measured(SMALL, CPU, WAYS)}
    assert found["broken"]["left_out"] == "RuntimeError: no kernel"
    assert "value" in found["torch cross_entropy"]


def test_a_compiler_that_fails_is_left_out(monkeypatch):
    """As on a card without Triton: a fit leaves it out, too."""
    monkeypatch.setattr(ways, "chosen", lambda device, block: ONE_BY_ONE)
    assert list(ways.ways(torch.device("cuda"))) == ["one by one"]
    compiled = ONE_BY_ONE._replace(added=None)
    monkeypatch.setattr(ways, "chosen", lambda device, block: compiled)
    assert list(ways.ways(torch.device("cuda"))) == ["one by one", "compiled"]
    assert ways.taken_of(ways.ways(torch.device("cuda"))) == "compiled"


def test_rates_are_those_of_what_training_takes():
    """Whatever else is faster: another way, another block, another precision, or what was left out."""
    taken = {"part": "exact softmax, N=100", "precision": "float32", "of_training": True, "value": 4.0}
    others = [{"of_training": False}, {"precision": "tf32"}, {"precision": "bfloat16"}]
    results = [taken | {"value": 0.1} | each for each in others]
    left_out = [{"part": "negative sampling", "value": 0.1}, {"part": "exact softmax", "left_out": "no time"}]
    assert rates.products_of(SMALL, [*results, taken, *left_out]) == 3 * 100 * 300 * 8 / 4
    assert rates.products_of(SMALL, [*results, *left_out]) == 0


def test_targets_are_of_what_training_takes(monkeypatch):
    """Of all that is measured of a precision, one way and one block."""
    monkeypatch.setattr(clock, "SECONDS", 0.001)
    ceilings = dict.fromkeys(("float32", "tf32", "bfloat16"), 1e9)
    both = {"one": ONE_BY_ONE, "another": ONE_BY_ONE}
    found = list(exact.measured(SMALL, CPU, ceilings, both))
    assert len(found) == 3 * 2 * 3 + 2 * 2
    for each in found:
        assert each["of_training"] == (each["way"] == "another" and each["block_bytes"] == BYTES_OF_A_BLOCK)
        aimed_at = each["of_training"] and each["precision"].startswith("bfloat16")
        assert (each["target"] is not None, each["met"] is not None) == (aimed_at, aimed_at)
    assert {each["block_bytes"] for each in found} == {BYTES_OF_A_BLOCK, 800, 8000}


def test_each_way_is_checked_and_measured(small, monkeypatch, tmp_path):
    monkeypatch.setattr(ways, "ways", lambda device: {"one": ONE_BY_ONE, "another": ONE_BY_ONE})
    path = tmp_path / "gpu.json"
    assert main(["benchmark", "gpu", "--device", "cpu", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    for part, n in (("correctness", 24), ("results", 9)):
        names = [each["name"] for each in found[part]]
        assert sum(", another" in name for name in names) >= n
        assert sum(", one" in name for name in names) >= n


def test_peak_bytes_are_those_of_tensors_that_live_at_once():
    assert peak_bytes(lambda: torch.zeros(1000).add(1).add(1), CPU) == 8000
    assert peak_bytes(lambda: torch.zeros(1000).add_(1)[:10], CPU) == 4000
    assert peak_bytes(lambda: [torch.zeros(10) for _ in range(5)], CPU) == 200
    there = torch.zeros(1000)
    assert peak_bytes(lambda: there.add_(1), CPU) == 0


def test_the_first_call_is_off_the_clock(monkeypatch):
    monkeypatch.setattr(clock, "SECONDS", 0.1)
    pauses = iter([0.3] + 100 * [0.02])
    found = seconds_of(lambda: time.sleep(next(pauses)), CPU)
    assert 2 <= len(found) <= 5
    assert 0.02 <= min(found) <= max(found) < 0.2


def test_the_table_tells_whether_targets_are_met():
    each = {
        "part": "all",
        "name": "one",
        "value": 1.5,
        "unit": "epoch",
        "peak_bytes_beyond": 2e9,
        "overhead": 0.05,
        "target": "few",
    }
    results = [each | {"met": True}, each | {"met": False}, {"part": "rest", "name": "two", "left_out": "no time"}]
    ceilings = {"float32": 5e13, "bandwidth": 3e12}
    training = {"way": "compiled", "block_bytes": 2**25}
    head, taken, *found = lines(
        {"device": {"name": "A card"}, "ceilings": ceilings, "training": training, "results": results}
    )
    assert head == "A card: products float32 50 TFLOP/s; memory 3000 GB/s"
    assert taken == "training takes: compiled, blocks of 32 MiB"
    assert (found[1], found[4]) == ("all", "rest")
    assert found[2].split() == ["one", "1.5", "s/epoch", "2", "GB", "(5%)", "few:", "met"]
    assert found[3].endswith("few: NOT MET")
    assert found[5].split() == ["two", "left", "out", "no", "time"]


def test_sizes_of_a_card_are_those_of_the_targets():
    card = sizes.OF_A_CARD
    assert card.exact == (490_449, 213_874, 512)
    assert card.sampled[:2] == (213_874, 512)
    assert card.loss == (8192, 256_000, 2304)
    assert card.large[:2] == (3_000_000, 768)
    assert Path(gpu.__file__).parent.name == "gpu"
