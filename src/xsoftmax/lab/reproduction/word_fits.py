"""Train vectors of words by the methods of an experiment, and leave each as a fit that the pages of papers read.

A fit is a folder with ``status.json``, ``metrics.json`` and ``history.csv``: the loss over training pairs and the
log-likelihood of held-out ones after some epochs (eq. 9 of Yen et al. 2018), and the processor's seconds until then,
looks left out; ``objective_with_noise`` is the loss if the noise's frequency is added to scores of negative sampling,
that loss itself for others. A fit that is there with the same settings, of the same code, is not repeated.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_json, write_text
from xsoftmax.internal.fingerprint import fingerprint
from xsoftmax.skip_gram.choose import Trial, best, likelihood, likelihoods, likelihoods_with_noise, try_out
from xsoftmax.skip_gram.corpus import Corpus, CorpusOptions, beginning, held_out, kept_share, part_of, read_corpus
from xsoftmax.skip_gram.counts import collapsed_counts
from xsoftmax.skip_gram.fit import DivergedError, fit
from xsoftmax.skip_gram.held_out import known_pairs
from xsoftmax.skip_gram.settings import NEGATIVE, Settings
from xsoftmax.skip_gram.vectors import Embedding
from xsoftmax.training.record import machine

# What a result depends on.
CODE = "xsoftmax.skip_gram.choose"
STATUS, METRICS, HISTORY = "status.json", "metrics.json", "history.csv"
COLUMNS = ["epoch", "step", "seconds", "objective", "test_log_likelihood", "objective_with_noise"]


@dataclass(frozen=True)
class WordExperiment:
    """What to train on which texts.

    Parameters
    ----------
    experiment : str
        Its name.
    seeds, looks : sequence of int
        Of fits; the epochs after which losses are measured, beside the last.
    test, validation : int
        Every so-many-th sentence is for the test, and of the others for choosing settings.
    settings : mapping
        Of all methods: parameters of ``Settings``.
    corpora : mapping of str to mapping
        Options of each text; ``every``: one sentence in so many is taken.
    methods : mapping of str to mapping
        Parameters of ``Settings``; where one is a list, the best of it is chosen.
    """

    experiment: str
    seeds: Sequence[int]
    looks: Sequence[int]
    test: int
    validation: int
    settings: Mapping[str, Any]
    corpora: Mapping[str, Mapping[str, Any]]
    methods: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, given: Any) -> "WordExperiment":
        """Read it from a mapping.

        Raises
        ------
        InputError
            If something is missing or unknown.
        """
        known = {each.name for each in fields(cls)}
        if not isinstance(given, Mapping) or set(given) != known:
            raise InputError(f"an experiment with words has exactly these keys: {', '.join(sorted(known))}")
        return cls(**given)

    def candidates(self, method: str) -> list[Settings]:
        """All settings that a method may have: of parameters that are lists, each."""
        given = dict(self.settings) | dict(self.methods[method])
        unknown = given.keys() - {each.name for each in fields(Settings)}
        if unknown:
            raise InputError(f"{self.experiment}, {method}: unknown parameter {', '.join(sorted(unknown))}")
        lists = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
        return [Settings(**_numbers(dict(zip(lists, each, strict=True)))) for each in product(*lists.values())]


def _numbers(given: dict[str, Any]) -> dict[str, Any]:
    """Make numbers that YAML writes without a point what they are."""
    return {key: float(value) if key in ("learning_rate", "least_slope") else value for key, value in given.items()}


@dataclass
class Split:
    """Sentences to train on, and the collapsed pairs of those and of held-out ones."""

    training: Corpus
    own: csr_array
    test: csr_array
    facts: dict[str, float] = field(default_factory=dict)


def run(experiment: WordExperiment, texts: Mapping[str, Path], folder: Path, say: Callable[[str], None]) -> None:
    """Train all methods on each text, and leave fits below ``folder``.

    Raises
    ------
    InputError
        If a text is missing or unknown, or settings are none.
    """
    if unknown := texts.keys() - experiment.corpora.keys():
        raise InputError(f"no corpus {', '.join(sorted(unknown))}; known: {', '.join(experiment.corpora)}")
    for method in experiment.methods:
        experiment.candidates(method)
    for name, text in texts.items():
        with TemporaryDirectory() as scratch:
            split = split_of(experiment, text, experiment.corpora[name], Path(scratch))
        for method in experiment.methods:
            trials = _trials(experiment, split, method, folder / "trials" / name / f"{method}.json")
            chosen = best(trials) if trials else experiment.candidates(method)[0]
            for seed in experiment.seeds:
                place = folder / "fits" / name / method / f"seed-{seed}"
                took = _fit(experiment, split, replace(chosen, seed=seed), trials, place)
                say(f"{place}: rate {chosen.rate:g}, {took:.0f} s of training")


def split_of(experiment: WordExperiment, text: Path, options: Mapping[str, Any], scratch: Path) -> Split:
    """Read a text, and take sentences out for the test."""
    given = dict(options)
    every = given.pop("every", 1)
    corpus = part_of(read_corpus(text, scratch / "words", CorpusOptions(**given)), every)
    training, rest = held_out(Corpus(corpus.vocabulary, np.array(corpus.tokens)), experiment.test)
    base = Settings(**experiment.settings)
    kept = kept_share(training.vocabulary.counts, base.subsample)
    own, test = collapsed_counts(training, base.windows(), kept, base.seed), known_pairs(training, rest, base)
    n_words = int((training.tokens >= 0).sum())
    facts = {"n_classes": len(corpus.vocabulary.words), "n_words": n_words, "n_pairs": own.nnz, "n_test": test.nnz}
    return Split(training, own, test, facts | {"frequencies_objective": _of_frequencies(own)})


def _of_frequencies(pairs: csr_array) -> float:
    """Give the objective of p(y | x) = q(y), how often y stands near any word: the entropy of q, in nats."""
    counts = np.asarray(pairs.sum(axis=0), dtype=np.float64).ravel()
    shares = counts[counts > 0] / counts.sum()
    return -float(shares @ np.log(shares))


def _trials(experiment: WordExperiment, split: Split, method: str, path: Path) -> list[Trial]:
    """Try out the settings of a method, but those whose value is known; none where there is no choice."""
    candidates = experiment.candidates(method)
    if len(candidates) == 1:
        return []
    identity = _plain([fingerprint(CODE), experiment.validation, split.facts])
    found = read_json(path) if path.exists() else {}
    known = found["trials"] if found.get("of") == identity else []
    trials: list[Trial] = []
    for candidate in candidates:
        settings = _plain(asdict(candidate))
        values = [each["value"] for each in known if each["settings"] == settings]
        if values:
            trials.append(Trial(candidate, values[0]))
            continue
        trials += try_out(split.training, [candidate], experiment.validation, likelihood)
        known.append({"settings": settings, "value": trials[-1].value})
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"of": identity, "trials": known})
    return trials


def _fit(experiment: WordExperiment, split: Split, settings: Settings, trials: list[Trial], place: Path) -> float:
    """Train once, unless that was done, and leave a fit; return the seconds of training."""
    *_, dataset, method, _ = place.parts
    status: dict[str, Any] = {"dataset": dataset, "method": method, "seed": settings.seed, "data": split.facts}
    status |= {"parameters": asdict(settings), "code": fingerprint(CODE), "looks": list(experiment.looks)}
    tried = [asdict(trial.settings) | {"value": trial.value} for trial in trials]
    if (place / STATUS).exists():
        before = read_json(place / STATUS)
        if {key: before.get(key) for key in status} == _plain(status):
            if before["trials"] != _plain(tried):  # others were tried, and these settings stayed the best
                write_json(place / STATUS, before | {"trials": tried})
            return before["seconds"]
    status["trials"] = tried
    looks = Looks(split, settings, experiment.looks)
    fit(beginning(split.training), replace(settings, epochs=1, learning_rate=1e-4))  # what compiling takes is no time
    looks.start()
    try:
        fit(split.training, settings, each_epoch=looks)
        status["status"] = "finished"
    except DivergedError:
        status["status"] = "diverged"
    history = pd.DataFrame(looks.rows, columns=COLUMNS)
    status |= {"seconds": looks.seconds, "epoch": looks.epoch, "seconds_per_epoch": looks.pace()}
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / HISTORY, history.to_csv(index=False))
    write_json(place / METRICS, {"train": {}, "validation": {}, "test": {}})
    write_json(place / STATUS, status | {"machine": machine()})  # last: it says that all is there
    return looks.seconds


class Looks:
    """Measures vectors after some epochs; its own time is not counted."""

    def __init__(self, split: Split, settings: Settings, after: Sequence[int]) -> None:
        self._split, self._settings = split, settings
        self._after = {*after, settings.epochs + settings.warmed}
        self.rows: list[tuple[float, ...]] = []
        self.seconds, self.epoch, self._began, self._ends = 0.0, 0, 0.0, list[float]()

    def start(self) -> None:
        """Start the clock."""
        self._began = time.process_time()

    def __call__(self, epoch: int, embedding: Embedding) -> None:
        """Measure, if it is time, and go on with the clock."""
        self.seconds += time.process_time() - self._began
        self.epoch = epoch
        self._ends.append(self.seconds)
        if epoch in self._after:
            sets, counts = [self._split.own, self._split.test], self._split.training.vocabulary.counts
            own, test = likelihoods(embedding, self._settings, sets, counts)
            noisy = self._settings.loss == NEGATIVE
            noise = likelihoods_with_noise(embedding, self._settings, sets[:1], counts)[0] if noisy else own
            self.rows.append((epoch, epoch, self.seconds, -own, test, -noise))
        self._began = time.process_time()

    def pace(self) -> float | None:
        """Median of an epoch's seconds, those of a warm-up and of the first left out; None if there is no other."""
        taken = np.diff(self._ends)[self._settings.warmed :]
        return float(np.median(taken)) if taken.size else None


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
