"""numba's cache on disk, made safe for programs that compile at the same time, and for what disks do.

numba numbers the files of a function's signatures, 1, 2, ...: two programs that take the same number leave an index
that names the other's code, which then runs with arguments of other types (numba's issues 4807 and 10128). Here a
file's number is a hash of its signature, so that whoever writes it writes the same.

A file that is cut short, or in which a bit has flipped, would be an exception, or machine code that computes
something else. Each ends with the SHA-256 of what comes before: one that does not match is as good as none, and is
written anew.

A function's code has copies of the functions that it calls, which numba leaves open to be replaced by copies that are
loaded already. These may add up in another order, so that the program that compiles would compute other bits than the
next one, which reads the cache. Here each function keeps its own copies.

numba's folders are named after where the sources lie. Ours are named after what the sources say, so that a copy of
them, such as another working tree, reads what this one has compiled.

An index names the types of all signatures, and who cannot import one of them cannot read it; and the folder is named
after the modules that hold kernels. So what is compiled for a type from elsewhere, such as a proposal in a script, is
not kept.
"""

import hashlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from llvmlite.binding import Linkage
from numba.core import caching, codegen

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import ROOT, kernel_modules
from xsoftmax.internal.places import CODE, compiled_code, folder_of_compiled_code

DIGEST_BYTES = hashlib.sha256().digest_size
_told: set[str] = set()


class CheckedFile(caching.IndexDataCacheFile):
    """Cache files of one function."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature, then name it in the index."""
        digest = hashlib.sha256(self._dump(key)).digest()
        name = self._data_name(int.from_bytes(digest[:8]))
        self._save_data(name, data)
        overloads = self._load_index()
        self._save_index({**overloads, key: name})

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _is_whole(Path(self._index_path)) else {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if _is_whole(Path(self._data_path(name))) else None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        """As numba does; what it writes is followed by its checksum, which its reading takes no notice of."""
        with super()._open_for_write(filepath) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())


def _save_overload(self: caching.FunctionCache, sig: Any, data: Any) -> None:
    """As numba does, for types of kernels of ours; a disk that does not take it costs only time."""
    if not all(_is_known_to_all(kind) for kind in getattr(sig, "args", sig)):
        return
    try:
        caching.Cache.save_overload(self, sig, data)
    except OSError as error:
        _tell(f"{self.cache_path}: cannot keep compiled code ({error.strerror}); it is compiled again next time")


def _is_known_to_all(kind: Any) -> bool:
    """Whether a type is of a module that the folder's name tells of, so that whoever reads the index has the same."""
    member = getattr(kind, "instance_class", None)
    if member is not None and member.__module__ not in kernel_modules():
        return False
    return all(_is_known_to_all(part) for part in getattr(kind, "types", ()))


def _subpath_of_any_copy(py_file: str) -> str:
    """As numba does; for a file of ours, which folder of the package it lies in."""
    folder = Path(py_file).parent
    return folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else _subpath(py_file)


def _finalize_with_own_copies(self: codegen.CPUCodeLibrary) -> None:
    """As numba does, but nothing that was linked in can be seen from outside, or be replaced from there."""
    if self._shared_module is None:  # not read from the cache
        shared = self._final_module.clone()  # what others link in, as by ``_get_module_for_linking``
        for function in shared.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = shared
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = "internal"
    _finalize(self)


def _is_whole(path: Path) -> bool:
    """Tell whether a file is there and ends with the checksum of what comes before; say so if it does not."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() == content[-DIGEST_BYTES:]:
        return True
    _tell(f"{path}: damaged; what it holds is compiled anew")
    return False


def _tell(warning: str) -> None:
    if warning not in _told:
        _told.add(warning)
        print(f"warning: {warning}", file=sys.stderr)


def _check_place() -> None:
    """Make sure that compiled code can be kept: elsewhere numba would not see edits of other modules.

    Raises
    ------
    InputError
        If not; says which variable names another place.
    """
    folder = compiled_code()
    try:
        TemporaryFile(dir=folder_of_compiled_code(Path(os.environ["NUMBA_CACHE_DIR"]).name)).close()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot keep compiled code there ({error.strerror or error}); set {CODE} to a folder that is"
            " yours to write to"
        ) from error


_finalize = codegen.CPUCodeLibrary._finalize_final_module
_subpath = caching._CacheLocator.get_suitable_cache_subpath
_check_place()
codegen.CPUCodeLibrary._finalize_final_module = _finalize_with_own_copies  # type: ignore[method-assign]
caching.IndexDataCacheFile = CheckedFile  # type: ignore[misc]
caching.FunctionCache.save_overload = _save_overload  # type: ignore[method-assign, assignment]
caching._CacheLocator.get_suitable_cache_subpath = staticmethod(_subpath_of_any_copy)  # type: ignore[assignment]
