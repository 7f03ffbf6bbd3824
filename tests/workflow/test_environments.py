"""The conda environments say what the lock says."""

import re
import tomllib

import pytest
import yaml

from workflow.checkout import REPOSITORY

ENVIRONMENTS = sorted((REPOSITORY / "envs").glob("*.yaml"))


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
    needed = {
        re.split("[<>=]", entry)[0] for entry in project["dependencies"] + extras["report"] + extras["track"]
    }
    assert needed <= {name for file in ENVIRONMENTS for name, _ in pins(file)}


def test_rules_name_existing_environments():
    for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")):
        for name in re.findall(r'conda:\s+"(.*?)"', file.read_text()):
            assert (file.parent / name).is_file(), f"{file.name}: {name}"
