"""What is shown of benchmarks: numbers from the raw files, and the page as these files have it."""

import json
import re
from pathlib import Path

import pytest

from xsoftmax.cli import main
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import duration, megabytes
from xsoftmax.lab.marked_blocks import renewed
from xsoftmax.lab.report.benchmark import read_results, write_figures, writers
from xsoftmax.lab.report.suites import promised
from xsoftmax.lab.report.suites.kernels import ratios, shares
from xsoftmax.lab.report.suites.scaling import points

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / name for name in ("performance.md", "peers.md")]
MACHINE = {
    "date": "2026-01-02",
    "commit": "abc+",
    "processor": "Fast",
    "cores": 2,
    "caches": {"L2": 2**21},
    "memory_gb": 23.5,
    "huge_pages": "madvise",
    "python": "3.11",
    "numpy": "2.4",
    "scipy": "1.17",
    "numba": "0.68",
    "blas": ["openblas"],
    "load": [0.1, 0.2, 0.3],
}


def timed(*seconds, ratio=1.0, limit=None):
    return {
        "seconds": {"wall": list(seconds), "cpu": list(seconds)},
        "ratio": {
            clock: {"median": ratio, "lower": ratio - 0.01, "upper": ratio + 0.01} for clock in ("wall", "cpu")
        },
        "limit": limit,
    }


def kernels():
    step = {
        "topic": "sampled",
        "name": "a step",
        "unit": "step",
        "work": 10,
        "note": "",
        "runs": {"floor": timed(1e-6, 3e-6, 2e-6), "one thread": timed(2.4e-6, ratio=1.2, limit=1.15)},
    }
    names = ("draw, score, coefficients, move", "draw, score, coefficients", "draw, score", "draw")
    runs = dict(zip(names, [timed(s * 1e-6) for s in (4.0, 1.9, 2.0, 1.0)], strict=True))
    profile = step | {"topic": "profile", "name": "profile of a step, dense", "runs": runs}
    number = {"topic": "startup", "name": "compiled", "unit": "1", "note": "cached", "limit": 0.0, "value": 3.0}
    return {"kind": "benchmark", "schema_version": 1, "suite": "kernels", "machine": MACHINE} | {
        "results": [step, number, profile]
    }


def scaling():
    run_steps = {
        "part": "steps",
        "method": "one-vs-each",
        "axis": "classes",
        "growth": 0.05,
        "limit": 0.1,
        "points": [
            {"classes": k, "features": 64, "sampled": 1, "threads": 1, "bytes": 512 * k}
            | {"seconds": {"wall": [1e-6, 9e-6, 2e-6], "cpu": [1e-6] * 3}}
            for k in (1_000, 100_000)
        ],
    }
    fit = {"part": "memory", "method": "implicit", "classes": 1000, "features": 64, "nonzeros": 0, "limit": 1.1}
    fit |= {"peak": 2**30, "model_and_optimizer": 2**29, "estimate": 2**28, "ratio": 2.0}
    return kernels() | {"suite": "scaling", "results": [run_steps, fit]}


@pytest.fixture
def written(tmp_path):
    """Files of both suites."""
    paths = []
    for content in (kernels(), scaling()):
        paths.append(tmp_path / f"{content['suite']}.json")
        paths[-1].write_text(json.dumps(content))
    return paths


def test_ratios_are_those_of_the_file():
    found = ratios(kernels()["results"])
    assert len(found) == 1
    assert found.loc[0, ["case", "run", "floor", "seconds", "median", "limit"]].tolist() == [
        *("a step", "one thread", 2e-6, 2.4e-6, 1.2, 1.15)
    ]


def test_shares_are_what_each_part_adds():
    """Coefficients took less than nothing, which is nothing; the whole is 4 µs."""
    found = shares(kernels()["results"]).set_index("part")
    assert list(found.index) == ["draw", "score", "coefficients", "move"]
    assert found.seconds.tolist() == pytest.approx([1e-6, 1e-6, 0, 2e-6])
    assert found.share.sum() == pytest.approx(1)


def test_points_are_medians():
    found = points(scaling()["results"])
    assert found.seconds.tolist() == [2e-6, 2e-6]
    assert found.value.tolist() == [1_000, 100_000]
    assert set(found.fixed) == {"64 features"}


def test_tables_say_what_is_not_met(written):
    blocks = writers(read_results(written), "figures")
    assert (
        "| sampled | a step: one thread | 2 µs per step | 2.4 µs | **1.200** (1.190 to 1.210) | 1.15, **not met** |"
        in (blocks["kernels"](""))
    )
    assert "| startup | compiled | cached | 3 | 0, **not met** |" in blocks["quantities"]("")
    assert "| dense | 25% (1 µs) | 25% (1 µs) | 0% (0 ns) | 50% (2 µs) |" in blocks["profile"]("")
    assert "| one-vs-each | 64 features | 0.050 | 0.1 |" in blocks["growth"]("")
    assert "| 100,000 | 2 µs |" in blocks["scaling"]("")
    assert "| implicit | 1,000 | 64 | 512 MB | 1,024 MB | 2.000 | 1.1, **not met** | 256 MB |" in blocks["memory"]("")
    for first in ("kernels", "growth"):
        assert blocks[first]("").startswith(
            "Measured on 2026-01-02 at commit abc+: Fast, 2 cores, caches L2 2 MB, 23.5 GB"
        )


