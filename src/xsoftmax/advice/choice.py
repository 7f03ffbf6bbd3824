"""Choose a method for a data set: the first of the ranking that memory holds, its rate from a pilot."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xsoftmax.advice.facts import Facts, facts_of
from xsoftmax.advice.model import CostModel, shipped
from xsoftmax.advice.pilot import FACTORS, at_rate, tune_rate
from xsoftmax.advice.ranking import PILOT_SHARE, Budget, Prediction, explain, rank
from xsoftmax.advice.trial import Ground
from xsoftmax.data.store import Prepared
from xsoftmax.errors import InputError
from xsoftmax.files import written_aside
from xsoftmax.methods import AUTO, Method, build_method
from xsoftmax.threads import Team
from xsoftmax.training.fit import training_rows
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
    seconds : float
        Of the pilot's steps: evaluation is not counted, as in a fit.
    """

    method: Method
    name: str
    sentence: str
    trials: Sequence[dict[str, Any]]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """All of it but the model of the costs."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "trials": list(self.trials),
            "seconds": self.seconds,
        }


def choice_for(
    data: Prepared, seed: int, plan: Plan, among: Sequence[str] | None = None, model: CostModel | None = None
) -> Choice:
    """Choose for the budget of a plan, or go on with what was chosen when its checkpoint was begun.

    Raises
    ------
    InputError
        If no candidate fits into memory, or one of ``among`` is unknown.
    """
    model = model or shipped()
    if plan.checkpoint is None:
        return _choose(data, seed, plan, among, model)
    kept = plan.checkpoint.with_suffix(".choice.json")
    question = [
        seed,
        plan.seconds,
        plan.epochs,
        plan.threads,
        list(among or model.candidates),
        facts_of(data)._asdict(),
    ]
    choice = _read(kept, question)
    if choice is None:
        choice = _choose(data, seed, plan, among, model)
        content = choice.as_json() | {"settings": _settings(choice.method), "question": question}
        with written_aside(kept) as aside:
            aside.write_text(json.dumps(content) + "\n")
    return choice


def _choose(data: Prepared, seed: int, plan: Plan, among: Sequence[str] | None, model: CostModel) -> Choice:
    facts = facts_of(data)
    budget = Budget(seconds=plan.seconds, epochs=plan.epochs)
    ranking = _that_fit(rank(model, facts, budget, plan.threads, among), model, data, plan)
    best = ranking[0]
    settings = model.candidates[best.method]
    source = f"{best.method}, chosen for these data: {settings.get('source', '')}"
    method = at_rate(build_method(AUTO, {**settings, "source": source}), best.rate)
    stream = plan.stream
    if stream is None:
        stream = must_stream(method, data, plan.patience is not None, plan.memory, plan.threads)
    train, visits = training_rows(data, method, seed, bool(stream))
    ground = Ground(data, train, visits, method, seed, Team(plan.threads))
    trials = tune_rate(ground, _pilot_samples(facts, best, plan))
    visits.close()
    known = [trial for trial in trials if trial["log_likelihood"] is not None]
    if known:
        method = at_rate(method, max(known, key=lambda trial: trial["log_likelihood"])["rate"])
    sentence = explain(model, facts, budget, ranking)
    if known:
        sentence += f"; a pilot on validation rows chose the rate {method.optimizer.learning_rate:.2g}"
    return Choice(method, best.method, sentence, trials, sum(trial["seconds"] for trial in trials))


def _that_fit(ranking: Sequence[Prediction], model: CostModel, data: Prepared, plan: Plan) -> list[Prediction]:
    """Leave out what memory does not hold; if that is all, say what the last one needs."""
    found, reason = [], None
    for prediction in ranking:
        method = model.method(prediction.method)
        keeps_best = plan.patience is not None
        try:
            stream = must_stream(method, data, keeps_best, plan.memory, plan.threads)
            check_memory(method, data, keeps_best, plan.memory, stream, plan.threads)
            found.append(prediction)
        except InputError as error:
            reason = error
    if not found:
        raise reason or InputError("auto: no candidates")
    return found


def _pilot_samples(facts: Facts, best: Prediction, plan: Plan) -> int:
    """Samples of one trial: all trials together take their share of the budget."""
    epochs = plan.epochs if plan.epochs is not None else (plan.seconds or 0) / max(best.seconds_per_epoch, 1e-12)
    return int(PILOT_SHARE / len(FACTORS) * epochs * facts.n_samples)


def _settings(method: Method) -> dict[str, Any]:
    return method.settings | {"source": method.source}


def _read(path: Path, question: list[Any]) -> Choice | None:
    """Read a kept choice, if there is one and it answers the same question."""
    if not path.exists():
        return None
    content: Mapping[str, Any] = json.loads(path.read_text())
    if content["question"] != question:
        return None
    method = build_method(AUTO, content["settings"])
    return Choice(method, content["name"], content["sentence"], content["trials"], content["seconds"])
