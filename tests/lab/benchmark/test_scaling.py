"""Sweeps of one size and memory of whole fits: what is computed of what was measured."""

import json
from types import SimpleNamespace

import pytest

from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.observed import Observed
from xsoftmax.lab.benchmark.scaling import memory, run, steps
from xsoftmax.lab.benchmark.scaling.memory import Shape
from xsoftmax.lab.benchmark.scaling.steps import Size, Sweep, growth


def point(classes, *seconds):
    return {"classes": classes, "bytes": 1000 * classes, "seconds": {"wall": list(seconds), "cpu": list(seconds)}}


def test_growth_is_the_exponent_beyond_the_caches(monkeypatch):
    """Time goes with the number of classes, and beyond what the cache holds with its square root."""
    monkeypatch.setattr(steps, "caches", lambda: {"L1d": 10, "L3": 100_000})
    small, large = [point(10**e, 10.0**e) for e in (0, 1, 2)], [point(10**e, 10.0 ** (e / 2)) for e in (3, 4, 5)]
    assert growth(small + large) == pytest.approx(0.5)
    assert growth(small) is None
    assert growth([*small, large[0]]) is None


def test_growth_is_that_of_a_median_round(monkeypatch):
    monkeypatch.setattr(steps, "caches", lambda: {"L3": 0})
    assert growth([point(10, 1.0, 1.0, 100.0), point(100, 1.0, 2.0, 1.0)]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("method", "axis", "sizes"),
    [
        ("negative sampling", "classes", [Size(50, 8), Size(500, 8)]),
        ("implicit", "features", [Size(50, 8), Size(50, 16)]),
        ("one-vs-each", "sampled", [Size(50, 8, 1), Size(50, 8, 3)]),
        ("one-vs-each", "threads", [Size(50, 8, 1, 1), Size(50, 8, 1, 2)]),
    ],
)
def test_a_sweep_has_all_its_sizes_and_what_they_hold(method, axis, sizes):
    found = steps.measured(Sweep(method, axis, sizes), rounds=2)
    assert [tuple(point[name] for name in Size._fields) for point in found["points"]] == [
        tuple(size) for size in sizes
    ]
    copies = 1 if method == "implicit" else 2
    for each, size in zip(found["points"], sizes, strict=True):
        assert each["bytes"] >= 4 * copies * size.classes * (size.features + 1)
        assert len(each["seconds"]["wall"]) == 2
        assert min(each["seconds"]["wall"]) > 0
    assert (found["method"], found["axis"], found["part"]) == (method, axis, "steps")


def test_sweeps_reach_ten_million_classes_and_begin_at_a_thousand():
    large = [
        sweep for sweep in steps.sweeps(small=False) if sweep.axis == "classes" and sweep.sizes[0].features == 64
    ]
    assert {sweep.method for sweep in large} == {steps.FLOOR, *steps.METHODS}
    assert all([sweep.sizes[0].classes, sweep.sizes[-1].classes] == [1_000, 10_000_000] for sweep in large)
    assert {sweep.axis for sweep in steps.sweeps(small=False)} == {"classes", "features", "sampled", "threads"}
    assert memory.LARGEST in [shape for _, shape in memory.fits(small=False)]


def test_memory_is_beyond_the_data_and_the_program(tmp_path, monkeypatch):
    """A program that holds 100 MB by itself, and 12 MB more than data and model."""
    shape = Shape(2_000, 99, rows=50)
    model, data = 2 * 4 * 2_000 * 100, 4 * 50 * 99 + 4 * 50
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "status.json").write_text(json.dumps({"seconds": 1.5, "step": 40, "status": "finished"}))
    calls = []

    def observed(arguments):
        calls.append(arguments)
        return Observed(9.0, 0, 100_000_000 + 12_000_000 + model + data)

    monkeypatch.setattr(memory, "observed", observed)
    found = memory.measured(tmp_path, "negative sampling", shape, Observed(1.0, 0, 100_000_000))
    assert found["model_and_optimizer"] == model
    assert found["peak"] == 12_000_000 + model
    assert found["ratio"] == pytest.approx((12_000_000 + model) / model)
    assert found["estimate"] > model
    assert [found["steps"], found["training_seconds"], found["status"]] == [40, 1.5, "finished"]
    assert calls[0][0] == "train"
    assert memory.line(found).endswith("finished after 40 steps")
    assert "NOT MET" in memory.line(found)


def test_wrong_calls_say_so(capsys):
    with pytest.raises(InputError, match="unknown part 'speed'; known: steps, memory"):
        run(SimpleNamespace(parts=["speed"], rounds=1, small=True))
    assert main(["benchmark", "scaling", "steps", "--rounds", "0"]) == 1
    assert "--rounds is 0; give 1 or more" in capsys.readouterr().err
