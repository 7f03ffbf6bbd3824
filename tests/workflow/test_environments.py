"""The conda environments say what the lock says, and each holds what its verbs import."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from workflow.checkout import REPOSITORY
from workflow.sources import code
from xsoftmax.commands import verbs

ENVIRONMENTS = sorted((REPOSITORY / "envs").glob("*.yaml"))
VERBS = verbs()
IMPORTED_AS = {"PIL": "pillow", "faiss": "faiss-cpu", "yaml": "pyyaml", "sklearn": "scikit-learn"}


def locked():
    """Versions in the lock for the oldest Python, by name."""
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    pins = [re.match(r"([a-z0-9._-]+)==(\S+) *(?:; (.*?))? *\\?$", line) for line in lines]
    for_all = [pin for pin in pins if pin and ">= '3.12'" not in (pin[3] or "")]
    return {pin[1]: pin[2] for pin in for_all}


def pins(file):
    """Pairs of a package's name in the lock and its version, of conda's and of pip's packages."""
    content = yaml.safe_load(file.read_text())["dependencies"]
    of_pip = [pin for entry in content if isinstance(entry, dict) for pin in entry["pip"]]
    of_conda = [entry for entry in content if isinstance(entry, str) and entry != "pip"]
    return [re.split("=+", pin.replace("-base=", "="), maxsplit=1) for pin in of_conda + of_pip]


@pytest.mark.parametrize("file", ENVIRONMENTS, ids=lambda path: path.stem)
def test_every_pin_agrees_with_the_lock(file):
    lock = locked()
    for name, version in pins(file):
        assert version == "3.11" if name == "python" else version == lock[name], name


def test_together_they_hold_what_the_package_needs():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    entries = project["dependencies"] + extras["data"] + extras["report"] + extras["track"]
    needed = {re.split("[<>=]", entry)[0] for entry in entries}
    assert needed <= {name for file in ENVIRONMENTS for name, _ in pins(file)}


def test_the_packages_for_s3_change_none_of_the_lock():
    lines = (REPOSITORY / "envs/s3.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert not pinned.keys() & locked().keys()
    assert pinned["s3fs"] == locked()["fsspec"], "s3fs asks for the fsspec of its own version"


@pytest.mark.parametrize("file", ENVIRONMENTS, ids=lambda path: path.stem)
def test_each_holds_what_its_verbs_import(file):
    verbs = [rule for rule, name in environments_of_rules() if name == file.name and rule in VERBS]
    needed = {package for verb in verbs for package in imported_packages(verb)}
    assert verbs
    assert needed - ON_REQUEST <= {name for name, _ in pins(file)}


def test_rules_name_existing_environments():
    assert {name for _, name in environments_of_rules()} == {file.name for file in ENVIRONMENTS}


# What only methods with a device of PyTorch's import, and whoever has such a device installs: docs/gpu.md.
ON_REQUEST = {"torch"}


def environments_of_rules():
    """Pairs of a rule and the file of its environment."""
    for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")):
        for rule, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", file.read_text(), re.MULTILINE | re.DOTALL):
            yield rule, re.search(r'conda:\s+"../../envs/(.*?)"', body)[1]


def imported_packages(verb):
    """Packages, as the lock names them, that a verb and the command line around it import anywhere."""
    nodes = [node for module in code("xsoftmax.cli", verb) for node in ast.walk(ast.parse(module.read_text()))]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names = plain | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    found = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"xsoftmax"}
    return {IMPORTED_AS.get(name, name) for name in found}


@pytest.mark.parametrize("way_out", ["none", "pip", "apt", "apt, not allowed"])
@pytest.mark.slow
def test_without_ensurepip_setup_does_without_or_says_what_to_type(tmp_path, way_out):
    """A Python as Debian has it, whose venv stops half-way until a package is installed."""
    installed, folder, asked = tmp_path / "installed", tmp_path / "venv", tmp_path / "asked"
    fake = tmp_path / "bin"
    fake.mkdir()
    script(
        fake / "python3.11",
        f"""case "$*" in
          "-m venv --without-pip "*) ;;
          "-m venv "*) [ -e {installed} ] || {{ mkdir -p "$3/bin"; exit 1; }} ;;
          "-m pip --python "*) [ '{way_out}' = pip ] && exec {sys.executable} -m venv "{folder}"; exit 1 ;;
        esac""",
    )
    script(fake / "apt-get", f"touch {asked}; [ '{way_out}' = apt ] || exit 100; touch {installed}; exit 0")
    script(fake / "sudo", f'touch {asked}; shift; "$@"; exit')
    for command in ("virtualenv", "uv"):
        script(fake / command, "exit 1")
    allowed = {} if "not allowed" in way_out else {"XSOFTMAX_APT": "1"}
    done = subprocess.run(
        ["bash", REPOSITORY / "envs/create-venv.sh", folder],
        env={"PATH": f"{fake}:/usr/bin:/bin"} | allowed, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert asked.exists() == (way_out in ("none", "apt"))
    if way_out in ("pip", "apt"):
        assert done.returncode == 0, done.stderr
        assert (folder / "bin/pip").exists()
    else:
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("error: python3.11 cannot make virtual environments")
        assert "type: sudo apt-get install python3.11-venv" in done.stderr
        assert len(done.stderr.splitlines()) == 1 + asked.exists()
        assert not folder.exists()


def script(path, text):
    path.write_text(f'#!/bin/bash\n{text}\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
