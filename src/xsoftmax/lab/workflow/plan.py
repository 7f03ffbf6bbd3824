"""Write what a config comes to, for rules that hand it on.

    python -m xsoftmax.lab.workflow.plan fits config.json -o results/mine/fits.txt

These texts may be longer than a command line (128 KB), and so may the config be: it comes in a file.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import yaml

from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import as_line
from xsoftmax.internal.files import write_text
from xsoftmax.lab.workflow.experiment import Experiment


def main() -> int:
    """Write one text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["config", "plan", "fits", "grid"])
    parser.add_argument("config", type=Path, help="the config as Snakemake read it, JSON")
    parser.add_argument("--of", nargs=2, metavar=("DATASET", "METHOD"), help="whose grid")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        experiment = Experiment.from_config(read_json(options.config))
        experiment.check_unchanged(os.environ)
        folder = str(options.output.parent)
        write_text(options.output, text(experiment, options.what, options.of, folder).rstrip("\n") + "\n")
    except Exception as error:  # noqa: BLE001 - the last one who could say it
        print(f"error: {as_line(error)}", file=sys.stderr)
        return 1
    return 0


def text(experiment: Experiment, what: str, of: list[str] | None, results: str) -> str:
    """Say what a config comes to, or its words once more; fits are in the folder ``results``."""
    if what == "config":
        return yaml.safe_dump(experiment.shown_config, sort_keys=False, allow_unicode=True)
    if what == "fits":
        return "\n".join(experiment.arguments(results))
    if of is None:
        return json.dumps(experiment.plan(), sort_keys=True, default=str)
    dataset, method = of
    return json.dumps(experiment.tasks[dataset].grid[method], sort_keys=True, default=str)


if __name__ == "__main__":
    sys.exit(main())
