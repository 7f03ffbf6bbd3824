"""What the package brings along is found from anywhere, by name."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from xsoftmax.cli import main
from xsoftmax.data.config import load_config
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.shipped import CONFIG, dataset_names, methods_file

ROOT = Path(__file__).parents[2]


def test_it_is_what_the_checkout_has_in_config():
    assert CONFIG.resolve() == ROOT / "config"
    assert dataset_names() == sorted(path.stem for path in (ROOT / "config/datasets").glob("*.yaml"))


def test_methods_and_data_sets_are_found_from_an_empty_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["methods"]) == 0
    assert "softmax-lbfgs" in capsys.readouterr().out
    assert main(["download", "five-gaussians", "-o", "raw"]) == 0
    assert main(["prepare", "five-gaussians", "--raw", "raw", "-o", "five.h5"]) == 0
    assert main(["train", "five.h5", "--method", "softmax-lbfgs", "--epochs", "2", "-o", "fit"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "five.h5", "fit"}


def test_what_lies_here_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icd10").mkdir()  # a folder of that name is no description
    assert load_config("icd10").format == "icd10"
    (tmp_path / "config/datasets").mkdir(parents=True)
    (tmp_path / "config/datasets/icd10.yaml").write_text("{name: icd10, format: table}")
    (tmp_path / "config/methods.yaml").touch()
    assert load_config("icd10").format == "table"
    assert methods_file() == Path("config/methods.yaml")
    (tmp_path / "digits").write_text("{name: digits, format: svmlight}")
    assert load_config("digits").format == "svmlight"


@pytest.mark.parametrize("named", ["bibtx", "bibtx.yaml", "data/bibtx.yaml", "../datasets/bibtx"])
def test_a_near_miss_is_told(named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"^{named}: no such data set .*did you mean 'bibtex'\?"):
        load_config(named)


def test_a_name_leads_nowhere_else():
    with pytest.raises(InputError, match="no such data set description"):
        load_config("../methods")


def test_all_that_git_has_beside_the_sources_is_package_data():
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    package = ROOT / "src/xsoftmax"
    others = {ROOT / name for name in listed if not name.endswith(".py")}
    linked = {path for path in others if path.is_symlink()}
    assert linked == {package / "config", package / "lab/workflow/schemas"}
    declared = package_data()
    assert others - linked <= declared
    assert {package / "config/methods.yaml", *(package / "config/datasets").glob("*.yaml")} <= declared
    assert set((package / "lab/workflow/schemas").iterdir()) <= declared


def package_data():
    """Files that ``pyproject.toml`` puts into a wheel beside the sources."""
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    folders = {package: ROOT / "src" / package.replace(".", "/") for package in globs}
    return {path for package, patterns in globs.items() for each in patterns for path in folders[package].glob(each)}
