"""Measure skip-gram beside gensim: words per second, and losses on held-out sentences, on one thread each."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.peers.environments import NotInstallableError, python_of
from xsoftmax.skip_gram.choose import best, try_out
from xsoftmax.skip_gram.corpus import Corpus, CorpusOptions, beginning, held_out, read_corpus
from xsoftmax.skip_gram.fit import fit
from xsoftmax.skip_gram.held_out import known_pairs, log_likelihood, sampled_loss
from xsoftmax.skip_gram.huffman import Huffman, huffman
from xsoftmax.skip_gram.settings import HIERARCHICAL, LOSSES, NEGATIVE, Settings

WORDS = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
# Every so-many-th sentence is held out.
HELD_OUT = 10
# What gensim offers.
OF_GENSIM = (NEGATIVE, HIERARCHICAL)
WORKER = Path(__file__).with_name("gensim_worker.py")
WORKER_SECONDS = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--texts", type=Path, nargs="+", required=True, metavar="FILE", help="each is a corpus")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), help="default: all")
    parser.add_argument("--epochs", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--dimension", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each, in turn (default: %(default)s)")
    parser.add_argument(
        "--factors",
        type=float,
        nargs="+",
        default=[1.0],
        help="of learning rates; of several, the best on a tenth of the training sentences (default: 1)",
    )
    parser.add_argument("--encoding", default="utf-8", help="of the texts (default: %(default)s)")
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
        options_of_text = CorpusOptions(sentence="paragraph", lowercase=True, token=WORDS, encoding=options.encoding)
        training, rest = held_out(read_corpus(text, folder / "words", options_of_text), HELD_OUT)
        pairs = known_pairs(training, rest, base)
        (folder / "text").write_text("\n".join(sentences(training)), encoding="utf-8")
        fit(
            beginning(training), replace(base, epochs=1, learning_rate=1e-4)
        )  # what compiling takes is no part of any time
        results = []
        for loss in options.losses:
            settings = _chosen(training, replace(base, loss=loss), options.factors)
            rounds: dict[str, list[dict[str, Any]]] = {"xsoftmax": []}
            if loss not in OF_GENSIM[:1]:
                fit(beginning(training), replace(settings, epochs=1, learning_rate=1e-4))
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


def _chosen(training: Corpus, settings: Settings, factors: Sequence[float]) -> Settings:
    """Take the best of some multiples of the loss's learning rate, by a tenth of the sentences for training."""
    if len(factors) < 2:
        return replace(settings, learning_rate=settings.rate * factors[0])
    return best(try_out(training, [replace(settings, learning_rate=settings.rate * each) for each in factors]))


def sentences(corpus: Corpus) -> list[str]:
    """Write out a corpus, a sentence a line."""
    names = np.array([*corpus.vocabulary.words, "\n"], object)
    return [each.strip() for each in " ".join(names[corpus.tokens]).split("\n") if each.strip()]


def _ours(training: Corpus, pairs: csr_array, settings: Settings) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        fitted = fit(training, settings)
    except InputError as error:  # a fit that diverges is a result
        return {"failed": str(error)}
    whole, cpu = time.perf_counter() - wall, time.process_time() - cpu
    inputs, outputs = fitted.embedding.inputs, fitted.embedding.outputs
    assert outputs is not None
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
        inputs, outputs, tree = found["inputs"][order], found["outputs"], None
        if settings.loss == HIERARCHICAL:
            tree = _tree(found["lengths"], found["nodes"], found["sides"], order)
        else:
            outputs = outputs[order]
    return json.loads(done.stdout.splitlines()[-1]) | _quality(settings, inputs, outputs, pairs, training, tree)


def _tree(lengths: np.ndarray, nodes: np.ndarray, sides: np.ndarray, order: np.ndarray) -> Huffman:
    """Put the paths of gensim's words in order of ours."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in order])
    ends = np.concatenate([[0], np.cumsum(lengths[order])])
    return Huffman(ends, nodes[places].astype(np.int32), sides[places].astype(np.uint8))


def _quality(
    settings: Settings,
    inputs: np.ndarray,
    outputs: np.ndarray,
    pairs: csr_array,
    training: Corpus,
    tree: Huffman | None = None,
) -> dict[str, Any]:
    """Measure on held-out pairs; the outputs of a hierarchical softmax are of inner nodes, and have no other loss."""
    counts = training.vocabulary.counts
    if settings.loss == HIERARCHICAL:
        tree = tree or huffman(counts)
        return {"log_likelihood": log_likelihood(inputs, outputs, pairs, tree), "sampled_loss": None}
    return {
        "log_likelihood": log_likelihood(inputs, outputs, pairs),
        "sampled_loss": sampled_loss(inputs, outputs, pairs, counts, settings.negatives),
    }


def line(found: dict[str, Any]) -> str:
    """Say what came out, for people: medians over rounds."""
    if failures := [each["failed"] for each in found["rounds"] if "failed" in each]:
        return f"{found['text']}, {found['program']}, {found['loss']}: {failures[0]}"
    of = {key: median(each[key] for each in found["rounds"]) for key in ("seconds", "cpu_seconds")}
    speed = {key: found["words"] * found["epochs"] / value for key, value in of.items()}
    said = f"{found['text']}, {found['program']}, {found['loss']}, rate {found['learning_rate']:g}:"
    said += f" {speed['seconds']:,.0f} words/s"
    said += f" ({speed['cpu_seconds']:,.0f} by the processor's time)"
    for key in ("sampled_loss", "log_likelihood"):
        values = [each[key] for each in found["rounds"] if each[key] is not None]
        said += f", held-out {key.replace('_', ' ')} {median(values):.4f}" if values else ""
    return said
