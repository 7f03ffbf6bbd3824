"""Print the words nearest to words, by the cosine of their vectors, as CSV.

xsoftmax neighbours vectors.txt peace war --top 5
"""

import argparse
import csv
import sys
from pathlib import Path

from xsoftmax.data.word2vec_files import FORMATS, read_word2vec
from xsoftmax.skip_gram.neighbours import most_similar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("vectors", type=Path, help="word2vec's text or binary format, perhaps compressed")
    parser.add_argument("words", nargs="+", help="whose neighbours are looked for")
    parser.add_argument("--top", type=int, default=10, help="neighbours of each (default: %(default)s)")
    parser.add_argument("--format", choices=FORMATS, help="default: binary if the name ends in .bin, else text")


def run(options: argparse.Namespace) -> None:
    """Print a line for each word and neighbour: the word, a rank from 1, the neighbour, the cosine."""
    found = most_similar(read_word2vec(options.vectors, options.format), options.words, options.top)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["word", "rank", "neighbour", "cosine"])
    for word, neighbours in zip(options.words, found, strict=True):
        for rank, each in enumerate(neighbours, start=1):
            rows.writerow([word, rank, each.word, f"{each.cosine:.4f}"])
