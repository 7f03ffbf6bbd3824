"""Choose a method for a data set: the first of the ranking that memory holds, its rate from a pilot."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xsoftmax.advice.facts import Facts, facts_of
from xsoftmax.advice.model import CostModel, shipped
from xsoftmax.advice.pilot import RATE_FACTORS, at_rate, timed, tune_rate
from xsoftmax.advice.ranking import PILOT_SHARE, TIMED, TIMING_SHARE, Budget, Prediction, explain, rank
from xsoftmax.advice.trial import Ground
from xsoftmax.data.store import Prepared
from xsoftmax.errors import InputError
from xsoftmax.files import written_aside
from xsoftmax.fingerprint import fingerprint
from xsoftmax.methods import AUTO, Method, build_method
from xsoftmax.threads import Team
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
    """

    method: Method
    name: str
    sentence: str
    trials: Sequence[dict[str, Any]]
    times: Mapping[str, Mapping[str, float]]

    @property
    def seconds(self) -> float:
        """Seconds of all steps on the way: evaluation is not counted, as in a fit."""
        return sum(trial["seconds"] for trial in [*self.trials, *self.times.values()])

    def as_json(self) -> dict[str, Any]:
        """Say which candidate, why, and what the pilot came to; a fit's status has the method's settings."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "trials": list(self.trials),
            "times": self.times,
            "seconds": self.seconds,
        }


def choice_for(
    data: Prepared, seed: int, plan: Plan, among: Sequence[str] | None = None, model: CostModel | None = None
) -> Choice:
    """Choose for the budget of a plan, or go on with what was chosen when its checkpoint was begun.

    Raises
    ------
    InputError
        If the data or the seed suit no fit, no candidate fits into memory, or one of ``among`` is unknown.
    """
    check_question(data, seed)
    model = model or shipped()
    if plan.checkpoint is None:
        return _choose(data, seed, plan, among, model)
    kept = kept_choice(plan.checkpoint)
    question = _digest(data, seed, plan, among, model)
    choice = _read(kept, question)
    if choice is None:
        choice = _choose(data, seed, plan, among, model)
        settings = choice.method.settings | {"source": choice.method.source}
        with written_aside(kept) as aside:
            aside.write_text(json.dumps(choice.as_json() | {"settings": settings, "question": question}) + "\n")
    return choice


def kept_choice(checkpoint: Path) -> Path:
    """Name the file beside a checkpoint that keeps a choice: a fit that resumes does not choose anew."""
    return checkpoint.with_suffix(".choice.json")


def _digest(data: Prepared, seed: int, plan: Plan, among: Sequence[str] | None, model: CostModel) -> str:
    """Hash all that a choice depends on, but what memory is free."""
    asked = [plan.seconds, plan.epochs, plan.threads, plan.memory, plan.patience, plan.stream]
    parts = [seed, asked, among, model.as_json(), data.attributes, fingerprint(__name__)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(path: Path, question: str) -> Choice | None:
    """Read a kept choice, if there is a readable one that answers the same question."""
    try:
        content = json.loads(path.read_text())
        if content["question"] != question:
            return None
        method = build_method(AUTO, content["settings"])
        return Choice(method, content["name"], content["sentence"], content["trials"], content["times"])
    except (OSError, ValueError, KeyError, InputError):
        return None


def _choose(data: Prepared, seed: int, plan: Plan, among: Sequence[str] | None, model: CostModel) -> Choice:
    facts = facts_of(data)
    budget = Budget(seconds=plan.seconds, epochs=plan.epochs)
    ranking = _that_fit(rank(model, facts, budget, plan.threads, among), model, data, plan)
    times = _times(data, seed, plan, model, ranking)
    if times:
        names = [prediction.method for prediction in ranking]
        per_sample = {name: time["seconds_per_sample"] for name, time in times.items()}
        ranking = rank(model, facts, budget, plan.threads, names, per_sample)
    best = ranking[0]
    settings = model.candidates[best.method]
    source = f"{best.method}, chosen for these data: {settings.get('source', '')}"
    method = at_rate(build_method(AUTO, {**settings, "source": source}), best.rate)
    trials = _pilot(data, method, seed, plan, facts, best)
    known = [trial for trial in trials if trial["log_likelihood"] is not None]
    sentence = explain(model, facts, budget, ranking)
    if known:
        method = at_rate(method, max(known, key=lambda trial: trial["log_likelihood"])["rate"])
        sentence += f"; a pilot on validation rows chose the rate {method.optimizer.learning_rate:.2g}"
    elif trials:
        method = at_rate(method, min(trial["rate"] for trial in trials))
        sentence += "; in a pilot all rates diverged, of which this is the smallest"
    return Choice(method, best.method, sentence, trials, times)


def _that_fit(ranking: Sequence[Prediction], model: CostModel, data: Prepared, plan: Plan) -> list[Prediction]:
    """Leave out what memory does not hold; if that is all, say what the last one needs."""
    found, reason = [], InputError("auto has no candidates; name some in among")
    for prediction in ranking:
        method = model.method(prediction.method)
        try:
            streams = _streams(data, method, plan)
            check_memory(method, data, plan.patience is not None, plan.memory, streams, plan.threads)
            found.append(prediction)
        except InputError as error:
            reason = error
    if not found:
        raise reason
    return found


def _streams(data: Prepared, method: Method, plan: Plan) -> bool:
    """Tell whether a fit leaves training rows in their file, as ``fit`` does."""
    if plan.stream is not None:
        return plan.stream
    return must_stream(method, data, plan.patience is not None, plan.memory, plan.threads)


@contextmanager
def _ground(data: Prepared, method: Method, seed: int, plan: Plan) -> Iterator[Ground]:
    """What trials of a method need, closed afterwards."""
    team = Team(plan.threads)
    train, visits = training_rows(data, method, seed, _streams(data, method, plan))
    try:
        yield Ground(data, train, visits, method, seed, team)
    finally:
        visits.close()
        team.close()


def _times(
    data: Prepared, seed: int, plan: Plan, model: CostModel, ranking: Sequence[Prediction]
) -> dict[str, dict[str, float]]:
    """Time the first few candidates. A budget of epochs does not ask what these cost."""
    found: dict[str, dict[str, float]] = {}
    if plan.epochs is not None or len(ranking) < 2:
        return found
    for prediction in ranking[:TIMED]:
        method = at_rate(model.method(prediction.method), prediction.rate)
        with _ground(data, method, seed, plan) as ground:
            found[prediction.method] = timed(ground, TIMING_SHARE * plan.budget)
    return found


def _pilot(
    data: Prepared, method: Method, seed: int, plan: Plan, facts: Facts, predicted: Prediction
) -> list[dict[str, Any]]:
    """Try a few rates; together these take their share of the budget, whatever was predicted."""
    share, seconds, epochs = PILOT_SHARE, math.inf, float(plan.epochs or 0)
    if plan.epochs is None:
        share -= TIMED * TIMING_SHARE
        seconds = share / len(RATE_FACTORS) * plan.budget
        epochs = plan.budget / max(predicted.seconds_per_epoch, 1e-12)
    with _ground(data, method, seed, plan) as ground:
        return tune_rate(ground, int(share / len(RATE_FACTORS) * epochs * facts.n_samples), seconds)
