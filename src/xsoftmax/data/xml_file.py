"""XML files, whatever they hold."""

from pathlib import Path
from xml.etree import ElementTree

from xsoftmax.internal.errors import InputError


def xml_root(path: Path, what: str, remedy: str) -> ElementTree.Element:
    """Read an XML file, which is to be ``what``.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, LookupError, ValueError, RecursionError) as error:  # of its encoding, some
        raise InputError(f"{path}: not {what} ({error}); {remedy}") from error
