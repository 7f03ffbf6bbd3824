"""Choose a method for a data set: the first of the ranking that memory holds, its rate from a pilot."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xsoftmax.advice.asked import Asked
from xsoftmax.advice.clock import Clock
from xsoftmax.advice.facts import Facts, facts_of
from xsoftmax.advice.model import CostModel, shipped
from xsoftmax.advice.pilot import (
    LEAST_EPOCHS,
    RATE_FACTORS,
    TIME_IS_UP,
    TOO_LITTLE,
    Pilot,
    at_rate,
    timed,
    tune_rate,
)
from xsoftmax.advice.ranking import LEAST_TIMED, PILOT_SHARE, TIMED, TIMING_SHARE, Budget, Prediction, explain, rank
from xsoftmax.advice.trial import Ground
from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.internal.text import duration
from xsoftmax.internal.threads import Team
from xsoftmax.methods import AUTO, Method, build_method
from xsoftmax.proposals import Proposal
from xsoftmax.training.fit import check_question, training_rows
from xsoftmax.training.memory import check_memory, must_stream
from xsoftmax.training.plan import Plan


@dataclass(frozen=True)
class Choice:
    """What was chosen, why, and what that took.

    Attributes
    ----------
    method : Method
        Named ``auto``.
    name : str
        Of the candidate that it is.
    sentence : str
    trials : sequence of dict
        Rates of the pilot and what they came to (see ``pilot``); empty if there was none.
    times : dict of str to dict
        Of candidates that were timed on the data: ``seconds_per_sample``, and ``seconds`` that this took.
    budget : float
        Epochs or seconds, as the plan's: what the fit should take, less than it may where a gap was asked for.
    took : float
        Seconds by the clock on the wall: of steps, compiling, reading rows, fitting proposals and scoring.
    proposal : Proposal or None
        The method's, if the pilot fitted it: not kept beside a checkpoint, as a fit fits the same one again.
    """

    method: Method
    name: str
    sentence: str
    trials: Sequence[dict[str, Any]]
    times: Mapping[str, Mapping[str, float]]
    budget: float
    took: float
    proposal: Proposal | None = field(default=None, compare=False)

    @property
    def seconds(self) -> float:
        """Seconds of all steps on the way: evaluation is not counted, as in a fit."""
        return sum(trial["seconds"] for trial in [*self.trials, *self.times.values()])

    def account(self, plan: Plan) -> str:
        """Say what the choice took, beside a plan's budget, as measured."""
        took = f"the choice took {duration(self.took)} by the clock, compiling and scoring included"
        if plan.epochs is not None:
            return f"{took}, beside the budget"
        share = self.took / self.budget
        percent = f"{100 * share:.0f}" if share >= PILOT_SHARE else f"{100 * share:.2g}"
        over = "" if share <= PILOT_SHARE else "; more than its tenth, as loading and compiling are not cut short"
        return f"{took}: {percent} % of {duration(self.budget)}{over}"

    def planned(self, plan: Plan) -> Plan:
        """Plan the fit: what was spent on the way is part of a budget of seconds."""
        budget = {"seconds": self.budget} if plan.epochs is None else {"epochs": int(self.budget)}
        return replace(plan, spent=self.seconds, **budget)

    def as_json(self) -> dict[str, Any]:
        """Say which candidate, why, and what the pilot came to; a fit's status has the method's settings."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "trials": list(self.trials),
            "times": self.times,
            "budget": self.budget,
            "took": self.took,
            "seconds": self.seconds,
        }


def choice_for(
    data: Dataset, seed: int, plan: Plan, asked: Asked | None = None, model: CostModel | None = None
) -> Choice:
    """Choose for the budget of a plan, or go on with what was chosen when its checkpoint was begun.

    Raises
    ------
    InputError
        If the data or the seed suit no fit, no candidate fits into memory, or what was asked cannot be.
    """
    check_question(data, seed)
    model, asked = model or shipped(), asked or Asked()
    if plan.checkpoint is None:
        return _choose(data, seed, plan, asked, model)
    kept = kept_choice(plan.checkpoint)
    question = _digest(data, seed, plan, asked, model)
    choice = _read(kept, question)
    if choice is None:
        choice = _choose(data, seed, plan, asked, model)
        settings = choice.method.settings | {"source": choice.method.source}
        write_text(kept, json.dumps(choice.as_json() | {"settings": settings, "question": question}) + "\n")
    return choice


def kept_choice(checkpoint: Path) -> Path:
    """Name the file beside a checkpoint that keeps a choice: a fit that resumes does not choose anew."""
    return checkpoint.with_suffix(".choice.json")


def _digest(data: Dataset, seed: int, plan: Plan, asked: Asked, model: CostModel) -> str:
    """Hash all that a choice depends on, but what memory is free."""
    kept = plan.patience, plan.keep
    planned = [plan.seconds, plan.epochs, plan.threads, plan.memory, *kept, plan.stream, plan.share]
    parts = [seed, planned, asked, model.as_json(), data.identity, fingerprint(__name__)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(path: Path, question: str) -> Choice | None:
    """Read a kept choice, if there is a readable one that answers the same question."""
    try:
        content = read_json(path)
        if content["question"] != question:
            return None
        method = build_method(AUTO, content["settings"])
        known = (content[key] for key in ("name", "sentence", "trials", "times", "budget", "took"))
        return Choice(method, *known)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _choose(data: Dataset, seed: int, plan: Plan, asked: Asked, model: CostModel) -> Choice:
    clock, facts = Clock(), facts_of(data)
    budget = Budget(seconds=plan.seconds, epochs=plan.epochs) if asked.gap is None else Budget(gap=asked.gap)
    ranking = _that_fit(rank(model, facts, budget, plan.threads, asked.among), model, data, plan)
    if plan.epochs is None:
        clock.limit = PILOT_SHARE * _shortened(plan, asked, ranking[0]).budget
    times = _times(data, seed, _shortened(plan, asked, ranking[0]), model, ranking, clock)
    per_sample = {name: time["seconds_per_sample"] for name, time in times.items()}
    if times:
        names = [prediction.method for prediction in ranking]
        ranking = rank(model, facts, budget, plan.threads, names, per_sample)
    best = ranking[0]
    plan = _shortened(plan, asked, best)
    if plan.epochs is None:
        clock.limit = PILOT_SHARE * plan.budget
    settings = model.candidates[best.method]
    source = f"{best.method}, chosen for these data: {settings.get('source', '')}"
    method = at_rate(build_method(AUTO, {**settings, "source": source}), best.rate)
    pilot, proposal = _pilot(data, method, seed, plan, facts, best, clock)
    method, word = _verdict(method, pilot)
    sentence = f"{explain(model, facts, budget, ranking, per_sample)}; {word}"
    return Choice(method, best.method, sentence, pilot.trials, times, plan.budget, clock.spent, proposal)


def _verdict(method: Method, pilot: Pilot) -> tuple[Method, str]:
    """Give the method at the rate that a pilot found, and say what that is worth."""
    known = [trial for trial in pilot.trials if trial["log_likelihood"] is not None]
    if pilot.short or not pilot.trials:
        return method, f"its rate, {method.optimizer.learning_rate:.2g}, is a guess, without a pilot: {pilot.short}"
    if not known:
        method = at_rate(method, min(trial["rate"] for trial in pilot.trials))
        return method, "in a pilot all rates diverged, of which this is the smallest"
    best = max(known, key=lambda trial: trial["log_likelihood"])
    method, value = at_rate(method, best["rate"]), f"{best['log_likelihood']:.4f} nats"
    return method, f"a pilot on validation rows chose the rate {best['rate']:.2g}, where it came to {value}"


def _shortened(plan: Plan, asked: Asked, best: Prediction) -> Plan:
    """Plan no more than it should take to come to the gap that was asked for."""
    if asked.gap is None or not math.isfinite(best.seconds):
        return plan
    if plan.epochs is None:
        return replace(plan, seconds=min(plan.budget, best.seconds / (1 - PILOT_SHARE)))
    epochs = math.ceil((best.seconds - best.setup_seconds) / max(best.seconds_per_epoch, 1e-12))
    return replace(plan, epochs=min(plan.epochs, epochs))


def _that_fit(ranking: Sequence[Prediction], model: CostModel, data: Dataset, plan: Plan) -> list[Prediction]:
    """Leave out what memory does not hold; if that is all, say what the last one needs."""
    found, reason = [], InputError("auto has no candidates; name some in among")
    for prediction in ranking:
        method = model.method(prediction.method)
        try:
            streams = _streams(data, method, plan)
            keeps_best = plan.keeps_best(data.n_samples("validation"))
            check_memory(method, data, keeps_best, plan.memory, streams, plan.threads)
            found.append(prediction)
        except InputError as error:
            reason = error
    if not found:
        raise reason
    return found


def _streams(data: Dataset, method: Method, plan: Plan) -> bool:
    """Tell whether a fit leaves training rows in their file, as ``fit`` does."""
    if plan.stream is not None or plan.share < 1:
        return bool(plan.stream)
    keeps_best = plan.keeps_best(data.n_samples("validation"))
    return must_stream(method, data, keeps_best, plan.memory, plan.threads)


@contextmanager
def _ground(data: Dataset, method: Method, seed: int, plan: Plan) -> Iterator[Ground]:
    """What trials of a method need, closed afterwards."""
    team = Team(plan.threads)
    train, visits = training_rows(data, method, seed, _streams(data, method, plan), plan)
    try:
        yield Ground(data, train, visits, method, seed, team)
    finally:
        visits.close()
        team.close()


def _times(
    data: Dataset, seed: int, plan: Plan, model: CostModel, ranking: Sequence[Prediction], clock: Clock
) -> dict[str, dict[str, float]]:
    """Time the first few candidates, unless it takes long to set them up. A budget of epochs does not ask for it.

    Nor are they timed where only the first few steps would be seen, which are slow. Another is begun if it would be
    done within half of what is on the clock; the rest is the pilot's.
    """
    found: dict[str, dict[str, float]] = {}
    share = TIMING_SHARE * plan.budget
    if plan.epochs is not None or len(ranking) < 2 or share < LEAST_TIMED:
        return found
    for prediction in ranking[:TIMED]:
        if prediction.setup_seconds > share or clock.spent + clock.setup + share > clock.limit / 2:
            continue
        began = clock.spent
        method = at_rate(model.method(prediction.method), prediction.rate)
        with _ground(data, method, seed, plan) as ground:
            time = timed(ground, share, clock)
        clock.setup = max(clock.setup, clock.spent - began - (time["seconds"] if time else 0.0))
        if time:
            found[prediction.method] = time
    return found


def _pilot(
    data: Dataset, method: Method, seed: int, plan: Plan, facts: Facts, predicted: Prediction, clock: Clock
) -> tuple[Pilot, Proposal | None]:
    """Try a few rates; together these take their share of the budget, whatever was predicted."""
    if plan.epochs is None:
        setup = predicted.setup_seconds + clock.setup
        epochs = max(0.0, clock.left - setup) / max(predicted.seconds_per_epoch, 1e-12)
        if clock.left <= setup:
            word = f"setting it up would take about {duration(setup)}" if clock.left > 0 else TIME_IS_UP
            return Pilot([], word), None
    else:
        epochs = PILOT_SHARE * plan.epochs
    n_samples = int(epochs / len(RATE_FACTORS) * facts.n_samples)
    if n_samples < LEAST_EPOCHS * plan.n_training(facts.n_samples):
        return Pilot([], TOO_LITTLE), None
    with _ground(data, method, seed, plan) as ground:
        pilot = tune_rate(ground, n_samples, clock)
        return pilot, vars(ground).get("proposal")  # if it came to that
