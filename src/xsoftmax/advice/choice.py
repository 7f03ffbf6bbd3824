"""Choose a method for a data set, or go on with what was chosen: by a race, or by what was measured elsewhere."""

import hashlib
import json
from pathlib import Path

from xsoftmax.advice.chosen import Choice
from xsoftmax.advice.measured import choose_measured
from xsoftmax.advice.model import CostModel, shipped
from xsoftmax.advice.on_device import also_named, contenders_on, with_device
from xsoftmax.advice.options import AutoOptions
from xsoftmax.advice.race import contender_names, contenders
from xsoftmax.advice.raced import choose_by_race
from xsoftmax.advice.statistics import statistics_of
from xsoftmax.data.dataset import Dataset, check_plain
from xsoftmax.gpu.device import NUMBA, place_of
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.methods import AUTO, build_method
from xsoftmax.training.plan import Plan
from xsoftmax.training.refusals import check_question


def choice_for(
    data: Dataset, seed: int, plan: Plan, options: AutoOptions | None = None, model: CostModel | None = None
) -> Choice:
    """Choose for the budget of a plan, or go on with what was chosen when its checkpoint was begun.

    Raises
    ------
    InputError
        If the data or the seed suit no fit, no candidate fits into memory, or what was asked cannot be.
    """
    check_question(data, seed)
    check_plain(data, "auto chooses no method for")
    options = options or AutoOptions()
    model = with_device(model or shipped(), options.device, options.rates)
    if plan.checkpoint is None:
        return _choose(data, seed, plan, options, model)
    kept = kept_choice(plan.checkpoint)
    question = _digest(data, seed, plan, options, model)
    choice = _read(kept, question)
    if choice is None:
        choice = _choose(data, seed, plan, options, model)
        settings = choice.method.settings | {"source": choice.method.source}
        write_text(kept, json.dumps(choice.as_json() | {"settings": settings, "question": question}) + "\n")
    return choice


def kept_choice(checkpoint: Path) -> Path:
    """Name the file beside a checkpoint that keeps a choice: a fit that resumes does not choose anew."""
    return checkpoint.with_suffix(".choice.json")


def _digest(data: Dataset, seed: int, plan: Plan, options: AutoOptions, model: CostModel) -> str:
    """Hash all that a choice depends on, but what memory is free."""
    kept = plan.patience, plan.keep
    planned = [plan.seconds, plan.epochs, plan.threads, plan.memory, *kept, plan.stream, plan.share]
    parts = [seed, planned, options, model.as_json(), data.identity, fingerprint(__name__)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(path: Path, question: str) -> Choice | None:
    """Read a kept choice, if there is a readable one that answers the same question."""
    try:
        content = read_json(path)
        if content["question"] != question:
            return None
        method = build_method(AUTO, content["settings"])
        known = (content[key] for key in ("name", "sentence", "trials", "times", "budget", "took", "allowed", "pace"))
        return Choice(method, *known)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _choose(data: Dataset, seed: int, plan: Plan, options: AutoOptions, model: CostModel) -> Choice:
    """Choose among what was measured elsewhere; where others may be ahead of that, let them all race."""
    statistics = statistics_of(data)
    others = contenders(statistics, options.among) if data.n_samples("validation") and options.gap is None else {}
    measured = (
        None if options.among is None else tuple(name for name in options.among if name not in contender_names())
    )
    if (place := place_of(options.device)) != NUMBA:
        others = {**others, **contenders_on(others, place)}
        measured = also_named(measured, model, place)
    if measured == () and not others:
        kind = "sparse" if statistics.sparse else "dense"
        raise InputError(
            f"auto: among is {', '.join(options.among or ())}; these rows are {kind}, "
            f"{data.n_samples('validation')} are for validation, and gap is {options.gap}; contenders are of one "
            "kind of rows, and need validation rows and no gap: name measured candidates, too, or leave among out"
        )
    among = options._replace(among=measured)
    if others:
        return choose_by_race(data, seed, plan, among, model, others)
    return choose_measured(data, seed, plan, among, model)
