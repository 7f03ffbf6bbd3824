"""Ruiz et al. 2018: how long the local steps of one row are together, by each reading of their t."""

import math
from typing import NamedTuple

import numpy as np

from xsoftmax.lab.papers._ruiz2018_names import BIBTEX, DATASETS, PROBIT
from xsoftmax.lab.report.tables import number
from xsoftmax.lab.reproduction.page import Page
from xsoftmax.lab.reproduction.results import Results

# The paper prints 0.01 (1 + iteration)^-0.9 for probit and logistic; the program has 0.001 (1 + epoch)^-0.9.
PRINTED, PROGRAM, POWER = 0.01, 0.001, 0.9


class Lengths(NamedTuple):
    """The lengths of one row's local steps over a fit, added up: here, by the paper's formula, and by the program's.

    A row is visited once in an epoch. By the paper's formula it depends on where in an epoch: this is the mean over
    rows.
    """

    ours: float
    printed: float
    program: float


def step_lengths(results: Results) -> dict[str, Lengths]:
    """Add up the local steps of probit A&R on each data set, by the settings and the number of steps of its fits."""
    found = {}
    for key in (each for each in DATASETS if results.has(each, PROBIT)):
        fit = results.of(key, PROBIT)[0]
        settings = fit.status.get("parameters", {})
        if "batch" in settings:
            epochs = round(fit.history["epoch"].iloc[-1])
            iterations = round(fit.history["step"].iloc[-1] / settings["batch"]["size"])
            own = settings["objective"]
            found[key] = Lengths(
                added_up(own["local_rate"], own["local_power"], epochs),
                added_up(PRINTED, POWER, iterations) * epochs / iterations,
                added_up(PROGRAM, POWER, epochs),
            )
    return found


def added_up(rate: float, power: float, until: int) -> float:
    """Sum rate (1 + t)^-power over t = 1, 2, ... until the last."""
    return float(rate * ((1.0 + np.arange(1, until + 1)) ** -power).sum())


def tell_lengths(results: Results, page: Page) -> None:
    """Put the lengths into a table."""
    lengths = step_lengths(results)
    if not lengths:
        return
    page.text(
        "The next table adds up the local steps of one row of probit and logistic A&R over a fit; it has the mean "
        "over rows. The softmax's factor is 1 in place of 0.01, here, in the paper and in the program.",
    )
    page.table(
        ["data set", "here: 0.01, t visits", "as printed: 0.01, t iterations", "the program: 0.001, t epochs"],
        [[DATASETS[key], *(number(each, digits=4) for each in row)] for key, row in lengths.items()],
    )


def why_nearer(results: Results) -> str:
    """Say of Bibtex how long local steps are by each reading, and whether the program's are nearer to the printed."""
    lengths = step_lengths(results).get(BIBTEX)
    if lengths is None:
        return ""
    ours, printed, program = (number(each, digits=4) for each in lengths)
    told = (
        f"on Bibtex the local steps of one row add up to {program} as in the program, to {printed} as the paper "
        f"prints them, and to {ours} by our reading of t"
    )
    nearer = abs(math.log(lengths.program / lengths.printed)) < abs(math.log(lengths.ours / lengths.printed))
    return f"{told}, so that a part of the difference may be our own reading" if nearer else told
