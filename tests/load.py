"""A sweep of 2,000 small fits on one machine: `python tests/load.py [FITS]`, about an hour on two cores.

Measures what docs/reliability.md reports: how long the graph takes, whether the last fits take longer than the first,
how long the report takes, and whether MLflow's pages still answer. Needs a quiet machine.
"""

import http.client
import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import yaml

from workflow.checkout import Checkout
from xsoftmax.lab.benchmark.machine import describe

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "docs/reliability/load.json"
METHODS = ["softmax", "negative-frequency", "one-vs-each", "u-max"]
SNAKEMAKE = ["snakemake", "--configfile", "load.yaml", "--cores", "2"]
SEARCH = '{"experiment_ids": ["%s"], "max_results": 100, "order_by": ["metrics.test_log_likelihood DESC"]}'


def main(n_fits: int = 2000) -> None:
    """Run the sweep and write what was measured."""
    machine = describe()
    with tempfile.TemporaryDirectory() as folder:
        tree = Checkout(Path(folder))
        config = {"experiment": "load", "datasets": ["digits"], "methods": METHODS, "budget": {"epochs": 1}}
        config |= {"evaluate": {"points": 1}, "seeds": list(range(n_fits // len(METHODS)))}
        (tree.folder / "load.yaml").write_text(yaml.safe_dump(config))
        graph = timed(tree, *SNAKEMAKE, "--dry-run", "--quiet")
        fits = timed(tree, *SNAKEMAKE, "--until", "evaluate")
        jobs = job_seconds(tree)
        tables = timed(tree, *SNAKEMAKE, "--until", "compare")
        tracking = timed(tree, *SNAKEMAKE, "--until", "track")
        report = timed(tree, *SNAKEMAKE)
        nothing = timed(tree, *SNAKEMAKE)
        pages = page_seconds(tree)
    tenth = max(1, len(jobs) // 10)
    first, last = (np.median(part, axis=0) for part in (jobs[:tenth], jobs[-tenth:]))
    rows = [
        ("graph built (a dry run)", "under 20 s", f"{graph:.1f} s"),
        ("all fits and evaluations", "", f"{fits / 60:.0f} min, {fits / n_fits:.2f} s a fit"),
        ("a fit's job, median of the first tenth, of the last", "no slowdown", f"{first[0]:.2f} s, {last[0]:.2f} s"),
        ("its processor time", "no slowdown", f"{first[1]:.2f} s, {last[1]:.2f} s"),
        ("tables and figures", "", f"{tables:.1f} s"),
        ("report, tables being there", "under a minute", f"{report:.1f} s"),
        ("all fits logged to MLflow", "", f"{tracking:.0f} s"),
        ("a run when all is done", "", f"{nothing:.1f} s"),
        *((f"MLflow: {name}", "within a second or two", f"{seconds:.2f} s") for name, seconds in pages.items()),
    ]
    content = {
        "fits": n_fits,
        "rows": [dict(zip(("what", "asked", "measured"), row, strict=True)) for row in rows],
        "machine": machine["processor"],
        "date": machine["date"],
        "commit": machine["commit"],
    }
    LOAD.parent.mkdir(exist_ok=True)
    LOAD.write_text(json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=1))


def timed(tree: Checkout, *command: str) -> float:
    """Run a command, which must succeed; give its seconds."""
    begin = time.monotonic()
    done = tree.run(*command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    return time.monotonic() - begin


def job_seconds(tree: Checkout) -> list[tuple[float, float]]:
    """Seconds of each training job as Snakemake took them, and of the processor, in the order in which jobs ended."""
    files = sorted((tree.folder / "benchmarks/load/train").rglob("*.tsv"), key=lambda path: path.stat().st_mtime_ns)
    rows = [path.read_text().splitlines()[1].split("\t") for path in files]
    return [(float(row[0]), float(row[-1])) for row in rows]


def page_seconds(tree: Checkout) -> dict[str, float]:
    """Median seconds of five calls each of what MLflow's pages ask the server for."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with served(tree, port):
        experiments = '{"max_results": 100}'
        call = "/ajax-api/2.0/mlflow"
        found_experiments = json.loads(ask(port, "POST", f"{call}/experiments/search", experiments))
        number = next(each["experiment_id"] for each in found_experiments["experiments"] if each["name"] == "load")
        asked = {
            "the page itself": ("GET", "/", ""),
            "list of experiments": ("POST", f"{call}/experiments/search", experiments),
            "100 of its runs, the best first": ("POST", f"{call}/runs/search", SEARCH % number),
        }
        return {name: statistics.median(seconds_of(port, *what) for _ in range(5)) for name, what in asked.items()}


@contextmanager
def served(tree: Checkout, port: int):
    """Run `mlflow ui` as a user would, until it answers."""
    program = tree.start("mlflow", "ui", "--port", str(port))
    try:
        end = time.monotonic() + 120
        while True:
            try:
                ask(port, "GET", "/health", "")
                break
            except OSError:
                assert time.monotonic() < end, program.log.read_text()
                time.sleep(0.5)
        yield
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait(30)


def ask(port: int, method: str, path: str, body: str) -> bytes:
    """Call the server once."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
    assert answer.status == 200, content[:500]
    return content


def seconds_of(port: int, method: str, path: str, body: str) -> float:
    """Time one call."""
    begin = time.monotonic()
    ask(port, method, path, body)
    return time.monotonic() - begin


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
