"""Write params of a rule to its outputs of the same names: texts that may be longer than a command line (128 KB)."""

from pathlib import Path

for name, path in snakemake.output.items():  # noqa: F821 - Snakemake puts it here
    Path(path).write_text(snakemake.params[name].rstrip("\n") + "\n")  # noqa: F821
