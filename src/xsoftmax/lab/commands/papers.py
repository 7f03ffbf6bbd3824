"""Sum up what became of the claims of all papers: renews the table, and the rules, in a README.md among their pages.

xsoftmax papers docs/papers
"""

import argparse
from pathlib import Path

from xsoftmax.lab.marked_blocks import renew


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("pages", nargs="?", type=Path, default=Path("docs/papers"), help="default: %(default)s")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.reproduction.how_judged import how_claims_are_judged
    from xsoftmax.lab.reproduction.page import overview

    writers = {"verdicts": lambda _: overview(options.pages), "rules": lambda _: how_claims_are_judged()}
    renew(options.pages / "README.md", writers)
