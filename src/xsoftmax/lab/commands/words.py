"""Train vectors of words by all methods of an experiment, and leave each as a fit, for the page of a paper.

xsoftmax words config/words/yen2018-words.yaml books=war-and-peace.txt -o results/yen2018-words
"""

import argparse
from pathlib import Path

from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("experiment", type=Path, metavar="FILE.yaml", help="such as config/words/yen2018-words.yaml")
    parser.add_argument("texts", nargs="+", metavar="NAME=TEXT", help="the file of a corpus of the experiment")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help="gets fits/ and trials/")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.reproduction.word_fits import WordExperiment, run

    texts = {}
    for given in options.texts:
        name, equals, path = given.partition("=")
        if not equals or not Path(path).exists():
            raise InputError(f"{given}: no such text; write NAME=TEXT, such as books=warandpeace.txt")
        texts[name] = Path(path)
    run(WordExperiment.of(read_yaml(options.experiment)), texts, options.output, lambda line: print(line, flush=True))
