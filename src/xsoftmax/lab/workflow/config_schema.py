"""What a config may say by its schema; what is wrong in words for those who have not read one."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from xsoftmax.internal.documents import read_yaml
from xsoftmax.internal.errors import InputError, suggestion

# To JSON 1.0 is an integer; to the verbs, and as part of a path, it is not.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
SCHEMAS = Path(__file__).parent / "schemas"


def schema_of(name: str) -> dict[str, Any]:
    """Read the schema of that name."""
    return read(SCHEMAS / f"{name}.schema.yaml")


def check_by_schema(value: Any, schema: dict[str, Any], source: str) -> None:
    """Raise an InputError that names the key, what is wrong with it, and an example, if there is one."""
    error = best_match(_Validator(schema).iter_errors(value))
    if error is not None:
        where = [".".join(map(str, error.path))] if error.path else []
        raise InputError(": ".join([source, *where, _meaning(error)]) + _example(error, schema))


def _meaning(error: ValidationError) -> str:
    """Say what a schema finds wrong, in words for those who have not read it."""
    if error.validator == "not":
        return f"give one of {' and '.join(error.validator_value['required'])}, not both"
    if error.validator == "additionalProperties" and "properties" in error.schema:
        known = error.schema["properties"]
        unknown = next(key for key in error.instance if key not in known)
        return f"unknown key {unknown!r}; {suggestion(unknown, known)}"
    return error.message


def _example(error: ValidationError, schema: dict[str, Any]) -> str:
    """Show the key of the schema that is meant with a value that is right, if the schema has one."""
    known = schema.get("properties", {})
    if error.path:
        meant = [str(error.path[0])]
    elif error.validator == "required":
        meant = [key for key in error.validator_value if key not in error.instance]
    else:
        meant = [near for key in error.instance if key not in known for near in get_close_matches(key, known, n=1)]
    part = known.get(meant[0], {}) if meant else {}
    for name in part.get("$ref", "").removeprefix("#/").split("/") if "$ref" in part else ():
        part = schema[name] if name == "$defs" else schema["$defs"][name]
    if not part.get("examples"):
        return ""
    return f"; for example {yaml.safe_dump({meant[0]: part['examples'][0]}, default_flow_style=True)[1:-2]}"


def read(path: Path) -> dict[str, Any]:
    """Read a YAML file; an InputError if that cannot be."""
    try:
        return read_yaml(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}") from error
