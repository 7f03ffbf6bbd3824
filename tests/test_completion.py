"""What a shell completes, once it has read what `xsoftmax completion` wrote."""

import subprocess
import sys

import pytest

from xsoftmax.cli import main
from xsoftmax.commands import verbs

pytest.importorskip("shtab")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "xsoftmax.bash"
    command = [sys.executable, "-m", "xsoftmax", "completion", "bash"]
    with path.open("w") as file:
        subprocess.run(command, stdout=file, check=True)
    return path


def completed(script, folder, *words):
    """Complete the last word in bash."""
    line = " ".join(f"'{word}'" for word in ("xsoftmax", *words))
    said = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        "complete -p xsoftmax > /dev/null; _shtab_xsoftmax; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    ended = subprocess.run(["bash", "-c", said], cwd=folder, capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def test_bash_completes_verbs_options_and_files(script, tmp_path):
    assert completed(script, tmp_path, "") >= set(verbs())
    assert completed(script, tmp_path, "pre") == {"predict", "prepare"}
    assert completed(script, tmp_path, "predict", "--json") == {"--json-lines"}
    assert completed(script, tmp_path, "serve", "--index", "") >= {"hnsw", "ivf"}
    (tmp_path / "model.h5").touch()
    assert completed(script, tmp_path, "serve", "mod") == {"model.h5"}


def test_zsh_has_one_too(capsys):
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef xsoftmax")


def test_without_shtab_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == "error: shtab is not installed, which this needs; type: pip install shtab\n"
