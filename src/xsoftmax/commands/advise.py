"""Say what to train with on a data set: methods by predicted time to quality.

xsoftmax advise --data data/prepared/icd10.h5 --budget 60s
"""

import argparse
import json
import math
import re
from pathlib import Path

from xsoftmax.advice.learned import LEVELS
from xsoftmax.advice.model import shipped
from xsoftmax.advice.on_device import also_named, with_device
from xsoftmax.advice.ranking import Budget, Prediction, explain, percent, rank
from xsoftmax.advice.statistics import statistics_of
from xsoftmax.data.store import open_prepared
from xsoftmax.gpu.device import add_device, place_of
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import duration, text_table

UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
HEADINGS = {
    "method": "method",
    "rate": "rate",
    "epoch": "an epoch",
    "gap": "gap, guessed",
    "seconds": "after",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--data", type=Path, metavar="FILE.h5", help="prepared data set")
    aim = parser.add_mutually_exclusive_group()
    aim.add_argument("--budget", default="60s", metavar="TIME", help="such as 60s, 5min, 1h (default: %(default)s)")
    aim.add_argument("--epochs", type=float, help="a budget in passes over the training rows")
    aim.add_argument("--gap", type=float, help="good enough: relative gap to the best log-likelihood, such as 0.05")
    parser.add_argument("--threads", type=int, default=1)
    add_device(parser, "where exact softmax may train, too")
    parser.add_argument("--rates", metavar="FILE.json", help="of the device, as `benchmark gpu --json` wrote them")
    parser.add_argument("--among", nargs="+", metavar="METHOD", help="leave out all others")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> None:
    """Print the ranking and a sentence."""
    if options.data is None:
        raise InputError("--data is missing; name a prepared data set, such as data/prepared/icd10.h5")
    if options.threads < 1:
        raise InputError(f"--threads is {options.threads}; set it to 1 or more")
    with open_prepared(options.data) as data:
        statistics = statistics_of(data)
    model, budget = with_device(shipped(), options.device, options.rates), _budget(options)
    among = also_named(options.among, model, place_of(options.device))
    ranking = rank(model, statistics, budget, options.threads, among)
    sentence = explain(model, statistics, budget, ranking)
    if options.json:
        rows = [
            each._asdict() | {"seconds": each.seconds if math.isfinite(each.seconds) else None} for each in ranking
        ]
        print(json.dumps({"facts": statistics._asdict(), "ranking": rows, "sentence": sentence}, indent=1))
        return
    print(text_table([_cells(each) for each in ranking], HEADINGS, {}), end="")
    least, machine = percent(LEVELS[-1]), model.machine["processor"]
    print(f"\n{sentence}.\nNo fit was made for this table. Gaps are those on measured data sets after as many")
    of_device = "".join(f"; those on {options.device} {origin}" for origin in sorted(set(model.origins.values())))
    print(f"epochs, none below {least}; times are by a formula, fitted to times on {machine}{of_device}.")


def _budget(options: argparse.Namespace) -> Budget:
    if options.gap is not None:
        return Budget(gap=options.gap)
    if options.epochs is not None:
        if not options.epochs > 0:
            raise InputError(f"--epochs is {options.epochs:g}; set it above 0")
        return Budget(epochs=options.epochs)
    return Budget(seconds=seconds_of(options.budget))


def seconds_of(text: str) -> float:
    """Read a time such as 60s, 5min or 1.5h.

    Raises
    ------
    InputError
        If it is none, or not above 0.
    """
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", text.strip())
    if not found or found[2] not in UNITS or not float(found[1]) > 0:
        raise InputError(f"--budget is {text!r}; write a time above 0, such as 60s, 5min or 1h")
    return float(found[1]) * UNITS[found[2]]


def _cells(each: Prediction) -> dict[str, str]:
    return {
        "method": each.method,
        "rate": f"{each.rate:.2g}",
        "epoch": duration(each.seconds_per_epoch),
        "gap": percent(each.gap),
        "seconds": duration(each.seconds) if math.isfinite(each.seconds) else "never",
    }
