"""Train one method on a prepared data set: model.h5, history.csv and status.json in a folder.

xsoftmax train data/prepared/bibtex.h5 --method softmax --epochs 20 -o fit
"""

import argparse
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation import links, metrics
from xsoftmax.gpu.launch import joined, world_of
from xsoftmax.internal import registry
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.files import remove
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.internal.shipped import methods_file
from xsoftmax.internal.text import pruning_in_words
from xsoftmax.methods import AUTO, Method, build_method, known_methods, merged, untried_by_auto
from xsoftmax.proposals._file import read_proposal
from xsoftmax.solvers import place_of
from xsoftmax.training.callbacks import FOLDER as CALLBACKS
from xsoftmax.training.callbacks import Callback
from xsoftmax.training.checkpoint import check_checkpoint
from xsoftmax.training.checkpoint_parts import remove_parts
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import KEEP, Plan
from xsoftmax.training.ranks import sent_by, write_together
from xsoftmax.training.record import summary, write_fit
from xsoftmax.training.search import read_chosen

WRITES = ("model.h5", "history.csv", "status.json")  # into the folder of the fit
MOST_POINTS = 100_000  # their list alone would take minutes, and memory
POINTS = 10  # evaluations of a fit that is not told how many
MOST_EPOCHS = 2**53  # which float64 counts exactly
# What auto does if it is not told: it ends when validation rows gain no more, after so many seconds at most.
AUTO_SECONDS, AUTO_PATIENCE = 120.0, 4
# What a budget in seconds is of.
SECONDS = "steps count, and what choosing a method and fitting a proposal takes; compiling and evaluations do not"
_STREAM = {"auto": None, "always": True, "never": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("prepared", type=Path, help="prepared data set (HDF5)")
    parser.add_argument("--method", required=True, help="name of a method in the methods file, or auto")
    parser.add_argument(
        "--methods", type=Path, metavar="FILE.yaml", help="methods of your own, laid over those that are shipped"
    )
    parser.add_argument(
        "--like", metavar="NAME", help="the method of the methods file to begin from, if named otherwise"
    )
    parser.add_argument("--set", default="{}", metavar="JSON", help="settings of the method to replace")
    parser.add_argument(
        "--expect", metavar="JSON", help="what --methods and --set must come to; else the files have changed"
    )
    parser.add_argument("--chosen", type=Path, metavar="FILE.json", help="more settings, which `choose` chose")
    parser.add_argument("--trial", metavar="NAME", help="that this is one trial of a search, kept in status.json")
    parser.add_argument("--share", type=float, default=1.0, help="train on so many of the rows, drawn with the seed")
    parser.add_argument(
        "--proposal",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a proposal fitted beforehand, which is fitted without; may be given again for another part",
    )
    parser.add_argument("--seed", type=int, default=0)
    _add_plan(parser)
    _add_resources(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the fit")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    """Define how long a fit goes on, and what is looked at on the way."""
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--epochs", type=int, help="passes over the training rows")
    budget.add_argument("--seconds", type=float, help=f"training time: {SECONDS}; default of auto: {AUTO_SECONDS:g}")
    evaluations = parser.add_mutually_exclusive_group()
    evaluations.add_argument("--points", type=int, help=f"evaluations, evenly spaced (default: {POINTS})")
    evaluations.add_argument(
        "--at", type=float, nargs="+", metavar="X", help="epochs, or seconds, at which to evaluate"
    )
    parser.add_argument(
        "--patience",
        type=int,
        help=f"stop after so many evaluations that are no better, see --by; default of auto: {AUTO_PATIENCE}",
    )
    parser.add_argument(
        "--keep",
        choices=KEEP,
        default="best",
        help="weights of the best evaluation by validation rows, where there are any, or the last (default: best)",
    )
    parser.add_argument(
        "--by",
        default=metrics.JUDGE,
        metavar="METRIC",
        help=f"what says which evaluation is best: {', '.join(metrics.columns('fit'))} (default: %(default)s)",
    )
    parser.add_argument(
        "--rows", type=int, help="look at so many rows of each split at most, not at all (`evaluate` does)"
    )


def _add_resources(parser: argparse.ArgumentParser) -> None:
    """Define what a fit may take, and what it writes as it goes."""
    parser.add_argument("--checkpoint", type=file_to_write, help="file to resume from, removed when done")
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=os.environ.get("XSOFTMAX_CHECKPOINT_SECONDS", "60"),
        help="default: XSOFTMAX_CHECKPOINT_SECONDS, or 60",
    )
    parser.add_argument("--memory", type=int, metavar="MB", help="what the fit may take; default: what is free")
    parser.add_argument("--threads", type=int, default=1, help="more than 1: bits differ from run to run")
    parser.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="make sure that torchrun or srun has started N processes of this command, which have some classes each",
    )
    parser.add_argument(
        "--stream",
        choices=("auto", "always", "never"),
        default="auto",
        help="leave training rows in their file, visited window by window; auto: if memory does not hold them",
    )
    parser.add_argument(
        "--live", type=file_to_write, metavar="FILE.csv", help="write each row of the history here as it comes"
    )
    parser.add_argument(
        "--live-mlflow",
        metavar="EXPERIMENT",
        default=os.environ.get("XSOFTMAX_LIVE_MLFLOW"),
        help="log each row as it comes to a run that `track` replaces (default: XSOFTMAX_LIVE_MLFLOW, or not at all)",
    )


def run(options: argparse.Namespace) -> None:
    """Train and write the fit; a fit that diverges is a result, not an error."""
    if options.checkpoint:
        check_checkpoint(options.checkpoint)
    world = world_of(os.environ, options.ranks)
    if options.method == AUTO and world:
        raise InputError(
            f"{world.n_ranks} processes were started together, and {AUTO} tries methods in one; name one"
        )
    plan, given = asked(options)
    with open_prepared(options.prepared) as data:
        if given is None:
            # A fit of a given method does not depend on the advice, which is loaded for auto alone.
            advice = registry.load("xsoftmax.advice", "choice")
            if untried := untried_by_auto(options.methods):
                print(f"auto: {untried}", file=sys.stderr)
            auto_options = advice.AutoOptions.from_settings(_changes(options), "--set")
            choice = advice.choice_for(data, options.seed, plan, auto_options)
            print(f"auto: {choice.sentence}\nauto: {choice.account(plan)}", file=sys.stderr)
            method, plan = choice.method, choice.planned(plan)
            plan = replace(plan, at=_evaluations(options, plan.budget))
            if plan.epochs is None and options.at is None and options.points is None:
                plan = replace(plan, at=choice.evaluations(plan.spent))
            modules, proposal, found = [*method.modules, advice.__name__], choice.proposal, choice.as_json()
            beside = choice.took - choice.seconds
        else:
            method = given
            modules, proposal, found, beside = method.modules, None, None, 0.0
        code = fingerprint(__name__, *modules, *links.MODULES, *metrics.MODULES)
        plan = replace(plan, identity=code)
        with joined(world, place_of(method), method.name) as ranks:
            with told_to_stop() if options.checkpoint else nullcontext() as stop:
                beforehand = {path: read_proposal(path) for path in options.proposal}
                watching = [] if ranks.rank else observers(options)
                result = fit(data, method, options.seed, plan, proposal, stop, watching, beforehand, ranks=ranks)
            if result.pruning:
                print(pruning_in_words(result.pruning), file=sys.stderr)
            added = {"choice": found, "trial": options.trial, "ranks": sent_by(ranks)}
            added = {key: value for key, value in added.items() if value is not None}
            write_together(
                result,
                ranks,
                lambda whole: write_fit(options.output, whole, data, method, options.seed, plan, code, added),
            )
        said = summary(result, method.name, plan.n_training(data.n_samples("train")), plan.seconds, beside)
    if world and world.rank:
        return
    if options.checkpoint:
        remove(options.checkpoint)
        remove_parts(options.checkpoint)
        if given is None:
            remove(advice.kept_choice(options.checkpoint))
    print(said)


def asked(options: argparse.Namespace) -> tuple[Plan, Method | None]:
    """Give the plan and the method that the command line asks for; of ``auto``, which chooses later, None.

    Raises
    ------
    InputError
        If there is no such method, or no budget.
    """
    automatic = options.method == AUTO
    method = None if automatic else _method(options)
    return _plan(options, automatic), method


def _plan(options: argparse.Namespace, automatic: bool) -> Plan:
    """How long the fit goes on, and what it may take."""
    seconds = options.seconds
    if options.epochs is None and seconds is None:
        if not automatic:
            raise InputError(f"no budget; give --epochs or --seconds, which only {AUTO} does without")
        seconds = AUTO_SECONDS
    return Plan(
        epochs=options.epochs,
        seconds=seconds,
        at=_evaluations(options, seconds if options.epochs is None else options.epochs),
        patience=AUTO_PATIENCE if automatic and options.patience is None else options.patience,
        keep=options.keep,
        judge=options.by,
        rows=options.rows,
        checkpoint=options.checkpoint,
        checkpoint_seconds=options.checkpoint_seconds,
        memory=options.memory and options.memory * 2**20,
        threads=options.threads,
        stream=_STREAM[options.stream],
        share=options.share,
    )


def observers(options: argparse.Namespace) -> list[Callback]:
    """Make what shows and logs the fit as it goes: loaded by name, so that an edit of these is no edit of a fit."""
    found: list[Callback] = [registry.load(CALLBACKS, "show-progress").ShowProgress()]
    if options.live:
        found.append(registry.load(CALLBACKS, "live-history").LiveHistory(options.live))
    if options.live_mlflow:
        found.append(registry.load("xsoftmax.lab.tracking", "live").LiveRun(options.live_mlflow, options.trial))
    return found


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """Give an event that is set on SIGTERM, SIGINT or SIGHUP: of a scheduler, of Ctrl-C, of a terminal that has gone.

    A second signal ends the program at once, but for SIGHUP, which the kernel and a shell send both. Under `nohup`,
    where SIGHUP is ignored, it stays so.
    """
    stop = threading.Event()
    before = {}

    def set_stop(number: int, frame: object) -> None:
        stop.set()
        if number == signal.SIGHUP:
            _leave_the_terminal()
        else:
            signal.signal(number, signal.SIG_DFL)

    hung_up = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    for number in (signal.SIGTERM, signal.SIGINT, *hung_up):
        before[number] = signal.signal(number, set_stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_the_terminal() -> None:
    """Write to nowhere what was for a terminal: one that has gone fails whoever writes to it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _evaluations(options: argparse.Namespace, budget: float) -> tuple[float, ...]:
    """When to evaluate, in epochs or seconds, as the budget is."""
    if options.at is not None:
        return tuple(options.at)
    if isinstance(budget, int) and budget > MOST_EPOCHS:
        raise InputError(f"--epochs is more than {MOST_EPOCHS}; set it lower")
    points = POINTS if options.points is None else options.points
    if not 1 <= points <= MOST_POINTS:
        raise InputError(f"--points is {points}; set it to 1 or more, {MOST_POINTS} at most")
    return tuple(budget * (k + 1) / points for k in range(points)) if budget > 0 else ()


def _method(options: argparse.Namespace) -> Method:
    methods, name = known_methods(options.methods), options.like or options.method
    if name not in methods:
        raise InputError(f"unknown method {name!r}; {suggestion(name, [*methods, AUTO])}")
    settings = merged(methods[name], _changes(options))
    if options.expect is not None and _plain(settings) != parse_json(options.expect, "--expect"):
        raise InputError(
            f"{options.methods or methods_file()}: {name} changed since this run was planned; start the run again, "
            "nothing done is lost"
        )
    return build_method(options.method, merged(settings, _chosen(options.chosen)))


def _plain(settings: dict[str, Any]) -> Any:
    """Settings as JSON tells them, without where they come from."""
    return json.loads(json.dumps({key: value for key, value in settings.items() if key != "source"}))


def _chosen(path: Path | None) -> dict[str, Any]:
    """Settings that `choose` chose."""
    return {} if path is None else read_chosen(path)["settings"]


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes = parse_json(options.set, f"--set {options.set[:80]!r}")
    if not isinstance(changes, dict):
        raise InputError(f"--set {options.set!r} is not JSON of the form '{{\"bias\": false}}'")
    return changes
