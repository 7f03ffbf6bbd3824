"""Hashes of our own sources: what a result was computed by, and where numba may cache machine code.

Snakemake does not see edits under ``src/`` and numba's disk cache does not see edits in another file. Both are
told by a hash of the modules that a command imports, directly or not. This module imports nothing heavy: the
Snakefile reads it.
"""

import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

from xsoftmax.internal.places import compiled_code

PACKAGE = "xsoftmax"
ROOT = Path(__file__).parents[1]
# An import of ours, wherever it stands: ``import a, b`` or ``from a import b, c``, perhaps in parentheses. Parsing
# the sources would take longer than a short fit trains; what only looks like an import does no harm.
_IMPORT = re.compile(
    rf"^[ \t]*(?:import +([^\n]*\b{PACKAGE}\b[^\n]*)|from +({PACKAGE}[\w.]*) +import +(\([^)]*\)|[^\n]*))",
    re.MULTILINE,
)


def fingerprint(*modules: str) -> str:
    """Hash the sources of ``modules`` and of all modules of this package that they import.

    Parameters
    ----------
    *modules : str
        Dotted names, such as ``"xsoftmax.commands.train"``.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    closure = sorted(set().union(*(_closure(module) for module in modules)))
    digest = hashlib.sha256()
    for module in closure:
        for source in _sources(module):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def modules_below(package: str) -> list[str]:
    """Name the modules of a folder of this package, such as ``"xsoftmax.objectives"``, in order."""
    folder = source_of(package).parent
    return sorted(f"{package}.{path.stem}" for path in folder.glob("[!_]*.py"))


def point_numba_cache_at_sources() -> None:
    """Give numba a cache folder of its own for this state of our sources."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    folder = str(compiled_code() / digest.hexdigest()[:16])
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # imported before us: it has read its environment already
        sys.modules["numba"].config.CACHE_DIR = folder


@cache
def _closure(module: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting.extend(_imports(current))
    return frozenset(found)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Modules of this package that a module, or the packages around it, import."""
    names = {module.rsplit(".", 1)[0]} if "." in module else set()
    for plain, origin, imported in _IMPORT.findall(source_of(module).read_text(encoding="utf-8")):
        names.update(re.findall(r"[\w.]+", plain))
        if origin:
            names.add(origin)
            names.update(f"{origin}.{name}" for name in re.findall(r"\w+", imported))
    ours = (name for name in names if name == PACKAGE or name.startswith(PACKAGE + "."))
    return tuple(sorted(name for name in ours if _exists(name)))


def _sources(module: str) -> list[Path]:
    """A module, and the files of other kinds beside it that bear its name, such as a page's template."""
    path = source_of(module)
    return sorted(path.parent.glob(f"{path.stem}.*"))


def source_of(module: str) -> Path:
    """Name the file of a module of this package, whether or not it is there."""
    relative = Path(*module.split(".")[1:])
    package = ROOT / relative / "__init__.py"
    return package if package.exists() else (ROOT / relative).with_suffix(".py")


def _exists(module: str) -> bool:
    return source_of(module).exists()
