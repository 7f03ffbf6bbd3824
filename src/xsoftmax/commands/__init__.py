"""The verbs of the command line, one module each: what a Snakemake rule of the same name calls."""
