"""What the package brings along: its methods, and its descriptions of data sets.

They are the files of ``config/`` in a checkout, which ``xsoftmax/config`` links to and an installed package holds.
"""

from pathlib import Path

from xsoftmax.internal.errors import InputError, suggestion

CONFIG = Path(__file__).parents[1] / "config"
HERE = Path("config")
SUFFIX = ".yaml"


def methods_file(folder: Path = HERE) -> Path:
    """Name the file of methods where none is given: the one in ``folder``, else the one shipped."""
    return _here_or_shipped("methods.yaml", folder)


def descriptions(folder: Path = HERE) -> dict[str, Path]:
    """List the descriptions of data sets by name, in order; one in ``folder`` comes before a shipped one."""
    found = {path.stem: path for each in (CONFIG, folder) for path in (each / "datasets").glob(f"*{SUFFIX}")}
    return dict(sorted(found.items()))


def description(named: str | Path) -> Path:
    """Find the description of a data set by its path, or by the name of one that is shipped.

    A file ``config/datasets/<name>.yaml`` from here comes before a shipped one of that name.

    Raises
    ------
    InputError
        If there is neither such a file nor such a data set; the message tells near misses.
    """
    path = Path(named)
    if path.is_file():
        return path
    found = _here_or_shipped(f"datasets/{path}{SUFFIX}")
    if path.name == str(path) and found.is_file():
        return found
    near = suggestion(path.name.removesuffix(SUFFIX), dataset_names())
    raise InputError(f"{path}: no such data set description; give the path of one, or a name ({near})")


def dataset_names() -> list[str]:
    """Name the data sets that are shipped, in order."""
    return sorted(path.stem for path in (CONFIG / "datasets").glob(f"*{SUFFIX}"))


def _here_or_shipped(name: str, folder: Path = HERE) -> Path:
    here = folder / name
    return here if here.is_file() else CONFIG / name
