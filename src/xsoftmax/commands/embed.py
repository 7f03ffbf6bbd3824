"""Train vectors of words on a text (skip-gram): word2vec's files, by its losses or by softmaxes.

xsoftmax embed text.txt -o vectors.txt
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

from xsoftmax.commands.train import told_to_stop
from xsoftmax.data.word2vec_files import FORMATS, check_words, format_of, write_word2vec
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import remove
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.skip_gram.choose import best, try_out
from xsoftmax.skip_gram.corpus import SENTENCES, Corpus, CorpusOptions, read_corpus
from xsoftmax.skip_gram.fit import fit
from xsoftmax.skip_gram.settings import FOUND_BY, HIERARCHICAL, LOSSES, MISSING, Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("text", type=Path, help="a text, perhaps compressed (gz, xz, bz2), or a folder of texts")
    parser.add_argument("-o", "--output", type=file_to_write, required=True, help="file of vectors")
    parser.add_argument("--contexts", type=file_to_write, metavar="FILE", help="output vectors, in the same format")
    parser.add_argument("--format", choices=FORMATS, help="default: binary if the name ends in .bin, else text")
    _add_words(parser)
    _add_training(parser)
    parser.add_argument("--scratch", type=Path, help="folder for the numbered text, 4 bytes a word; default: of -o")
    parser.add_argument("--checkpoint", type=file_to_write, help="file to resume from, removed when done")
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=os.environ.get("XSOFTMAX_CHECKPOINT_SECONDS", "60"),
        help="default: XSOFTMAX_CHECKPOINT_SECONDS, or 60",
    )


def _add_words(parser: argparse.ArgumentParser) -> None:
    """Define what words are."""
    parser.add_argument("--min-count", type=int, default=5, help="leave rarer words out (default: %(default)s)")
    parser.add_argument("--max-words", type=int, help="keep the most frequent only")
    parser.add_argument(
        "--sentence", choices=SENTENCES, default="line", help="what windows stay within (default: %(default)s)"
    )
    parser.add_argument("--token", default=r"\S+", metavar="REGEX", help="a word (default: %(default)s)")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--encoding", default="utf-8", help="default: %(default)s")


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Define the fit."""
    of = Settings()
    parser.add_argument("--loss", choices=LOSSES, default=of.loss, help="default: %(default)s")
    parser.add_argument("--dimension", type=int, default=of.dimension, help="default: %(default)s")
    parser.add_argument("--window", type=int, default=of.window, help="words on either side (default: %(default)s)")
    parser.add_argument("--whole-window", action="store_true", help="do not draw each window's size from 1 on")
    parser.add_argument("--negatives", type=int, default=of.negatives, help="default: %(default)s")
    parser.add_argument("--power", type=float, default=of.power, help="of frequencies (default: %(default)s)")
    parser.add_argument(
        "--subsample",
        type=float,
        default=of.subsample,
        help="threshold t: a word of share f stays with probability sqrt(t/f) + t/f; 0: all (default: %(default)s)",
    )
    parser.add_argument(
        "--learning-rate",
        type=float,
        nargs="+",
        metavar="RATE",
        help="at the beginning; of several, the best on a tenth of the sentences left out; default: by the loss",
    )
    parser.add_argument("--epochs", type=int, default=of.epochs, help="default: %(default)s")
    parser.add_argument("--warm-epochs", type=int, help="begin with so many of negative sampling; softmax: 1")
    parser.add_argument("--seed", type=int, default=of.seed)
    parser.add_argument("--threads", type=int, default=of.threads, help="more than 1: bits differ from run to run")
    parser.add_argument(
        "--found-by", choices=FOUND_BY, default=of.found_by, help="classes of the softmax (default: %(default)s)"
    )
    parser.add_argument("--share", type=float, default=of.share, help="of classes to find (default: %(default)s)")
    parser.add_argument("--n-blocks", type=int, default=of.n_blocks, help="of columns (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=of.rounds, help="of messages of blocks (default: %(default)s)")
    parser.add_argument(
        "--least-slope", type=float, default=of.least_slope, help="of classes of blocks (default: %(default)s)"
    )
    parser.add_argument(
        "--missing", choices=MISSING, default=of.missing, help="what others add to a sum (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Train and write vectors."""
    if options.contexts and options.loss == HIERARCHICAL:
        raise InputError("--contexts: a hierarchical softmax has vectors of inner nodes, and none of contexts")
    settings, corpus_options = settings_of(options), _corpus_options(options)
    folder = options.scratch or options.output.parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".embed.") as scratch:
        corpus = read_corpus(options.text, Path(scratch) / "words", corpus_options)
        check_words(corpus.vocabulary.words)
        settings = _chosen(corpus, settings, options.learning_rate or [])
        with told_to_stop() if options.checkpoint else nullcontext() as stop:
            fitted = fit(corpus, settings, options.checkpoint, options.checkpoint_seconds, stop)
    binary, embedding = format_of(options.output, options.format) == "binary", fitted.embedding
    write_word2vec(options.output, embedding.words, embedding.inputs, binary)
    if options.contexts and embedding.outputs is not None:
        write_word2vec(options.contexts, embedding.words, embedding.outputs, binary)
    if options.checkpoint:
        remove(options.checkpoint)
    speed = corpus.n_words * fitted.epochs / max(fitted.seconds, 1e-9)
    print(
        f"{len(embedding.words):,} words, {corpus.n_words:,} of {corpus.vocabulary.n_tokens:,} tokens;"
        f" {fitted.epochs:g} epochs in {fitted.seconds:.1f} s, {speed:,.0f} words/s"
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """Take the settings of a fit from the command line."""
    same = {each.name for each in fields(Settings)} & vars(options).keys() - {"subsample", "learning_rate"}
    return Settings(
        **{name: getattr(options, name) for name in same},
        dynamic_window=not options.whole_window,
        subsample=options.subsample or None,
        learning_rate=min(options.learning_rate) if options.learning_rate else None,
    )


def _chosen(corpus: Corpus, settings: Settings, rates: Sequence[float]) -> Settings:
    """Try several learning rates, if there are, and say what each came to."""
    if len(rates) < 2:
        return settings
    trials = try_out(corpus, [replace(settings, learning_rate=rate) for rate in rates])
    chosen = best(trials)
    for trial in trials:
        value = "diverged" if trial.value is None else f"{trial.value:.4f}"
        print(f"learning rate {trial.settings.rate:g}: {value}{' (chosen)' * (trial.settings == chosen)}")
    return chosen


def _corpus_options(options: argparse.Namespace) -> CorpusOptions:
    return CorpusOptions(**{each.name: getattr(options, each.name) for each in fields(CorpusOptions)})
