"""Measure skip-gram beside gensim: words per second, and losses on held-out sentences, on one thread each."""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.peers.environments import NotInstallableError, python_of
from xsoftmax.skip_gram.corpus import END, Corpus, CorpusOptions, Vocabulary, held_out, kept_share, read_corpus
from xsoftmax.skip_gram.counts import collapsed_counts
from xsoftmax.skip_gram.fit import fit
from xsoftmax.skip_gram.held_out import measure
from xsoftmax.skip_gram.settings import LOSSES, Settings

WORDS = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
# Every so-many-th sentence is held out.
HELD_OUT = 10
# What gensim offers.
OF_GENSIM = ("negative-sampling", "hierarchical-softmax")
WORKER = Path(__file__).with_name("gensim_worker.py")
WORKER_SECONDS = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--texts", type=Path, nargs="+", required=True, metavar="FILE", help="each is a corpus")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), help="default: all")
    parser.add_argument("--epochs", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--dimension", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each, in turn (default: %(default)s)")
    parser.add_argument("--without-gensim", action="store_true", help="measure ours alone")
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="default: %(default)s")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Let both train on each text in turn, print a line for each, and return all rounds."""
    if options.rounds < 1:
        raise InputError(f"--rounds is {options.rounds}; set it to 1 or more")
    python = None if options.without_gensim else _python(options.environments)
    base = Settings(dimension=options.dimension, epochs=options.epochs)
    return {"results": [found for text in options.texts for found in _measured(text, base, options, python)]}


def _python(environments: Path) -> Path | None:
    try:
        return python_of("gensim", environments)
    except NotInstallableError as error:
        print(f"gensim: not installable ({error})", file=sys.stderr)
        return None


def _measured(text: Path, base: Settings, options: argparse.Namespace, python: Path | None) -> list[dict[str, Any]]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        options_of_text = CorpusOptions(sentence="paragraph", lowercase=True, token=WORDS)
        training, rest = held_out(read_corpus(text, folder / "words", options_of_text), HELD_OUT)
        pairs = known_pairs(training, rest, base)
        (folder / "text").write_text("\n".join(sentences(training)), encoding="utf-8")
        fit(_beginning(training), replace(base, epochs=1))  # what compiling takes is no part of any time
        results = []
        for loss in options.losses:
            settings = replace(base, loss=loss)
            rounds: dict[str, list[dict[str, Any]]] = {"xsoftmax": []}
            if loss not in OF_GENSIM[:1]:
                fit(_beginning(training), replace(settings, epochs=1))
            for seed in range(options.rounds):
                seeded = replace(settings, seed=seed)
                rounds["xsoftmax"].append(_ours(training, pairs, seeded))
                if python is not None and loss in OF_GENSIM:
                    rounds.setdefault("gensim", []).append(_gensim(python, folder, training, pairs, seeded))
            for program, found in rounds.items():
                results.append({"text": text.name, "words": training.n_words, "program": program} | asdict(settings))
                results[-1] |= {"vocabulary": len(training.vocabulary.words), "rounds": found}
                print(line(results[-1]), flush=True)
        return results


def sentences(corpus: Corpus) -> list[str]:
    """Write out a corpus, a sentence a line."""
    names = np.array([*corpus.vocabulary.words, "\n"], object)
    return [each.strip() for each in " ".join(names[corpus.tokens]).split("\n") if each.strip()]


def known_pairs(training: Corpus, rest: Corpus, settings: Settings) -> csr_array:
    """Collapse the pairs of held-out sentences whose words both occur in training, thinned out as in training."""
    kept = kept_share(training.vocabulary.counts, settings.subsample)
    tokens = training.tokens[training.tokens >= 0]
    occurs = np.bincount(tokens, minlength=len(training.vocabulary.words)) > 0
    pairs = collapsed_counts(rest, settings.windows(), kept, settings.seed).tocoo()
    x, y = pairs.coords
    known = occurs[x] & occurs[y]
    return csr_array((pairs.data[known], (x[known], y[known])), pairs.shape)


def _beginning(corpus: Corpus) -> Corpus:
    """Some words of a corpus, for kernels to be compiled with."""
    tokens = np.append(corpus.tokens[:2000], np.int32(END))
    tokens[tokens >= 50] = END
    counts = np.maximum(np.bincount(tokens[tokens >= 0], minlength=50), 1)
    return Corpus(Vocabulary(tuple(f"w{k}" for k in range(len(counts))), counts, len(tokens)), tokens)


def _ours(training: Corpus, pairs: csr_array, settings: Settings) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = fit(training, settings)
    whole, cpu = time.perf_counter() - wall, time.process_time() - cpu
    inputs, outputs = fitted.embedding.inputs, fitted.embedding.outputs
    seconds = {"seconds": fitted.seconds, "whole_seconds": whole, "cpu_seconds": cpu}
    return seconds | _quality(settings, inputs, outputs, pairs, training)


def _gensim(python: Path, folder: Path, training: Corpus, pairs: csr_array, settings: Settings) -> dict[str, Any]:
    job = json.dumps(asdict(settings) | {"folder": str(folder), "learning_rate": settings.rate})
    command, env = [str(python), str(WORKER)], {"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, input=job, capture_output=True, text=True, env=env, timeout=WORKER_SECONDS, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise InputError(f"gensim: {said[-1]}")
    names = (folder / "gensim.words").read_text(encoding="utf-8").split("\n")
    place = {word: k for k, word in enumerate(names)}
    order = np.array([place.get(word, 0) for word in training.vocabulary.words])  # who does not occur is in no pair
    with np.load(folder / "gensim.npz") as found:
        inputs, outputs = found["inputs"][order], found["outputs"]
    outputs = outputs if settings.loss == "hierarchical-softmax" else outputs[order]
    return json.loads(done.stdout.splitlines()[-1]) | _quality(settings, inputs, outputs, pairs, training)


def _quality(
    settings: Settings, inputs: np.ndarray, outputs: Any, pairs: csr_array, training: Corpus
) -> dict[str, Any]:
    if settings.loss == "hierarchical-softmax":  # its outputs are of inner nodes: another softmax
        return {"log_likelihood": None, "sampled_loss": None}
    return asdict(measure(inputs, outputs, pairs, training.vocabulary.counts, settings.negatives))


def line(found: dict[str, Any]) -> str:
    """Say what came out, for people: medians over rounds."""
    of = {key: median(each[key] for each in found["rounds"]) for key in ("seconds", "cpu_seconds")}
    speed = {key: found["words"] * found["epochs"] / value for key, value in of.items()}
    said = f"{found['text']}, {found['program']}, {found['loss']}: {speed['seconds']:,.0f} words/s"
    said += f" ({speed['cpu_seconds']:,.0f} by the processor's time)"
    if found["rounds"][0]["log_likelihood"] is None:
        return said
    loss, likelihood = (median(each[key] for each in found["rounds"]) for key in ("sampled_loss", "log_likelihood"))
    return f"{said}, held-out sampled loss {loss:.4f}, log-likelihood {likelihood:.4f}"
