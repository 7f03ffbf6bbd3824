"""The verbs of the command line, one module each: what a Snakemake rule of the same name calls."""

from xsoftmax.internal import registry

FOLDERS = ("xsoftmax.commands", "xsoftmax.lab.commands")


def verbs() -> dict[str, str]:
    """Name all verbs in order, each with the module that it is, by dotted name. Nothing is imported."""
    found = {name: f"{folder}.{registry.stem(name)}" for folder in FOLDERS for name in registry.names(folder)}
    return dict(sorted(found.items()))
