"""Folders of images: one folder per class, at any depth; pixels are grey values from 0 to 255, row by row."""

import io
import re
from pathlib import Path

import numpy as np

from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")
MOST_PIXELS = 2**26
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


def read(
    *,
    data: Path,
    more: Path | None = None,
    part: str = "all",
    size: int = 28,
    invert: bool = False,
    test_files: str | None = None,
) -> Rows:
    """Read all images below ``data``, in order of their paths; hidden ones are passed over.

    Parameters
    ----------
    data, more : Path
        A class is a folder with images in it; its name is the path from here.
    part : str
        ``train``, ``test`` or ``all``.
    size : int
        Width and height to which images are resized; a pixel is the mean of the area that it covers.
    invert : bool
        White becomes 0 and black 255.
    test_files : str, optional
        Regular expression: images whose file name it is found in are the test's, the others training's.
    """
    found = [(file, _class_name(file, top)) for top in (data, more) if top is not None for file in _images(top)]
    if part != "all":
        wanted = _pattern(test_files)
        found = [(file, name) for file, name in found if bool(wanted.search(file.name)) == (part == "test")]
    if not found or size < 1:
        problem = "no images in it" if size > 0 else f"cannot resize images to {size} pixels"
        raise InputError(f"{data}: {problem}; expected one folder per class, files {', '.join(SUFFIXES)}")
    check_free(4 * len(found) * size * size, f"{data}: {len(found)} images of {size} x {size} pixels")
    X = np.empty((len(found), size * size), dtype=np.float32)
    for row, (file, _) in enumerate(found):
        X[row] = _pixels(file, size)
    return Rows.with_names(255 - X if invert else X, [name for _, name in found])


def _pattern(test_files: str | None) -> re.Pattern[str]:
    if test_files is None:
        raise InputError("images: set options.test_files to say which images are the test's, or read part 'all'")
    try:
        return re.compile(test_files)
    except re.error as error:
        raise InputError(f"images: options.test_files: not a regular expression ({error}): {test_files!r}") from error


def _images(top: Path) -> list[Path]:
    if not top.is_dir():
        raise InputError(f"{top}: expected a folder with one folder of images per class")
    files = (file for file in top.rglob("*") if file.suffix.lower() in SUFFIXES)
    return sorted(file for file in files if not any(name[0] == "." for name in file.relative_to(top).parts))


def _class_name(file: Path, top: Path) -> str:
    return file.parent.relative_to(top).as_posix()


def _pixels(file: Path, size: int) -> np.ndarray:
    from PIL import Image

    try:
        content = io.BytesIO(file.read_bytes())  # from a file, Pillow would allocate what a damaged length says
        with Image.open(content, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError(f"{image.width} x {image.height} pixels, more than {MOST_PIXELS}")
            resized = image.convert("L").resize((size, size), Image.Resampling.BOX)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: cannot read it as an image ({error}); fetch it again") from error
    return np.asarray(resized, dtype=np.float32).ravel()
