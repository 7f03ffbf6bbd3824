"""YAML and JSON from files and options: an error that names the place, whatever they hold."""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from xsoftmax.internal.errors import InputError

# Values that a document may have once its references are written out: those of YAML may double with every line.
MOST_VALUES = 1_000_000
# The largest number that float64 holds: a whole number beyond it is no setting of anything.
MOST_NUMBER = int(sys.float_info.max)
_TOO_LARGE = "a whole number too large for any setting; make it smaller"


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file; errors as of ``parse_yaml``, and if it cannot be read."""
    return parse_yaml(_text(Path(path)), str(path))


def read_json(path: str | Path) -> Any:
    """Read a JSON file; errors as of ``parse_json``, and if it cannot be read."""
    return parse_json(_text(Path(path)), str(path))


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses keys that are no text, and two equal ones, of which one would be lost silently.

    Names are texts all over: YAML takes ``yes`` for a truth value, and ``5`` for a number.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping."""
        for key, _ in node.value:
            if key.tag in _NO_NAMES:
                raise InputError(f"{_place(key)}: the key {key.value} is read as no text; write it as '{key.value}'")
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            twice = next(key for number, key in enumerate(keys) if key in keys[:number])
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} comes twice", node.start_mark)
        return super().construct_mapping(node, deep)

    def construct_whole_number(self, node: yaml.ScalarNode) -> int:
        """Construct a whole number of which a float can come."""
        value = self.construct_yaml_int(node)
        if abs(value) > MOST_NUMBER:
            raise InputError(f"{_place(node)}: {_TOO_LARGE}")
        return value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_whole_number)
# What keys are that look like a name and are none.
_NO_NAMES = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null", "timestamp")}


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML, plain values only.

    Raises
    ------
    InputError
        If it is none, is nested too deeply, or its references would make it too large.
    """
    try:
        loader = _Loader(text)
        loader.name = where
        content = loader.get_single_data()
    except InputError:  # which is a ValueError, too
        raise
    except (yaml.YAMLError, ValueError) as error:  # the latter: a date such as 2026-99-99
        raise InputError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise InputError(f"{where}: nested too deeply; make it flatter") from None
    if _n_values(content, {}) > MOST_VALUES:
        raise InputError(f"{where}: more than {MOST_VALUES} values once its references are written out")
    return content


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"the key {twice!r} comes twice")
    return found


def parse_json(text: str, where: str) -> Any:
    """Parse JSON.

    Raises
    ------
    InputError
        If it is none, or is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_int=_whole_number)
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from error
    except RecursionError:
        raise InputError(f"{where}: nested too deeply; make it flatter") from None


def _whole_number(text: str) -> int:
    value = int(text)
    if abs(value) > MOST_NUMBER:
        raise ValueError(f"{text[:20]}...: {_TOO_LARGE}")
    return value


def _place(node: yaml.Node) -> str:
    return f"{node.start_mark.name}, line {node.start_mark.line + 1}"


def _text(path: Path) -> str:
    if path.is_char_device() or path.is_block_device():
        raise InputError(f"{path}: a device, of which no end may come; name a file")
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not utf-8 ({error.reason}); save it as utf-8") from error


def _n_values(value: Any, known: dict[int, int]) -> int:
    """Count values, those that are referred to as often as they are; one that holds itself is endless."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES + 1  # until it is known: where it turns up again before, it holds itself
        inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_n_values(each, known) for each in inner)
    return known[id(value)]
