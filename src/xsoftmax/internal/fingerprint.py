"""Hashes of our own sources: what a result was computed by, and where numba may cache machine code.

Snakemake does not see edits under ``src/``, and numba's disk cache does not see edits in another file. Hashes tell
both: a result's is of the modules that its command imports, directly or not; compiled code's is of the modules that
hold kernels. What is hashed is what a source means, its syntax tree without docstrings, so that a comment retrains
nothing. This module imports nothing heavy: the Snakefile reads it.
"""

import ast
import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.places import compiled_code, folder_of_compiled_code

PACKAGE = "xsoftmax"
ROOT = Path(__file__).parents[1]
# What a module imports that holds kernels, or types of them: numba's door, what attaches code to a kernel's name, or
# what objectives share.
_KERNELS = re.compile(
    rf"\b{PACKAGE}\.(?:kernels\.dispatch|objectives\._\w+|internal(?:\.| import )compiled)\b".encode()
)
# An import of ours, wherever it stands: ``import a, b`` or ``from a import b, c``, perhaps in parentheses. Parsing
# the sources would take longer than a short fit trains; what only looks like an import does no harm.
_IMPORT = re.compile(
    rf"^[ \t]*(?:import +([^\n]*\b{PACKAGE}\b[^\n]*)|from +({PACKAGE}[\w.]*) +import +(\([^)]*\)|[^\n]*))",
    re.MULTILINE,
)
_HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(*modules: str) -> str:
    """Hash what ``modules``, and all modules of this package that they import, mean.

    Parameters
    ----------
    *modules : str
        Dotted names, such as ``"xsoftmax.commands.train"``.

    Returns
    -------
    str
        16 hexadecimal digits. They depend on the version of Python, whose syntax trees are hashed.

    Raises
    ------
    InputError
        If a source is no Python.
    """
    return _meaning(sorted(set().union(*(_closure(module) for module in modules))))


def modules_below(package: str) -> list[str]:
    """Name the modules of a folder of this package, such as ``"xsoftmax.objectives"``, in order."""
    folder = source_of(package).parent
    return sorted(f"{package}.{path.stem}" for path in folder.glob("[!_]*.py"))


@cache
def kernel_modules() -> frozenset[str]:
    """Name the modules whose code, types and constants compiled code is made of."""
    kernels = ROOT / "kernels"
    paths = (path for path in ROOT.rglob("*.py") if kernels in path.parents or _KERNELS.search(_bytes(path)))
    return frozenset(map(_name_of, paths))


def point_numba_cache_at_sources() -> None:
    """Give numba a cache folder of its own for this state of the modules that hold kernels."""
    folder = str(compiled_code() / _meaning(sorted(kernel_modules())))
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
    for plain, origin, imported in _IMPORT.findall(_bytes(source_of(module)).decode()):
        names.update(re.findall(r"[\w.]+", plain))
        if origin:
            names.add(origin)
            names.update(f"{origin}.{name}" for name in re.findall(r"\w+", imported))
    ours = (name for name in names if name == PACKAGE or name.startswith(PACKAGE + "."))
    return tuple(sorted(name for name in ours if _exists(name)))


def _meaning(modules: list[str]) -> str:
    """Hash the syntax trees of modules; as that takes a while, what these very bytes mean is kept in a file."""
    sources = [source for module in modules for source in _sources(module)]
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + _bytes(source) + b"\0")
    name = digest.hexdigest()[:32]
    try:
        folder = folder_of_compiled_code("meanings")
        found = (folder / name).read_text(encoding="ascii")
        if re.fullmatch("[0-9a-f]{16}", found):
            return found
    except (OSError, ValueError):
        pass  # it is computed
    trees = "\n".join(f"{source.name} {_tree(source)}" for source in sources)
    found = hashlib.sha256(trees.encode()).hexdigest()[:16]
    try:
        folder = folder_of_compiled_code("meanings")
        aside = folder / f"{name}.{os.getpid()}"
        aside.write_text(found, encoding="ascii")
        aside.replace(folder / name)
    except OSError:
        pass  # it is computed again next time
    return found


@cache
def _tree(source: Path) -> str:
    """Hash the syntax tree of a module, docstrings left out; of a file that is no module, its bytes."""
    content = _bytes(source)
    if source.suffix == ".py":
        try:
            tree = ast.parse(content, str(source))
        except SyntaxError as error:
            raise InputError(f"{source}: line {error.lineno}: {error.msg}; mend this module") from None
        for node in ast.walk(tree):
            if isinstance(node, _HAVE_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
        content = ast.dump(tree).encode()
    return hashlib.sha256(content).hexdigest()


@cache
def _bytes(source: Path) -> bytes:
    return source.read_bytes()


def _sources(module: str) -> list[Path]:
    """A module, and the files of other kinds beside it that bear its name, such as a page's template."""
    path = source_of(module)
    return sorted(path.parent.glob(f"{path.stem}.*"))


@cache
def source_of(module: str) -> Path:
    """Name the file of a module of this package, whether or not it is there."""
    relative = Path(*module.split(".")[1:])
    package = ROOT / relative / "__init__.py"
    return package if package.exists() else (ROOT / relative).with_suffix(".py")


def _name_of(path: Path) -> str:
    """Name the module of a file of this package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGE, *(part for part in parts if part != "__init__")])


@cache
def _exists(module: str) -> bool:
    return source_of(module).exists()
