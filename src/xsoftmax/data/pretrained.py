"""Tables that were trained elsewhere: a vector for each of some words, or for each feature in order.

    .npy         float32 or float64 of shape (n_features, dimension), in the order of the features
    .h5, .hdf5   the same as ``vectors``; beside it, if they are of words, ``words``: text of fixed length
    .txt, .vec   word2vec's text format, as ``xsoftmax embed``, gensim and fastText write it; perhaps compressed
    .bin         word2vec's binary format; perhaps compressed

``READERS`` has a reader for each ending; another format needs one line there.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from xsoftmax.data.word2vec_files import ending_of, read_word2vec
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5_checks import ContentError, check_plain

# Numbers that are looked at in one go.
_AT_A_TIME = 2**20
_KINDS = (np.dtype(np.float32), np.dtype(np.float64))


class Vectors(NamedTuple):
    """A vector for each word, float32 of shape (n, dimension); ``words`` is None where features' order names them."""

    words: Sequence[str] | None
    vectors: np.ndarray


def read_vectors(path: str | Path) -> Vectors:
    """Read a table of vectors.

    Raises
    ------
    InputError
        If the file is missing, of an unknown ending, damaged, or has numbers that are not finite.
    """
    path = Path(path)
    ending = ending_of(path)
    if ending not in READERS:
        raise InputError(f"{path}: a table of vectors is a file that ends in {', '.join(READERS)}; store it as one")
    if not path.is_file():
        raise InputError(f"{path}: no such file; table of an encoder names a file of vectors")
    try:
        found = READERS[ending](path)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError, EOFError) as error:
        raise InputError(f"{path}: not a table of vectors ({error}); store it again") from None
    if found.words is not None and len(found.words) != len(found.vectors):
        raise InputError(f"{path}: {len(found.words)} words and {len(found.vectors)} vectors; store it again")
    step = max(1, _AT_A_TIME // max(1, found.vectors.shape[1]))
    for first in range(0, len(found.vectors), step):
        bad = np.flatnonzero(~np.isfinite(found.vectors[first : first + step]).all(axis=1))
        if bad.size:
            raise InputError(f"{path}: vector {first + bad[0] + 1} is NaN or infinite in float32; leave it out")
    return found


def aligned(found: Vectors, names: Sequence[str], n_features: int, where: str) -> np.ndarray:
    """Give the vectors in the order of the features; NaN for features that have none.

    Parameters
    ----------
    found : Vectors
    names : sequence of str
        Of the features; empty if they have none.
    n_features : int
    where : str
        What a message begins with.

    Returns
    -------
    ndarray of shape (n_features, dimension), float32

    Raises
    ------
    InputError
        If the vectors are of words and the features have no names, or none in common; or if their numbers differ.
    """
    if found.words is None:
        if len(found.vectors) != n_features:
            raise InputError(
                f"{where}: {len(found.vectors)} vectors for {n_features} features; store one for each feature, in "
                "order, or the words beside them"
            )
        return found.vectors
    if len(names) != n_features:
        raise InputError(f"{where}: its vectors are of words, and the features have no names; store them in order")
    place = {word: row for row, word in reversed(list(enumerate(found.words)))}
    rows = np.array([place.get(name, -1) for name in names], np.int64)
    if not (rows >= 0).any():
        raise InputError(
            f"{where}: none of its {len(found.words)} words is a feature, such as {names[0]!r}; write them alike"
        )
    check_free(4 * n_features * found.vectors.shape[1], f"the table of {where}")
    table = np.full((n_features, found.vectors.shape[1]), np.nan, np.float32)
    table[rows >= 0] = found.vectors[rows[rows >= 0]]
    return table


def _read_npy(path: Path) -> Vectors:
    stored = np.load(path, mmap_mode="r", allow_pickle=False)
    return Vectors(None, _as_float32(stored.dtype, stored.shape, stored, path))


def _read_hdf5(path: Path) -> Vectors:
    with h5py.File(path, "r", locking=False) as file:
        check_plain(file, path.stat().st_size)
        stored, words = file["vectors"], None
        if "words" in file:
            words = [word.decode("utf-8") for word in file["words"][:].tolist()]
        return Vectors(words, _as_float32(stored.dtype, stored.shape, stored, path))


def _as_float32(kind: np.dtype, shape: tuple[int, ...], stored: np.ndarray | h5py.Dataset, path: Path) -> np.ndarray:
    if kind not in _KINDS or len(shape) != 2 or not math.prod(shape):
        raise ContentError(f"{kind} of shape {shape}, expected float32 or float64 of a row per vector")
    check_free(2 * 4 * math.prod(shape), f"the vectors of {path}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(stored[:], np.float32)


def _read_word2vec(path: Path) -> Vectors:
    return Vectors(*read_word2vec(path))


READERS: dict[str, Callable[[Path], Vectors]] = {
    **{".npy": _read_npy, ".h5": _read_hdf5, ".hdf5": _read_hdf5},
    **{".txt": _read_word2vec, ".vec": _read_word2vec, ".bin": _read_word2vec},
}
