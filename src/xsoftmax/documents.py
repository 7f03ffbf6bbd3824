"""YAML and JSON from files and options: an error that names the place, whatever they hold."""

import json
from pathlib import Path
from typing import Any

import yaml

from xsoftmax.errors import InputError

# Values that a document may have once its references are written out: those of YAML may double with every line.
MOST_VALUES = 1_000_000


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file; errors as of ``parse_yaml``, and if it cannot be read."""
    return parse_yaml(_text(Path(path)), str(path))


def read_json(path: str | Path) -> Any:
    """Read a JSON file; errors as of ``parse_json``, and if it cannot be read."""
    return parse_json(_text(Path(path)), str(path))


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses two equal keys, of which one would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            twice = next(key for number, key in enumerate(keys) if key in keys[:number])
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} comes twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML, plain values only.

    Raises
    ------
    InputError
        If it is none, is nested too deeply, or its references would make it too large.
    """
    try:
        content = _Loader(text).get_single_data()
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
        return json.loads(text, object_pairs_hook=_without_doubles)
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from error
    except RecursionError:
        raise InputError(f"{where}: nested too deeply; make it flatter") from None


def _text(path: Path) -> str:
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
