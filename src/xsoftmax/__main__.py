"""``python -m xsoftmax``."""

import sys

from xsoftmax.cli import program

sys.exit(program())
