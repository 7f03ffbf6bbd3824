"""What a config asks for: its data sets, methods and fits, and the trees that the fits share."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from xsoftmax.errors import InputError

SCHEMAS = Path(__file__).parent / "schemas"
AXES = {"objective": "objectives", "proposal": "proposals", "optimizer": "optimizers"}
TREE_DEFAULTS = {"dimension": 16, "regularizer": 0.1}


class Fit(NamedTuple):
    """One training run; its folder is ``results/<experiment>/fits/<dataset>/<method>/seed-<seed>``."""

    dataset: str
    method: str
    seed: int


@dataclass(frozen=True)
class Experiment:
    """A validated config, together with the data sets and methods that it names."""

    config: dict[str, Any]
    dataset_files: dict[str, Path]
    methods: dict[str, dict[str, Any]]

    @classmethod
    def from_config(cls, config: dict[str, Any], folder: Path = Path("config")) -> "Experiment":
        """Check ``config`` against its schema and against the files in ``folder``.

        Raises
        ------
        InputError
            If anything is wrong; the message names the key.
        """
        schema = _schema("config")
        config = {key: part["default"] for key, part in schema["properties"].items() if "default" in part} | config
        _check(config, schema, "config")
        methods = _read(folder / "methods.yaml")
        _check(methods, _schema("methods"), str(folder / "methods.yaml"))
        _check_known("methods", config["methods"], methods)
        _check_known("set", config["set"], config["methods"])
        chosen = {name: merged(methods[name], config["set"].get(name, {})) for name in config["methods"]}
        return cls(config, _dataset_files(config["datasets"], folder / "datasets"), chosen)

    @property
    def name(self) -> str:
        """Name of the experiment: its folder under ``results/``."""
        return self.config["experiment"]

    def fits(self) -> Iterator[Fit]:
        """Go through all combinations of data set, method and seed."""
        for dataset in self.dataset_files:
            for method in self.methods:
                for seed in self.config["seeds"]:
                    yield Fit(dataset, method, seed)

    def tree(self, method: str) -> str | None:
        """Name the tree that ``method`` draws from, by its parameters; methods with equal ones share it."""
        proposal = self.methods[method]["proposal"]
        if proposal["name"] != "tree":
            return None
        return "_".join(f"{key}-{proposal.get(key, default)}" for key, default in TREE_DEFAULTS.items())

    def trees(self) -> list[str]:
        """Name all trees that the methods draw from."""
        return sorted({tree for tree in map(self.tree, self.methods) if tree})

    def components(self, method: str) -> list[str]:
        """Name the modules of the library that make up ``method``, one per axis."""
        names = {package: self.methods[method][axis]["name"] for axis, package in AXES.items()}
        return [f"xsoftmax.{package}.{name.replace('-', '_')}" for package, name in names.items()]

    def changes(self, method: str) -> str:
        """Return what the config changes of ``method``, as JSON."""
        return json.dumps(self.config["set"].get(method, {}), sort_keys=True)

    def dataset(self, name: str) -> dict[str, Any]:
        """Read the description of a data set."""
        return _read(self.dataset_files[name])


def merged(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return ``settings`` with ``changes`` laid over them, key by key at every depth."""
    result = dict(settings)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def _dataset_files(entries: list[str], folder: Path) -> dict[str, Path]:
    known = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    files: dict[str, Path] = {}
    for entry in entries:
        path = Path(entry) if entry.endswith((".yaml", ".yml")) else known.get(entry)
        if path is None or not path.is_file():
            raise InputError(f"config: datasets: no {entry!r}; known: {', '.join(known)}, or a path ending in .yaml")
        if path.stem in files:
            raise InputError(f"config: datasets: {entry!r} and {str(files[path.stem])!r} have one name; rename one")
        files[path.stem] = path
    return files


def _check_known(key: str, names: list[str] | dict[str, Any], known: dict[str, Any] | list[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"config: {key}: unknown method {name!r}; known: {', '.join(known)}")


def _check(value: Any, schema: dict[str, Any], source: str) -> None:
    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        raise InputError(": ".join([source, *([".".join(map(str, error.path))] if error.path else []), error.message]))


def _schema(name: str) -> dict[str, Any]:
    return _read(SCHEMAS / f"{name}.schema.yaml")


def _read(path: Path) -> dict[str, Any]:
    try:
        return yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
