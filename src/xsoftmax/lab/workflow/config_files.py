"""Look at files of a config before Snakemake does, which ends in a traceback or does not say where they are wrong.

`python -m xsoftmax.lab.workflow.config_files WORDS` takes those of Snakemake's command line. The profile ``default``
calls it, since Snakemake reads what ``--configfile`` names before any Snakefile.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError, as_line

CONFIG_FILE = "config/config.yaml"
OPTIONS = ("--configfile", "--configfiles")
WRONG = 3  # the exit status, unlike that of a Python that finds no such module
EXAMPLE = "experiment: mine, datasets: [digits], methods: [softmax], budget: {epochs: 10}"


def check_config_file(given: Mapping[str, Any], file: str = CONFIG_FILE) -> None:
    """Make sure that there is a config: the file that is read where none is named, or what ``--config`` gives.

    Raises
    ------
    InputError
        If there is neither, or the file is not to be read.
    """
    if Path(file).exists():
        _check(file)
    elif not given:
        raise InputError(
            f"no {file} in {Path.cwd()}; name an experiment with --configfile FILE.yaml, or write that file, for "
            f"example with the lines {EXAMPLE}"
        )


def main(words: Sequence[str]) -> int:
    """Look at all files that a command line of Snakemake names; say what is wrong with the first such one."""
    try:
        for file in _named(words):
            _check(file)
    except (InputError, OSError) as error:
        print(f"error: {as_line(error)}", file=sys.stderr)
        return WRONG
    return 0


def _named(words: Iterable[str]) -> Iterator[str]:
    inside = False
    for word in words:
        if word.startswith("-"):
            option, equals, value = word.partition("=")
            inside = option in OPTIONS and not equals
            if option in OPTIONS and equals:
                yield value
        elif inside:
            yield word


def _check(file: str) -> None:
    if not Path(file).exists():
        near = get_close_matches(file, map(str, _neighbours(Path(file))), n=1, cutoff=0.75)
        hint = f"did you mean {near[0]!r}?" if near else f"for example --configfile {CONFIG_FILE}"
        raise InputError(f"--configfile: no file {file!r} in {Path.cwd()}; {hint}")
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise InputError(f"{file}: has no keys with values; write for example the lines {EXAMPLE}")


def _neighbours(file: Path) -> Iterator[Path]:
    for folder in dict.fromkeys([file.parent, Path(), Path("config"), Path("config/experiments")]):
        yield from sorted(folder.glob("*.y*ml"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
