"""The harness itself: what it measures of things whose cost is known."""

import json
import platform
import re
import time
from pathlib import Path

import numpy as np
import pytest

from xsoftmax.cli import main
from xsoftmax.lab.benchmark import suites
from xsoftmax.lab.benchmark.case import Case, Quantity
from xsoftmax.lab.benchmark.kernels import lines, measured
from xsoftmax.lab.benchmark.machine import describe
from xsoftmax.lab.benchmark.timing import interleaved, measure, ratio


def sleeping(**seconds):
    """A case of runs that sleep, and the order in which they were called."""
    calls = []

    def run(name):
        calls.append(name)
        time.sleep(seconds[name])

    runs = {name: lambda name=name: run(name) for name in seconds}
    return Case("sleep", "nap", 10, runs, {"slow": 2.5}, "a short nap"), calls


def test_ratios_are_those_of_the_times():
    case, _ = sleeping(floor=0.02, slow=0.06)
    found = measure(case, rounds=3)
    assert found["runs"]["floor"]["ratio"]["wall"] == {"median": 1, "lower": 1, "upper": 1}
    assert found["runs"]["slow"]["ratio"]["wall"]["median"] == pytest.approx(3, rel=0.2)
    assert np.median(found["runs"]["slow"]["seconds"]["wall"]) == pytest.approx(0.006, rel=0.2)  # per nap, ten a call
    assert found["runs"]["slow"]["limit"] == 2.5
    assert found["runs"]["floor"]["limit"] is None


def test_the_processor_sleeps_too():
    case, _ = sleeping(floor=0.02)
    times = interleaved(case, rounds=3)["floor"]
    assert max(times.cpu) < 0.5 * min(times.wall)


def test_runs_take_turns_and_the_first_calls_are_off_the_clock():
    case, calls = sleeping(floor=0.03, slow=0.03)
    times = interleaved(case, rounds=3)
    assert calls == ["floor", "floor", "slow", "slow"] + 3 * ["floor", "slow"]
    assert [len(times["slow"].wall), len(times["slow"].cpu)] == [3, 3]


def test_a_slow_first_call_counts_nothing():
    pauses = iter([0.5] + 100 * [0.02])
    case = Case("compiles", "call", 1, {"floor": lambda: time.sleep(next(pauses))}, {})
    assert max(interleaved(case, rounds=3)["floor"].wall) < 0.2


def test_short_runs_are_repeated():
    calls = []
    case = Case("short", "call", 1, {"floor": lambda: (calls.append(0), time.sleep(0.002))}, {})
    times = interleaved(case, rounds=2)["floor"].wall
    assert len(calls) >= 2 + 2 * 5
    assert max(times) < 0.01  # per call, however many


def test_the_ratio_is_the_median_of_those_per_round():
    """The machine slowed down in the last round, for both alike."""
    found = ratio([2.0, 2.2, 40.0], [1.0, 1.0, 20.0])
    assert found.median == 2.0
    assert found.lower <= found.median <= found.upper <= 2.2


def test_a_case_is_let_go_before_the_next_is_made():
    alive = []

    class Large:
        def __del__(self):
            alive.pop()

    def make(name):
        large = Large()
        alive.append(name)
        return Case(name, "call", 1, {"floor": lambda: large}, {})

    def cases():
        for name in "ab":
            assert alive == []
            yield make(name)

    assert [found["name"] for found in measured(cases(), rounds=1)] == ["a", "b"]


def test_a_quantity_is_read_once():
    found = list(measured(iter([Quantity("answers", "answer", lambda: 42, 41.0, "by thought")])))
    assert found == [{"name": "answers", "unit": "answer", "note": "by thought", "limit": 41.0, "value": 42.0}]
    assert lines(found[0]) == ["answers: 42 answer  limit 41: NOT MET"]


def test_a_limit_is_met_or_not():
    case, _ = sleeping(floor=0.02, slow=0.03)
    assert lines(measure(case, 1))[2].endswith("limit 2.5: met")
    assert lines(measure(case._replace(limits={"slow": 1.1}), 1))[2].endswith("limit 1.1: NOT MET")


def test_suites_are_found_by_their_folders():
    found = suites()
    assert "kernels" in found
    assert all(callable(suite.run) and callable(suite.add_arguments) and suite.__doc__ for suite in found.values())


def test_the_machine_is_described_without_names():
    found = describe()
    assert found["cores"] >= 1
    assert found["memory_gb"] > 0
    assert found["numpy"] == np.__version__
    assert len(found["load"]) == 3
    text = json.dumps(found)
    assert platform.node() not in re.findall(r"[\w.-]+", text)
    assert str(Path.home()) not in text
    assert "/" not in text


class Topic:
    @staticmethod
    def cases(small):
        yield sleeping(floor=0.02, slow=0.02)[0]
        yield Quantity("small", "1", lambda: small)


@pytest.fixture
def naps(monkeypatch):
    """A benchmark whose only topic sleeps."""
    from xsoftmax.internal import registry

    load = registry.load
    monkeypatch.setattr(registry, "load", lambda package, name: Topic if name == "naps" else load(package, name))


def test_json_holds_every_round_and_the_machine(naps, tmp_path, capsys):
    path = tmp_path / "new" / "kernels.json"
    assert main(["benchmark", "kernels", "naps", "--rounds", "2", "--small", "--json", str(path)]) == 0
    assert "sleep\n" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert {
        "kind": "benchmark",
        "suite": "kernels",
        "schema_version": 1,
        "rounds": 2,
        "small": True,
    }.items() <= found.items()
    assert found["machine"].keys() == describe().keys()
    case, quantity = found["results"]
    assert (case["topic"], case["name"], case["unit"], case["work"]) == ("naps", "sleep", "nap", 10)
    assert list(case["runs"]) == ["floor", "slow"]
    assert all(len(run["seconds"][clock]) == 2 for run in case["runs"].values() for clock in ("wall", "cpu"))
    assert quantity["value"] == 1.0


def test_wrong_calls_say_so(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["benchmark", "speed"])
    assert "invalid choice: 'speed' (choose from " in capsys.readouterr().err
    assert main(["benchmark", "kernels", "sample"]) == 1
    assert "unknown kernel 'sample'; known: " in capsys.readouterr().err
    assert main(["benchmark", "kernels", "sampled", "--rounds", "0"]) == 1
    assert "--rounds is 0; give 1 or more" in capsys.readouterr().err
