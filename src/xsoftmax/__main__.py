"""``python -m xsoftmax``."""

import sys

from xsoftmax.cli import main

sys.exit(main())