def test_the_command_draws_and_renews(written, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} -->\nstays\n<!-- /{name} -->\n" for name in ("growth", "scaling", "other")))
    arguments = ["benchmark", "report", *map(str, written), "-o", str(tmp_path / "figures"), "--update", str(page)]
    assert main(arguments) == 0
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"kernels.svg", "profile.svg", "scaling.svg"}
    assert "| one-vs-each | 64 features | 0.050 | 0.1 |" in page.read_text()
    assert "| 100,000 | 2 µs |\n\n![scaling](figures/scaling.svg)\n<!-- /scaling -->" in page.read_text()
    assert page.read_text().count("stays") == 1
    assert f"{page}: renewed" in capsys.readouterr().out


def test_figures_are_the_same_each_time(written, tmp_path):
    results = read_results(written)
    first, second = ([path.read_bytes() for path in write_figures(results, tmp_path / name)] for name in "ab")
    assert first == second


def test_files_of_something_else_are_errors(written, tmp_path):
    with pytest.raises(InputError, match=r"none.json: no such file"):
        read_results([tmp_path / "none.json"])
    with pytest.raises(InputError, match=r"kernels.json: a second file of suite kernels"):
        read_results([written[0], written[0]])
    (tmp_path / "other.json").write_text('{"kind": "model"}')
    with pytest.raises(InputError, match=r"other.json holds no benchmark"):
        read_results([tmp_path / "other.json"])
    (tmp_path / "old.json").write_text(json.dumps(kernels() | {"schema_version": 0}))
    with pytest.raises(InputError, match=r"old.json: version 0, this program reads 1"):
        read_results([tmp_path / "old.json"])
    (tmp_path / "new.json").write_text(json.dumps(kernels() | {"suite": "new"}))
    with pytest.raises(
        InputError,
        match=r"new.json: unknown suite 'new'; known: documents, gpu, kernels, learning, peers, scaling, serve",
    ):
        read_results([tmp_path / "new.json"])
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match=r"broken.json is not JSON"):
        read_results([tmp_path / "broken.json"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.5 s"), (250, "250 s"), (0.00123, "1.23 ms"), (1.2e-6, "1.2 µs"), (3e-10, "0.3 ns")]
)
def test_times_are_written_in_a_unit_that_suits(seconds, text):
    assert duration(seconds) == text


def test_sizes_and_promises():
    assert megabytes(3 * 2**30) == "3,072 MB"
    assert [promised(1.1, 1.1), promised(1.1, 1.2), promised(None, 1), promised(float("nan"), 1)] == [
        *("1.1", "1.1, **not met**", "–", "–")
    ]


def test_the_page_is_as_the_raw_files_have_it():
    """If this fails, run the last command of docs/performance.md."""
    folder = ROOT / "docs" / "performance"
    results = read_results(sorted(folder.glob("*.json")))
    found, blocks = writers(results, "performance"), {}
    for page in PAGES:
        text = page.read_text()
        assert renewed(text, found, str(page)) == text
        blocks |= dict(re.findall(r"<!-- ([a-z]+) -->\n(.*?)<!-- /\1 -->", text, re.DOTALL))
    assert all(not content.get("small") for content in results.values())
    assert set(found) <= set(blocks)
    assert {"kernels", "quantities", "profile", "growth", "scaling", "memory"} <= set(blocks)
    assert all(blocks[name].strip() == "" for name in set(blocks) - set(found))


def test_the_page_of_a_card_is_as_its_raw_file_has_it():
    """If this fails: `xsoftmax benchmark report docs/gpu/h200.json -o figures --update docs/gpu.md`."""
    page = (ROOT / "docs" / "gpu.md").read_text()
    found = writers(read_results([ROOT / "docs" / "gpu" / "h200.json"]), "gpu")
    assert "NVIDIA H200" in page
    assert renewed(page, found, "gpu") == page


@pytest.mark.parametrize("name", ["text", "text-small", "dense", "dense-many"])
def test_the_pages_beside_peers_are_as_their_raw_files_have_it(name):
    """If this fails, run the last command of the page."""
    page = (ROOT / "docs" / f"{name}.md").read_text()
    found = writers(read_results(sorted((ROOT / "docs" / name).glob("*.json"))), name)
    assert renewed(page, found, name) == page
    assert {"targets", "peers"} <= set(found)
